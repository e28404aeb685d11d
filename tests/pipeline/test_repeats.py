"""Text written twice is a repeat only where the picture shows it once."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from ocria.document import Block, BlockType, Page
from ocria.pipeline.repeats import find_repeats, text_share, without_repeats

WIDTH, HEIGHT = 800, 1000
Item = tuple[str, int, int]
FIRST = (
    "The harbour office opens at eight and closes when the last boat is in, "
    "or at noon on Sundays and on all public holidays."
)
SECOND = (
    "Payment of the fees is due within thirty days, without deduction, to the account given below."
)
THIRD = (
    "Nobody came to see the second ship, since it had been told that the first one was the last."
)
ADDRESS = "4 Quay Street"


def wrapped(text: str) -> list[str]:
    lines, line = [], ""
    for word in text.split():
        if len(line) + len(word) > 34:
            lines.append(line)
            line = ""
        line = f"{line} {word}".strip()
    return [*lines, line]


def drawn(printed: Sequence[Item]) -> NDArray[np.uint8]:
    """Paragraphs of up to 320 pixels with their left upper corners."""
    image = Image.new("L", (WIDTH, HEIGHT), 245)
    for text, x, y in printed:
        for number, line in enumerate(wrapped(text)):
            place = (x, y + 26 * number)
            ImageDraw.Draw(image).text(place, line, fill=20, font=ImageFont.load_default(18))
    return np.repeat(np.asarray(image)[..., None], 3, axis=2)


def page(written: Sequence[Item], type: BlockType = "paragraph") -> Page:
    """A reading with these blocks, a pixel a point."""
    return Page(
        number=2,
        width_pt=WIDTH,
        height_pt=HEIGHT,
        status="ok",
        blocks=tuple(
            Block(
                id=f"p2-b{index}",
                type=type,
                text=text,
                markdown=text,
                bbox=(x, y, x + 320, y + 26 * len(wrapped(text))),
            )
            for index, (text, x, y) in enumerate(written, 1)
        ),
    )


PRINTED = [(FIRST, 40, 40), (ADDRESS, 40, 180), (SECOND, 40, 240), (THIRD, 420, 40)]


def misread(text: str) -> str:
    return text.replace("ee", "e").replace("last", "lost").replace("rs", "ns")


def test_what_is_written_again_where_nothing_stands_is_found() -> None:
    again = [(misread(FIRST), 420, 400), (ADDRESS, 420, 560), (SECOND, 420, 640)]
    assert find_repeats(page([*PRINTED, *again]), drawn(PRINTED)) == {4, 5, 6}


def test_a_short_line_alone_may_stand_twice() -> None:
    assert not find_repeats(page([*PRINTED, (ADDRESS, 420, 560)]), drawn(PRINTED))


def test_what_is_written_again_in_its_own_box_is_found() -> None:
    again = [(FIRST, 44, 37), (misread(SECOND), 36, 246)]
    assert find_repeats(page([*PRINTED, *again]), drawn(PRINTED)) == {4, 5}


def test_ink_that_another_block_tells_is_no_evidence() -> None:
    assert find_repeats(page([*PRINTED, (FIRST, 420, 42)]), drawn(PRINTED)) == {4}


def test_the_copy_without_ink_goes_though_it_came_first() -> None:
    assert find_repeats(page([(FIRST, 420, 700), *PRINTED]), drawn(PRINTED)) == {0}


def test_a_copy_over_other_words_is_found_by_their_amount() -> None:
    shown = [
        (FIRST, 40, 40),
        ("Nobody came to see the ship that had been in before it.", 40, 240),
        (THIRD, 420, 40),
    ]
    written = [(FIRST, 40, 40), (FIRST, 40, 240), (THIRD, 420, 40)]
    assert find_repeats(page(written), drawn(shown)) == {1}


def test_a_page_that_prints_its_text_twice_keeps_both() -> None:
    twice = [(text, x, y + 500) for text, x, y in PRINTED]
    assert not find_repeats(page([*PRINTED, *twice]), drawn([*PRINTED, *twice]))
    rows = [
        ("2 coffees at 3.20, and one slice of the cake of the day", 40, 40 + 60 * n)
        for n in range(15)
    ]
    assert not find_repeats(page(rows), drawn(rows))


def test_one_of_three_prints_that_is_none_goes() -> None:
    twice = [*PRINTED, (FIRST, 40, 600)]
    assert find_repeats(page([*twice, (FIRST, 420, 800)]), drawn(twice)) == {5}


def test_blocks_without_boxes_or_a_page_without_extent_are_let_be() -> None:
    blocks = tuple(Block(id="", type="paragraph", text=FIRST, markdown="") for _ in range(2))
    bare = Page(number=1, width_pt=WIDTH, height_pt=HEIGHT, status="ok", blocks=blocks)
    assert not find_repeats(bare, drawn(PRINTED))
    flat = Page(number=1, width_pt=0.0, height_pt=0.0, status="ok", blocks=page(PRINTED * 2).blocks)
    assert not find_repeats(flat, drawn(PRINTED))


def test_a_page_without_its_repeats_is_repaired_and_numbered_anew() -> None:
    whole = page([*PRINTED[:2], (FIRST, 44, 40), *PRINTED[2:]])
    left = without_repeats(whole, frozenset({2}))
    assert [block.text for block in left.blocks] == [text for text, _, _ in PRINTED]
    assert [block.id for block in left.blocks] == ["p2-b1", "p2-b2", "p2-b3", "p2-b4"]
    assert left.status == "repaired"
    assert without_repeats(whole, frozenset()) is whole
    lengths = [len(block.text) for block in whole.blocks]
    assert text_share(whole, frozenset({2})) == lengths[2] / sum(lengths)
    assert text_share(whole, frozenset()) == 0.0
