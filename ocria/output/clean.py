"""What may not leave the program inside text: control characters, reordering marks, surrogates.

A page image never shows them, but a terminal, a log or a browser acts on them.
"""

import re

_NEWLINES = re.compile("\r\n|[\r\v\f\x1c-\x1e\x85\u2028\u2029]")
# C0 without tab and newline, DEL, C1, bidirectional embeddings, overrides and isolates, and BOM.
_UNSEEN = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufeff]")
_SURROGATE = re.compile("[\ud800-\udfff]")


def clean(text: str) -> str:
    """`text` without control characters; every kind of line end becomes `\\n`.

    Lone surrogates (undecodable file names hold them) become U+FFFD. Applying it twice changes
    nothing more.
    """
    return encodable(_UNSEEN.sub("", _NEWLINES.sub("\n", text)))


def encodable(text: str) -> str:
    """`text` as it is, but lone surrogates, which UTF-8 cannot carry, become U+FFFD."""
    return _SURROGATE.sub("\ufffd", text)


def clean_line(text: str) -> str:
    """`text` cleaned, on one line, every run of white space one space, ends trimmed."""
    return " ".join(clean(text).split())


def without_trailing_space(text: str) -> str:
    """`text` with nothing invisible before a line end."""
    return "\n".join(line.rstrip() for line in text.split("\n"))


def blank_out(text: str, spans: tuple[tuple[int, int], ...]) -> str:
    """`text` with the given character spans replaced by NULs, so that offsets stay true.

    `clean` drops the NULs. Spans may overlap or point outside.
    """
    characters = list(text)
    for start, end in spans:
        for index in range(max(start, 0), min(end, len(characters))):
            characters[index] = "\x00"
    return "".join(characters)
