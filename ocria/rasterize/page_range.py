"""`--pages 1,3-5,8-,-1`: which pages of a document are meant."""

import re

from ocria.errors import UsageError

HINT = "write pages as `1`, `3-5`, `8-` (to the end) or `-1` (the last), separated by commas"

# `4`, `3-5`, `8-`, `-3--1` (the last three), `-3-` (the same).
_PART = re.compile(r"(?P<first>-?[0-9]{1,9})(?P<to>-(?P<last>-?[0-9]{1,9})?)?")


def check_pages(text: str | None) -> None:
    """Refuses what is impossible in any document.

    Raises:
        UsageError: no page selection, a page 0, or a range that runs backwards.
    """
    for part in text.split(",") if text is not None else ():
        _ends(part.strip())


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
        first, last = _bounds(part.strip(), num_pages)
        selected.update(range(first, last + 1))
    return tuple(sorted(selected))


def _ends(part: str) -> tuple[int, int | None]:
    """First and last page as they are written; None for an open end."""
    match = _PART.fullmatch(part)
    if match is None:
        raise UsageError(f"`{part}` in --pages is not a page or a range", hint=HINT)
    first = int(match["first"])
    last = int(match["last"]) if match["last"] else None if match["to"] else first
    if 0 in (first, last):
        raise UsageError("--pages: there is no page 0", hint="pages are counted from 1")
    if last is not None and (first > 0) == (last > 0):
        _refuse_backwards(part, first, last)
    return first, last


def _bounds(part: str, num_pages: int) -> tuple[int, int]:
    first, last = _ends(part)
    first = _resolve(first, num_pages)
    last = num_pages if last is None else _resolve(last, num_pages)
    _refuse_backwards(part, first, last)
    return first, last


def _refuse_backwards(part: str, first: int, last: int) -> None:
    if first > last:
        hint = "write the smaller page first"
        raise UsageError(f"--pages range `{part}` runs backwards", hint=hint)


def _resolve(number: int, num_pages: int) -> int:
    page = number if number >= 0 else num_pages + 1 + number
    if not 1 <= page <= num_pages:
        extent = "1 page" if num_pages == 1 else f"{num_pages} pages"
        raise UsageError(
            f"--pages: there is no page {number}, the document has {extent}",
            hint="leave --pages out" if num_pages == 1 else f"choose from 1 to {num_pages}",
        )
    return page
