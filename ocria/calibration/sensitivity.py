"""What each product loses alone: KL of the next-token distribution on held-out pages."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from ocria.calibration.allocation import Loss
from ocria.calibration.divergence import Judge
from ocria.calibration.rounding import dequantize, round_plainly
from ocria.calibration.sequential import ReadWeight, set_weight
from ocria.calibration.sites import Site
from ocria.models.qwen3_5.model import Qwen35
from ocria.quantization.layouts import PackedTensor


def measure_sensitivity(
    target: Qwen35,
    read: ReadWeight,
    sites: Sequence[Site],
    judge: Judge,
    *,
    num_passages: int,
    progress: Callable[[str], None],
) -> tuple[Loss, ...]:
    """Quantises one product at a time to NVFP4, without calibration, and puts it back.

    Args:
        target: the parent; as it was at the end.
        read: its weights.
        sites: the products to try.
        judge: holds the parent's distributions.
        num_passages: passages to compare on.
        progress: hears each site's name once it is done.

    Raises:
        ValueError: a weight is NaN or infinite.
    """
    losses = []
    for site in sites:
        weight_NK = torch.cat([read(member) for member in site.members])
        packed = round_plainly(weight_NK, "nvfp4")
        module = target.get_submodule(site.name)
        set_weight(module, dequantize(packed, target.dtype))
        found = judge.judge(target, num_passages)
        set_weight(module, weight_NK.to(target.dtype))
        wide = _squared_error(weight_NK, round_plainly(weight_NK, "fp8"))
        narrow = _squared_error(weight_NK, packed)
        losses.append(
            Loss(
                site=site.name,
                num_weights=weight_NK.numel(),
                kl=found.kl,
                agreement=found.agreement,
                fp8_ratio=wide / narrow if narrow else 0.0,
            )
        )
        progress(site.name)
    return tuple(losses)


def _squared_error(weight_NK: Tensor, packed: PackedTensor) -> float:
    return float((dequantize(packed, torch.float32) - weight_NK.float()).square().sum())
