"""An operation as one function: its reference, or the kernel of that name where a call fits."""

from collections.abc import Callable
from functools import cache, wraps
from importlib import import_module
from typing import Any, ParamSpec, TypeVar

from torch import Tensor

from ocria.kernels.triton_mode import takes_triton

Args = ParamSpec("Args")
Result = TypeVar("Result")


def with_kernel(reference: Callable[Args, Result]) -> Callable[Args, Result]:
    """`reference`, but `triton_impl` beside it where the first tensor of a call takes Triton.

    The kernel has the name and the parameters of its reference, and is imported when first called.
    """
    package, name = reference.__module__.rpartition(".")[0], reference.__name__

    @cache
    def kernel() -> Callable[Args, Result]:
        found: Callable[Args, Result] = getattr(import_module(f"{package}.triton_impl"), name)
        return found

    @wraps(reference)
    def operation(*args: Args.args, **options: Args.kwargs) -> Result:
        chosen = kernel() if takes_triton(_first_tensor(args)) else reference
        return chosen(*args, **options)

    return operation


def _first_tensor(args: tuple[Any, ...]) -> Tensor:
    return next(arg for arg in args if isinstance(arg, Tensor))
