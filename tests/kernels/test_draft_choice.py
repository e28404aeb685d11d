"""Candidates and the path through them: Triton against the specification."""

import pytest
import torch

from ocria.kernels.draft_choice import Codebooks, reference

triton_impl = pytest.importorskip("ocria.kernels.draft_choice.triton_impl")
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.mark.parametrize(("vocabulary", "count"), [(1200, 16), (40, 5), (512, 1)])
def test_candidates(vocabulary: int, count: int) -> None:
    generator = torch.Generator().manual_seed(vocabulary)
    # Whole numbers: many are equal, and the smaller id comes first.
    logits = torch.randint(-30, 30, (3, vocabulary), generator=generator).float().to(DEVICE)
    forbidden = torch.zeros(vocabulary, dtype=torch.uint8, device=DEVICE)
    forbidden[logits[0].argmax()] = 1
    found, expected = (
        part.best_candidates(logits, forbidden, count) for part in (triton_impl, reference)
    )
    assert torch.equal(found[0], expected[0]) and torch.equal(found[1], expected[1])


@pytest.mark.parametrize(("count", "softcap"), [(16, 0.0), (5, 4.0)])
def test_paths(count: int, softcap: float) -> None:
    generator = torch.Generator().manual_seed(count)
    ids = torch.stack([torch.randperm(50, generator=generator)[:count] for _ in range(7)])
    scores = torch.randn(7, count, generator=generator).sort(-1, descending=True).values
    scores[3, 2:] = -torch.inf
    before, after = (torch.randn(50, 6, generator=generator).bfloat16() for _ in range(2))
    gate = torch.randn(7, 6, generator=generator)
    books = Codebooks(before.to(DEVICE), after.to(DEVICE), 0.7, softcap)
    inputs = [part.to(DEVICE) for part in (ids, scores, gate)]
    found, expected = (
        part.best_path(*inputs, books, torch.tensor([9], device=DEVICE))
        for part in (triton_impl, reference)
    )
    assert found.tolist() == expected.tolist()
    assert found.tolist() != ids[:, 0].tolist(), "the codebooks never mattered"
