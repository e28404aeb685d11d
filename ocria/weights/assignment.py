"""Puts the tensors of a source into a module built on the meta device, strictly by name."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn

from ocria.errors import WeightsError

_SHOWN = 5


class TensorSource(Protocol):
    """Named tensors in a wanted dtype, whatever they are on disk."""

    def names(self) -> Iterable[str]:
        """Names of all tensors."""
        ...

    def shape(self, name: str) -> tuple[int, ...]:
        """Shape of the tensor that `read` would return."""
        ...

    def read(self, name: str, dtype: torch.dtype) -> Tensor:
        """The tensor, converted."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class LoadReport:
    """What a load did.

    Attributes:
        num_tensors: tensors assigned.
        unexpected: names in the checkpoint that the model has no place for, sorted; they were
            not loaded.
        renamed: names that an older or foreign export spelled differently, as (stored, ours).
    """

    num_tensors: int
    unexpected: tuple[str, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()


def assign(
    module: nn.Module,
    source: TensorSource,
    *,
    dtype: torch.dtype,
    float32_names: Collection[str] = (),
) -> LoadReport:
    """Fills every parameter and persistent buffer of `module` from `source`.

    Args:
        module: built under `torch.device("meta")`; its tensors are replaced, not copied into.
        source: where the tensors come from.
        dtype: dtype of the assigned tensors.
        float32_names: last parts of names (`A_log`) that stay float32 whatever `dtype` is.

    Returns:
        What was assigned, and which names of the source have no place in the module.

    Raises:
        WeightsError: a tensor is missing or has another shape; all of them are named.
    """
    wanted = {name: tuple(value.shape) for name, value in module.state_dict().items()}
    offered = set(source.names())
    _refuse("the checkpoint lacks", sorted(wanted.keys() - offered))
    _refuse(
        "shapes differ from the config's:",
        [
            f"{name} is {list(source.shape(name))}, the model wants {list(shape)}"
            for name, shape in wanted.items()
            if source.shape(name) != shape
        ],
    )
    for name in wanted:
        keeps = name.rpartition(".")[2] in float32_names
        _place(module, name, source.read(name, torch.float32 if keeps else dtype))
    return LoadReport(num_tensors=len(wanted), unexpected=tuple(sorted(offered - wanted.keys())))


def _place(module: nn.Module, name: str, tensor: Tensor) -> None:
    path, _, leaf = name.rpartition(".")
    owner = module.get_submodule(path)
    is_parameter = isinstance(getattr(owner, leaf), nn.Parameter)
    setattr(owner, leaf, nn.Parameter(tensor, requires_grad=False) if is_parameter else tensor)


def _refuse(what: str, names: list[str]) -> None:
    if not names:
        return
    shown = ", ".join(names[:_SHOWN])
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    raise WeightsError(
        f"{what} {shown}{more}",
        hint="the weights and config.json must come from the same checkpoint",
    )
