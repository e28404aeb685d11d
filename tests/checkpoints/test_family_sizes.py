"""The true full-size configs, built without memory: parameters by part as the specification has."""

import re

import pytest
import torch

from ocria.models.presets import PRESETS
from ocria.models.qwen3_5.config import Qwen35Config
from ocria.models.qwen3_5.model import Qwen35

from .shapes import MILLIONS, SURYA_VOCABULARY, VOCABULARY, family_config

PARTS = {
    "vision": r"model\.visual\.",
    "embedding": r"model\.language_model\.embed_tokens\.",
    "head": r"lm_head\.",
    "mlp": r".*\.mlp\.(gate|up|down)_proj\.",
    "delta": r".*\.linear_attn\.(in_proj_\w+|out_proj)\.weight",
    "attention": r".*\.self_attn\.[qkvo]_proj\.",
}


def counted(size: str) -> dict[str, float]:
    """Millions of parameters by part, and in all."""
    of, vocabulary = ("0.8B", SURYA_VOCABULARY) if size == "surya" else (size, VOCABULARY)
    config = Qwen35Config.from_mapping(family_config(of, vocab_size=vocabulary))
    with torch.device("meta"):
        model = Qwen35(config)
    counts = dict.fromkeys((*PARTS, "total"), 0)
    for name, value in model.state_dict().items():
        counts["total"] += value.numel()
        part = next((part for part, names in PARTS.items() if re.match(names, name)), None)
        if part is not None:
            counts[part] += value.numel()
    return {part: count / 1e6 for part, count in counts.items()}


@pytest.mark.parametrize("size", list(MILLIONS))
def test_parameters_by_part(size: str) -> None:
    found = counted(size)
    for part, millions in MILLIONS[size].items():
        # As many digits as the specification gives.
        digits = 0 if millions == int(millions) else 1
        assert round(found[part], digits) == millions, part
    untied = size in ("9B", "27B")
    assert found["head"] == (found["embedding"] if untied else 0)


def test_presets_know_their_sizes() -> None:
    known = {preset.name: preset.num_parameters for preset in PRESETS}
    for name, size in (("chandra-ocr-2", "4B"), ("qwen3.5-0.8b", "0.8B"), ("qwen3.5-27b", "27B")):
        assert known[name] == MILLIONS[size]["total"] * 1_000_000
