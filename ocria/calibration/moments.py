"""What a product's inputs look like, for prefill and decode positions apart.

Shape legend: T rows, K inputs of a product, N outputs.
"""

from typing import NamedTuple

import torch
from torch import Tensor

# Decode rows are a minority of a page's rows, but each of them decides a token.
DECODE_SHARE = 0.75


class JointMoments(NamedTuple):
    """Means over rows, float32.

    Attributes:
        hessian_KK: second moments of the inputs.
        drift_NK: what the outputs lack, times the inputs.
    """

    hessian_KK: Tensor
    drift_NK: Tensor


class Moments:
    """Means of X^T X and of what rounding the earlier products has cost, times X.

    X is what the product reads behind rounded products. The cost is what the parent's product
    reads less X and, where outputs are added to residual rows, what those lack already. This
    product can partly make up for both.

    Rows are weighted as they come, so that two matrices [K, K] are held and not four: at 9,216
    inputs one takes 340 MB.

    Args:
        num_inputs: K.
        num_prefill: prefill rows of all passages together.
        num_decode: likewise; they weigh `decode_share` together, if there are both kinds.
    """

    def __init__(
        self,
        num_inputs: int,
        *,
        num_prefill: int,
        num_decode: int,
        decode_share: float = DECODE_SHARE,
    ) -> None:
        share = decode_share if num_prefill and num_decode else float(num_decode > 0)
        self._weights = ((1 - share) / max(1, num_prefill), share / max(1, num_decode))
        self._hessian_KK = torch.zeros(num_inputs, num_inputs)
        self._lost_KK = torch.zeros(num_inputs, num_inputs)
        self._behind_NK: Tensor | None = None

    def add(
        self,
        read_TK: Tensor,
        parent_TK: Tensor,
        num_prefill: int,
        behind_TN: Tensor | None = None,
    ) -> None:
        """Counts a passage in.

        Args:
            read_TK: what the product reads.
            parent_TK: what the parent's reads.
            num_prefill: how many of the rows, the first ones, are prefill.
            behind_TN: what the residual rows lack before the product's outputs are added.
        """
        kinds = (slice(None, num_prefill), slice(num_prefill, None))
        for weight, rows in zip(self._weights, kinds, strict=True):
            read = read_TK[rows].float()
            weighted = read * weight
            self._hessian_KK.addmm_(read.T, weighted)
            self._lost_KK.addmm_((parent_TK[rows].float() - read).T, weighted)
            if behind_TN is not None:
                behind_NK = behind_TN[rows].float().T @ weighted
                self._behind_NK = (
                    behind_NK if self._behind_NK is None else self._behind_NK + behind_NK
                )

    def joint(self, weight_NK: Tensor) -> JointMoments:
        """The means for a product with weights [N, K]; once, since it frees half of the memory."""
        drift_NK = weight_NK.float() @ self._lost_KK
        del self._lost_KK
        if self._behind_NK is not None:
            drift_NK += self._behind_NK
        return JointMoments(self._hessian_KK, drift_NK)
