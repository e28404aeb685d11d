"""Base models of the family, not tuned for documents.

Sizes and the tied head of 0.8B and 4B: architecture specification of qwen3_5. Without tuning for
reading, 4B and 9B reach 77 and 78 on olmOCR-bench, where chandra-ocr-2 reaches 86.
"""

from dataclasses import replace

from ocria.models.presets.generic import GENERIC
from ocria.models.presets.preset import ImageBudget, Preset

# The family's own bound is 16.8 million pixels: 16,384 image tokens for one scanned page.
_BUDGET = ImageBudget(min_pixels=1 << 20, max_pixels=4 << 20)


_NUM_PARAMETERS = {
    "0.8B": 853_000_000,
    "4B": 4_539_000_000,
    "9B": 9_410_000_000,
    "27B": 27_357_000_000,
}


def _base(size: str) -> Preset:
    return replace(
        GENERIC,
        name=f"qwen3.5-{size.lower()}",
        hub_id=f"Qwen/Qwen3.5-{size}",
        licence="Apache-2.0",
        num_parameters=_NUM_PARAMETERS[size],
        budget=_BUDGET,
    )


QWEN_BASE = tuple(_base(size) for size in _NUM_PARAMETERS)
