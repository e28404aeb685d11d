"""Causal attention over a key-value cache, keys split at absolute positions: the specification.

Shape legend
    T  query rows, H query heads, J key-value heads (H a multiple of J), D head width
    S  positions in the cache, B blocks of `key_block` positions, W whole query tiles
    Q  rows of a product: the query heads that share keys, times the rows of a query tile

Each block of keys gives a partial softmax (maximum, sum, weighted values); partials are joined in
the order of the blocks. The split lies at multiples of `key_block` from position 0 and never
depends on the number of query rows. These are multiplied in tiles of `QUERY_TILE`, always whole,
so a row has the same bits in a window of 1 or of 32.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

QUERY_TILE = 4
"""Small: plain decoding pays for a whole tile. 4 rows of 4 heads fill a 16-row product."""


def block_attention(
    q_THD: Tensor, keys_JSD: Tensor, values_JSD: Tensor, start: int, key_block: int
) -> Tensor:
    """Attention of T consecutive positions beginning at `start`, themselves in the cache already.

    Args:
        q_THD: [T, H, D], rotated.
        keys_JSD: [J, S, D]; S is a multiple of `key_block` and at least start + T. What lies
            behind a row's own position is never read by it, but must be finite.
        values_JSD: [J, S, D].
        start: absolute position of the first query row.
        key_block: positions in a block.

    Returns:
        [T, H, D] in the dtype of the query, computed in at least float32.
    """
    num_rows, num_heads, width = q_THD.shape
    num_kv_heads, group = keys_JSD.shape[0], num_heads // keys_JSD.shape[0]
    num_tiles = -(-num_rows // QUERY_TILE)
    num_blocks = -(-(start + num_rows) // key_block)
    accumulate = torch.promote_types(q_THD.dtype, torch.float32)

    padded = F.pad(q_THD.to(accumulate), (0, 0, 0, 0, 0, num_tiles * QUERY_TILE - num_rows))
    tiled = padded.reshape(num_tiles, QUERY_TILE, num_kv_heads, group, width)
    q_WJQD = tiled.permute(0, 2, 3, 1, 4).reshape(num_tiles, num_kv_heads, 1, -1, width)
    shape = (num_kv_heads, num_blocks, key_block, width)
    k_JBSD = keys_JSD[:, : num_blocks * key_block].to(accumulate).reshape(shape)
    v_JBSD = values_JSD[:, : num_blocks * key_block].to(accumulate).reshape(shape)

    scores_WJBQS = (q_WJQD * width**-0.5) @ k_JBSD.mT
    # Blocks that end before the window are seen by every row.
    tail = start // key_block
    row_WT = torch.arange(num_tiles * QUERY_TILE, device=q_THD.device).view(num_tiles, -1) + start
    row_WQ = row_WT.repeat(1, group)[:, None, None, :, None]
    column = torch.arange(tail * key_block, num_blocks * key_block, device=q_THD.device)
    hidden = column.view(-1, 1, key_block) > row_WQ
    scores_WJBQS[:, :, tail:].masked_fill_(hidden, -torch.inf)

    # Block 0 holds position 0, which every row sees: the maximum is always finite.
    top_WJQ = scores_WJBQS.amax(-1, keepdim=True).amax(2, keepdim=True)
    weights_WJBQS = (scores_WJBQS - top_WJQ).exp_()
    sums_WJBQ = weights_WJBQS.sum(-1, keepdim=True)
    partial_WJBQD = weights_WJBQS @ v_JBSD
    total_WJQD, sum_WJQ = partial_WJBQD[:, :, 0], sums_WJBQ[:, :, 0]
    for block in range(1, num_blocks):
        total_WJQD = total_WJQD + partial_WJBQD[:, :, block]
        sum_WJQ = sum_WJQ + sums_WJBQ[:, :, block]
    out_WJGTD = (total_WJQD / sum_WJQ).reshape(num_tiles, num_kv_heads, group, QUERY_TILE, width)
    out_THD = out_WJGTD.permute(0, 3, 1, 2, 4).reshape(-1, num_heads, width)
    return out_THD[:num_rows].to(q_THD.dtype)
