"""The drafter to be trained: its sizes, its first weights, and its public config."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from ocria.models.drafter.config import DrafterConfig
from ocria.models.drafter.layers import DraftLinear, DynamicConv, PlainRMSNorm
from ocria.models.drafter.model import DFlash
from ocria.models.drafter.selector import PathSelector
from ocria.models.recipes.nano.model import Geometry
from ocria.models.recipes.nano.vocabulary import MASK

FP8_LIMIT_BYTES = 4 << 20
_SPREAD = 0.02


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """What is free once the target is given. The defaults weigh 3.6 MiB in FP8.

    `taps` are target layers, counted from 0; empty takes as many as there are draft layers, spread
    evenly from layer 1 to the third last, as published drafters do. Three layers let a row find
    the place of the last token, look there on the page, and speak. A large `theta` leaves half of
    a head's channels nearly unturned over a page, so that places can be found by content.
    """

    layers: int = 3
    heads: int = 4
    kv_heads: int = 2
    head_width: int = 64
    inner: int = 256
    block: int = 16
    conv_group: int = 32
    rank: int = 24
    top_k: int = 16
    theta: float = 10_000_000.0
    taps: tuple[int, ...] = (2, 5, 7)


def default_taps(target_layers: int, count: int) -> tuple[int, ...]:
    """round(1 + i * (L - 4) / (T - 1)); the middle layer for a single tap."""
    if count == 1:
        return (target_layers // 2,)
    return tuple(round(1 + i * (target_layers - 4) / (count - 1)) for i in range(count))


def public_config(sizes: Sizes, g: Geometry) -> dict[str, Any]:
    """`config.json` of a second-generation drafter for a target of geometry `g`."""
    return {
        "architectures": ["DFlash2DraftModel"],
        "model_type": "qwen3",
        "hidden_size": g.width,
        "intermediate_size": sizes.inner,
        "num_hidden_layers": sizes.layers,
        "num_attention_heads": sizes.heads,
        "num_key_value_heads": sizes.kv_heads,
        "head_dim": sizes.head_width,
        "hidden_act": "silu",
        "attention_bias": False,
        "rms_norm_eps": 1e-6,
        "vocab_size": g.rows,
        "rope_theta": sizes.theta,
        "max_position_embeddings": 16384,
        "tie_word_embeddings": True,
        "layer_types": ["full_attention"] * sizes.layers,
        "is_causal": False,
        "num_target_layers": g.layers,
        "dtype": "bfloat16",
        "dflash_config": {
            "block_size": sizes.block,
            "mask_token_id": MASK,
            "target_layer_ids": list(sizes.taps or default_taps(g.layers, sizes.layers)),
            "conv_kernel_size": 2,
            "conv_group_size": sizes.conv_group,
            "selector_rank": sizes.rank,
            "selector_top_k": sizes.top_k,
        },
    }


def new_drafter(config: DrafterConfig, final_norm: torch.Tensor, seed: int) -> DFlash:
    """A drafter with its first weights: convolutions pass through, the selector adds nothing.

    `final_norm` [H], the gains of the target's last norm, scales hidden rows as the head expects.
    """
    generator = torch.Generator().manual_seed(seed)
    drafter = DFlash(config)
    with torch.no_grad():
        for name, module in drafter.named_modules():
            if isinstance(module, PlainRMSNorm):
                module.weight.fill_(1.0)
            elif isinstance(module, DraftLinear):
                _draw(module, name, len(config.layers), generator)
            elif isinstance(module, DynamicConv):
                module.base_kernel.zero_()
                module.base_kernel[:, 0] = 1.0
            elif isinstance(module, PathSelector):
                module.successor_codebook.zero_()
                module.predecessor_codebook.normal_(0.0, _SPREAD, generator=generator)
        drafter.norm.weight.copy_(final_norm)
    return drafter


def _draw(linear: DraftLinear, name: str, layers: int, generator: torch.Generator) -> None:
    if name.endswith("kernel_projection"):
        nn.init.zeros_(linear.weight)
        return
    spread = linear.weight.shape[1] ** -0.5
    if name.endswith(("o_proj", "down_proj")):
        spread /= math.sqrt(2 * layers)
    linear.weight.normal_(0.0, spread, generator=generator)
