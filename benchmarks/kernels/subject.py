"""What the checks run: the shipped model with its fused decoder, and pages; where figures go."""

import json
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from page_files import checkpoint_folder, drawn
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor

from ocria.bench.page_set import BenchPage, find_inputs, read_page_set
from ocria.engine import graphs
from ocria.engine.graphs import Captured, Landing, StaticPass
from ocria.kernels.small_gemm import reference
from ocria.kernels.small_gemm.layout import PackedWeight
from ocria.models.base import ImagePatches, Output, Prompt
from ocria.models.qwen3_5.config import Qwen35Config
from ocria.models.qwen3_5.fused import FusedDecoder
from ocria.models.qwen3_5.model import Qwen35, fused_decoder
from ocria.models.qwen3_5.names import FLOAT32_NAMES
from ocria.models.registry import LoadedModel, load, open_checkpoint
from ocria.pipeline.page_reader import image_settings
from ocria.vision import page_patches
from ocria.weights import assign


@dataclass(frozen=True, kw_only=True)
class Figures:
    """Prints each figure and keeps all of them in one JSON file, `file`, as they come."""

    file: Path
    section: str

    def say(self, name: str, value: object) -> None:
        """One figure."""
        shown = f"{value:.4g}" if isinstance(value, float) else value
        print(f"{self.section:10} {name}: {shown}", flush=True)
        found = json.loads(self.file.read_text()) if self.file.exists() else {}
        found.setdefault(self.section, {})[name] = value
        self.file.write_text(json.dumps(found, indent=1, default=str))


@dataclass(frozen=True, kw_only=True)
class Size:
    """How much is run: little where kernels stand in as references on a CPU.

    Attributes:
        num_rows: text rows a seed.
        num_seeds: sets of windows.
        max_tokens: of a page.
        num_pages: of the examples.
        position: where steps are timed.
        batches: pages side by side.
        num_real: real pages; of these `num_alone` are also read one by one.
        num_stream: pages that are timed.
        rounds: of ways that are timed in turn.
        num_published: decoder layers of the published size.
        grid: patches along each side of its page.
        gate_up: of the wide products.
        down: likewise.
        repeats: launches in a timed graph.
    """

    num_rows: int = 108
    num_seeds: int = 3
    max_tokens: int = 2048
    num_pages: int = 100
    position: int = 1500
    batches: tuple[int, ...] = (8, 32)
    num_real: int = 100
    num_alone: int = 16
    num_stream: int = 6
    rounds: int = 5
    num_published: int = 32
    grid: int = 64
    gate_up: tuple[int, int] = (18_432, 2_560)
    down: tuple[int, int] = (2_560, 9_216)
    repeats: int = 20


DRY = Size(
    num_rows=5,
    num_seeds=1,
    max_tokens=6,
    num_pages=1,
    position=40,
    batches=(2,),
    num_real=2,
    num_alone=1,
    num_stream=1,
    rounds=1,
    num_published=4,
    grid=8,
    gate_up=(128, 128),
    down=(64, 256),
    repeats=2,
)


@dataclass
class Subject:
    """The model under check.

    Attributes:
        device: a CPU runs references and calls instead of captures: it finds mistakes of these
            scripts, its figures mean nothing.
        until_s: when the last section must be over, by `time.time`.
    """

    device: torch.device
    until_s: float
    size: Size = field(init=False)
    model: LoadedModel = field(init=False)

    def __post_init__(self) -> None:
        is_cuda = self.device.type == "cuda"
        self.size = Size() if is_cuda else DRY
        dtype = None if is_cuda else torch.float32
        folder = checkpoint_folder()
        self.model = load(folder, device=self.device, dtype=dtype, keep_plain=True)
        if not is_cuda:
            reference.unpack = _remembering(reference.unpack)
            graphs.capture = _called
            self.target.fused = _dry_decoder(folder)

    @property
    def left_s(self) -> float:
        """Seconds left."""
        return self.until_s - time.time()

    @property
    def target(self) -> Qwen35:
        assert isinstance(self.model.target, Qwen35)
        return self.model.target

    @property
    def fused(self) -> FusedDecoder:
        assert self.target.fused is not None, "the fused kernels take this device"
        return self.target.fused

    @property
    def forbidden_ids(self) -> list[int]:
        return sorted(self.model.tokens.suppressed_ids)

    @cached_property
    def forbidden_V(self) -> Tensor:
        forbidden = torch.zeros(self.target.vocab_size, dtype=torch.uint8)
        forbidden[self.forbidden_ids] = 1
        return forbidden.to(self.device)

    def page(self) -> tuple[Prompt, ImagePatches]:
        """A drawn page of some lines."""
        sides = (640, 448) if self.device.type == "cuda" else (64, 128)
        image = Image.new("RGB", sides[::-1], (250, 250, 250))
        draw, font = ImageDraw.Draw(image), ImageFont.load_default(20)
        for line, y in enumerate(range(24, sides[0] - 24, 36)):
            text = f"{line + 1}. The bridge of {1800 + 7 * line} was paid with {line * 137}.50"
            draw.text((12, y), text, fill=(10, 10, 10), font=font)
        settings = image_settings(self.model)
        patches = page_patches(np.asarray(image), settings)
        merge = settings.merge_size
        prompt = self.model.tokens.prompt.fill(patches.grid_h // merge, patches.grid_w // merge)
        values = torch.from_numpy(patches.values)
        return prompt, ImagePatches(values, patches.grid_h, patches.grid_w)

    @cached_property
    def examples(self) -> tuple[BenchPage, ...]:
        """Pages of the example documents with their text layers."""
        return read_page_set(find_inputs(()), self.model).pages[: self.size.num_pages]

    @cached_property
    def real_pages(self) -> tuple[BenchPage, ...]:
        """Pages of the folder that was drawn, else of the examples."""
        return drawn(self.size.num_real) or self.examples

    def random(self, *shape: int, seed: int = 0) -> Tensor:
        """Normal numbers in the activations' dtype."""
        noise = torch.randn(*shape, generator=torch.Generator().manual_seed(seed))
        return noise.to(self.device, self.target.dtype)


def run_parts(
    subject: Subject, figures: Figures, parts: Iterable[tuple[float, Callable[[], None]]]
) -> None:
    """Parts of a section, each with the seconds that it needs of a GPU: one that fails or has no
    time left says so, the others go on.
    """
    for needed_s, part in parts:
        if subject.device.type == "cuda" and subject.left_s < needed_s:
            figures.say("part", "not run: time is up")
            continue
        try:
            part()
        except Exception as error:
            figures.say("part failed", f"{type(error).__name__}: {error}"[:300])
        subject.target.tap_layers = ()


def text_of(num_tokens: int, seed: int) -> list[int]:
    """Random plain tokens."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(10, 6000, (num_tokens,), generator=generator).tolist()


def _dry_decoder(folder: Path) -> FusedDecoder:
    """The fused decoder of a checkpoint on a CPU, where a model does not make one by itself."""
    source = open_checkpoint(folder, device=torch.device("cpu")).source
    with torch.device("meta"):
        model = Qwen35(Qwen35Config.from_folder(folder))
    assign(model, source, dtype=torch.float32, float32_names=FLOAT32_NAMES)
    return fused_decoder(model, source.read_packed)


def _remembering(unpack: Callable[[PackedWeight], Tensor]) -> Callable[[PackedWeight], Tensor]:
    kept: dict[int, tuple[PackedWeight, Tensor]] = {}

    def remembered(weight: PackedWeight) -> Tensor:
        if id(weight) not in kept:
            kept[id(weight)] = (weight, unpack(weight))
        return kept[id(weight)][1]

    return remembered


def _called(static: StaticPass) -> Captured:
    """Instead of a capture: a replay runs the pass again into the same output."""
    output: Output = static.run()

    @torch.inference_mode()
    def replay() -> None:
        again = static.run()
        assert output.best is not None and again.best is not None
        output.logits_TV.copy_(again.logits_TV)
        for old, new in zip(output.best, again.best, strict=True):
            old.copy_(new)

    return Captured(static, output, replay, Landing())
