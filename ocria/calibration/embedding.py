"""The embedding and a head in FP8, some rows at a time: a large one is never held twice.

Shape legend: V rows (vocabulary), D hidden size.
"""

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from ocria.calibration.passages import Forcing, Passage
from ocria.models.qwen3_5.model import Qwen35
from ocria.quantization import error_feedback, fp8

TILE_ROWS = 4096


def round_embedding(
    tiles: Iterable[Tensor], shape: tuple[int, int], hessian_DD: Tensor | None
) -> fp8.FP8Tensor:
    """FP8 with a bf16 scale for each row.

    Args:
        tiles: rows of the matrix in order, [some, D].
        shape: V and D.
        hessian_DD: second moments of what a head reads; its errors are fed back along them. None
            rounds to nearest, as for an embedding that is only looked up.

    Raises:
        ValueError: a weight is NaN or infinite.
    """
    codes_VD = torch.empty(shape, dtype=torch.float8_e4m3fn)
    # transformers casts scales to the dtype of the run: bf16 ones survive that.
    scale_V1 = torch.empty(shape[0], 1, dtype=torch.bfloat16)
    feedback = None if hessian_DD is None else error_feedback.Feedback(hessian_DD)
    start = 0
    for tile in tiles:
        packed = fp8.quantize(tile, scale_dtype=torch.bfloat16)
        if feedback is not None:
            packed = error_feedback.round_fp8(tile, packed.scale_N1, feedback)
        rows = slice(start, start + tile.shape[0])
        codes_VD[rows], scale_V1[rows] = packed
        start += tile.shape[0]
    return fp8.FP8Tensor(codes_VD, scale_V1)


def head_moments(target: Qwen35, passages: Sequence[Passage]) -> Tensor:
    """Second moments [D, D] of what a whole model's head reads, over places that choose a token."""
    forcing = Forcing(target, max(passage.num_rows for passage in passages))
    size = target.config.text.hidden_size
    hessian_DD = torch.zeros(size, size)
    for passage in passages:
        hidden_TD = forcing.hidden(passage).cpu().float()
        hessian_DD.addmm_(hidden_TD.T, hidden_TD)
    return hessian_DD
