"""A checkpoint seen as plain tensors: quantised weights are dequantised as they are read."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import torch
from torch import Tensor

from ocria.errors import WeightsError
from ocria.quantization import fp8, nvfp4
from ocria.quantization.compressed_tensors import QuantizationConfig
from ocria.quantization.linear import TILE_WEIGHTS, dequantize_rows
from ocria.quantization.schemes import WeightScheme
from ocria.weights import CheckpointReader

# Weights of trained models stay below 100 or so; a reciprocal global scale makes them 1e6 and more.
_LARGEST_WEIGHT = 1e4
_PLAIN_DTYPES = frozenset({torch.bfloat16, torch.float16, torch.float32, torch.float64})


class _Entry(NamedTuple):
    """Where one logical tensor is stored: a tensor's name, or a module's name and its format."""

    stored: str
    scheme: WeightScheme | None


class QuantizedSource:
    """Logical tensors of a checkpoint (`X.weight`, never its codes and scales).

    Implements `ocria.weights.TensorSource`.

    Args:
        reader: the stored tensors.
        config: which modules are quantised, by their stored names.
        rename: from a stored name to the model's.
        device: where tensors are put, straight from the mapped file, and dequantised.

    Raises:
        WeightsError: codes without scales, scales that the config does not explain, or two
            stored names that become one.
    """

    def __init__(
        self,
        reader: CheckpointReader,
        config: QuantizationConfig,
        rename: Callable[[str], str] = str,
        device: torch.device = torch.device("cpu"),
    ) -> None:
        self._reader, self._device = reader, device
        self._entries: dict[str, _Entry] = {}
        self.renamed: list[tuple[str, str]] = []
        for info in reader:
            stored = self._logical(info.name, config)
            if stored is None:
                continue
            name, entry = stored
            ours = rename(name)
            if ours in self._entries:
                raise WeightsError(f"two stored tensors are `{ours}`; one is `{name}`")
            if ours != name:
                self.renamed.append((name, ours))
            self._entries[ours] = entry

    def names(self) -> Iterable[str]:
        """Names of all logical tensors."""
        return self._entries.keys()

    def scheme(self, name: str) -> WeightScheme | None:
        """Format of a tensor, None for one stored as it is."""
        return self._entry(name).scheme

    def formats(self) -> tuple[str, ...]:
        """Short names of the formats in use, the one with the fewest bits first."""
        schemes = {entry.scheme for entry in self._entries.values() if entry.scheme}
        return tuple(scheme.name for scheme in sorted(schemes, key=lambda scheme: scheme.bits))

    def shape(self, name: str) -> tuple[int, ...]:
        """Shape of the dequantised tensor."""
        stored, scheme = self._entry(name)
        if scheme is None:
            return self._reader.info(stored).shape
        rows, columns = self._reader.info(f"{stored}.{scheme.codes}").shape
        return (rows, columns * 2 if scheme.name == "nvfp4" else columns)

    def read(self, name: str, dtype: torch.dtype) -> Tensor:
        """The tensor in `dtype`, dequantised a tile of rows at a time.

        Raises:
            WeightsError: a scale is NaN, infinite or negative.
        """
        packed = self.read_packed(name)
        if isinstance(packed, Tensor):
            return packed.to(self._device, dtype)
        num_rows, num_columns = self.shape(name)
        result = torch.empty(num_rows, num_columns, dtype=dtype, device=self._device)
        step = max(1, TILE_WEIGHTS // num_columns)
        for start in range(0, num_rows, step):
            rows = slice(start, start + step)
            result[rows] = dequantize_rows(packed, rows, dtype)
        return result

    def read_packed(self, name: str) -> Tensor | nvfp4.NVFP4Tensor | fp8.FP8Tensor:
        """The tensor as it is stored, with its scales checked.

        Raises:
            WeightsError: a scale is NaN, infinite or negative, or the global scale looks like the
                reciprocal of what the layout stores.
        """
        stored, scheme = self._entry(name)
        if scheme is None:
            return self._reader.read(stored).to(self._device)
        codes, *scales = (
            self._reader.read(f"{stored}.{part}").to(self._device) for part in scheme.parts
        )
        for part, scale in zip(scheme.scales, scales, strict=True):
            _check_scale(f"{stored}.{part}", scale)
        if scheme.name == "fp8":
            # ModelOpt keeps the squares' own axes, of size 1, between the others.
            scale = scales[0][:, 0, :, 0] if scales[0].ndim == 4 else scales[0]
            return fp8.FP8Tensor(codes, scale)
        shared = scales[1].float().reshape(1)
        packed = nvfp4.NVFP4Tensor(
            codes, scales[0], 1 / shared if scheme.global_multiplies else shared
        )
        _check_magnitude(stored, packed)
        return packed

    def _entry(self, name: str) -> _Entry:
        if name not in self._entries:
            raise WeightsError(f"no tensor `{name}` in {self._reader.folder}")
        return self._entries[name]

    def _logical(self, name: str, config: QuantizationConfig) -> tuple[str, _Entry] | None:
        """Logical name and entry of a stored tensor; None for a scale that belongs to another."""
        module, _, leaf = name.rpartition(".")
        if f"{module}.weight_scale" in self._reader:
            scheme = config.scheme_of(module)
            if scheme is None:
                raise WeightsError(
                    f"`{module}` is stored with scales, but config.json names no format for it",
                    hint="the weights and config.json must come from the same checkpoint",
                )
            if leaf in scheme.parts:
                self._check_parts(module, scheme)
                return (
                    (f"{module}.weight", _Entry(module, scheme)) if leaf == scheme.codes else None
                )
        elif leaf in ("weight", "weight_packed"):
            dtype = self._reader.info(name).dtype
            if dtype not in _PLAIN_DTYPES:
                raise WeightsError(f"`{name}` is stored as {dtype} without its scales")
        return name, _Entry(name, None)

    def _check_parts(self, module: str, scheme: WeightScheme) -> None:
        lacking = [part for part in scheme.parts if f"{module}.{part}" not in self._reader]
        if lacking:
            raise WeightsError(f"`{module}` lacks {', '.join(lacking)} ({scheme.format})")
        rows, columns = self._reader.info(f"{module}.{scheme.codes}").shape
        found = self._reader.info(f"{module}.weight_scale").shape
        if scheme.name == "nvfp4":
            fits = found == (rows, columns * 2 // nvfp4.BLOCK) and columns % 8 == 0
        else:
            down, across = fp8.squares(rows, columns)
            by_square = ((down, across), (down, 1, across, 1))
            fits = found in ((rows, 1), (rows,), (1,), (), *by_square)
        if not fits:
            raise WeightsError(
                f"`{module}`: scales {list(found)} do not fit codes {[rows, columns]} "
                f"({scheme.format})"
            )


def _check_magnitude(module: str, packed: nvfp4.NVFP4Tensor) -> None:
    """A global scale taken for its reciprocal is wrong by (2688 / largest weight)^2."""
    largest = nvfp4.E2M1_MAX * packed.scale_NB.float().amax() / packed.global_scale
    if float(largest) > _LARGEST_WEIGHT:
        raise WeightsError(
            f"weights of `{module}` would reach {float(largest):.1e}: its global scale is the "
            "reciprocal of what its format stores",
            hint="compressed-tensors divides by `weight_global_scale`, ModelOpt multiplies by "
            "`weight_scale_2`: the config names the wrong one of them",
        )


def _check_scale(name: str, scale: Tensor) -> None:
    values = scale.float()
    # A block of zeros may have scale 0; the global scale divides.
    is_global = name.endswith(("global_scale", "scale_2"))
    positive = (values > 0 if is_global else values >= 0).all()
    if not (torch.isfinite(values).all() and positive):
        raise WeightsError(
            f"`{name}` holds scales that are NaN, infinite or negative",
            hint="the checkpoint is damaged or was quantised wrongly: make it again",
        )
