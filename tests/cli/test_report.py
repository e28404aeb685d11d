"""What is said of a document at its end."""

from ocria.cli.report import MAX_NAMED, Tally
from ocria.document import Page, PageStatus
from ocria.errors import ExitCode


def page(number: int, confidence: float | None, status: PageStatus = "ok") -> Page:
    return Page(
        number=number, width_pt=10, height_pt=10, status=status, confidence=confidence, num_tokens=5
    )


def tally(*pages: Page) -> Tally:
    found = Tally()
    for one in pages:
        found.add(one)
    return found


def test_pages_of_low_confidence_are_named_worst_first_and_end_well() -> None:
    found = tally(page(1, 0.99), page(2, 0.44), page(3, None, "blank"), page(4, 0.31))
    said = found.doubts()
    assert said is not None
    assert "pages 4 (0.31), 2 (0.44):" in said
    assert "2 doubtful" in found.summary("a.pdf", None)
    assert found.exit_code is ExitCode.OK


def test_good_pages_raise_no_doubt() -> None:
    found = tally(page(1, 0.95), page(2, None, "blank"))
    assert found.doubts() is None
    assert "doubtful" not in found.summary("a.pdf", None)


def test_a_page_in_trouble_is_named_once() -> None:
    found = tally(page(1, 0.2, "truncated"))
    assert found.doubts() is None
    assert len(found.trouble) == 1


def test_a_long_list_of_doubtful_pages_is_cut() -> None:
    said = tally(*(page(number, 0.3) for number in range(1, MAX_NAMED + 4))).doubts()
    assert said is not None
    assert "and 3 more" in said
