"""Which tokens begin in which patch, and what the picture's rows learn from it."""

import random
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

pytest.importorskip("typst", reason="the page recipes need typst")
pytest.importorskip("faker", reason="the page recipes need faker")

import pypdfium2 as pdfium

from ocria.models.recipes.nano.batches import Batch, _batch, _page
from ocria.models.recipes.nano.feed import Feed
from ocria.models.recipes.nano.layout import Folder
from ocria.models.recipes.nano.loss import token_losses
from ocria.models.recipes.nano.model import Geometry, Reader, text_room
from ocria.models.recipes.nano.noise import disturbed
from ocria.models.recipes.nano.tell import SLOTS, Teller, draw_targets, token_patches
from ocria.models.recipes.nano.train import Plan, Rank, Run
from ocria.models.recipes.nano.vocabulary import EOS, NUM_PIECES, PAD
from ocria.models.recipes.pages.blocks import Block, Cell, Table
from ocria.models.recipes.pages.blocks import Run as TextRun
from ocria.models.recipes.pages.fonts import Family
from ocria.models.recipes.pages.readback import read_pages
from ocria.models.recipes.pages.sampler import Sample, _finished
from ocria.models.recipes.pages.studio import Draft
from ocria.models.recipes.pages.typeset import Manuscript, Press, Sheet, Style

SHIPPED = Path(__file__).parents[2] / "models" / "checkpoints" / "ocria-nano"
needs_weights = pytest.mark.skipif(
    not list(SHIPPED.glob("decoder*.safetensors")), reason="the shipped weights are not here"
)
SERIF = Family(name="Libertinus Serif", category="serif", styles=frozenset("rbi"), vietnamese=True)
PROSE = "The organisation of inter-city conferences demands considerable determination. "
SMALL = Geometry(rows=6720, width=64, layers=3, inner=64, heads=2, kv_heads=1, head_width=64,
                 linear_heads=2, linear_width=32, vision_width=64, vision_depth=1, vision_heads=1,
                 vision_inner=64)  # fmt: skip


def run(text, style="plain", truth=None):
    return TextRun(ink=text, style=style, truth=truth)


def text_blocks():
    words = (run(PROSE * 3), run("marked words", "bold"), run(" and "), run("code()", "code"))
    return [
        Block(type="h1", runs=(run("A heading – of 2020"),)),
        *(Block(type="paragraph", runs=words, splittable=True) for _ in range(6)),
        Block(type="list_item", level=2, runs=(run("•", truth="- "), run("Việt Nam, fi ffl"))),
        Block(type="footnote", runs=(run("2", "super", "[^2]: "), run("A note."))),
    ]


def table_blocks():
    head = (Cell(text="Arm", header=True, rows=2), Cell(text="Sums", header=True, columns=2), None)
    rows = [head, (None, Cell(text="left", header=True), Cell(text="right", header=True))]
    rows += [(Cell(text=f"Row {i}"), Cell(text=f"-{i}.5", mark="a"), Cell()) for i in range(9)]
    return [Block(type="table", table=Table(rows=tuple(rows), align=("left",) * 3))]


def formula_blocks():
    inline = run("a^2 + b", "math", "$a^{2}+b$")
    return [
        Block(type="paragraph", runs=(run(PROSE * 2 + "where "), inline, run(" is " + PROSE * 2))),
        Block(type="formula", latex=r"\frac{a}{b}", runs=(run("a / b"),)),
        Block(type="paragraph", runs=(run(PROSE),), splittable=True),
    ]


@pytest.fixture(scope="module")
def press(tmp_path_factory):
    return Press(SimpleNamespace(folder=tmp_path_factory.mktemp("fonts")))


def clean_page(press, blocks, columns=1, strength=0.0, condense=1.0) -> tuple[Sample, bytes]:
    sheet = Sheet(
        width_px=640, height_px=896, scale=1.5, condense=condense, columns=columns,
        margins_pt=(40.0, 40.0, 40.0, 40.0),
    )  # fmt: skip
    document = Manuscript(sheet=sheet, family=SERIF)
    for block in blocks:
        document.add(block, Style(justify=True))
    pdf = press.print(document)
    (page,) = read_pages(pdf, document, 1)
    sample = _finished(Draft(manuscript=document), "test", page, random.Random(1), 0, strength)
    return sample, pdf


@pytest.mark.parametrize(
    ("blocks", "columns", "condense"),
    [(text_blocks, 1, 1.0), (text_blocks, 2, 1.0), (text_blocks, 1, 0.8), (table_blocks, 1, 1.0),
     (formula_blocks, 1, 1.0)],
)  # fmt: skip
def test_a_character_is_printed_in_its_patch(press, blocks, columns, condense):
    sample, pdf = clean_page(press, blocks(), columns, condense=condense)
    page = pdfium.PdfDocument(pdf)[0]
    text, height = page.get_textpage(), page.get_height()
    across, down = 32 / (1.5 * condense), 32 / 1.5
    assert len(sample.places) == len(sample.markup)
    placed = np.flatnonzero(sample.places >= 0)
    assert len(placed) > 90
    for i in placed:
        y, x = divmod(int(sample.places[i]), 640 // 32)
        # A line's characters share a height, from which a full stop's ink is a third of the size.
        bottom, top = height - (y + 1) * down - 3.5, height - y * down + 3.5
        there = text.get_text_bounded(x * across - 0.5, bottom, (x + 1) * across + 0.5, top)
        wanted = sample.markup[i].replace("-", "")
        assert wanted in there or "•" in there, (sample.markup[i - 9 : i + 9], there)


def test_words_have_places_and_marks_and_formulas_have_none(press):
    tokenizer = Folder(path=SHIPPED).tokenizer()
    for blocks in (text_blocks, table_blocks, formula_blocks):
        sample, _ = clean_page(press, blocks())
        page = _page(sample, tokenizer, "portrait")
        ids = np.array(page.ids)
        assert len(page.patches) == len(ids) and page.patches[-1] == -1
        pieces = (ids > EOS) & (ids < NUM_PIECES)
        assert (page.patches[~pieces] == -1).all()
        words = [i for i in np.flatnonzero(pieces) if tokenizer.decode([ids[i]])[-1:].isalnum()]
        if blocks is formula_blocks:
            start = sample.markup.index("$")
            stop = sample.markup.index("$", start + 1) + 1
            assert (sample.places[start:stop] == -1).all()
            assert 3 < sample.unsure.sum() < 20
        else:
            assert (page.patches[words] >= 0).mean() > 0.95
            assert not sample.unsure.any()


def test_places_follow_the_scan(press):
    """Ink is darkest where the characters are said to be, however the page was moved."""
    moved = 0
    flat, _ = clean_page(press, text_blocks())
    for seed in range(12):
        sheet = Sheet(width_px=640, height_px=896, scale=1.5, margins_pt=(40.0,) * 4)
        document = Manuscript(sheet=sheet, family=SERIF)
        for block in text_blocks():
            document.add(block, Style(justify=True))
        (page,) = read_pages(press.print(document), document, 1)
        draft = Draft(manuscript=document)
        sample = _finished(draft, "test", page, random.Random(seed), 0, 1.0)
        moved += not np.array_equal(sample.places, flat.places)
        spread = sample.pixels.reshape(28, 32, 20, 32).astype(float).std((1, 3)).ravel()
        inside = np.zeros(len(spread), bool)
        inside[sample.places[sample.places >= 0]] = True
        assert spread[inside].mean() > 2 * spread[~inside].mean()
    assert moved


def test_white_space_alone_begins_where_the_next_character_stands():
    markup = "<|p|>ab  1"
    places = np.array([-1] * 5 + [3, 4, -1, -1, 6], np.int16)
    offsets = [(0, 5), (5, 6), (6, 7), (7, 8), (8, 9), (8, 10)]
    assert token_patches(offsets, markup, places).tolist() == [-1, 3, 4, -1, 6, 6]
    assert token_patches([], "", places[:0]).tolist() == []


def test_slots_ask_in_reading_order_and_then_for_the_end():
    ids = torch.arange(10, 20)[None]
    patches = torch.tensor([[2, 0, 2, 2, -1, 2, 2, 1, -1, 3]], dtype=torch.int16)
    unsure = torch.tensor([[False, True, False, False, False, False, False, False]])
    targets = draw_targets(ids, patches, unsure, torch.tensor(99))
    asked = [
        dict(zip(rows.tolist(), tokens.tolist(), strict=True))
        for rows, tokens in zip(targets.rows, targets.tokens, strict=True)
    ]
    empty = {row for row in asked[0] if row >= 4}
    assert len(empty) == 3 and all(asked[0].pop(row) == EOS for row in empty)
    assert asked == [{2: 10, 0: 11, 3: 19}, {2: 12, 0: EOS, 3: EOS}, {2: 13}, {2: 15}]
    few = draw_targets(ids, patches, unsure, torch.tensor(4))
    assert 0 < few.count <= 4
    nothing = draw_targets(ids, patches, torch.ones_like(unsure), torch.tensor(99))
    assert nothing.count == 0


def two_pages():
    generator = torch.Generator().manual_seed(2)
    pixels = torch.randint(0, 255, (2, 64, 96), generator=generator, dtype=torch.uint8)
    ids = torch.full((2, text_room(2, 3, 20) + 1), PAD)
    ids[:, :13] = torch.randint(10, 6000, (2, 13), generator=generator)
    patches = torch.full(ids.shape, -1, dtype=torch.int16)
    patches[:, 1:12] = torch.tensor([0, 0, 1, 1, 1, 3, 3, 3, 3, 3, 4])
    return Batch(family="crop", pixels=pixels, ids=ids, patches=patches,
                 unsure=torch.zeros(2, 6, dtype=torch.bool))  # fmt: skip


def test_a_tiny_reader_learns_what_stands_in_the_patches_of_two_pages():
    torch.manual_seed(0)
    reader, teller, batch = Reader(SMALL), Teller(SMALL.width), two_pages()
    named = [*reader.named_parameters(), *teller.named_parameters()]
    optimiser = torch.optim.AdamW([p for _, p in named], lr=3e-3)
    targets = draw_targets(batch.ids, batch.patches, batch.unsure, torch.tensor(999))
    truth = torch.cat(targets.tokens)
    for step in range(120):
        image = reader.visual((batch.pixels.float() - 127.5) / 127.5)
        states = list(reader.states(image, (2, 3), batch.ids[:, :-1]))
        logits = reader.logits(teller(states[1][:, 1:7], targets))
        loss = torch.nn.functional.cross_entropy(logits, truth)
        optimiser.zero_grad()
        loss.backward()
        if not step:
            reached = {name for name, p in named if p.grad is not None and p.grad.abs().sum() > 0}
        optimiser.step()
    assert {
        "visual.patch_embed.weight",
        "layers.0.mlp.down_proj.weight",
        "slots.3.weight",
    } <= reached
    assert "layers.2.mlp.down_proj.weight" not in reached
    assert (logits.argmax(1) == truth).float().mean() > 0.95


def plan(folder, **options) -> Plan:
    return Plan(
        base=SHIPPED, out=folder, corpus=folder, fonts=folder, compile=False, warm_steps=1,
        tokenizer=SHIPPED / "tokenizer.json", total_s=10, stop_s=10, **options,
    )  # fmt: skip


@needs_weights
def test_without_weight_a_step_is_what_it_was(tmp_path):
    trained = Run(plan(tmp_path, tell=0.0), Rank(0, 1, torch.device("cpu")))
    batch = two_pages()
    torch.manual_seed(5)
    trained.learn(batch)
    got = trained.optimiser.flat.clone()
    trained.optimiser.flat.zero_()
    torch.manual_seed(5)
    with torch.autocast("cpu", torch.bfloat16):
        shown, known = disturbed(batch.ids[:, :-1]), batch.ids != PAD
        hidden = trained.model((batch.pixels.float() - 127.5) / 127.5, shown)
        logits = trained.model.logits(hidden[known]).float()
    logits = logits.index_fill(1, trained.banned, -1e4)
    token_losses(logits, batch.ids[known]).mean().backward()
    assert torch.equal(got, trained.optimiser.flat)


@needs_weights
def test_a_run_that_asks_resumes_and_exports_the_reader_alone(tmp_path):
    trained = Run(plan(tmp_path), Rank(0, 1, torch.device("cpu")))
    figures = trained.learn(two_pages())
    assert figures.tell > 0 and 0 < figures.loss < 20
    trained.update(0.0)
    assert not torch.equal(trained.teller.slots[0].weight, torch.eye(512))
    assert all(name.startswith("model.") for name in trained.weights())
    trained.save()
    again = Run(plan(tmp_path), Rank(0, 1, torch.device("cpu")))
    for one in (trained, again):
        torch.manual_seed(6)
        one.learn(two_pages())
        one.update(0.1)
    kept, found = trained.optimiser.state(), again.optimiser.state()
    assert kept.keys() == found.keys()
    assert all(torch.equal(kept[name], found[name]) for name in kept)
    assert torch.equal(trained.teller.slots[3].weight, again.teller.slots[3].weight)
    trained.spent_s = 0.86 * 10 * 0.9
    assert trained.tell_weight() == pytest.approx(0.15)
    trained.spent_s = 9.0
    assert trained.tell_weight() == 0.0


def endless_pages(number):
    while True:
        yield two_pages()


def test_places_come_through_the_feed(press):
    sample, _ = clean_page(press, text_blocks())
    made = _batch([_page(sample, Folder(path=SHIPPED).tokenizer(), "crop")], "crop", (896, 640))
    assert made.patches.shape == made.ids.shape and made.unsure.shape == (1, 28 * 20)
    assert len(draw_targets(made.ids, made.patches, made.unsure, torch.tensor(9999)).rows) == SLOTS
    feed = Feed(endless_pages, 1)
    got = feed.next(timeout_s=60)
    feed.close()
    for name, tensor in two_pages().tensors().items():
        assert torch.equal(getattr(got, name), tensor)
