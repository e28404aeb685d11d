"""What kind of file it is, by its first bytes: suffixes and declared types lie."""

import mimetypes
from pathlib import Path

from ocria.errors import InputError

PDF = "application/pdf"

HEAD_BYTES = 1024
"""PDFium, like Acrobat, accepts junk before `%PDF-` within the first 1024 bytes."""

SUPPORTED = "a PDF, PNG, JPEG, TIFF, WebP, BMP or GIF file"

# (offset, bytes) of a format that is read.
_SIGNATURES: tuple[tuple[int, bytes, str], ...] = (
    (0, b"\x89PNG\r\n\x1a\n", "image/png"),
    (0, b"\xff\xd8\xff", "image/jpeg"),
    (0, b"II*\0", "image/tiff"),
    (0, b"MM\0*", "image/tiff"),
    (0, b"II+\0", "image/tiff"),
    (0, b"MM\0+", "image/tiff"),
    (8, b"WEBP", "image/webp"),
    (0, b"GIF87a", "image/gif"),
    (0, b"GIF89a", "image/gif"),
    (0, b"BM", "image/bmp"),
)

# Formats that people do hand over and that are not read: naming them saves a search.
_FOREIGN: tuple[tuple[int, bytes, str], ...] = (
    (0, b"PK\x03\x04", "a ZIP container (an office document, EPUB or archive)"),
    (0, b"\xd0\xcf\x11\xe0", "an old office document"),
    (0, b"%!PS", "a PostScript file"),
    (0, b"AT&TFORM", "a DjVu file"),
    (0, b"\x1f\x8b", "a gzip archive"),
    (4, b"ftyphei", "a HEIC photo"),
    (4, b"ftypavif", "an AVIF image"),
    (0, b"\0\0\0\x0cjP  ", "a JPEG 2000 image"),
    (0, b"{\\rtf", "an RTF document"),
)


def media_type_of(head: bytes, name: str) -> str:
    """Returns the media type for the first `HEAD_BYTES` bytes of a document.

    Raises:
        InputError: for an empty file, and for anything that is not read.
    """
    if not head:
        raise InputError(f"{name} is empty", hint="check that the file was copied completely")
    for offset, signature, media_type in _SIGNATURES:
        if head.startswith(signature, offset):
            return media_type
    if b"%PDF-" in head[:HEAD_BYTES]:
        return PDF
    raise InputError(f"{name} is not a document: {_likeness(head, name)}", hint=_advice(head))


def is_document(path: Path) -> bool:
    """Whether a file begins like a document that is read; false if it cannot be read."""
    try:
        with path.open("rb") as file:
            media_type_of(file.read(HEAD_BYTES), path.name)
    except (OSError, InputError):
        return False
    return True


def _foreign(head: bytes) -> str | None:
    for offset, signature, description in _FOREIGN:
        if head.startswith(signature, offset):
            return description
    return None


def _likeness(head: bytes, name: str) -> str:
    foreign = _foreign(head)
    if foreign:
        return f"it looks like {foreign}"
    try:
        # A multi-byte character may be cut at the end of the head.
        head[:-4].decode("utf-8")
        kind = "it is plain text" if b"\0" not in head else "its bytes are of no known format"
    except UnicodeDecodeError:
        kind = "its bytes are of no known format"
    claimed, _ = mimetypes.guess_type(Path(name).name)
    return f"{kind}, despite its name" if claimed == PDF else kind


def _advice(head: bytes) -> str:
    if _foreign(head):
        return f"convert it first: the input must be {SUPPORTED}"
    return f"the input must be {SUPPORTED}"
