"""The time left of a run."""

import time
from collections import Counter

import pytest

from ocria.batch import Figures


@pytest.mark.parametrize(
    ("num_done", "num_pages", "expected_s"),
    [(0, 20, None), (1, 1, None), (2, 9, None), (3, 0, None), (3, 3, 70.0), (1, 10, 90.0)],
)
def test_no_time_left_before_a_few_documents_or_pages(
    num_done: int, num_pages: int, expected_s: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "monotonic", lambda: 10.0 * max(1, num_done))
    figures = Figures(
        num_found=10,
        documents=Counter(ok=num_done),
        pages=Counter(ok=num_pages),
        started_s=0.0,
    )
    assert figures.eta_s() == expected_s
