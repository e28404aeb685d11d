"""The best token of each row and its log probability: the specification.

Shape legend: M rows, D hidden size, V vocabulary.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from ocria.kernels.small_gemm import Norm, PackedWeight, reference


class BestTokens(NamedTuple):
    """What greedy decoding wants of the logits.

    Attributes:
        token_M: int64 [M]; of equal logits the smallest id.
        logprob_M: float32 [M], natural log of its probability.
    """

    token_M: Tensor
    logprob_M: Tensor


def best_tokens(
    x_MD: Tensor, weight: PackedWeight, *, norm: Norm | None, forbidden_V: Tensor
) -> BestTokens:
    """Best tokens of the logits norm(x) W^T.

    Args:
        x_MD: [M, D].
        weight: [V, D] in tiles.
        norm: in front of the product.
        forbidden_V: uint8 [V]; ids with a one there are never chosen and have no probability.
    """
    logits_MV = reference.small_gemm(x_MD, weight, norm=norm, out_dtype=torch.float32)
    logits_MV = logits_MV.masked_fill(forbidden_V.bool(), -torch.inf)
    top_M = logits_MV.amax(-1)
    # `argmax` does not promise the first of equals.
    token_M = (logits_MV == top_M[:, None]).to(torch.uint8).cumsum(-1).eq(0).sum(-1)
    return BestTokens(token_M, top_M - logits_MV.logsumexp(-1))
