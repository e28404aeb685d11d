"""`--pages`."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocria.errors import UsageError
from ocria.rasterize import page_range


@pytest.mark.parametrize(
    ("text", "pages"),
    [
        (None, range(1, 11)),
        ("1", [1]),
        ("1,3-5,8-,-1", [1, 3, 4, 5, 8, 9, 10]),
        ("-1", [10]),
        ("-3-", [8, 9, 10]),
        ("-3--2", [8, 9]),
        ("2--2", range(2, 10)),
        ("5,1,5,1-2", [1, 2, 5]),
        (" 3 , 4 ", [3, 4]),
        ("10-", [10]),
    ],
)
def test_selects(text, pages):
    assert page_range(text, 10) == tuple(pages)


@pytest.mark.parametrize(
    "text",
    [
        *("99", "0", "-11", "1-11", "0-3", "999999999999"),
        *("", ",", "1,", "-", "--", "1-2-3", "5-3"),
        *("a", "1.5", "1;2", "²", "1_0", "٣", "1-٣"),
    ],
)
def test_refuses(text):
    with pytest.raises(UsageError) as caught:
        page_range(text, 10)
    assert caught.value.hint
    assert "--pages" in str(caught.value)


def test_says_how_many_pages_there_are():
    with pytest.raises(UsageError, match="no page 99, the document has 3 pages"):
        page_range("99", 3)
    with pytest.raises(UsageError, match="no page 99, the document has 1 page") as caught:
        page_range("99", 1)
    assert caught.value.hint == "leave --pages out"


@given(st.integers(1, 60), st.data())
def test_is_the_union_of_its_parts(num_pages, data):
    number = st.integers(1, num_pages)
    bounds = data.draw(st.lists(st.tuples(number, number).map(sorted), min_size=1, max_size=5))
    text = ",".join(f"{first}-{last}" for first, last in bounds)
    expected = {page for first, last in bounds for page in range(first, last + 1)}
    assert page_range(text, num_pages) == tuple(sorted(expected))


@given(st.text("0123456789-, ", max_size=12), st.integers(1, 20))
def test_answers_or_refuses_and_never_leaves_the_document(text, num_pages):
    try:
        pages = page_range(text, num_pages)
    except UsageError:
        return
    assert pages
    assert pages == tuple(sorted(set(pages)))
    assert 1 <= pages[0] <= pages[-1] <= num_pages
