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
        num_ahead=10 - num_done,
        num_opened=num_done,
        num_wanted_pages=num_pages,
        documents=Counter(ok=num_done),
        pages=Counter(ok=num_pages),
        reading_s=0.0,
    )
    assert figures.eta_s() == expected_s


def test_what_an_earlier_run_has_read_needs_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    # 90 documents were looked through in 30 s; then 3 of 5 pages were read in each of 4, at one
    # a second, one of them is still on its way, and 6 documents are ahead.
    monkeypatch.setattr(time, "monotonic", lambda: 42.0)
    figures = Figures(
        num_found=100,
        num_skipped=90,
        num_ahead=6,
        num_opened=4,
        num_wanted_pages=20 + 2,
        num_resumed_pages=8,
        documents=Counter(ok=3),
        pages=Counter(ok=12),
        started_s=0.0,
        reading_s=30.0,
    )
    assert figures.eta_s() == pytest.approx(2 + 6 * 22 / 4)
