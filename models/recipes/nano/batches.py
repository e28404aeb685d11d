"""Whole batches from worker processes: shapes drawn per batch, lengths sorted, cost held level."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor
from torch.utils.data import IterableDataset, get_worker_info

from ocria.models.recipes.pages.kinds import UNTURNED, WEIGHTS
from ocria.models.recipes.pages.sampler import Sample, make_samples, open_studio
from ocria.models.recipes.pages.studio import Studio

from .model import CHUNK, text_room
from .tell import token_patches
from .vocabulary import EOS, FIRST_MARKUP, PAD, ROTATIONS

Shape = tuple[int, int]
TURNS = range(FIRST_MARKUP, FIRST_MARKUP + len(ROTATIONS))
# Height and width in pixels; repeats weigh. Each costs an attention plan once, so they are few.
_PORTRAIT = (*((1408, 1024),) * 4, *((1408, 992),) * 3, *((1344, 1056),) * 3)
SHAPES: dict[str, tuple[Shape, ...]] = {
    "portrait": (*_PORTRAIT, (1024, 768), (1152, 832)),
    "dense": _PORTRAIT,
    "landscape": ((1024, 1408), (992, 1408), (768, 1024)),
    "tall": ((1408, 640), (1216, 480), (1792, 768), (1024, 512)),
    "crop": (
        (512, 640), (384, 896), (256, 640), (640, 896), (448, 448), (192, 896), (768, 640),
    ),
    "strip": ((128, 512), (64, 384), (256, 512)),
    "turned": (
        (1408, 1024), (1408, 992), (1024, 1408), (992, 1408), (1408, 640), (640, 896), (512, 640),
    ),
}  # fmt: skip
TYPICAL_TOKENS = {
    "portrait": 1200, "dense": 2400, "landscape": 800, "tall": 400, "crop": 300, "strip": 50,
    "turned": 8,
}  # fmt: skip
# Share of steps by family, at the start and from a quarter of the run on.
EARLY = {"portrait": 0.34, "dense": 0.22, "landscape": 0.09, "tall": 0.10, "crop": 0.14,
         "strip": 0.05, "turned": 0.06}  # fmt: skip
LATE = {"portrait": 0.33, "dense": 0.28, "landscape": 0.09, "tall": 0.09, "crop": 0.13,
        "strip": 0.04, "turned": 0.04}  # fmt: skip
# One long text pads its whole batch, so each family has its longest.
MAX_TOKENS = {
    "portrait": 2944, "dense": 4480, "landscape": 2560, "tall": 1536, "crop": 704, "strip": 192,
    "turned": 16,
}  # fmt: skip
MAX_BATCH = 320
# Activations of 78,000 decoder positions and their patches filled 139 GiB.
MAX_POSITIONS = 64_000


@dataclass(frozen=True, kw_only=True)
class Batch:
    """pixels [B, height, width] uint8; ids [B, T] int64, eos-ended, padded with 0.

    Where places of text are known: `patches` [B, T] int16, the picture's row in which each token
    begins or -1, and `unsure` [B, R] bool, rows of which not all is known.
    """

    family: str
    pixels: Tensor
    ids: Tensor
    patches: Tensor | None = None
    unsure: Tensor | None = None

    def tensors(self) -> dict[str, Tensor]:
        """The tensors that are there, by name."""
        found = {name: getattr(self, name) for name in ("pixels", "ids", "patches", "unsure")}
        return {name: tensor for name, tensor in found.items() if tensor is not None}

    def pin_memory(self) -> Batch:
        pinned = {name: tensor.pin_memory() for name, tensor in self.tensors().items()}
        return Batch(family=self.family, **pinned)


@dataclass(frozen=True, kw_only=True)
class _Page:
    """pixels [height, width]; ids and the patches in which they begin [T]; unsure [R]."""

    pixels: np.ndarray
    ids: list[int]
    patches: np.ndarray
    unsure: np.ndarray


@dataclass(frozen=True, kw_only=True)
class Source:
    """Where pages come from, and how much work a batch should be."""

    corpus: Path
    fonts: Path
    tokenizer: Path
    seed: int = 1
    held_out: bool = False
    budget_tflop: float = 55.0

    def __post_init__(self) -> None:
        # Kinds with formulas would be passed over, page by page and without a word.
        if not (self.corpus / "formulas.tsv").is_file():
            raise FileNotFoundError(f"{self.corpus}/formulas.tsv: make it with pages.latex")


def sample_tflop(shape: Shape, tokens: int) -> float:
    """Training arithmetic of one sample, forward and backward."""
    patches = shape[0] * shape[1] / 256
    sequence = patches / 4 + tokens
    vision = 6 * 15.0e6 * patches + 14 * 320 * 10 * patches**2
    decoder = 6 * 31.0e6 * sequence + 7 * 512 * 3 * sequence**2
    # The delta rule's float32 passes cost about as much time as a second decoder.
    return (vision + 2 * decoder) * 1e-12


def batch_size(family: str, shape: Shape, budget_tflop: float) -> int:
    """Pages a batch of a shape: always the same, whatever their texts; bounded by memory too."""
    by_work = int(budget_tflop / sample_tflop(shape, TYPICAL_TOKENS[family]))
    by_memory = MAX_POSITIONS // (shape[0] * shape[1] // 1024 + MAX_TOKENS[family] + CHUNK)
    return max(1, min(MAX_BATCH, by_work, by_memory))


class Batches(IterableDataset[Batch]):
    """Endless streams of batches, one for each worker; each draws its own documents."""

    def __init__(self, source: Source, rank: int, progress: Tensor) -> None:
        self._source, self._rank = source, rank
        # A shared scalar: the share of the run that is over, for the curriculum.
        self._progress = progress

    def __iter__(self) -> Iterator[Batch]:
        info = get_worker_info()
        return self.stream(info.id if info else 0)

    def stream(self, worker: int) -> Iterator[Batch]:
        """The batches of one worker."""
        torch.set_num_threads(1)
        source = self._source
        studio = open_studio(source.corpus, source.fonts, held_out=source.held_out)
        tokenizer = Tokenizer.from_file(str(source.tokenizer))
        rng = random.Random(f"{source.seed}/{self._rank}/{worker}")
        first = True
        while True:
            family = self._family(rng)
            shape = rng.choice(SHAPES[family])
            size = batch_size(family, shape, self._source.budget_tflop)
            # The first pool is one batch, so that training starts early.
            count = 1 if first else 2
            first = False
            pool = self._pool(studio, tokenizer, rng, family, shape, size * count)
            # Short texts with short ones: less padding.
            pool.sort(key=lambda page: len(page.ids))
            for start in range(0, len(pool), size):
                yield _batch(pool[start : start + size], family, shape)

    def _family(self, rng: random.Random) -> str:
        done = float(self._progress)
        mix = min(1.0, done / 0.25)
        weights = [EARLY[f] * (1 - mix) + LATE[f] * mix for f in SHAPES]
        return rng.choices(list(SHAPES), weights)[0]

    def _pool(
        self,
        studio: Studio,
        tokenizer: Tokenizer,
        rng: random.Random,
        family: str,
        shape: Shape,
        count: int,
    ) -> list[_Page]:
        """Exactly `count` pages of one shape with their token ids."""
        pool: list[_Page] = []
        while len(pool) < count:
            for sample in draw_samples(studio, rng, family, shape):
                page = _page(sample, tokenizer, family)
                if page:
                    pool.append(page)
        return pool[:count]


def _page(sample: Sample, tokenizer: Tokenizer, family: str) -> _Page | None:
    """A sample in tokens; None where it is too long, or turned and without text."""
    encoding = tokenizer.encode(sample.markup, add_special_tokens=False)
    ids = encoding.ids
    if family == "turned":
        # A page without text has no first token to ask for. What stands on the others is not told.
        if not ids:
            return None
        ids, unsure = opening(ids), np.ones_like(sample.unsure)
        return _Page(
            pixels=sample.pixels, ids=ids, unsure=unsure, patches=np.full(len(ids), -1, np.int16)
        )
    if len(ids) >= MAX_TOKENS[family]:
        return None
    patches = token_patches(encoding.offsets, sample.markup, sample.places)
    return _Page(
        pixels=sample.pixels, ids=[*ids, EOS], unsure=sample.unsure,
        patches=np.append(patches, np.int16(-1)),
    )  # fmt: skip


def draw_samples(studio: Studio, rng: random.Random, family: str, shape: Shape) -> list[Sample]:
    """The pages of one document of a family; none where it came out inexact.

    One of a hundred or so documents fails in Faker, typst or PDFium; whatever it raises (typst's
    panics are no `Exception`), the next document is drawn.
    """
    height, width = shape
    turn = rng.choice((0, 90, 180, 270)) if family == "turned" else 0
    drawn_as = family
    if family == "turned":
        drawn_as = turned_family(width, height, turn)
    kinds = WEIGHTS[drawn_as]
    kind = rng.choices(list(kinds), list(kinds.values()))[0]
    if family == "turned" and kind in UNTURNED:
        return []
    try:
        return make_samples(studio, kind, rng, width_px=width, height_px=height, turn=turn)
    except (KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError):
        raise
    except BaseException:
        return []


def turned_family(width: int, height: int, turn: int) -> str:
    """The family whose kinds fill the upright page of a turned image."""
    if turn in (90, 270):
        width, height = height, width
    if width * height < 700_000:
        return "crop"
    if height > 1.8 * width:
        return "tall"
    return "portrait" if height > width else "landscape"


def opening(ids: list[int]) -> list[int]:
    """What an orientation sample asks for: a turn and the end, or an upright page's first token."""
    return [ids[0], EOS] if ids[0] in TURNS else ids[:1]


def _batch(pages: list[_Page], family: str, shape: Shape) -> Batch:
    rows, columns = shape[0] // 32, shape[1] // 32
    # The model reads ids[:, :-1], so the sequence is one shorter than the truth.
    longest = max(len(page.ids) for page in pages) - 1
    room = text_room(rows, columns, max(longest, CHUNK)) + 1
    ids = np.full((len(pages), room), PAD, np.int64)
    patches = np.full((len(pages), room), -1, np.int16)
    for i, page in enumerate(pages):
        ids[i, : len(page.ids)], patches[i, : len(page.ids)] = page.ids, page.patches
    return Batch(
        family=family,
        pixels=torch.from_numpy(np.stack([page.pixels for page in pages])),
        ids=torch.from_numpy(ids),
        patches=torch.from_numpy(patches),
        unsure=torch.from_numpy(np.stack([page.unsure for page in pages])),
    )
