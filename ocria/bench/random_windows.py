"""Windows of verify passes as speculation may cut a text: what checks of equal bits read it by."""

import torch

from ocria.models.base import WINDOW


def random_windows(num_tokens: int, seed: int) -> list[tuple[int, int]]:
    """(rows, rows kept) of passes over so many tokens; they cross fold boundaries anywhere."""
    generator = torch.Generator().manual_seed(seed)
    cuts, left = [], num_tokens
    while left:
        rows = min(int(torch.randint(1, WINDOW + 1, (), generator=generator)), left)
        kept = int(torch.randint(1, rows + 1, (), generator=generator))
        cuts.append((rows, kept))
        left -= kept
    return cuts
