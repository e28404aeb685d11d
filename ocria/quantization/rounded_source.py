"""A checkpoint in another precision than it is stored in, made tensor by tensor as it is read.

Rounding to nearest, without calibration: `ocria quantize` loses less, and does it once.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

import torch
from torch import Tensor

from ocria.errors import WeightsError
from ocria.quantization import fp8, nvfp4
from ocria.quantization.schemes import FP8, NVFP4, WeightScheme
from ocria.quantization.source import QuantizedSource

Stored = Tensor | nvfp4.NVFP4Tensor | fp8.FP8Tensor
UNCALIBRATED = "rounded to nearest"
_TILE_WEIGHTS = 1 << 24


class MixedSource:
    """Products in NVFP4 and tables in FP8; whatever is stored in codes already stays as it is.

    Implements `ocria.weights.TensorSource`, and `read_packed` as `QuantizedSource` has it.

    Args:
        source: the stored tensors.
        groups: names of matrices that become NVFP4; those of a group are multiplied together and
            share one global scale.
        tables: names of matrices that become FP8, row by row.
    """

    def __init__(
        self, source: QuantizedSource, groups: Iterable[Sequence[str]], tables: Iterable[str]
    ) -> None:
        self._source = source
        self._group_of: Mapping[str, Sequence[str]] = {
            name: group
            for group in groups
            for name in group
            if all(source.scheme(member) is None for member in group)
        }
        self._tables = frozenset(name for name in tables if source.scheme(name) is None)
        self._shared: dict[str, Tensor] = {}

    @property
    def renamed(self) -> list[tuple[str, str]]:
        """See `QuantizedSource`."""
        return self._source.renamed

    def names(self) -> Iterable[str]:
        """Names of all logical tensors."""
        return self._source.names()

    def shape(self, name: str) -> tuple[int, ...]:
        """Shape of a tensor as plain numbers."""
        return self._source.shape(name)

    def scheme(self, name: str) -> WeightScheme | None:
        """Format that `read_packed` gives a tensor in."""
        if name in self._group_of:
            return NVFP4
        return FP8 if name in self._tables else self._source.scheme(name)

    def formats(self) -> tuple[str, ...]:
        """Short names of the formats in use, the one with the fewest bits first."""
        schemes = {scheme for name in self.names() if (scheme := self.scheme(name))}
        return tuple(dict.fromkeys(s.name for s in sorted(schemes, key=lambda s: s.bits)))

    @property
    def is_rounded(self) -> bool:
        """Whether any tensor is rounded here."""
        return bool(self._group_of or self._tables)

    def read(self, name: str, dtype: torch.dtype) -> Tensor:
        """The values that the rounded tensor stands for."""
        if name in self._group_of:
            packed = self.read_packed(name)
            assert isinstance(packed, nvfp4.NVFP4Tensor), "groups become NVFP4"
            return nvfp4.dequantize(packed, dtype)
        if name in self._tables:
            tiles = _tiles(self._plain(name))
            return torch.cat([fp8.dequantize(fp8.quantize(rows), dtype) for rows in tiles])
        return self._source.read(name, dtype)

    def read_packed(self, name: str) -> Stored:
        """The tensor in its format, rounded now if it is not stored so.

        Raises:
            WeightsError: a weight is NaN or infinite.
        """
        if name in self._group_of:
            return self._rounded(name, self._products)
        if name in self._tables:
            return self._rounded(name, _table)
        return self._source.read_packed(name)

    def _rounded(self, name: str, rounding: Callable[[str, Tensor], Stored]) -> Stored:
        try:
            return rounding(name, self._plain(name))
        except ValueError as error:
            raise WeightsError(
                f"`{name}` cannot be rounded: {error}", hint="load it with `--precision bf16`"
            ) from error

    def _products(self, name: str, weight_NK: Tensor) -> Stored:
        """NVFP4 with the scale of the tensor's group; its members are read once more for that."""
        group = self._group_of[name]
        if group[0] not in self._shared:
            members = [self._plain(member) for member in group]
            self._shared[group[0]] = nvfp4.joint_global_scale(*members)
        return nvfp4.quantize(weight_NK, self._shared[group[0]])

    def _plain(self, name: str) -> Tensor:
        stored = self._source.read_packed(name)
        assert isinstance(stored, Tensor), "codes are never rounded again"
        return stored


def _table(name: str, weight_NK: Tensor) -> fp8.FP8Tensor:
    """FP8 row by row, a tile of rows at a time: an embedding in float32 would take 5 GB."""
    tiles = [fp8.quantize(rows) for rows in _tiles(weight_NK)]
    codes_NK = torch.cat([tile.codes_NK.view(torch.uint8) for tile in tiles])
    scale_N1 = torch.cat([tile.scale_N1 for tile in tiles])
    return fp8.FP8Tensor(codes_NK.view(torch.float8_e4m3fn), scale_N1)


def _tiles(weight_NK: Tensor) -> Sequence[Tensor]:
    return weight_NK.split(max(1, _TILE_WEIGHTS // weight_NK.shape[1]))


class PlainSource:
    """A checkpoint with every code expanded: what `--precision bf16` means for a quantised one."""

    def __init__(self, source: QuantizedSource, dtype: torch.dtype) -> None:
        self._source, self._dtype = source, dtype

    @property
    def renamed(self) -> list[tuple[str, str]]:
        """See `QuantizedSource`."""
        return self._source.renamed

    def names(self) -> Iterable[str]:
        """Names of all logical tensors."""
        return self._source.names()

    def shape(self, name: str) -> tuple[int, ...]:
        """Shape of a tensor."""
        return self._source.shape(name)

    def scheme(self, name: str) -> WeightScheme | None:
        """None: nothing is in codes."""
        return None

    def formats(self) -> tuple[str, ...]:
        """None."""
        return ()

    def read(self, name: str, dtype: torch.dtype) -> Tensor:
        """The tensor in `dtype`."""
        return self._source.read(name, dtype)

    def read_packed(self, name: str) -> Tensor:
        """The tensor's values."""
        stored = self._source.read_packed(name)
        return stored if isinstance(stored, Tensor) else self._source.read(name, self._dtype)
