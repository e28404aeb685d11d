"""`--pages 1,3-5,8-,-1`: which pages of a document are meant."""

import re

from ocria.errors import UsageError

HINT = "write pages as `1`, `3-5`, `8-` (to the end) or `-1` (the last), separated by commas"

_NUMBER = re.compile(r"-?[0-9]{1,9}")
# A range: `3-5`, `8-`, `-3--1` (the last three), `-3-` (the same).
_RANGE = re.compile(r"(?P<first>-?[0-9]{1,9})-(?P<last>-?[0-9]{1,9})?")


def page_range(text: str | None, num_pages: int) -> tuple[int, ...]:
    """Returns the selected 1-based page numbers, ascending, each once.

    The order in which parts are written does not matter: a document keeps its own order.
    Negative numbers count from the end, so `-1` is the last page and not an open start.

    Raises:
        UsageError: for anything that is not a page selection, or names a page that the document
            does not have.
    """
    if text is None:
        return tuple(range(1, num_pages + 1))
    selected: set[int] = set()
    for part in text.split(","):
        first, last = _bounds(part.strip(), text, num_pages)
        selected.update(range(first, last + 1))
    return tuple(sorted(selected))


def _bounds(part: str, text: str, num_pages: int) -> tuple[int, int]:
    if _NUMBER.fullmatch(part):
        page = _resolve(int(part), num_pages)
        return page, page
    match = _RANGE.fullmatch(part)
    if match is None:
        raise UsageError(f"`{part}` in --pages `{text}` is not a page or a range", hint=HINT)
    first = _resolve(int(match["first"]), num_pages)
    last = _resolve(int(match["last"]), num_pages) if match["last"] else num_pages
    if first > last:
        raise UsageError(
            f"--pages range `{part}` runs backwards ({first} to {last})",
            hint="write the smaller page first",
        )
    return first, last


def _resolve(number: int, num_pages: int) -> int:
    page = number if number >= 0 else num_pages + 1 + number
    if number == 0:
        raise UsageError("--pages: there is no page 0", hint="pages are counted from 1")
    if not 1 <= page <= num_pages:
        extent = "1 page" if num_pages == 1 else f"{num_pages} pages"
        raise UsageError(
            f"--pages: there is no page {number}, the document has {extent}",
            hint="leave --pages out" if num_pages == 1 else f"choose from 1 to {num_pages}",
        )
    return page
