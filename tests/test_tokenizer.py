"""Ids to text: bytes, cut-off characters, special tokens."""

import json
from pathlib import Path

import pytest
from tokenizers import AddedToken, decoders, models, pre_tokenizers
from tokenizers import Tokenizer as Backend

from ocria.errors import WeightsError
from ocria.tokenizer import Tokenizer


@pytest.fixture
def tokenizer(tmp_path: Path) -> Tokenizer:
    """One id a byte, then two special tokens."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    backend = Backend(models.BPE(vocab={piece: n for n, piece in enumerate(alphabet)}, merges=[]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens([AddedToken("<eos>"), AddedToken("<|h1|>")])
    backend.save(str(tmp_path / "tokenizer.json"))
    return Tokenizer(tmp_path / "tokenizer.json")


def test_round_trip(tokenizer: Tokenizer) -> None:
    text = "Ngày 3 tháng 4\n\t— 10 € ≠ 日本語"
    ids = tokenizer.encode(text)
    spelling = tokenizer.spell(ids)
    assert spelling.text == text
    assert len(spelling.token_ends) == len(ids)
    assert spelling.token_ends[-1] == len(text)
    assert list(spelling.token_ends) == sorted(spelling.token_ends)
    assert spelling.special_spans == ()


def test_special_tokens_are_marked_and_lookalikes_are_not(tokenizer: Tokenizer) -> None:
    h1 = tokenizer.id_of("<|h1|>")
    assert h1 is not None
    lookalike = [index for piece in "<|h1|>" for index in tokenizer.encode(piece)]
    spelling = tokenizer.spell([h1, *lookalike, h1])
    assert spelling.text == "<|h1|>" * 3
    assert spelling.special_spans == ((0, 6), (12, 18))


def test_a_character_cut_off_is_replaced(tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode("€")
    h1 = tokenizer.id_of("<|h1|>")
    assert h1 is not None
    assert tokenizer.spell(ids[:2]).text == "\ufffd"
    spelling = tokenizer.spell([*ids[:2], h1])
    assert spelling.text == "\ufffd<|h1|>"
    assert spelling.special_spans == ((1, 7),)


def test_nothing_and_unknown_ids(tokenizer: Tokenizer) -> None:
    assert tokenizer.spell([]).text == ""
    assert tokenizer.spell([999_999]).text == ""


@pytest.mark.parametrize("content", [None, "", "{}", '{"version": "1.0"}'])
def test_a_damaged_file_is_a_weights_error(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "tokenizer.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(WeightsError, match=r"tokenizer\.json"):
        Tokenizer(path)


def test_another_kind_of_tokenizer_is_refused(tmp_path: Path) -> None:
    backend = Backend(models.WordLevel(vocab={"héllo wörld": 0, "日": 1}, unk_token="日"))
    backend.save(str(tmp_path / "tokenizer.json"))
    assert "日" in json.loads((tmp_path / "tokenizer.json").read_text())["model"]["vocab"]
    with pytest.raises(WeightsError, match="byte-level"):
        Tokenizer(tmp_path / "tokenizer.json")
