"""The text layer as a drafter: spelling, following, finding again, and text that lies."""

import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer as Backend
from tokenizers import decoders, models, pre_tokenizers, trainers

from ocria.models.base import Prompt
from ocria.output.frame import LAST_COORDINATE
from ocria.pipeline.layer_stream import fold, layer_stream
from ocria.pipeline.markup_ids import markup_ids
from ocria.pipeline.text_layer import TextLayerDrafter
from ocria.rasterize import TextLayer, TextLine
from ocria.tokenizer import Tokenizer

STORY = (
    "the old bridge was closed for repairs in spring and the people of both villages had to walk "
    "along the river until a ferry was found that could carry carts, horses and mail. Nobody knew "
    "who would pay for it; the council met twice, wrote three letters and waited for an answer"
)
WORDS = STORY.split()
NAMES = (
    *("h1", "h2", "paragraph", "list_item", "table", "formula", "code", "fcel", "ched", "nl"),
    *("level2", "level3"),
    *(str(n) for n in range(LAST_COORDINATE + 1)),
)
EOS = "<eos>"


def trained(specials: Sequence[str]) -> Backend:
    backend = Backend(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(False)]
    )
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=256 + 250 + len(specials),
        special_tokens=list(specials),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    backend.train_from_iterator([STORY, prose(4000, 1)], trainer)
    return backend


def prose(num_words: int, seed: int) -> str:
    generator = random.Random(seed)
    return " ".join(generator.choice(WORDS) for _ in range(num_words))


@pytest.fixture(scope="module")
def markup(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    path = tmp_path_factory.mktemp("markup") / "tokenizer.json"
    trained([EOS, *(f"<|{name}|>" for name in NAMES)]).save(str(path))
    return Tokenizer(path)


@pytest.fixture(scope="module")
def markdown(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    path = tmp_path_factory.mktemp("markdown") / "tokenizer.json"
    trained([EOS]).save(str(path))
    return Tokenizer(path)


def lines(*texts: str, top: float = 0.1, left: float = 0.1, font: str = "body") -> list[TextLine]:
    """Lines of one block."""
    return [
        TextLine(
            text, (left, top + 0.02 * n, left + 0.01 * len(text), top + 0.02 * n + 0.014), font
        )
        for n, text in enumerate(texts)
    ]


def wrapped(text: str, top: float = 0.1, width: int = 70) -> list[TextLine]:
    rows: list[str] = [""]
    for word in text.split():
        if len(rows[-1]) + len(word) >= width:
            rows.append("")
        rows[-1] = f"{rows[-1]} {word}".strip()
    return lines(*rows, top=top)


def drafter(tokenizer: Tokenizer, layer: Sequence[TextLine]) -> TextLayerDrafter:
    stream = layer_stream(TextLayer(tuple(layer)))
    return TextLayerDrafter(stream, tokenizer, markup_ids(tokenizer))


def passes(tokenizer: Tokenizer, layer: Sequence[TextLine], truth: str, window: int = 16) -> float:
    """Tokens a pass on a target that writes `truth`."""
    ids = tokenizer.encode(truth)
    subject = drafter(tokenizer, layer)
    subject.prepare(Prompt(()))
    subject.observe(ids[:1], 0)
    done, steps = 1, 0
    while done < len(ids):
        proposed = list(subject.propose(ids[:done], window - 1))
        assert len(proposed) < window
        right = 0
        while right < len(proposed) and ids[done + right : done + right + 1] == [proposed[right]]:
            right += 1
        emitted = ids[done : done + right + 1]
        done, steps = done + len(emitted), steps + 1
        subject.observe(emitted, right)
    return (len(ids) - 1) / steps


def block(name: str, x0: float, y0: float, x1: float, y1: float) -> str:
    corners = "".join(f"<|{round(v * LAST_COORDINATE)}|>" for v in (x0, y0, x1, y1))
    return f"<|{name}|>{corners}"


def next_text(tokenizer: Tokenizer, layer: Sequence[TextLine], written: str, most: int = 12) -> str:
    ids = tokenizer.encode(written)
    subject = drafter(tokenizer, layer)
    subject.prepare(Prompt(()))
    subject.observe(ids, 0)
    return tokenizer.spell(subject.propose(ids, most)).text


def test_a_right_layer_gives_more_than_eight_tokens_a_pass(
    markup: Tokenizer, markdown: Tokenizer
) -> None:
    text = prose(300, 2)
    layer = wrapped(text)
    assert passes(markdown, layer, text) > 12
    assert passes(markup, layer, block("paragraph", 0.1, 0.1, 0.8, 0.9) + text) > 12


def headed_page() -> tuple[list[TextLine], str]:
    """Six headings with a paragraph each, and what a model writes of them."""
    layer, truth = [], ""
    for n in range(6):
        top = 0.03 + 0.16 * n
        heading, text = f"Part {n + 1}", prose(40, n)
        body = wrapped(text, top=top + 0.04)
        layer += [*lines(heading, top=top, font="bold"), *body]
        right, bottom = max(line.box[2] for line in body), body[-1].box[3]
        truth += block("h2", 0.1, top, 0.1 + 0.01 * len(heading), top + 0.014) + heading
        truth += block("paragraph", 0.1, top + 0.04, right, bottom) + text
    return layer, truth


def test_paragraphs_and_headings_of_a_page(markup: Tokenizer) -> None:
    assert passes(markup, *headed_page()) > 8


@pytest.mark.parametrize("most", [1, 7, 31])
def test_running_text_is_proposed_as_word_by_word(
    markup: Tokenizer, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    layer, truth = headed_page()
    # Something misread, so that proposals begin anywhere.
    ids = markup.encode(truth.replace("bridge", "ridge").replace("ferry", "fer ry"))
    found = []
    for way in ("at once", "word by word"):
        if way == "word by word":
            monkeypatch.setattr(TextLayerDrafter, "_is_running_text", False)
        subject, proposals = drafter(markup, layer), []
        for done, token in enumerate(ids):
            subject.observe([token], 0)
            proposals.append(list(subject.propose(ids[: done + 1], most)))
        found.append(proposals)
    assert found[0] == found[1]
    assert sum(map(bool, found[0])) > len(ids) / 2


def test_tokens_are_cut_where_the_model_would_cut_them(markdown: Tokenizer) -> None:
    text = prose(60, 5)
    ids = markdown.encode(text)
    layer = wrapped(text)
    for done in range(1, len(ids) - 16):
        subject = drafter(markdown, layer)
        subject.observe(ids[:done], 0)
        proposed = list(subject.propose(ids[:done], 15))
        assert proposed == ids[done : done + len(proposed)] and len(proposed) == 15


@pytest.mark.parametrize(
    ("layer", "keys"),
    [
        (["\ufb01ne \ufb02ow"], "fineflow"),
        (["exam\u00ad", "ple"], "example"),
        (["exam-", "ple"], "example"),
        (["well-", "Known"], "well-Known"),
        (["say \u201cyes\u201d \u2013 it\u2019s"], 'say"yes"-it\'s'),
        (["\u2022 item", "\uf0b7item"], "-item-item"),
        (["a\u200bb\u200ec\u202ed\u2066"], "abcd"),
        (["e\u0301te\u0301"], "\u00e9t\u00e9"),
        (["a\tb  c"], "abc"),
        ([" ", "\u200b", ""], ""),
    ],
)
def test_what_is_compared(layer: list[str], keys: str) -> None:
    assert layer_stream(TextLayer(tuple(lines(*layer)))).keys == keys


def test_written_text_has_the_same_keys() -> None:
    assert fold("“Fine”, it’s—well\u00a0\u00adknown…") == fold('"Fine", it\'s-wellknown...')


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("the old bri", "dge was closed"),
        ("the **old** bri", "dge was closed"),
        ("the *old", " bridge was"),
        ("# the old bridge", " was closed"),
        ("the o1d brid", "ge was closed"),
        ("people of both villages had", " to walk"),
    ],
)
def test_it_follows_what_is_written(markdown: Tokenizer, written: str, expected: str) -> None:
    layer = wrapped(STORY)
    assert next_text(markdown, layer, written).startswith(expected)


def test_a_word_cut_at_a_line_end_is_whole_again(markdown: Tokenizer) -> None:
    layer = lines("the old bri\u00ad", "dge was closed")
    assert next_text(markdown, layer, "the old").startswith(" bridge was")


def test_what_the_model_leaves_out_or_reads_elsewhere_is_found_again(markdown: Tokenizer) -> None:
    first, second, third = prose(60, 7), prose(60, 8), prose(60, 9)
    layer = [*wrapped(first), *wrapped(second, top=0.4), *wrapped(third, top=0.7)]
    assert passes(markdown, layer, f"{first}\n\n{third}") > 8
    assert passes(markdown, layer, f"{third}\n\n{first}\n\n{second}") > 8


def test_a_block_s_corner_tells_where_its_text_lies(markup: Tokenizer) -> None:
    layer = [*lines("ferry", top=0.1), *lines("bridge", top=0.5), *lines("river", top=0.9)]
    opened = block("paragraph", 0.1, 0.5, 0.2, 0.52)
    assert next_text(markup, layer, opened).startswith("bridge")


def test_rows_and_cells_of_a_table(markup: Tokenizer, markdown: Tokenizer) -> None:
    layer = lines("carts\t12\t30", "horses and mail\t4\t5")
    opened = block("table", 0.1, 0.1, 0.4, 0.14)
    rest = "<|fcel|>12<|fcel|>30<|nl|><|fcel|>horses and mail<|fcel|>4<|fcel|>5"
    assert next_text(markup, layer, opened + "<|fcel|>carts", 31) == rest
    rest = "<|ched|>carts<|fcel|>12<|fcel|>30<|nl|><|fcel|>horses"
    assert next_text(markup, layer, opened, 31).startswith(rest)
    rest = "<|ched|>12<|ched|>30<|nl|><|fcel|>horses"
    assert next_text(markup, layer, opened + "<|ched|>carts", 31).startswith(rest)
    rest = " | 12 | 30 |\n| horses and mail | 4 | 5"
    assert next_text(markdown, layer, "| carts", 31) == rest


def test_list_items(markup: Tokenizer) -> None:
    layer = lines("\u2022 carts", "\u2022 horses")
    written = block("list_item", 0.1, 0.1, 0.2, 0.12) + "-"
    assert next_text(markup, layer, written).startswith(" carts<|list_item|>")


def test_types_marks_and_levels_are_learnt_from_fonts_and_indents(markup: Tokenizer) -> None:
    layer = [
        *lines("Ferry", top=0.1, font="big"),
        *lines("- carts", top=0.2, left=0.2),
        *lines("note: river", top=0.3, font="bold"),
        *lines("Bridge", top=0.4, font="big"),
        *lines("- mail", top=0.5, left=0.2),
        *lines("note: spring", top=0.6, font="bold"),
    ]
    item = block("list_item", 0.2, 0.2, 0.27, 0.214) + "<|level2|>- carts"
    note = block("paragraph", 0.1, 0.3, 0.21, 0.314) + "**note:** river"
    seen = block("h2", 0.1, 0.1, 0.15, 0.114) + "Ferry" + item + note
    corners = block("", 0.1, 0.4, 0.16, 0.414).removeprefix("<||>")
    assert next_text(markup, layer, seen, 31).startswith(f"<|h2|>{corners}")
    seen += block("h2", 0.1, 0.4, 0.16, 0.414) + "Bridge"
    seen += block("list_item", 0.2, 0.5, 0.26, 0.514)
    assert next_text(markup, layer, seen, 31).startswith("<|level2|>- mail<|paragraph|>")
    seen += "<|level2|>- mail" + block("paragraph", 0.1, 0.6, 0.22, 0.614)
    assert next_text(markup, layer, seen, 31).startswith("**note: spring")


def test_it_is_silent_where_the_layer_cannot_know(markup: Tokenizer) -> None:
    layer = wrapped(prose(30, 1))
    assert next_text(markup, layer, block("formula", 0.1, 0.1, 0.5, 0.2)) == ""
    assert next_text(markup, [], block("paragraph", 0.1, 0.1, 0.5, 0.2)) == ""
    assert next_text(markup, layer, EOS) == ""


def test_half_a_markup_counts_as_none(tmp_path: Path) -> None:
    trained([EOS, "<|paragraph|>", "<|table|>", "<|7|>"]).save(str(tmp_path / "tokenizer.json"))
    tokenizer = Tokenizer(tmp_path / "tokenizer.json")
    assert markup_ids(tokenizer).is_empty
    assert next_text(tokenizer, lines("carts\t12"), "carts") == " 12"


def test_coordinates_that_the_layer_cannot_guess_are_no_longer_proposed(markup: Tokenizer) -> None:
    layer = [line for n in range(30) for line in lines(f"{n} ferry", top=0.03 * n, font=str(n % 2))]
    subject = drafter(markup, layer)
    for n in range(12):
        ids = markup.encode(block("paragraph", 0.5, 0.03 * n, 0.9, 0.9) + f"{n} ferry")
        subject.observe(ids, 0)
    assert markup.spell(subject.propose((), 15)).text == "<|paragraph|>"


OTHER = {
    "empty": [],
    "of another page": wrapped(prose(300, 99)),
    "garbage": lines(
        "\x01\x02 \ufffd\ufffd q\u0301\u0301 \U0010fffd", "<|table|> <eos> ]]>", "~~~~"
    ),
    "zero width": lines("\u200b\u200c\u200d\u2060\ufeff" * 30, "a\u200bb"),
    "right to left": lines("\u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd", "\u202eabc\u202c"),
    "off the page": [TextLine("the old bridge", (-9.0, 7.0, 9.0, 99.0), "x")] * 5,
    "one long line": lines("bridge" * 5000),
}


@pytest.mark.parametrize("kind", list(OTHER))
def test_a_lying_layer_proposes_known_tokens_and_no_more_than_asked(
    markup: Tokenizer, markdown: Tokenizer, kind: str
) -> None:
    text = prose(120, 3)
    for tokenizer, truth in (
        (markdown, text),
        (markup, block("paragraph", 0.1, 0.1, 0.9, 0.9) + text),
    ):
        assert passes(tokenizer, OTHER[kind], truth) >= 1.0


ANY_LINE = st.builds(
    TextLine,
    st.text(max_size=30),
    st.tuples(*[st.floats(-2, 2) for _ in range(4)]),
    st.sampled_from(["a", "b"]),
)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(ANY_LINE, max_size=8),
    st.lists(st.integers(0, 1100), max_size=60),
    st.integers(1, 31),
    st.booleans(),
)
def test_nothing_that_is_written_upsets_it(
    markup: Tokenizer,
    markdown: Tokenizer,
    layer: list[TextLine],
    ids: list[int],
    most: int,
    has_markup: bool,
) -> None:
    tokenizer = markup if has_markup else markdown
    subject = drafter(tokenizer, layer)
    subject.prepare(Prompt(()))
    for start in range(0, len(ids), 3):
        proposed = subject.propose(ids[:start], most)
        assert len(proposed) <= most
        assert set(proposed) <= tokenizer.known_ids()
        subject.observe(ids[start : start + 3], 1)
