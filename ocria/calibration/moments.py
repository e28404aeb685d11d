"""What a product's inputs look like, for prefill and decode positions apart.

Shape legend: T rows, K inputs of a product, N outputs.
"""

from dataclasses import dataclass
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


@dataclass(slots=True)
class _Sums:
    hessian_KK: Tensor
    lost_KK: Tensor
    behind_NK: Tensor | None = None
    num_rows: int = 0

    def add(self, read_TK: Tensor, lost_TK: Tensor, behind_TN: Tensor | None) -> None:
        self.hessian_KK.addmm_(read_TK.T, read_TK)
        self.lost_KK.addmm_(lost_TK.T, read_TK)
        if behind_TN is not None:
            behind_NK = behind_TN.T @ read_TK
            self.behind_NK = behind_NK if self.behind_NK is None else self.behind_NK + behind_NK
        self.num_rows += read_TK.shape[0]

    def mean(self, weight_NK: Tensor, share: float) -> JointMoments:
        scale = share / max(1, self.num_rows)
        drift_NK = weight_NK @ self.lost_KK
        if self.behind_NK is not None:
            drift_NK += self.behind_NK
        return JointMoments(self.hessian_KK * scale, drift_NK * scale)


class Moments:
    """Sums of X^T X and of what rounding the earlier products has cost, times X.

    X is what the product reads behind rounded products. The cost is what the parent's product
    reads less X and, where outputs are added to residual rows, what those lack already. This
    product can partly make up for both.
    """

    def __init__(self, num_inputs: int) -> None:
        self._prefill, self._decode = (
            _Sums(torch.zeros(num_inputs, num_inputs), torch.zeros(num_inputs, num_inputs))
            for _ in range(2)
        )

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
        read_TK = read_TK.float()
        lost_TK = parent_TK.float() - read_TK
        for sums, rows in (
            (self._prefill, slice(None, num_prefill)),
            (self._decode, slice(num_prefill, None)),
        ):
            behind = None if behind_TN is None else behind_TN[rows].float()
            sums.add(read_TK[rows], lost_TK[rows], behind)

    def joint(self, weight_NK: Tensor, decode_share: float = DECODE_SHARE) -> JointMoments:
        """One mean for a product with weights [N, K]; decode rows weigh `decode_share`."""
        prefill = self._prefill.mean(weight_NK.float(), 1 - decode_share)
        decode = self._decode.mean(weight_NK.float(), decode_share)
        return JointMoments(
            prefill.hessian_KK + decode.hessian_KK, prefill.drift_NK + decode.drift_NK
        )
