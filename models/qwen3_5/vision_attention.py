"""Attention among all patches of one page.

On a CPU with bfloat16 products most of a page's vision time is spent here, so that case has a form
of its own; everything else takes torch's.

Shape legend: H heads, P patches, K channels of a head, R query rows at a time.
"""

from itertools import product

import torch
import torch.nn.functional as F
from torch import Tensor

from ocria.models.layers.one_core_workers import map_on_cores
from ocria.models.layers.packed import can_pack, pack, packed_product

# Rows at a time: scores of 256 x 5,632 patches take 2.8 MiB and stay near the cache.
_QUERY_ROWS = 256


def page_attention(query_HPK: Tensor, key_HPK: Tensor, value_HPK: Tensor) -> Tensor:
    """softmax(Q K^T / sqrt(K)) V for each head, [H, P, K]."""
    if can_pack(query_HPK):
        return _packed_attention(query_HPK, key_HPK, value_HPK)
    return F.scaled_dot_product_attention(query_HPK[None], key_HPK[None], value_HPK[None])[0]


def _packed_attention(query_HPK: Tensor, key_HPK: Tensor, value_HPK: Tensor) -> Tensor:
    """Keys and values laid out once for each head, then plain blocked products.

    At 5,632 patches and 5 heads of 64: 0.43 core-seconds, torch's fused form takes 0.63. Scores
    pass through bfloat16, which moves the image tokens of a dense page by 0.55 % from float32
    instead of 0.52 %.
    """
    num_heads, num_patches, channels = query_HPK.shape
    query_HPK = query_HPK * channels**-0.5
    mixed_HPK = torch.empty_like(query_HPK)

    def pack_head(head: int) -> tuple[Tensor, Tensor]:
        return pack(key_HPK[head], _QUERY_ROWS), pack(value_HPK[head].T, _QUERY_ROWS)

    packed = map_on_cores(pack_head, range(num_heads))

    def attend(place: tuple[int, int]) -> None:
        head, start = place
        rows = slice(start, start + _QUERY_ROWS)
        keys, values = packed[head]
        scores_RP = packed_product(query_HPK[head, rows], keys)
        mixed_HPK[head, rows] = packed_product(scores_RP.softmax(-1), values)

    map_on_cores(attend, product(range(num_heads), range(0, num_patches, _QUERY_ROWS)))
    return mixed_HPK
