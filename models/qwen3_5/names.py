"""Names of a qwen3_5 checkpoint: older and foreign spellings, and what may not be cast."""

import re
from collections.abc import Iterable

import torch

from ocria.errors import WeightsError
from ocria.weights import TensorSource

FLOAT32_NAMES = frozenset({"A_log", "dt_bias"})

# (pattern at the start of a stored name, our prefix); the first that fits is taken.
_PREFIXES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), ours)
    for pattern, ours in (
        (r"model\.(?=visual\.|language_model\.)", "model."),
        (r"(?:language_model\.)?(?:model\.)?mtp\.", "mtp."),
        (r"language_model\.model\.", "model.language_model."),
        (r"language_model\.lm_head\.", "lm_head."),
        (r"vision_tower\.", "model.visual."),
        (r"visual\.", "model.visual."),
        (r"model\.(?=layers\.|embed_tokens\.|norm\.)", "model.language_model."),
    )
)
_ZERO_CENTRED = re.compile(
    r"model\.language_model\.layers\.\d+\."
    r"(input_layernorm|post_attention_layernorm|self_attn\.[qk]_norm)\.weight"
)
# Means of trained zero-centred weights lie around 0 (-0.56 to 0.42 in the shipped model).
_BAKED = (0.75, 1.25)


def canonical_name(stored: str) -> str:
    """Hugging Face's present name of a stored tensor; unknown names stay as they are."""
    for pattern, ours in _PREFIXES:
        if pattern.match(stored):
            return pattern.sub(ours, stored, count=1)
    return stored


def refuse_baked_norms(source: TensorSource) -> None:
    """Stops a checkpoint whose zero-centred norms were stored as 1 + w, as MLX exports do.

    Read as deltas they would double every activation, and the text would be noise.

    Raises:
        WeightsError: the median of the norm weights' means lies near 1.
    """
    names: Iterable[str] = (name for name in source.names() if _ZERO_CENTRED.fullmatch(name))
    means = [source.read(name, torch.float32).mean() for name in names]
    if not means:
        return
    median = float(torch.stack(means).median())
    if _BAKED[0] <= median <= _BAKED[1]:
        raise WeightsError(
            f"norm weights are stored with 1 already added (their means have median {median:.2f})",
            hint="take the original checkpoint, or subtract 1 from every zero-centred norm",
        )
