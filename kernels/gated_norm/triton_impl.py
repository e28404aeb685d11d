# mypy: disallow-untyped-defs=false
"""RMS norm of a head and its gate in Triton: one program a row and head."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from ocria.kernels.specimen import Specimen
from ocria.kernels.triton_mode import is_interpreted
from ocria.kernels.triton_numbers import rounded


@triton.jit
def gated_norm_kernel(x, z, gain, y, stride_x, stride_z, eps, W: tl.constexpr, WIDE: tl.constexpr):
    """Grid: rows, heads."""
    row, head = tl.program_id(0).to(tl.int64), tl.program_id(1)
    w = tl.arange(0, W)
    wide = tl.load(x + row * stride_x + head * W + w).to(tl.float32)
    gate = tl.load(z + row * stride_z + head * W + w).to(tl.float32)
    normal = wide * tl.rsqrt(tl.sum(wide * wide, axis=0) / W + eps) * tl.load(gain + w)
    result = rounded(normal * (gate / (1.0 + tl.exp(-gate))), WIDE)
    tl.store(y + row * stride_x + head * W + w, result.to(y.dtype.element_ty))


def gated_norm(x_MV: Tensor, z_MV: Tensor, gain_W: Tensor, eps: float) -> Tensor:
    """See `reference.gated_norm`."""
    width = gain_W.shape[0]
    y_MV = torch.empty_like(x_MV)
    assert x_MV.is_contiguous() and z_MV.stride(1) == 1, "rows lie in one piece"
    gated_norm_kernel[(x_MV.shape[0], x_MV.shape[1] // width)](
        x_MV, z_MV, gain_W, y_MV, x_MV.stride(0), z_MV.stride(0), eps,
        W=width, WIDE=is_interpreted(), num_warps=1,
    )  # fmt: skip
    return y_MV


def specimens() -> list[Specimen]:
    """The shipped model's heads."""
    return [
        Specimen(
            name="gated_norm_128",
            kernel=gated_norm_kernel,
            types={
                "x": "*bf16",
                "z": "*bf16",
                "gain": "*fp32",
                "y": "*bf16",
                "stride_x": "i32",
                "stride_z": "i32",
                "eps": "fp32",
            },
            constants={"W": 128, "WIDE": False},
            num_warps=1,
            has_dot=False,
        )
    ]
