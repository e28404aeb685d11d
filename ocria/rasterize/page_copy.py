"""One page of a PDF as PDFium writes it: its dictionary and streams, to be looked at.

PDFium's interface shows what it drew, not what the file holds. Copied into a document of its own
and written, a page is plain to read whatever the file was like: decrypted, out of its object
streams, inherited entries filled in, every object under its number.
"""

import base64
import ctypes
import re
import zlib
from typing import Any

import pypdfium2.raw as pdfium

_TOKEN = re.compile(
    rb"/[^\s/<>\[\]()]*|<<|>>|[\[\]]|\((?:\\.|[^\\()])*\)|<[^<>]*>|[^\s/<>\[\]()]+", re.DOTALL
)
_REFERENCE = re.compile(rb"(\d+) \d+ R\b")
_OBJECT_START = re.compile(rb"\r\n(\d+) 0 obj\r\n")
_OBJECT_END = b"\r\nendobj\r\n"
_STREAM_START = b">>stream\r\n"
_STREAM_END = b"\r\nendstream"

Entries = dict[str, list[bytes]]
"""A dictionary: each key with the tokens of its value, those of nested objects among them."""


class StreamDamaged(Exception):
    """A stream's bytes are not what its filters say."""


class PageCopy:
    """A copy of page `index` (0-based) of an open document.

    Attributes:
        entries: the page's dictionary. PDFium puts in a MediaBox and Resources where the file
            has none.

    Raises:
        ValueError: PDFium cannot copy the page.
    """

    def __init__(self, document: Any, index: int) -> None:
        file = _written_alone(document, index)
        self._objects = {int(m[1]): _object_at(file, m.end()) for m in _OBJECT_START.finditer(file)}
        kids = re.search(rb"/Kids\[ *(\d+) 0 R", file)
        if kids is None:
            raise ValueError("the copy has no page")
        self.entries: Entries = dictionary(self._objects[int(kids[1])])

    def contents(self) -> list[bytes]:
        """The objects that /Contents names, in order; not all need be streams."""
        objects = self._named(b" ".join(self.entries.get("Contents", [])))
        if len(objects) == 1 and objects[0].startswith(b"["):
            return self._named(objects[0])
        return objects

    def forms(self) -> list[bytes]:
        """The form XObjects that the page can reach."""
        streams = (body for body in self._objects.values() if is_stream(body))
        return [body for body in streams if dictionary(body).get("Subtype") == [b"/Form"]]

    def _named(self, references: bytes) -> list[bytes]:
        numbers = (int(match[1]) for match in _REFERENCE.finditer(references))
        return [self._objects.get(number, b"") for number in numbers]


def dictionary(text: bytes) -> Entries:
    """The entries of the dictionary that `text` begins with; none if it begins otherwise."""
    entries: Entries = {}
    value: list[bytes] | None = None
    depth = 0
    for match in _TOKEN.finditer(text):
        token = match[0]
        within = depth
        depth += (token in (b"<<", b"[")) - (token in (b">>", b"]"))
        if depth <= 0:
            break
        if within == 1 and token.startswith(b"/") and value != []:
            value = entries[token[1:].decode("latin-1")] = []
        elif value is not None:
            value.append(token)
    return entries


def is_stream(body: bytes) -> bool:
    """Whether an object is a stream."""
    return body.startswith(b"<<") and _STREAM_START in body


def decoded(body: bytes) -> bytes | None:
    """The bytes of a stream object; None for filters that PDFium alone decodes.

    Raises:
        StreamDamaged: the bytes break off, or are not in the stream's encoding.
    """
    head, _, data = body.partition(_STREAM_START)
    data = data[: data.rindex(_STREAM_END)] if _STREAM_END in data else data
    entries = dictionary(head + b">>")
    if "DecodeParms" in entries:
        return None
    for name in entries.get("Filter", []):
        if name in (b"[", b"]"):
            continue
        decode = _DECODERS.get(name)
        if decode is None:
            return None
        data = decode(data)
    return data


def _inflated(data: bytes) -> bytes:
    if not data.strip():
        return b""
    inflater = zlib.decompressobj()
    try:
        plain = inflater.decompress(data)
    except zlib.error as error:
        raise StreamDamaged(str(error)) from error
    if not inflater.eof:
        raise StreamDamaged("it breaks off")
    return plain


def _from_ascii85(data: bytes) -> bytes:
    try:
        return base64.a85decode(data.partition(b"~")[0].strip())
    except ValueError as error:
        raise StreamDamaged(str(error)) from error


def _from_hexadecimal(data: bytes) -> bytes:
    digits = b"".join(data.partition(b">")[0].split())
    try:
        return bytes.fromhex((digits + b"0" * (len(digits) % 2)).decode("ascii"))
    except ValueError as error:
        raise StreamDamaged(str(error)) from error


_DECODERS = {
    b"/FlateDecode": _inflated,
    b"/ASCII85Decode": _from_ascii85,
    b"/ASCIIHexDecode": _from_hexadecimal,
}


def _object_at(file: bytes, start: int) -> bytes:
    end = file.find(_OBJECT_END, start)
    return file[start : end if end >= 0 else len(file)]


def _written_alone(document: Any, index: int) -> bytes:
    alone = pdfium.FPDF_CreateNewDocument()
    try:
        if not pdfium.FPDF_ImportPagesByIndex(alone, document, (ctypes.c_int * 1)(index), 1, 0):
            raise ValueError("PDFium cannot copy the page")
        return _written(alone)
    finally:
        pdfium.FPDF_CloseDocument(alone)


def _written(document: Any) -> bytes:
    file = bytearray()

    def write(_: Any, data: Any, size: int) -> int:
        file.extend(ctypes.string_at(data, size))
        return 1

    writer = pdfium.FPDF_FILEWRITE(version=1)
    pdfium_types = dict(pdfium.FPDF_FILEWRITE._fields_)
    writer.WriteBlock = pdfium_types["WriteBlock"](write)
    pdfium.FPDF_SaveAsCopy(document, writer, 0)
    return bytes(file)
