"""Causal attention over a key-value cache, keys split at absolute positions: the specification.

Shape legend
    T  query rows, H query heads, J key-value heads (H a multiple of J), D head width
    S  positions in the cache, B blocks of `key_block` positions

Each block of keys gives a partial softmax (maximum, sum, weighted values); partials are joined in
the order of the blocks. The split lies at multiples of `key_block` from position 0 and never
depends on the number of query rows, so a row has the same bits in a window of 1 or of 32.
"""

import torch
from torch import Tensor


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
    num_kv_heads = keys_JSD.shape[0]
    num_blocks = -(-(start + num_rows) // key_block)
    accumulate = torch.promote_types(q_THD.dtype, torch.float32)

    grouped = q_THD.to(accumulate).reshape(num_rows, num_kv_heads, -1, width)
    q_JQD = grouped.permute(1, 2, 0, 3).reshape(num_kv_heads, 1, -1, width) * width**-0.5
    shape = (num_kv_heads, num_blocks, key_block, width)
    k_JBKD = keys_JSD[:, : num_blocks * key_block].to(accumulate).reshape(shape)
    v_JBKD = values_JSD[:, : num_blocks * key_block].to(accumulate).reshape(shape)

    scores_JBQK = q_JQD @ k_JBKD.mT
    row_T = torch.arange(num_rows, device=q_THD.device) + start
    row_Q1 = row_T.repeat(num_heads // num_kv_heads)[:, None]
    column_B1K = torch.arange(num_blocks * key_block, device=q_THD.device).view(-1, 1, key_block)
    scores_JBQK = scores_JBQK.masked_fill(column_B1K > row_Q1, -torch.inf)

    # Block 0 holds position 0, which every row sees: the maximum is always finite.
    top_JQ1 = scores_JBQK.amax(-1, keepdim=True).amax(1)
    weights_JBQK = (scores_JBQK - top_JQ1[:, None]).exp()
    sums_JBQ1 = weights_JBQK.sum(-1, keepdim=True)
    partial_JBQD = weights_JBQK @ v_JBKD
    total_JQD, sum_JQ1 = partial_JBQD[:, 0], sums_JBQ1[:, 0]
    for block in range(1, num_blocks):
        total_JQD = total_JQD + partial_JBQD[:, block]
        sum_JQ1 = sum_JQ1 + sums_JBQ1[:, block]
    out_JGTD = (total_JQD / sum_JQ1).reshape(num_kv_heads, -1, num_rows, width)
    return out_JGTD.permute(2, 0, 1, 3).reshape(num_rows, num_heads, width).to(q_THD.dtype)
