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

import functools
import itertools

import torch
import torch.nn.functional as F
from torch import Tensor

QUERY_TILE = 4
"""Small: plain decoding pays for a whole tile. 4 rows of 4 heads fill a 16-row product."""
_SLAB = 1 << 15
"""PyTorch's CPU loops share out more elements than this among threads, at any element: a row cut
inside a vector would have other last bits of exp."""


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
    q_WJQD = tiled.permute(0, 2, 3, 1, 4).reshape(num_tiles, num_kv_heads, -1, width)
    k_JBSD, v_JBSD = (
        cache[:, : num_blocks * key_block].to(accumulate).unflatten(1, (num_blocks, key_block))
        for cache in (keys_JSD, values_JSD)
    )
    # The blocks of one key-value head lie in one piece. A single product over all heads and tiles
    # would first copy every key and value, once a tile.
    tiles_and_heads = list(itertools.product(range(num_tiles), range(num_kv_heads)))

    scaled_WJQD = q_WJQD * width**-0.5
    scores_WJBQS = q_WJQD.new_empty(*q_WJQD.shape[:2], num_blocks, q_WJQD.shape[2], key_block)
    for w, j in tiles_and_heads:
        q_BQD = scaled_WJQD[w, j].expand(num_blocks, -1, -1)
        torch.bmm(q_BQD, k_JBSD[j].mT, out=scores_WJBQS[w, j])
    # Blocks that end before the window are seen by every row.
    tail = start // key_block
    hidden = _hidden(start, num_rows, group, key_block, q_THD.device)
    scores_WJBQS[:, :, tail:].masked_fill_(hidden, -torch.inf)

    # Block 0 holds position 0, which every row sees: the maximum is always finite.
    top_WJQ = scores_WJBQS.amax(-1, keepdim=True).amax(2, keepdim=True)
    weights_WJBQS = _exp_in_slabs(scores_WJBQS.sub_(top_WJQ))
    sums_WJBQ = weights_WJBQS.sum(-1, keepdim=True)
    partial_WJBQD = q_WJQD.new_empty(*weights_WJBQS.shape[:4], width)
    for w, j in tiles_and_heads:
        torch.bmm(weights_WJBQS[w, j], v_JBSD[j], out=partial_WJBQD[w, j])
    total_WJQD = functools.reduce(torch.add, partial_WJBQD.unbind(2))
    sum_WJQ = functools.reduce(torch.add, sums_WJBQ.unbind(2))
    out_WJGTD = (total_WJQD / sum_WJQ).reshape(num_tiles, num_kv_heads, group, QUERY_TILE, width)
    out_THD = out_WJGTD.permute(0, 3, 1, 2, 4).reshape(-1, num_heads, width)
    return out_THD[:num_rows].to(q_THD.dtype)


@functools.lru_cache(maxsize=32)
def _hidden(start: int, num_rows: int, group: int, key_block: int, device: torch.device) -> Tensor:
    """Which keys a query row may not see, [W, 1, blocks that reach into the window, Q, key_block].

    The same in every layer of a pass.
    """
    num_tiles = -(-num_rows // QUERY_TILE)
    row_WT = torch.arange(num_tiles * QUERY_TILE, device=device).view(num_tiles, -1) + start
    row_WQ = row_WT.repeat(1, group)[:, None, None, :, None]
    first, end = start // key_block * key_block, -(-(start + num_rows) // key_block) * key_block
    return torch.arange(first, end, device=device).view(-1, 1, key_block) > row_WQ


def _exp_in_slabs(x: Tensor) -> Tensor:
    """exp(x) in place, on a CPU in slabs that one thread takes: see `models/layers/rowwise.py`."""
    slabs = x.view(-1).split(_SLAB) if x.device.type == "cpu" else (x,)
    for slab in slabs:
        slab.exp_()
    return x
