"""The checkpoint's tokenizer: special ids, and emitted ids back to text.

Knows the `tokenizers` file format and nothing of models or pages.
"""

import codecs
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tokenizers import Tokenizer as _Backend

from ocria.errors import WeightsError


class Spelling(NamedTuple):
    """Text of a sequence of ids.

    Attributes:
        text: special tokens written out; bytes that are not UTF-8 are U+FFFD.
        token_ends: characters of `text` after each id.
        special_spans: [start, end) of each special token.
    """

    text: str
    token_ends: tuple[int, ...]
    special_spans: tuple[tuple[int, int], ...]


class Tokenizer:
    """Byte-level BPE read from a checkpoint folder's `tokenizer.json`.

    Attributes:
        special_ids: special tokens by their text.

    Raises:
        WeightsError: the file is missing or is not a byte-level tokenizer.
    """

    def __init__(self, path: Path) -> None:
        hint = "the checkpoint folder must hold a byte-level BPE `tokenizer.json`"
        try:
            self._backend = _Backend.from_file(str(path))
        except Exception as error:  # the Rust side raises bare Exception for every fault
            raise WeightsError(f"cannot read the tokenizer: {path}", hint=hint) from error
        self._pieces = {
            index: piece for piece, index in self._backend.get_vocab(with_added_tokens=True).items()
        }
        added = self._backend.get_added_tokens_decoder()
        self.special_ids = {token.content: index for index, token in added.items()}
        self._special = {index: text for text, index in self.special_ids.items()}
        self._bytes = _byte_of_character()
        self._spelt: dict[int, bytes] = {}
        self._texts: dict[int, str | None] = {}
        ordinary = (piece for index, piece in self._pieces.items() if index not in self._special)
        if not all(character in self._bytes for piece in ordinary for character in piece):
            raise WeightsError(f"not a byte-level tokenizer: {path}", hint=hint)

    def known_ids(self) -> frozenset[int]:
        """Every id that stands for something."""
        return frozenset(self._pieces)

    def id_of(self, token: str) -> int | None:
        """Id of a piece or special token, or None."""
        return self._backend.token_to_id(token)

    def encode(self, text: str) -> list[int]:
        """Ids of `text`; special tokens written out in it are recognised."""
        return self._backend.encode(text, add_special_tokens=False).ids

    def spell(self, ids: Sequence[int]) -> Spelling:
        """Text of `ids` with the place of every token in it; an unknown id spells nothing."""
        pieces: list[str] = []
        ends: list[int] = []
        spans: list[tuple[int, int]] = []
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        length = 0
        for index in ids:
            special = self._special.get(index)
            if special is None:
                piece = decoder.decode(self._bytes_of(index))
            else:
                # A character cut off by a special token is damaged: close it before.
                piece = decoder.decode(b"", final=True) + special
                spans.append((length + len(piece) - len(special), length + len(piece)))
            pieces.append(piece)
            length += len(piece)
            ends.append(length)
        rest = decoder.decode(b"", final=True)
        if rest:
            pieces.append(rest)
            ends[-1] += len(rest)
        return Spelling("".join(pieces), tuple(ends), tuple(spans))

    def text_of(self, index: int) -> str | None:
        """Text of an id that is no special one; None where it is no whole characters."""
        if index not in self._texts:
            try:
                self._texts[index] = self._bytes_of(index).decode()
            except UnicodeDecodeError:
                self._texts[index] = None
        return self._texts[index]

    def _bytes_of(self, index: int) -> bytes:
        known = self._spelt.get(index)
        if known is None:
            known = bytes(self._bytes[character] for character in self._pieces.get(index, ""))
            self._spelt[index] = known
        return known


def _byte_of_character() -> dict[str, int]:
    """Byte-level BPE's alphabet: printable Latin-1 stands for itself, the rest from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in printable]
    alphabet = {chr(byte): byte for byte in printable}
    return alphabet | {chr(0x100 + place): byte for place, byte in enumerate(hidden)}
