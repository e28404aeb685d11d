"""Plain Markdown of a model to blocks."""

from collections.abc import Callable

import pytest

from ocria.document import Block
from ocria.output import DecodedText, PageBlocks, PageGeometry, build_page_blocks

BlocksOf = Callable[..., PageBlocks]


def shape(block: Block) -> tuple[str, int | None, str]:
    return block.type, block.level, block.text


def test_each_kind_of_block(blocks_of: BlocksOf) -> None:
    found = blocks_of("## A *b*\n\nOne\ntwo\n\n- c\n\n3. d\n\n| e | f |\n| --- | --- |\n| 1 | 2 |")
    assert [shape(block) for block in found.blocks] == [
        ("heading", 2, "A b"),
        ("paragraph", None, "One\ntwo"),
        ("list_item", 1, "c"),
        ("list_item", 1, "3. d"),
        ("table", None, "e\tf\n1\t2"),
    ]
    assert [block.id for block in found.blocks] == [f"p1-b{n}" for n in range(1, 6)]
    assert not found.repaired and all(block.bbox is None for block in found.blocks)
    assert found.blocks[4].html == (
        "<table>\n<thead>\n<tr><th>e</th><th>f</th></tr>\n</thead>\n"
        "<tbody>\n<tr><td>1</td><td>2</td></tr>\n</tbody>\n</table>"
    )


def test_items_nest_by_indentation(blocks_of: BlocksOf) -> None:
    found = blocks_of("- a\n  - b\n\n    1. c\n  - d\n- e\n\ntext\n\n    - f")
    levels = [block.level for block in found.blocks if block.type == "list_item"]
    assert levels == [1, 2, 3, 2, 1, 1]


@pytest.mark.parametrize(
    "line", ["#nothing", "1986. A year", "-5 degrees", "|x| < 3", "* star", "# ", "-"]
)
def test_what_only_looks_like_structure_is_text(blocks_of: BlocksOf, line: str) -> None:
    assert [shape(b) for b in blocks_of(line).blocks] == [("paragraph", None, line.strip())]


@pytest.mark.parametrize(
    ("table", "text"),
    [
        ("| a | b |\n| --- | --- |\n| 1", "a\tb\n1\t"),
        ("| a | b |\n| --- |\n| 1 | 2 | 3 |", "a\tb\t\n1\t2\t3"),
        ("| a | b |", "a\tb"),
        ("| a | b |\n| 1 | 2 |", "a\tb\n1\t2"),
    ],
)
def test_broken_tables_are_mended_and_flagged(blocks_of: BlocksOf, table: str, text: str) -> None:
    found = blocks_of(table)
    assert found.repaired
    assert [(b.type, b.text) for b in found.blocks] == [("table", text)]


def test_escaped_pipes_are_characters(blocks_of: BlocksOf) -> None:
    (table,) = blocks_of("| a \\| b | c\\\\|\n| --- | --- |\n| 1 | 2 |").blocks
    assert table.text == "a | b\tc\\\n1\t2"


def test_padding_a_table_is_bounded(blocks_of: BlocksOf) -> None:
    wide = "| " + " | ".join("abc" for _ in range(3000)) + " |"
    (table,) = blocks_of("\n".join([wide, "| --- |"] + ["| x |"] * 3000)).blocks
    assert table.text.count("\t") + table.text.count("\n") <= 25_000
    assert table.text.count("abc") == 3000


def test_special_tokens_are_not_text(blocks_of: BlocksOf) -> None:
    assert blocks_of("Hello<eos>").blocks[0].text == "Hello"


def test_what_looks_like_a_token_is_text() -> None:
    text = "<|h1|><|1|><|1|><|1|><|1|>The markup of a page"
    geometry = PageGeometry(number=1, width_pt=10, height_pt=10)
    (block,) = build_page_blocks(DecodedText(text=text), geometry).blocks
    assert (block.type, block.text) == ("paragraph", text)
    assert block.markdown == text.replace("<|", "<|") and block.bbox is None


def test_confidence_is_the_geometric_mean_of_the_blocks_own_tokens() -> None:
    decoded = DecodedText(
        text="ab\n\ncd", token_ends=(1, 2, 4, 6), token_logprobs=(-0.1, -0.3, -9.0, -0.5)
    )
    found = build_page_blocks(decoded, PageGeometry(number=1, width_pt=1, height_pt=1))
    assert [block.confidence for block in found.blocks] == [0.82, 0.61]
    assert decoded.confidence() == 0.08
    assert DecodedText(text="ab").confidence() is None


def test_control_characters_do_not_enter(blocks_of: BlocksOf) -> None:
    (block,) = blocks_of("a\x07b\x1b[31m \u202ec\ud800").blocks
    assert block.text == "ab[31m c\ufffd"
