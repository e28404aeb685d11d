"""The two RMS norms of the family; they differ and must not be mixed."""

import torch
from torch import Tensor, nn

from ocria.models.layers.rowwise import by_rows


def rms_normalise(x: Tensor, eps: float, gain: Tensor | None = None) -> Tensor:
    """x / rms(x) * gain over the last dimension, in at least float32, not cast back."""
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    return torch.rms_norm(wide, wide.shape[-1:], gain, eps)


class ZeroCentredRMSNorm(nn.Module):
    """y = x / rms(x) * (1 + w). The checkpoint stores w, which starts at zero."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.empty(width))
        self._gain: Tensor | None = None

    def prepare(self) -> None:
        """Computes 1 + w once, in at least float32."""
        self._gain = 1 + self.weight.to(torch.promote_types(self.weight.dtype, torch.float32))

    def forward(self, x: Tensor) -> Tensor:
        assert self._gain is not None, "prepare the model first"
        return rms_normalise(x, self.eps, self._gain).to(x.dtype)


class GatedRMSNorm(nn.Module):
    """y = x / rms(x) * w * SiLU(z): norm before gate, plain weight, one for all heads."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.empty(width))

    def forward(self, x: Tensor, z: Tensor, dtype: torch.dtype) -> Tensor:
        """Output in `dtype`, which is also what the normalised value is rounded to."""
        normal = rms_normalise(x.to(dtype), self.eps).to(dtype)
        scaled = self.weight.to(dtype) * normal
        gate = by_rows(nn.functional.silu, z.to(torch.promote_types(dtype, torch.float32)))
        return (scaled * gate).to(dtype)
