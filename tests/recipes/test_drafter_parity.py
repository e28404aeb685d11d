"""Trainer and engine see the same page alike: taps and drafts, image positions included."""

from typing import Any

import numpy as np
import pytest
import torch

from ocria.engine.speculative import DFlashDrafter, DraftRooms
from ocria.engine.state import StatePool
from ocria.models.base import PREFILL_CHUNK, ImagePatches, Window
from ocria.models.drafter import DFlash, DrafterConfig
from ocria.models.finding import SHIPPED
from ocria.models.recipes.drafter.blocks import blocks_at, hidden_rows
from ocria.models.recipes.drafter.design import Sizes, public_config
from ocria.models.recipes.drafter.target import FrozenTarget, Reading
from ocria.models.recipes.nano.model import Geometry, text_room
from ocria.models.recipes.nano.vocabulary import EOS
from ocria.models.registry import LoadedModel, load
from ocria.vision import PreprocessorConfig, page_patches

FOLDER = SHIPPED / "ocria-nano"
CPU = torch.device("cpu")
TAPS = (7, 2, 5)
HEIGHT, WIDTH, NUM_TOKENS = 256, 288, 90


@pytest.fixture(scope="module")
def target() -> FrozenTarget:
    return FrozenTarget(FOLDER, TAPS, CPU, dtype=torch.float32)


@pytest.fixture(scope="module")
def page() -> torch.Tensor:
    """Grey pixels: a broken line of ink and a grainy patch."""
    generator = torch.Generator().manual_seed(3)
    pixels = torch.full((HEIGHT, WIDTH), 255, dtype=torch.uint8)
    pixels[40:52:3, 20:250] = 0
    pixels[90:200, 30:60] = torch.randint(0, 255, (110, 30), generator=generator).byte()
    return pixels


@pytest.fixture(scope="module")
def reading(target: FrozenTarget, page: torch.Tensor) -> Reading:
    generator = torch.Generator().manual_seed(4)
    ids = torch.zeros(1, text_room(HEIGHT // 32, WIDTH // 32, NUM_TOKENS) + 1, dtype=torch.long)
    ids[0, :NUM_TOKENS] = torch.randint(10, 6000, (NUM_TOKENS,), generator=generator)
    ids[0, NUM_TOKENS] = EOS
    return target.read(page[None], ids, own_corners=0)


@pytest.fixture(scope="module")
def loaded() -> LoadedModel:
    model = load(FOLDER, device=CPU, dtype=torch.float32)
    model.target.tap_layers = TAPS
    return model


def random_drafter() -> DFlash:
    content = public_config(Sizes(taps=TAPS), Geometry())
    torch.manual_seed(1)
    drafter = DFlash(DrafterConfig.from_mapping(content)).requires_grad_(False)
    for name, parameter in drafter.named_parameters():
        parameter.normal_(0.0, 0.7 * parameter.shape[-1] ** -0.5)
        if name.endswith("norm.weight") or "base_kernel" in name:
            parameter.add_(1.0)
    return drafter


class ListenedTo:
    """A target that keeps the logits which it was last asked for."""

    def __init__(self, target: Any) -> None:
        self._target = target
        self.heard = torch.empty(0)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._target, name)

    def head(self, hidden: torch.Tensor) -> torch.Tensor:
        self.heard = self._target.head(hidden)
        return self.heard


def engine_drafts(
    loaded: LoadedModel, page: torch.Tensor, text: list[int], drafter: DFlash, stops: list[int]
) -> tuple[torch.Tensor, dict[int, torch.Tensor]]:
    """All taps, and the drafter's logits behind the text tokens `stops`, as the engine runs.

    The text is forced in windows of changing size whose last rows are rejected.
    """
    target = loaded.target
    rgb = np.repeat(page.numpy()[..., None], 3, 2)
    patches = page_patches(rgb, PreprocessorConfig.from_folder(FOLDER))
    assert (patches.grid_h, patches.grid_w) == (HEIGHT // 16, WIDTH // 16)
    image = ImagePatches(torch.from_numpy(patches.values), patches.grid_h, patches.grid_w)
    prompt = loaded.tokens.prompt.fill(patches.grid_h // 2, patches.grid_w // 2)
    pool = StatePool(target, num_slots=1, max_positions=1024)
    _, state = pool.acquire()
    host = ListenedTo(target)
    engine = DFlashDrafter(DraftRooms(drafter, host))
    engine.prepare(prompt)
    rows, found, image_ND = [], {}, target.encode_image(image)
    while state.length < len(prompt.token_ids):
        taken = min(PREFILL_CHUNK, len(prompt.token_ids) - state.length)
        rows.append(target.prefill(state, prompt, image_ND).taps_TLD)
        pool.commit_prompt(state, taken)
        engine.tap(rows[-1])
    at, size = 0, 1
    while at < len(text) - 1:
        if at in stops:
            assert engine.propose(text[: at + 1], most=15)
            found[at] = host.heard
        kept = min(size, next((s for s in stops if s > at), len(text) - 1) - at)
        window = Window(state, (*text[at : at + kept], 77, 78))
        taps = target.verify([window]).taps_TLD[:kept]
        pool.commit([(state, kept)])
        engine.tap(taps)
        rows.append(taps)
        at, size = at + kept, size % 7 + 1
    return torch.cat(rows), found


def test_trainer_and_engine_agree_on_taps_and_drafts(
    target: FrozenTarget, loaded: LoadedModel, reading: Reading, page: torch.Tensor
) -> None:
    drafter, stops = random_drafter(), [0, 1, 5, 33, 64, 88]
    text = reading.ids_PT[0, : NUM_TOKENS + 1].tolist()
    rows, found = engine_drafts(loaded, page, text, drafter, stops)
    # The trainer's taps of the same positions: image rows, their markers, and the text.
    wanted = reading.taps_PSX[0, : len(rows)].unflatten(-1, (3, -1))
    assert reading.text_start == 2 + HEIGHT * WIDTH // 1024
    scale = wanted.square().mean((0, 2)).sqrt()
    image = slice(1, reading.text_start - 1)
    for part in (image, slice(reading.text_start, None)):
        error = (rows[part] - wanted[part]).abs().amax((0, 2)) / scale
        assert float(error.max()) < 1e-3, f"taps differ by {error.tolist()} of their size"
    blocks = blocks_at(reading, torch.tensor([stops]), 16)
    with torch.no_grad():
        hidden = hidden_rows(drafter, target, reading, blocks, 16)[0]
        wanted_logits = torch.nn.functional.linear(hidden, target.reader.embed_tokens.weight)
    for place, stop in enumerate(stops):
        difference = (found[stop] - wanted_logits[place]).abs().max()
        assert float(difference) <= 1e-4, f"drafts behind token {stop} differ by {difference}"
    assert float(wanted_logits.std()) > 0.1, "logits that say nothing agree easily"
