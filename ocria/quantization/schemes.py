"""Frozen descriptions of the weight formats; the arithmetic is in nvfp4.py and fp8.py."""

from dataclasses import dataclass
from typing import Literal

SchemeName = Literal["nvfp4", "fp8"]


@dataclass(frozen=True, kw_only=True, slots=True)
class WeightScheme:
    """How one weight matrix [N, K] is stored.

    Attributes:
        name: short name, used in `ModelInfo.precision`.
        format: name of the format in the layout that stores it.
        codes: name of the tensor that holds the codes, below the module's name.
        scales: names of the tensors that hold its scales.
        bits: bits of one code, without scales.
        group_size: weights along K that share a scale; None when a whole row does.
        global_multiplies: the stored global scale multiplies (ModelOpt) instead of dividing.
    """

    name: SchemeName
    format: str
    codes: str
    scales: tuple[str, ...]
    bits: int
    group_size: int | None
    global_multiplies: bool = False

    @property
    def parts(self) -> tuple[str, ...]:
        """Names of all stored tensors, below the module's name."""
        return (self.codes, *self.scales)


NVFP4 = WeightScheme(
    name="nvfp4",
    format="nvfp4-pack-quantized",
    codes="weight_packed",
    scales=("weight_scale", "weight_global_scale"),
    bits=4,
    group_size=16,
)
FP8 = WeightScheme(
    name="fp8",
    format="float-quantized",
    codes="weight",
    scales=("weight_scale",),
    bits=8,
    group_size=None,
)
SCHEMES: dict[str, WeightScheme] = {scheme.format: scheme for scheme in (NVFP4, FP8)}

MODELOPT_NVFP4 = WeightScheme(
    name="nvfp4",
    format="W4A16_NVFP4",
    codes="weight",
    scales=("weight_scale", "weight_scale_2"),
    bits=4,
    group_size=16,
    global_multiplies=True,
)
MODELOPT_FP8 = WeightScheme(
    name="fp8",
    format="FP8_PER_CHANNEL_PER_TOKEN",
    codes="weight",
    scales=("weight_scale",),
    bits=8,
    group_size=None,
)
