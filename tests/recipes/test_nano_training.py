"""What a training run must survive, and what it asks of the model."""

import os
import random
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

pytest.importorskip("typst", reason="the page recipes need typst")
pytest.importorskip("faker", reason="the page recipes need faker")

from ocria.models.recipes.nano import batches
from ocria.models.recipes.nano.batches import SHAPES, Batch, batch_size, opening, turned_family
from ocria.models.recipes.nano.feed import Feed
from ocria.models.recipes.nano.layout import Folder, load_reader
from ocria.models.recipes.nano.loss import divergence, token_losses
from ocria.models.recipes.nano.noise import disturbed
from ocria.models.recipes.nano.rounding import Masters
from ocria.models.recipes.nano.train import Plan, Rank, Run
from ocria.models.recipes.nano.vocabulary import EOS, FIRST_COORDINATE, FIRST_MARKUP, NUM_ROWS
from ocria.models.recipes.pages.kinds import WEIGHTS
from ocria.weights import CheckpointReader

SHIPPED = Path(__file__).parents[2] / "models" / "checkpoints" / "ocria-nano"
needs_weights = pytest.mark.skipif(
    not list(SHIPPED.glob("decoder*.safetensors")), reason="the shipped weights are not here"
)


def batch_of(number):
    pixels = torch.full((1, 64, 64), number % 256, dtype=torch.uint8)
    return Batch(family="strip", pixels=pixels, ids=torch.ones(1, 64, dtype=torch.int64))


def dying_stream(number):
    """The first two workers crash hard after a batch, as a rasteriser can."""
    yield batch_of(number)
    if number < 2:
        os._exit(11)
    while True:
        yield batch_of(number)


def test_dead_workers_are_replaced_and_counted():
    feed = Feed(dying_stream, 2)
    seen = set()
    for _ in range(2000):
        seen.add(int(feed.next(timeout_s=60).pixels[0, 0, 0]))
        if seen >= {2, 3}:
            break
    feed.close()
    assert seen >= {2, 3}, "new workers draw new numbers"
    assert feed.lost == 2


def test_only_corners_get_soft_targets():
    logits = torch.randn(3, NUM_ROWS, generator=torch.Generator().manual_seed(3))
    truth = torch.tensor([70, FIRST_COORDINATE + 200, EOS])
    losses = token_losses(logits, truth)
    hard = F.cross_entropy(logits, truth, reduction="none")
    torch.testing.assert_close(losses[[0, 2]], hard[[0, 2]])
    assert losses[1] != hard[1]


@pytest.mark.parametrize("place", [0, 2, 200, 511])
def test_a_near_corner_costs_less_than_a_far_one(place):
    def cost(told):
        logits = torch.zeros(1, NUM_ROWS)
        logits[0, FIRST_COORDINATE + told] = 12.0
        return token_losses(logits, torch.tensor([FIRST_COORDINATE + place])).item()

    step = 1 if place < 500 else -1
    costs = [cost(place + step * away) for away in (0, 1, 3, 40)]
    assert costs == sorted(costs) and costs[0] < costs[1] < costs[3]


def test_soft_targets_never_leave_the_grid():
    """Rows beside the coordinates (levels, cells, unused) get no push, whatever the corner."""
    for place in (0, 511):
        logits = torch.zeros(1, NUM_ROWS, requires_grad=True)
        token_losses(logits, torch.tensor([FIRST_COORDINATE + place])).sum().backward()
        outside = logits.grad[0].clone()
        outside[FIRST_COORDINATE : FIRST_COORDINATE + 512] = 1.0
        assert bool((outside > 0).all()), "every other row is pushed down"


def test_a_student_that_says_what_the_parent_says_diverges_by_nothing():
    logits = torch.randn(4, 50, generator=torch.Generator().manual_seed(5))
    same = divergence(logits + 3.0, logits)
    torch.testing.assert_close(same, torch.zeros(4), atol=1e-6, rtol=0)
    assert bool((divergence(logits.flip(1), logits) > 0.1).all())


def test_noise_disturbs_text_and_corners_alone():
    generator = torch.Generator().manual_seed(6)
    ids = torch.randint(4, 6144, (64, 400), generator=generator)
    ids[:, ::10] = FIRST_COORDINATE + torch.randint(0, 512, (64, 40), generator=generator)
    ids[:, 5::40] = FIRST_MARKUP + 8
    ids[:, 390:] = 0
    ids[:, 389] = EOS
    shown = disturbed(ids, generator)
    corner = (ids >= FIRST_COORDINATE) & (ids < FIRST_COORDINATE + 512)
    text = (ids >= 4) & (ids < 6144)
    assert torch.equal(shown[~corner & ~text], ids[~corner & ~text])
    assert bool(((shown[corner] - FIRST_COORDINATE) // 512 == 0).all())
    assert bool((shown[text] < 6144).all()) and bool((shown[text] >= 4).all())
    changed = (shown != ids)[text].float().mean()
    assert 0.008 < changed < 0.03
    assert (shown - ids)[corner].abs().max() < 40
    assert bool((shown == ids).all(1).any()), "some pages are shown as they are"


def test_orientation_asks_for_one_token():
    assert opening([FIRST_MARKUP + 1]) == [FIRST_MARKUP + 1, EOS]
    assert opening([FIRST_MARKUP + 5, 6200, 6300, 70]) == [FIRST_MARKUP + 5]


def test_turned_pages_are_drawn_upright_in_a_fitting_family():
    assert turned_family(1408, 1024, 90) == "portrait"
    assert turned_family(1024, 1408, 180) == "portrait"
    assert turned_family(1024, 1408, 270) == "landscape"
    assert turned_family(640, 512, 0) == "crop"


def test_positions_of_a_batch_stay_within_memory():
    for family, shapes in SHAPES.items():
        for shape in shapes:
            size = batch_size(family, shape, budget_tflop=42.0)
            longest = batches.MAX_TOKENS[family] + 64
            assert size * (shape[0] * shape[1] // 1024 + longest) <= batches.MAX_POSITIONS


def test_a_document_that_fails_is_passed_over(monkeypatch):
    class PanicError(BaseException):
        """As typst's own."""

    def fail(*_, **__):
        raise PanicError

    monkeypatch.setattr(batches, "make_samples", fail)
    rng = random.Random(0)
    assert all(batches.draw_samples(None, rng, family, (512, 640)) == [] for family in WEIGHTS)


@needs_weights
def test_resuming_from_the_shipped_folder_starts_near_its_weights():
    """Block scales may be chosen otherwise than when it was made: a quarter of rounding's error.

    What is stored in FP8 loses all of it.
    """
    stored = {info.name for info in CheckpointReader(SHIPPED)}
    reader = load_reader(Folder(path=SHIPPED))
    rounded = Masters(reader)
    rounded.round()
    for name, parameter in reader.named_parameters():
        if name in rounded.copies:
            shipped = rounded.copies[name]
            is_narrow = f"model.language_model.{name}_packed" in stored
            limit = 0.04 if is_narrow else 0.08
            assert (parameter.detach() - shipped).norm() < limit * shipped.norm(), name


@needs_weights
def test_out_of_memory_drops_the_batch_and_leaves_no_gradient(tmp_path, monkeypatch):
    plan = Plan(
        base=SHIPPED, out=tmp_path, corpus=tmp_path, fonts=tmp_path,
        tokenizer=SHIPPED / "tokenizer.json", total_s=10, stop_s=10, compile=False,
    )  # fmt: skip
    run = Run(plan, Rank(0, 1, torch.device("cpu")))
    before = run.model.norm.weight.detach().clone()

    def loss(batch):
        run.optimiser.flat.fill_(1.0)
        raise torch.OutOfMemoryError("for the test")

    monkeypatch.setattr(run, "loss", loss)
    assert run.learn(batch_of(0)) is None
    run.update(0.5)
    assert (run.dropped, run.skipped) == (1, 1)
    assert torch.equal(run.model.norm.weight, before)


@needs_weights
def test_rounded_training_follows_the_parent_and_leaves_the_rest_alone(tmp_path):
    plan = Plan(
        base=SHIPPED, out=tmp_path, corpus=tmp_path, fonts=tmp_path, compile=False,
        tokenizer=SHIPPED / "tokenizer.json", total_s=10, stop_s=10, warm_steps=1, rounded_from=0.5,
    )  # fmt: skip
    run = Run(plan, Rank(0, 1, torch.device("cpu")))
    with torch.no_grad():
        for layer in run.model.layers:
            weight = layer.mlp.down_proj.weight
            weight.add_(0.2 * weight.std() * torch.randn_like(weight))
    run.begin_rounding()
    parent = {name: tensor.clone() for name, tensor in run.masters.parent.items()}
    page = torch.randint(0, 255, (1, 64, 64), dtype=torch.uint8)
    batch = Batch(family="strip", pixels=page, ids=torch.randint(4, 6000, (1, 59)))
    before = run.learn(batch).loss
    run.update(0.6)
    assert run.rate(0.5) == pytest.approx(0.2) and run.rate(1.0) == 0.0
    live = dict(run.model.named_parameters())
    moved = {
        name
        for name in parent
        if not torch.equal(run.masters.copies.get(name, live[name]), parent[name])
    }
    assert moved == set(run.masters.copies) and 0 < before < 1
    run.save()
    again = Run(plan, Rank(0, 1, torch.device("cpu")))
    for name, tensor in again.masters.parent.items():
        assert torch.equal(tensor, parent[name])
    for name, tensor in again.masters.copies.items():
        assert torch.equal(tensor, run.masters.copies[name])
