"""A kernel with the types of one launch: what `ocria.kernels.lowering` compiles without a GPU."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True, slots=True)
class Specimen:
    """One compilation.

    Attributes:
        name: file name of its PTX, without suffix.
        kernel: the jitted function.
        types: Triton type of every run-time argument, in order; `*` marks a pointer.
        constants: values of the compile-time arguments.
        num_warps: warps of a program.
        num_stages: depth of the software pipeline.
        has_dot: multiplies on tensor cores; a test looks for the instruction.
        options: other options of the compilation.
    """

    name: str
    kernel: Any
    types: dict[str, str]
    constants: dict[str, Any]
    num_warps: int = 4
    num_stages: int = 3
    has_dot: bool = True
    options: dict[str, Any] = field(default_factory=dict)
