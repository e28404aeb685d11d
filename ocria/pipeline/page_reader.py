"""One loaded model that turns page pictures into pages.

Life of a page here: ink test, patches, engine, spelling, blocks; a page that lies on its side is
turned and read again.
"""

import os
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

# Read by the OpenMP runtime when torch loads. Waiting threads spin for milliseconds by default: a
# decoding step on a busy machine took 2,300 ms that way. Threads that sleep at once cost a quiet
# machine half its second core (24 ms a step; 16 with a short spin). Figures: docs/log.md.
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ.setdefault("GOMP_SPINCOUNT", "4000")

import torch

from ocria.document import (
    Decoding,
    Page,
    PageFailure,
    PageSeconds,
    PageStats,
    PageStatus,
    Rotation,
)
from ocria.engine import Engine, EngineConfig, Finish, Request, Result
from ocria.errors import PageError, WeightsError
from ocria.models.base import WINDOW, ImagePatches
from ocria.models.device import resolve_device
from ocria.models.presets import NATIVE
from ocria.models.registry import LoadedModel, find_checkpoint, load
from ocria.options import ParseOptions
from ocria.output import DecodedText, PageGeometry, build_page_blocks
from ocria.pipeline.drafting import Drafting
from ocria.pipeline.markup_ids import markup_ids
from ocria.pipeline.turning import opening_turn, turned
from ocria.rasterize import PageFailed, PageImage
from ocria.vision import PreprocessorConfig, SizeRule, measure_ink, page_patches

_STATUS: Mapping[Finish, PageStatus] = {"eos": "ok", "length": "truncated", "loop": "repaired"}


class PageReader:
    """A model ready to read pages; load it once, use it for any number of documents.

    Attributes:
        model: the loaded checkpoint.
        size_rule: maps a picture's size in pixels to the size that the model reads.
    """

    def __init__(self, model: LoadedModel, options: ParseOptions) -> None:
        self.model = model
        self._options = options
        self._preprocessor = image_settings(model)
        self.size_rule: SizeRule = self._preprocessor.size_rule
        merged = (self._preprocessor.patch_size * self._preprocessor.merge_size) ** 2
        around = model.tokens.prompt.fill(0, 0)
        longest_prompt = self._preprocessor.max_pixels // merged + len(around.token_ids)
        config = EngineConfig(
            stop_ids=model.tokens.stop_ids,
            forbidden_ids=model.tokens.suppressed_ids,
            max_positions=longest_prompt + options.max_tokens + WINDOW,
        )
        self._engine = Engine(model.target, config)
        self._markup = markup_ids(model.tokenizer)
        self.begin_document()

    @property
    def wants_text(self) -> bool:
        """Whether pictures should come with their page's text layer."""
        return self._drafting.wants_text

    def begin_document(self) -> None:
        """Forgets what the drafters learnt of the document before; results do not depend on it."""
        asked = self._options.drafter
        if asked == "auto" and self.model.target.device.type != "cpu":
            # PyTorch's CUDA reductions round a row by the number of rows beside it (docs/log.md).
            asked = "none"
        self._drafting = Drafting(asked, self.model.tokenizer, self._markup)

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that can change what is read."""
        settings = {"max_tokens": self._options.max_tokens, "dpi": self._options.dpi or "auto"}
        preset = self.model.preset
        return settings if preset is NATIVE else {**settings, "preset": preset.name}

    def read(self, picture: PageImage | PageFailed) -> Page:
        """Reads one page. A page that cannot be read comes back with status `failed`."""
        if isinstance(picture, PageFailed):
            return _failed(picture, picture.code, picture.message)
        try:
            return self._read(picture)
        except PageError as error:
            return _failed(picture, error.code, str(error))
        except (torch.OutOfMemoryError, MemoryError):
            message = "the page does not fit in memory; try a lower --dpi or --max-tokens"
            return _failed(picture, "out_of_memory", message)
        finally:
            self._engine.close()

    def _read(self, picture: PageImage) -> Page:
        started = time.perf_counter()
        if measure_ink(picture.rgb).is_blank:
            return self._blank(picture, time.perf_counter() - started)
        page, turn = self._read_once(picture, started)
        seen: set[Rotation] = {picture.rotation}
        while turn and (upright := turned(picture, turn)).rotation not in seen:
            # The turn's own reading is one token; what it cost belongs to the page.
            spent, picture = page.stats, upright
            seen.add(picture.rotation)
            page, turn = self._read_once(picture, time.perf_counter())
            page = replace(page, stats=_joined(spent, page.stats))
        # Every way up was refused: the page is empty, and must not pass for a good one.
        return replace(page, status="repaired") if turn else page

    def _read_once(self, picture: PageImage, started: float) -> tuple[Page, Rotation]:
        """The page as it lies, and the clockwise turn that the model asks for instead."""
        patches = page_patches(picture.rgb, self._preprocessor)
        merge = self._preprocessor.merge_size
        cut_s = time.perf_counter() - started
        drafter = self._drafting.drafter(picture.text)
        result = self._engine.run(
            Request(
                prompt=self.model.tokens.prompt.fill(
                    patches.grid_h // merge, patches.grid_w // merge
                ),
                image=ImagePatches(
                    torch.from_numpy(patches.values), patches.grid_h, patches.grid_w
                ),
                max_tokens=self._options.max_tokens,
                drafter=drafter,
            )
        )
        seconds = PageSeconds(
            rasterize=picture.seconds,
            vision=cut_s + result.vision_s,
            prefill=result.prefill_s,
            decode=result.decode_s,
        )
        decoding = _decoding(result, self._drafting.name(drafter))
        side = self._preprocessor.patch_size
        geometry = _geometry(picture, (patches.grid_w * side, patches.grid_h * side))
        page = self._page(geometry, result, PageStats(seconds=seconds, decoding=decoding))
        return page, opening_turn(result.token_ids, self._markup)

    def _page(self, geometry: PageGeometry, result: Result, stats: PageStats) -> Page:
        decoded = self._decoded(result)
        blocks = build_page_blocks(decoded, geometry, self.model.preset.markup)
        status = _STATUS[result.finish]
        if blocks.repaired and status == "ok":
            status = "repaired"
        return Page(
            number=geometry.number,
            width_pt=blocks.width_pt,
            height_pt=blocks.height_pt,
            rotation=blocks.rotation,
            status=status,
            blocks=blocks.blocks,
            confidence=decoded.page_confidence(),
            num_tokens=len(result.token_ids),
            stats=stats if self._options.stats else None,
        )

    def _decoded(self, result: Result) -> DecodedText:
        spelling = self.model.tokenizer.spell(result.token_ids)
        return DecodedText(
            text=spelling.text,
            token_ends=spelling.token_ends,
            token_logprobs=result.logprobs,
            special_spans=spelling.special_spans,
        )

    def _blank(self, picture: PageImage, seconds: float) -> Page:
        spent = PageSeconds(rasterize=picture.seconds, vision=seconds, prefill=0.0, decode=0.0)
        return Page(
            number=picture.number,
            width_pt=picture.width_pt,
            height_pt=picture.height_pt,
            rotation=picture.rotation,
            status="blank",
            stats=PageStats(seconds=spent, decoding=None) if self._options.stats else None,
        )


def load_page_reader(options: ParseOptions) -> PageReader:
    """Loads the checkpoint that the options name.

    Raises:
        WeightsError: missing, damaged, of an unknown architecture, or no drafter weights for
            `--drafter dflash`.
        DeviceError: the device cannot be used, or has too little memory.
    """
    folder = find_checkpoint(options.model)
    if options.drafter == "dflash":
        raise WeightsError(
            f"the model {folder.name} has no dflash drafter",
            hint="leave `--drafter` out: `auto` takes the best drafter there is",
        )
    return PageReader(load(folder, device=resolve_device(options.device)), options)


def image_settings(model: LoadedModel) -> PreprocessorConfig:
    """The checkpoint's own image settings, within its preset's budget."""
    own, budget = PreprocessorConfig.from_folder(model.folder), model.preset.budget
    if budget is None:
        return own
    return replace(own, min_pixels=budget.min_pixels, max_pixels=budget.max_pixels)


def _geometry(picture: PageImage, read_px: tuple[int, int]) -> PageGeometry:
    return PageGeometry(
        number=picture.number,
        width_pt=picture.width_pt,
        height_pt=picture.height_pt,
        rotation=picture.rotation,
        read_px=read_px,
    )


def _joined(before: PageStats | None, after: PageStats | None) -> PageStats | None:
    """The last reading's figures with the seconds of all; rasterising was done once."""
    if before is None or after is None:
        return after
    one, two = before.seconds, after.seconds
    seconds = PageSeconds(
        rasterize=two.rasterize,
        vision=one.vision + two.vision,
        prefill=one.prefill + two.prefill,
        decode=one.decode + two.decode,
    )
    return replace(after, seconds=seconds)


def _decoding(result: Result, drafter: str) -> Decoding | None:
    if not result.steps:
        return None
    return Decoding(
        drafter=drafter,
        steps=result.steps,
        tokens_per_step=round(len(result.token_ids) / result.steps, 3),
        accepted_histogram=result.accepted,
    )


def _failed(picture: PageImage | PageFailed, code: str, message: str) -> Page:
    return Page(
        number=picture.number,
        width_pt=picture.width_pt,
        height_pt=picture.height_pt,
        rotation=picture.rotation,
        status="failed",
        error=PageFailure(code=code, message=message),
    )
