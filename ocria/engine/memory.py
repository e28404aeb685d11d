"""How much memory a sequence takes, and how many sequences fit."""

import os
from math import prod

import torch

from ocria.models.base import KEY_BLOCK, RING_ROWS, Target

MOST_SHARE = 0.8
"""Share of the free memory that states may take: the rest is for activations and other programs."""

_Shapes = dict[str, tuple[int, tuple[int, ...], torch.dtype]]


def slot_shapes(target: Target, max_positions: int) -> _Shapes:
    """Layers, shape and dtype of what a slot keeps, by the field of `SequenceState`."""
    layout, dtype = target.layout, target.dtype
    wide = torch.promote_types(dtype, torch.float32)
    # On the CPU, attention computes in float32: keeping exact float32 copies of rounded keys
    # saves a conversion of the whole cache at every step.
    cache = wide if target.device.type == "cpu" else dtype
    attention, delta = layout.num_attention_layers, layout.num_delta_layers
    heads = layout.num_value_heads
    cached = (layout.num_kv_heads, max_positions, layout.head_dim)
    return {
        "keys_LJSD": (attention, cached, cache),
        "values_LJSD": (attention, cached, cache),
        "conv_in_LEX": (delta, (RING_ROWS, layout.conv_channels), dtype),
        "conv_out_LEX": (delta, (RING_ROWS, layout.conv_channels), dtype),
        "decay_LER": (delta, (RING_ROWS, heads), wide),
        "beta_LER": (delta, (RING_ROWS, heads), wide),
        "checkpoint_LRKW": (delta, (heads, layout.key_dim, layout.value_dim), wide),
    }


def slot_bytes(target: Target, max_positions: int) -> int:
    """Bytes of one slot."""
    max_positions = -(-max_positions // KEY_BLOCK) * KEY_BLOCK
    return sum(
        layers * prod(shape) * dtype.itemsize
        for layers, shape, dtype in slot_shapes(target, max_positions).values()
    )


def free_bytes(device: torch.device) -> int:
    """Memory that can be had now, in bytes.

    On CUDA what the driver has free and what the allocator keeps unused; on a CPU what Linux calls
    available, and half the physical memory where it does not say.
    """
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return free + kept
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:  # noqa: PTH123
            fields = dict(line.split(":", 1) for line in lines)
        return int(fields["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


def slots_that_fit(target: Target, max_positions: int, most: int) -> int:
    """How many slots to make, 1 to `most`, by the memory that is free now."""
    fitting = int(free_bytes(target.device) * MOST_SHARE) // slot_bytes(target, max_positions)
    return max(1, min(most, fitting))


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory ran out, on any device."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    # The CPU allocator raises a plain RuntimeError.
    return isinstance(error, RuntimeError) and "can't allocate memory" in str(error)
