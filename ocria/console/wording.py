"""Text made fit for a terminal."""

import json
from collections.abc import Mapping


def printable(text: str) -> str:
    """`text` on one line without control characters.

    A file name must neither steer the terminal nor begin a line that looks like one of ours.
    """
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def document_title(name: str) -> str:
    """What a person is told that a document is called: `-` is its name in results only."""
    return "standard input" if name == "-" else printable(name)


def printable_lines(text: str) -> str:
    """As `printable`, for text of several lines, such as a traceback."""
    return "\n".join(map(printable, text.rstrip().split("\n")))


def counted(number: int, noun: str) -> str:
    """Such as `1 page` and `1,234 pages`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def event_line(event: str, fields: Mapping[str, object]) -> str:
    """One JSON object in plain ASCII, without control characters."""
    # json escapes everything but DEL.
    return json.dumps({"event": event} | dict(fields)).replace("\x7f", "\\u007f")
