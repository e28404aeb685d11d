"""The model's markup to blocks with boxes."""

import math
from collections.abc import Callable

import pytest

from ocria.document import Block
from ocria.output import DecodedText, PageBlocks, PageGeometry, build_page_blocks

BlocksOf = Callable[..., PageBlocks]
BOX = "<|0|><|0|><|511|><|511|>"
# One coordinate step is one point across and two points down.
PAGE = PageGeometry(number=1, width_pt=511.0, height_pt=1022.0)


def kinds(found: PageBlocks) -> list[str]:
    return [block.type for block in found.blocks]


def table(cells: str, blocks_of: BlocksOf) -> tuple[Block, bool]:
    """A table with `f` full, `e` empty, `h` heading, `<`, `^`, `x` spans and `/` row ends."""
    names = {"f": "fcel", "e": "ecel", "h": "ched", "<": "lcel", "^": "ucel", "x": "xcel"}
    tokens = [
        "<|nl|>" if c == "/" else f"<|{names[c]}|>" + (str(i) if c in "fh" else "")
        for i, c in enumerate(cells)
    ]
    found = blocks_of(f"<|table|>{BOX}{''.join(tokens)}")
    (block,) = found.blocks
    return block, found.repaired


def rows(block: Block) -> list[str]:
    return [line for line in (block.html or "").split("\n") if line.startswith("<tr>")]


def test_headings_items_and_text(blocks_of: BlocksOf) -> None:
    found = blocks_of(
        f"<|h3|>{BOX}Title<|paragraph|>{BOX}A **b**<|list_item|>{BOX}- c"
        f"<|list_item|>{BOX}<|level2|>(a) d<|footnote|>{BOX}1 e<|form_field|>{BOX}f<eos>"
    )
    assert [(b.type, b.level, b.text, b.markdown) for b in found.blocks] == [
        ("heading", 3, "Title", "### Title"),
        ("paragraph", None, "A b", "A **b**"),
        ("list_item", 1, "c", "- c"),
        ("list_item", 2, "(a) d", "- (a) d"),
        ("footnote", None, "1 e", "1 e"),
        ("form_field", None, "f", "f"),
    ]
    assert not found.repaired


def test_code_keeps_its_lines_and_formulas_their_tex(blocks_of: BlocksOf) -> None:
    code, formula = blocks_of(f"<|code|>{BOX}if a:\n    b  \n<|formula|>{BOX}x < y").blocks
    assert (code.text, code.markdown) == ("if a:\n    b", "```\nif a:\n    b\n```")
    assert (formula.latex, formula.markdown) == ("x < y", "$$x < y$$")


@pytest.mark.parametrize(
    ("turn", "box", "size"),
    [
        ("", (10.0, 40.0, 30.0, 80.0), (511.0, 1022.0)),
        ("<|rot90|>", (942.0, 10.0, 982.0, 30.0), (1022.0, 511.0)),
        ("<|rot180|>", (481.0, 942.0, 501.0, 982.0), (511.0, 1022.0)),
        ("<|rot270|>", (40.0, 481.0, 80.0, 501.0), (1022.0, 511.0)),
    ],
)
def test_boxes_lie_on_the_upright_page(
    blocks_of: BlocksOf,
    turn: str,
    box: tuple[float, ...],
    size: tuple[float, float],
) -> None:
    found = blocks_of(f"{turn}<|paragraph|><|10|><|20|><|30|><|40|>text", PAGE)
    assert found.blocks[0].bbox == box
    assert (found.width_pt, found.height_pt) == size
    assert not found.repaired


def test_the_models_turn_adds_to_the_turn_of_the_file(blocks_of: BlocksOf) -> None:
    turned = PageGeometry(number=1, width_pt=10, height_pt=20, rotation=270)
    found = blocks_of(f"<|rot180|><|paragraph|>{BOX}a", turned)
    assert (found.rotation, found.turn) == (90, 180)


def test_a_box_in_the_wrong_order_is_exchanged(blocks_of: BlocksOf) -> None:
    found = blocks_of("<|paragraph|><|30|><|40|><|10|><|20|>a", PAGE)
    assert found.blocks[0].bbox == (10.0, 40.0, 30.0, 80.0) and found.repaired


def test_a_table_without_spans_is_a_pipe_table(blocks_of: BlocksOf) -> None:
    block, repaired = table("hh/fe/", blocks_of)
    assert block.markdown == "| 0 | 1 |\n| --- | --- |\n| 3 |  |"
    assert not repaired


def test_spans_become_html(blocks_of: BlocksOf) -> None:
    block, repaired = table("hh</^ff/f<<x/".replace("x/", "/"), blocks_of)
    assert rows(block) == [
        '<tr><th rowspan="2">0</th><th colspan="2">1</th></tr>',
        "<tr><td>5</td><td>6</td></tr>",
        '<tr><td colspan="3">8</td></tr>',
    ]
    assert block.markdown == block.html and not repaired


def test_a_block_of_cells_spans_both_ways(blocks_of: BlocksOf) -> None:
    block, repaired = table("f<f/^xf/", blocks_of)
    assert rows(block) == [
        '<tr><td rowspan="2" colspan="2">0</td><td>2</td></tr>',
        "<tr><td>6</td></tr>",
    ]
    assert not repaired


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ("hh/f", ["<tr><th>0</th><th>1</th></tr>", "<tr><td>3</td><td></td></tr>"]),
        ("hh/f/fff/", None),
        ("<f/", ["<tr><td></td><td>1</td></tr>"]),
        ("^/f/", ["<tr><td></td></tr>", "<tr><td>2</td></tr>"]),
        ("f<f/^ff/", None),
        ("f/^f/", None),
        ("f//f/", ["<tr><td>0</td></tr>", "<tr><td>3</td></tr>"]),
    ],
)
def test_broken_tables_are_mended_and_flagged(
    blocks_of: BlocksOf, cells: str, expected: list[str] | None
) -> None:
    block, repaired = table(cells, blocks_of)
    assert repaired
    assert expected is None or rows(block) == expected
    for index, cell in enumerate(cells):
        assert cell != "f" or f">{index}<" in (block.html or "")


def test_text_beside_a_covered_place_is_not_lost(blocks_of: BlocksOf) -> None:
    found = blocks_of(f"<|table|>{BOX}<|fcel|>a<|lcel|>b<|nl|>c<|nl|>")
    assert found.blocks[0].text == "a\tb\nc\t" and found.repaired


@pytest.mark.parametrize(
    ("markup", "expected"),
    [
        (f"<|paragraph|>{BOX}a<|h1|><|1|><|2|>", ["paragraph"]),
        ("<|paragraph|><|1|><|2|>a", ["paragraph"]),
        ("<|paragraph|>a", ["paragraph"]),
        (f"lost<|h1|>{BOX}b", ["paragraph", "heading"]),
        (f"{BOX}a", ["paragraph"]),
        (f"<|h1|>{BOX}a{BOX}b", ["heading", "paragraph"]),
        (f"<|h1|>{BOX}a<|sidebar|>{BOX}b", ["heading", "other"]),
        (f"<|paragraph|>{BOX}<|7|>a", ["paragraph"]),
        (f"<|paragraph|>{BOX}a<|fcel|>b<|nl|>c", ["paragraph"]),
        (f"<|paragraph|>{BOX}<|level3|>a", ["paragraph"]),
        (f"<|paragraph|>{BOX}a<|rot90|>", ["paragraph"]),
        (f"<|table|>{BOX}<|paragraph|>{BOX}a", ["paragraph"]),
        (f"<|paragraph|>{BOX}<|figure|>{BOX}", ["figure"]),
        (f"<|table|>{BOX}<|fcel|>a", ["table"]),
        ("<|h1|>", []),
    ],
)
def test_damage_is_mended_and_flagged(
    blocks_of: BlocksOf, markup: str, expected: list[str]
) -> None:
    found = blocks_of(markup)
    assert kinds(found) == expected
    assert found.repaired


def test_a_figure_only_page_is_whole(blocks_of: BlocksOf) -> None:
    found = blocks_of(f"<|figure|>{BOX}<eos>")
    assert kinds(found) == ["figure"] and not found.repaired
    assert found.blocks[0].markdown == ""


def test_confidence_leaves_the_coordinates_out() -> None:
    head, text = "<|paragraph|><|1|><|2|><|3|><|4|>", "word"
    spans, ends, position = [], [], 0
    for token in head.replace("><", ">\n<").split("\n"):
        spans.append((position, position + len(token)))
        position += len(token)
        ends.append(position)
    decoded = DecodedText(
        text=head + text,
        token_ends=(*ends, position + 2, position + 4),
        token_logprobs=(-5.0,) * 5 + (-0.1, -0.3),
        special_spans=tuple(spans),
    )
    (block,) = build_page_blocks(decoded, PAGE).blocks
    assert block.confidence == 0.82


def test_a_page_without_size_still_reads(blocks_of: BlocksOf) -> None:
    broken = PageGeometry(number=1, width_pt=float("nan"), height_pt=-1)
    found = blocks_of(f"<|paragraph|>{BOX}a", broken)
    assert found.blocks[0].bbox == (0.0, 0.0, 0.0, 0.0)


def test_page_confidence_leaves_special_tokens_out() -> None:
    decoded = DecodedText(
        text="<|h1|>ab",
        token_ends=(6, 7, 8),
        token_logprobs=(-9.0, 0.0, math.log(0.25)),
        special_spans=((0, 6),),
    )
    assert decoded.page_confidence() == 0.5
    assert DecodedText(text="").page_confidence() is None
