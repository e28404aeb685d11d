"""Whether a model will fit, told before its weights are read.

Counted are the weights in the form they take on the device, the state of one page, and the
activations of the largest page. What is free is measured, never looked up by the device's name.
"""

from dataclasses import dataclass
from math import prod

import torch

from ocria.engine.memory import free_bytes, slot_bytes
from ocria.errors import DeviceError
from ocria.models.base import StateLayout
from ocria.models.presets import PRESETS
from ocria.models.qwen3_5.mixed import TABLES, nvfp4_groups
from ocria.models.qwen3_5.model import Qwen35
from ocria.models.qwen3_5.stored_weights import plain_weights_fit
from ocria.models.registry import Checkpoint, Weights
from ocria.quantization.schemes import WeightScheme

NVFP4_BYTES, FP8_BYTES, PLAIN_BYTES = 0.5625, 1.0, 2.0
"""A weight's bytes: codes, and for NVFP4 a scale of one byte for 16."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MemoryNeed:
    """Bytes that reading one page takes at most."""

    weights: int
    state: int
    activations: int

    @property
    def total(self) -> int:
        """All of them."""
        return self.weights + self.state + self.activations


@dataclass(frozen=True, kw_only=True, slots=True)
class _Sizes:
    """What the engine's arithmetic of slots asks of a target."""

    layout: StateLayout
    dtype: torch.dtype
    device: torch.device


def memory_need(
    checkpoint: Checkpoint,
    *,
    device: torch.device,
    dtype: torch.dtype,
    max_positions: int,
    max_pixels: int,
) -> MemoryNeed:
    """What a checkpoint takes on a device.

    Args:
        checkpoint: opened, nothing of its weights read.
        device: where it would run.
        dtype: of plain weights and activations.
        max_positions: longest prompt and output together.
        max_pixels: largest page.
    """
    vision = checkpoint.config.vision
    num_patches = max_pixels // vision.patch_size**2
    widest = max(4 * vision.hidden_size, vision.intermediate_size)
    # Residual, norm, queries, keys, values and mixed heads, and both sides of the feed-forward.
    per_patch = 7 * vision.hidden_size + 2 * widest
    with torch.device("meta"):
        layout = Qwen35(checkpoint.config).layout
    sizes = _Sizes(layout=layout, dtype=dtype, device=device)
    weights = weight_bytes(checkpoint.source, dtype, in_codes=stays_in_codes(device))
    if device.type == "cpu" and not plain_weights_fit(weights // dtype.itemsize, dtype):
        # The registry keeps codes then.
        weights = weight_bytes(checkpoint.source, dtype, in_codes=True)
    if stays_in_codes(device):
        weights += _lookup_bytes(checkpoint, dtype)
    return MemoryNeed(
        weights=weights,
        state=slot_bytes(sizes, max_positions),  # type: ignore[arg-type]
        activations=num_patches * per_patch * dtype.itemsize,
    )


def stays_in_codes(device: torch.device) -> bool:
    """Whether kernels multiply by codes; a CPU expands them unless memory is short."""
    return device.type == "cuda"


def weight_bytes(source: Weights, dtype: torch.dtype, *, in_codes: bool) -> int:
    """Bytes of all weights; `in_codes`: what is stored in codes stays so on the device."""
    total = 0.0
    for name in source.names():
        scheme = source.scheme(name) if in_codes else None
        each = float(dtype.itemsize) if scheme is None else _bytes_of(scheme)
        total += prod(source.shape(name)) * each
    return int(total)


def _lookup_bytes(checkpoint: Checkpoint, dtype: torch.dtype) -> int:
    """What plain rows to look tokens up in take beyond the embedding's own bytes.

    Kernels multiply by codes; a tied head is packed beside the plain rows.
    """
    source, (name, _) = checkpoint.source, TABLES
    scheme, count = source.scheme(name), prod(source.shape(name))
    own = dtype.itemsize if scheme is None else _bytes_of(scheme)
    return int(
        count * (dtype.itemsize if checkpoint.config.tie_word_embeddings else dtype.itemsize - own)
    )


def admit(need: MemoryNeed, checkpoint: Checkpoint, device: torch.device) -> None:
    """Lets a model pass that fits.

    Raises:
        DeviceError: it does not; the hint says what would.
    """
    free = free_bytes(device)
    if need.total <= free:
        return
    parts = (
        f"weights {_gigabytes(need.weights)}, a page's state {_gigabytes(need.state)}, "
        f"activations {_gigabytes(need.activations)}"
    )
    raise DeviceError(
        f"{checkpoint.info.name} needs {_gigabytes(need.total)} on {device} ({parts}), and "
        f"{_gigabytes(free)} are free",
        hint=_what_would_fit(need, checkpoint, free, device),
    )


def _what_would_fit(
    need: MemoryNeed, checkpoint: Checkpoint, free: int, device: torch.device
) -> str:
    mixed = mixed_bytes(checkpoint.source)
    beside = need.state + need.activations
    if stays_in_codes(device) and mixed < need.weights and mixed + beside <= free:
        return f"`--precision mixed` needs {_gigabytes(mixed + beside)} and would fit"
    fitting = [
        preset.name
        for preset in PRESETS
        if preset.num_parameters and preset.num_parameters * PLAIN_BYTES + beside <= free
    ]
    if fitting:
        return f"these would fit in bf16: {', '.join(fitting)}"
    return "use the shipped model, or a device with more memory"


def mixed_bytes(source: Weights) -> int:
    """Bytes of the weights with `--precision mixed`."""
    names = list(source.names())
    in_nvfp4 = {name for group in nvfp4_groups(names) for name in group}
    each = {
        **dict.fromkeys(in_nvfp4, NVFP4_BYTES),
        **dict.fromkeys(TABLES, FP8_BYTES),
    }
    return int(sum(prod(source.shape(name)) * each.get(name, PLAIN_BYTES) for name in names))


def _bytes_of(scheme: WeightScheme) -> float:
    return NVFP4_BYTES if scheme.name == "nvfp4" else FP8_BYTES


def _gigabytes(num_bytes: int) -> str:
    return f"{num_bytes / 1e9:.1f} GB"
