"""The pages that every rung reads: rasterised, cut and prompted once, before any clock runs."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from ocria.errors import InputError
from ocria.models.base import ImagePatches, Prompt
from ocria.models.registry import LoadedModel
from ocria.options import DEFAULT_MAX_PIXELS
from ocria.pipeline.page_reader import image_settings
from ocria.rasterize import PageFailed, PageImage, RenderTarget, TextLayer, open_document
from ocria.vision import PreprocessorConfig, measure_ink, page_patches

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class BenchPage:
    """One page, ready for the engine.

    Attributes:
        document: index of its document; drafters go on from page to page of one document.
        name: file and page number.
        rasterize_s: seconds in the worker process; `patches_s` in ink measure, resize and cutting.
        layer: the PDF's text, for drafters.
    """

    document: int
    name: str
    prompt: Prompt
    image: ImagePatches
    layer: TextLayer | None = None
    rasterize_s: float = 0.0
    patches_s: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class PageSet:
    """The pages of a run, and those that could not be in it.

    Attributes:
        skipped: name and reason of each page without work for the decoder.
    """

    pages: tuple[BenchPage, ...]
    skipped: tuple[tuple[str, str], ...] = ()


def find_inputs(inputs: Sequence[Path]) -> tuple[Path, ...]:
    """The documents asked for, or those of `examples/`.

    Raises:
        InputError: none was named and there is no examples folder (a wheel has none).
    """
    if inputs:
        return tuple(inputs)
    found = tuple(sorted(EXAMPLES.glob("*.pdf")))
    if not found:
        raise InputError(
            f"there are no example documents in {EXAMPLES}",
            hint="name the documents to read: ocria bench FILE...",
        )
    return found


def read_page_set(
    inputs: Sequence[Path], model: LoadedModel, *, first_only: bool = False
) -> PageSet:
    """Makes every page of the documents ready.

    Args:
        inputs: PDFs and images.
        model: whose size rule and prompt the pages get.
        first_only: take only the first page of each document that holds anything.

    Raises:
        InputError: a document cannot be opened, or no page has anything to read.
    """
    pages: list[BenchPage] = []
    skipped: list[tuple[str, str]] = []
    for document, path in enumerate(inputs):
        _read_document(document, path, model, pages, skipped, first_only)
    if not pages:
        raise InputError("no page has anything to read", hint="name documents with text on them")
    return PageSet(pages=tuple(pages), skipped=tuple(skipped))


def _read_document(
    document: int,
    path: Path,
    model: LoadedModel,
    pages: list[BenchPage],
    skipped: list[tuple[str, str]],
    first_only: bool,
) -> None:
    config = image_settings(model)
    with open_document(
        path, name=path.name, password=None, max_pixels=DEFAULT_MAX_PIXELS
    ) as opened:
        numbers = range(1, opened.source.num_pages + 1)
        target = RenderTarget(fit=config.size_rule)
        for picture in opened.pages(numbers, target, with_text=True):
            name = f"{path.name} page {picture.number}"
            if isinstance(picture, PageFailed):
                skipped.append((name, picture.message))
                continue
            page = _page(document, name, picture, model, config)
            if page is None:
                skipped.append((name, "blank"))
                continue
            pages.append(page)
            if first_only:
                return


def _page(
    document: int,
    name: str,
    picture: PageImage,
    model: LoadedModel,
    config: PreprocessorConfig,
) -> BenchPage | None:
    started = time.perf_counter()
    if measure_ink(picture.rgb).is_blank:
        return None
    patches = page_patches(picture.rgb, config)
    spent = time.perf_counter() - started
    merge = config.merge_size
    return BenchPage(
        document=document,
        name=name,
        prompt=model.tokens.prompt.fill(patches.grid_h // merge, patches.grid_w // merge),
        image=ImagePatches(torch.from_numpy(patches.values), patches.grid_h, patches.grid_w),
        layer=picture.text,
        rasterize_s=picture.seconds,
        patches_s=spent,
    )
