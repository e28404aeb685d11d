"""The checkpoint's tokenizer, seen as three things: prompt ids, stop ids, and text.

Knows the `tokenizers` file format and nothing of models or pages.
"""

import json
from collections.abc import Sequence
from pathlib import Path

from tokenizers import Tokenizer as _Backend

from ocria.errors import WeightsError


class Tokenizer:
    """Byte-level BPE read from a checkpoint folder's `tokenizer.json`.

    Raises:
        WeightsError: the file is missing or is not a tokenizer.
    """

    def __init__(self, path: Path) -> None:
        try:
            self._backend = _Backend.from_file(str(path))
        except Exception as error:  # the Rust side raises bare Exception for every fault
            raise WeightsError(
                f"cannot read the tokenizer: {path}",
                hint="the checkpoint folder must hold a `tokenizer.json`",
            ) from error
        vocabulary = json.loads(path.read_text(encoding="utf-8"))
        self.special_ids: dict[str, int] = {
            entry["content"]: entry["id"] for entry in vocabulary.get("added_tokens", [])
        }

    def __len__(self) -> int:
        """Highest id + 1, special tokens included."""
        return max(self._backend.get_vocab(with_added_tokens=True).values()) + 1

    def id_of(self, token: str) -> int | None:
        """Id of a piece or special token, or None."""
        return self._backend.token_to_id(token)

    def known_ids(self) -> frozenset[int]:
        """Every id that stands for something."""
        return frozenset(self._backend.get_vocab(with_added_tokens=True).values())

    def encode(self, text: str) -> list[int]:
        """Ids of `text`; special tokens written out in it are recognised."""
        return self._backend.encode(text, add_special_tokens=False).ids

    def decode(self, ids: Sequence[int], *, keep_special: bool = False) -> str:
        """Text of `ids`. Bytes that are not UTF-8 become U+FFFD."""
        return self._backend.decode(list(ids), skip_special_tokens=not keep_special)

    def piece(self, token_id: int) -> str:
        """Text of one special token, or the byte-level piece as stored."""
        return self._backend.id_to_token(token_id) or ""
