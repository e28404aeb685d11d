"""Training a drafter: what counts as a label, what it costs, and the way to the engine."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer as Pieces
from torch import Tensor

from ocria.models.drafter import DFlash, DrafterConfig, load_drafter
from ocria.models.finding import SHIPPED
from ocria.models.recipes.checkpoint.attach import attach
from ocria.models.recipes.drafter import blocks as blocks_module
from ocria.models.recipes.drafter.blocks import Blocks, blocks_at, draw_blocks, place_weights
from ocria.models.recipes.drafter.design import (
    FP8_LIMIT_BYTES,
    Sizes,
    default_taps,
    new_drafter,
    public_config,
)
from ocria.models.recipes.drafter.export import Format, read_checkpoint, save_drafter
from ocria.models.recipes.drafter.measure import count_passes, draft_everywhere
from ocria.models.recipes.drafter.store import read_batch, stored_batches, write_batch
from ocria.models.recipes.drafter.target import FIRST_COORDINATE, FrozenTarget, Reading
from ocria.models.recipes.drafter.train import Plan, plan_from_arguments, train
from ocria.models.recipes.nano.batches import Batch
from ocria.models.recipes.nano.layout import save_folder
from ocria.models.recipes.nano.model import Geometry, Reader, text_room
from ocria.models.recipes.nano.train import Rank
from ocria.models.recipes.nano.vocabulary import EOS, MASK, PAD
from ocria.tokenizer import Tokenizer
from ocria.weights import read_manifest

SHIPPED_FOLDER = SHIPPED / "ocria-nano"
SMALL_SIZES = {"layers": 2, "inner": 32, "rank": 4, "conv_group": 16, "block": 5, "taps": [0, 1]}


def reading(ids: list[int], greedy: list[int]) -> Reading:
    return Reading(
        taps_PSX=torch.zeros(1, 20, 4),
        ids_PT=torch.tensor([ids]),
        greedy_PT=torch.tensor([greedy]),
        text_start=7,
    )


def test_labels_are_the_target_s_and_end_where_it_would_leave_the_text() -> None:
    found = blocks_at(
        reading([10, 11, 12, 13, EOS, PAD, PAD], [10, 11, 99, 13, EOS, 50, 50]),
        torch.tensor([[0, 1, 2, 3]]),
        5,
    )
    assert found.anchors_PN.tolist() == [[7, 8, 9, 10]]
    assert found.anchor_ids_PN.tolist() == [[10, 11, 12, 13]]
    wanted = [[11, 99], [99], [13, EOS], [EOS]]
    for labels, valid, want in zip(found.labels_PNK[0], found.valid_PNK[0], wanted, strict=True):
        assert valid.tolist() == [True] * len(want) + [False] * (4 - len(want))
        assert labels[valid].tolist() == want


def test_anchors_stand_in_the_text_and_before_its_end() -> None:
    given = reading([10, 11, 12, EOS, PAD, PAD], [10, 11, 12, EOS, 3, 3])
    drawn = draw_blocks(given, 200, 5, torch.Generator().manual_seed(0))
    assert set(drawn.anchors_PN[0].tolist()) == {7, 8, 9}
    assert bool(drawn.valid_PNK.any(-1).all())


def test_a_page_that_is_only_a_stop_token_gives_no_labels() -> None:
    drawn = draw_blocks(reading([EOS, PAD], [EOS, 4]), 3, 5, torch.Generator().manual_seed(0))
    assert not drawn.valid_PNK.any()


def test_decay_weights_are_the_paper_s() -> None:
    valid = torch.ones(1, 1, 15, dtype=torch.bool)
    weights = place_weights(torch.rand(1, 1, 15), valid, "decay")[0, 0]
    torch.testing.assert_close(weights, torch.exp(-torch.arange(15) / 7.0))


def test_pace_weights_are_the_slope_of_the_expected_length() -> None:
    """d(expected length) / d(log chance of place k) is the weight of place k."""
    chance = torch.tensor([0.9, 0.5, 0.8, 0.7], dtype=torch.float64)
    valid = torch.tensor([True, True, True, False])
    floored = (0.5 * chance + 0.5).log().requires_grad_()
    length = floored.exp()[:3].cumprod(0).sum()
    (slope,) = torch.autograd.grad(length, floored)
    weights = place_weights(-chance.log()[None, None], valid[None, None], "pace")[0, 0]
    torch.testing.assert_close(weights, slope)


@pytest.mark.parametrize(("depth", "count", "taps"), [
    (36, 5, (1, 9, 17, 25, 33)), (32, 5, (1, 8, 15, 22, 29)), (24, 4, (1, 8, 14, 21)), (9, 1, (4,)),
])  # fmt: skip
def test_default_taps(depth: int, count: int, taps: tuple[int, ...]) -> None:
    assert default_taps(depth, count) == taps


def test_passes_are_counted_as_verification_would() -> None:
    text = [5, 6, 7, 8, 9]
    right = [[6, 7], [7, 8], [8, 9], [9, 1], []]
    assert count_passes(text, right) == 2
    assert count_passes(text, [[0]] * 5) == 4
    # 6 is right and the target adds 7; then nothing is; then the text ends inside the proposal.
    assert count_passes(text, [[6, 0], [], [0], [9, 3], []]) == 3
    assert count_passes([5], [[1]]) == 0


def test_the_default_drafter_fits_its_bytes(tmp_path: Path) -> None:
    content = public_config(Sizes(), Geometry())
    drafter = new_drafter(DrafterConfig.from_mapping(content), torch.ones(512), 1)
    weights = {name: p.detach() for name, p in drafter.named_parameters()}
    size = save_drafter(tmp_path, weights, content, "fp8")
    assert 0.9 * FP8_LIMIT_BYTES < size <= FP8_LIMIT_BYTES
    (tmp_path / "b").mkdir()
    save_drafter(tmp_path / "b", weights, content, "bf16")
    assert set(load_file(tmp_path / "b" / "model.safetensors")) == set(drafter.state_dict())


def test_a_new_drafter_is_a_first_generation_one_in_effect() -> None:
    """Convolutions pass through and the selector keeps the best token, until they learn."""
    content = public_config(Sizes(layers=2, inner=32, rank=4), Geometry(rows=6720, width=64))
    config = DrafterConfig.from_mapping(content)
    drafter = new_drafter(config, torch.ones(64), 3)
    first = DFlash(DrafterConfig.from_mapping({**content, "architectures": ["DFlashDraftModel"]}))
    first.load_state_dict(
        {n: t for n, t in drafter.state_dict().items() if n in first.state_dict()}
    )
    taps, positions = torch.randn(1, 9, 192), torch.arange(9)[None]
    block, anchor = torch.randn(1, 1, 16, 64), torch.tensor([[9]])
    got, plain = (m(block, anchor, m.context(taps, positions), positions) for m in (drafter, first))
    torch.testing.assert_close(got, plain)
    logits = torch.randn(1, 1, 15, 6720)
    chosen = drafter.choose(got[..., 1:, :], logits, torch.tensor([[5]]))
    assert torch.equal(chosen, logits.argmax(-1))


def test_blocks_side_by_side_see_what_each_sees_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Outputs and gradients, over contexts of any length, none included."""
    content = public_config(Sizes(**SMALL_SIZES), Geometry(rows=6720, width=64))
    drafter = new_drafter(DrafterConfig.from_mapping(content), torch.ones(64), 3).double()
    for parameter in drafter.parameters():
        torch.nn.init.normal_(parameter, 0.5, 0.3)
    taps, positions = torch.randn(2, 21, 128).double(), torch.arange(21).expand(2, -1)
    blocks, anchors = torch.randn(2, 32, 5, 64).double(), torch.randint(0, 22, (2, 32))
    anchors[0, 0] = 0
    found = []
    for together in (16, 64):
        monkeypatch.setattr("ocria.models.drafter.layers.TOGETHER", together)
        rows = drafter(blocks, anchors, drafter.context(taps, positions), positions)
        slopes = torch.autograd.grad(rows.square().sum(), list(drafter.layers.parameters()))
        found.append((rows, *slopes))
    for crowded, alone in zip(*found, strict=True):
        torch.testing.assert_close(crowded, alone)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A target of the shipped sizes, the only ones that the recipe reads, with random weights."""
    torch.manual_seed(0)
    out = tmp_path_factory.mktemp("target")
    reader = Reader(Geometry())
    for name, parameter in reader.named_parameters():
        if parameter.dim() == 2 and "embed" not in name:
            torch.nn.init.normal_(parameter, std=parameter.shape[1] ** -0.5)
    state = {name: parameter.detach() for name, parameter in reader.named_parameters()}
    save_folder(out, state, Pieces.from_file(str(SHIPPED_FOLDER / "tokenizer.json")))
    return out


def page(tokens: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    pixels = torch.randint(0, 255, (1, 64, 96), dtype=torch.uint8, generator=generator)
    text = torch.randint(10, 6000, (tokens,), generator=generator).tolist()
    ids = torch.zeros(1, text_room(2, 3, max(tokens, 64)) + 1, dtype=torch.long)
    ids[0, : tokens + 1] = torch.tensor([*text, EOS])
    return pixels, ids


def test_corners_are_the_target_s_own(folder: Path) -> None:
    target = FrozenTarget(folder, (0,), torch.device("cpu"))
    pixels, ids = page(6)
    ids[0, 1:5] = FIRST_COORDINATE + torch.tensor([0, 511, 3, 7])
    seen = target.read(pixels, ids, own_corners=0)
    # Force what random weights never write: coordinates at each place.
    seen.greedy_PT[0, 1:5] = FIRST_COORDINATE + 5
    target._decode = lambda *_: ([seen.taps_PSX], seen.greedy_PT)  # type: ignore[method-assign]
    changed = target.read(pixels, ids, own_corners=1)
    assert changed.ids_PT[0, 1:5].tolist() == [FIRST_COORDINATE + 5] * 4
    assert torch.equal(changed.ids_PT[0, 5:], ids[0, 5:]) and changed.ids_PT[0, 0] == ids[0, 0]


def small_plan(folder: Path, out: Path, **changes: object) -> Plan:
    return Plan(
        target=folder, out=out, total_s=1e6, blocks=6, steps_a_batch=6, warm_steps=2,
        report_every=2, own_sizes=json.dumps(SMALL_SIZES), **changes,
    )  # fmt: skip


CPU_RANK = Rank(0, 1, torch.device("cpu"))


@pytest.fixture(scope="module")
def trained(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("run")
    store = tmp_path_factory.mktemp("pages")
    pixels, ids = page(30)
    write_batch(Batch(family="crop", pixels=pixels, ids=ids), store / "a.safetensors")
    (store / "b.safetensors").write_bytes(b"damaged")
    stream = stored_batches(store, 1, 0, 1)
    train(small_plan(folder, out, max_steps=18, peak=1e-2), CPU_RANK, stream)
    return out


def test_training_learns_a_page_by_heart(trained: Path) -> None:
    lines = [json.loads(line) for line in (trained / "log.jsonl").read_text().splitlines()]
    assert lines[-1]["base"] < 0.5 * lines[0]["base"]
    assert lines[-1]["skipped"] == lines[-1]["dropped"] == 0


def test_a_run_resumes_where_it_was(folder: Path, trained: Path, tmp_path: Path) -> None:
    (tmp_path / "checkpoint.safetensors").write_bytes(
        (trained / "checkpoint.safetensors").read_bytes()
    )
    run = train(small_plan(folder, tmp_path, max_steps=18), CPU_RANK, iter(()))
    assert run.step == 18
    before, after = (load_file(f / "checkpoint.safetensors") for f in (trained, tmp_path))
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_a_run_begins_from_an_exported_drafter(folder: Path, trained: Path, tmp_path: Path) -> None:
    weights, content = read_checkpoint(trained / "checkpoint.safetensors")
    save_drafter(tmp_path / "given", weights, content, "fp8")
    given, _ = read_checkpoint(tmp_path / "given")
    plan = small_plan(folder, tmp_path / "out", base=tmp_path / "given", max_steps=0)
    run = train(plan, CPU_RANK, iter(()))
    for name, parameter in run.drafter.named_parameters():
        torch.testing.assert_close(parameter.detach(), given[name])


def test_a_step_that_is_not_finite_changes_nothing(folder: Path, tmp_path: Path) -> None:
    run = train(small_plan(folder, tmp_path, max_steps=0), CPU_RANK, iter(()))
    before = {name: p.detach().clone() for name, p in run.drafter.named_parameters()}
    run.optimiser.flat[5] = torch.inf
    run.update(0.0)
    assert run.skipped == 1 and run.step == 1
    assert all(torch.equal(before[name], p) for name, p in run.drafter.named_parameters())


def test_memory_that_runs_out_costs_a_step(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = train(small_plan(folder, tmp_path, max_steps=0), CPU_RANK, iter(()))

    def full(*_: object) -> Blocks:
        raise torch.OutOfMemoryError

    monkeypatch.setattr(blocks_module, "draw_blocks", full)
    monkeypatch.setattr("ocria.models.recipes.drafter.train.draw_blocks", full)
    assert run.gradients(reading([10, EOS], [10, EOS])) is None
    assert run.dropped == 1 and not run.optimiser.flat.any()


@pytest.mark.parametrize(
    ("kind", "precision", "error"),
    [("bf16", "float32", 0.01), ("fp8", "fp8", 0.04), ("mixed", "nvfp4+fp8", 0.13)],
)
def test_an_export_loads_and_drafts_as_trained(
    folder: Path, trained: Path, tmp_path: Path, kind: Format, precision: str, error: float
) -> None:
    weights, content = read_checkpoint(trained / "checkpoint.safetensors")
    save_drafter(tmp_path, weights, content, kind)
    target = FrozenTarget(folder, (0, 1), torch.device("cpu"))
    loaded = load_drafter(tmp_path, target)
    assert loaded.precision == precision
    for name, parameter in loaded.model.named_parameters():
        assert (parameter - weights[name]).norm() <= error * weights[name].norm(), name
    given = target.read(*page(30))
    drafted = draft_everywhere(target, loaded.model, given)
    text = given.ids_PT[0, :31].tolist()
    assert drafted.shape == (1, given.ids_PT.shape[1], 4)
    assert count_passes(text, drafted[0].tolist()) <= 30


def test_a_drafter_is_attached_to_a_checkpoint(trained: Path, tmp_path: Path) -> None:
    for file in ("checkpoint.json", "README.md"):
        (tmp_path / file).write_bytes((SHIPPED_FOLDER / file).read_bytes())
    before = read_manifest(SHIPPED_FOLDER)
    first = attach(tmp_path, trained / "checkpoint.safetensors")
    assert before is not None and first.digest == before.digest
    files = sorted((tmp_path / "drafter").iterdir())
    assert [f"drafter/{file.name}" for file in files] == [file.name for file in first.drafter]
    assert {file.stat().st_mode & 0o777 for file in files} == {0o644}
    card = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert card.count("## The drafter") == 1 and "layers 0, 1 and propose 4 tokens" in card
    # An exported folder is as good a source, and puts itself in place of the older one.
    save_drafter(tmp_path / "bf16", *read_checkpoint(trained / "checkpoint.safetensors"), "bf16")
    again = attach(tmp_path, tmp_path / "bf16")
    assert [file.name for file in again.drafter] == [file.name for file in first.drafter]
    assert (tmp_path / "README.md").read_text(encoding="utf-8") == card


def test_batches_survive_the_disk(tmp_path: Path) -> None:
    pixels, ids = page(9)
    write_batch(Batch(family="strip", pixels=pixels, ids=ids), tmp_path / "x.safetensors")
    read = read_batch(tmp_path / "x.safetensors")
    assert read.family == "strip" and read.ids.dtype == torch.int64
    assert torch.equal(read.pixels, pixels) and torch.equal(read.ids, ids)


def test_the_command_line_is_the_plan() -> None:
    plan = plan_from_arguments(
        ["--target", "a", "--out", "b", "--total-s", "9", "--rounded", "--pages", "c",
         "--own-sizes", '{"layers": 2, "taps": [1, 4]}']
    )  # fmt: skip
    assert plan.pages == Path("c") and plan.rounded and plan.total_s == 9.0
    assert plan.sizes == Sizes(layers=2, taps=(1, 4)) and plan.corpus is None


def test_the_mask_is_a_row_that_no_text_uses() -> None:
    tokenizer = Tokenizer(SHIPPED_FOLDER / "tokenizer.json")
    assert tokenizer.id_of("<|mask|>") == MASK
