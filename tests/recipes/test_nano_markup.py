"""The output markup: ids, reading back, scoring."""

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

pytest.importorskip("typst", reason="the page recipes need the extra `recipes`")
pytest.importorskip("faker", reason="the page recipes need the extra `recipes`")

from ocria.models.recipes.nano import vocabulary as v
from ocria.models.recipes.nano.evaluate import edits, score
from ocria.models.recipes.nano.markup import overlap, read_blocks, rotation

PAGE = (
    "<|rot90|><|h1|><|1|><|2|><|3|><|4|>Title<|table|><|5|><|6|><|100|><|110|>"
    "<|ched|>a<|ecel|><|nl|><|fcel|>b<|lcel|><|nl|>"
)


def test_ids_are_where_the_engine_expects_them():
    names = dict(enumerate((*v.CONTROL, *[""] * (v.NUM_PIECES - 4), *v.SPECIALS)))
    assert (names[6144], names[6145], names[6146]) == v.SPECIALS[:3]
    assert names[v.FIRST_MARKUP] == "<|rot90|>"
    assert v.NUM_ROWS < 6900 and v.LAST_USED < v.NUM_ROWS


def test_read_blocks():
    title, table = read_blocks(PAGE)
    assert (title.type, title.box, title.text) == ("h1", (1, 2, 3, 4), "Title")
    cells = [("ched", "a"), ("ecel", ""), ("nl", ""), ("fcel", "b"), ("lcel", ""), ("nl", "")]
    assert table.cells == cells
    assert rotation(PAGE) == "rot90"
    assert read_blocks("text that no block opens") == []


def test_overlap():
    assert overlap((0, 0, 9, 9), (0, 0, 9, 9)) == 1.0
    assert overlap((0, 0, 9, 9), (5, 0, 14, 9)) == pytest.approx(50 / 150)
    assert overlap((0, 0, 9, 9), (9, 0, 2, 9)) == 0.0


@pytest.mark.parametrize(
    ("a", "b", "wanted"), [("kitten", "sitting", 3), ("", "ab", 2), ("a", "a", 0)]
)
def test_edits(a, b, wanted):
    assert edits(a, b) == wanted


def test_a_blank_page_read_as_blank_is_exact():
    result = score("", "", tokens=0, limit=10)
    assert result.exact and result.cer == 0 and result.boxes == 1.0
    invented = score("", "<|h1|><|1|><|2|><|3|><|4|>ghost", tokens=6, limit=10)
    assert invented.cer > 0 and invented.boxes == 0.0


def test_new_rows_are_the_mean_of_the_old_that_spell_them():
    import torch

    def byte_level(vocabulary, merges):
        made = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
        made.pre_tokenizer = pre_tokenizers.ByteLevel(False)
        made.decoder = decoders.ByteLevel()
        return made

    seed = byte_level({"<pad>": 0, "a": 4, "b": 5, "ab": 6, "c": 7}, [("a", "b")])
    assert v.Speller(seed)("abc") == [6, 7]
    first = v.NUM_PIECES + v.SPECIALS.index("<|0|>")
    new = byte_level({"<pad>": 0, "abc": 4, "ab": 5, "a": 6, "b": 7, "c": 8, "<|0|>": first}, [])
    rows = torch.randn(v.NUM_PIECES, 8, generator=torch.Generator().manual_seed(0))
    made = v.initial_rows(new, seed, rows)
    torch.testing.assert_close(made[4], rows[[6, 7]].mean(0))
    torch.testing.assert_close(made[5], rows[6])
    assert made.shape == (v.NUM_ROWS, 8)
