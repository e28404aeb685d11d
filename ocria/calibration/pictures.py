"""Pages to calibrate on: the user's files, or self-made ones, cut into patches."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from ocria.calibration.pages import draw_pages
from ocria.errors import InputError
from ocria.models.base import ImagePatches
from ocria.options import DEFAULT_MAX_PIXELS
from ocria.rasterize import PageFailed, RenderTarget, open_document
from ocria.vision import PreprocessorConfig, measure_ink, page_patches


def calibration_patches(
    files: Sequence[Path], preprocessor: PreprocessorConfig, *, num_self_made: int
) -> list[ImagePatches]:
    """Patches of every page that has ink, of `files` or of self-made pages if there are none.

    Raises:
        InputError: a file is no document, or fewer than two pages are left.
    """
    pictures = (
        _pages_of(files, preprocessor)
        if files
        else (page.rgb for page in draw_pages(num_self_made))
    )
    patches = [patches_of(rgb, preprocessor) for rgb in pictures if not measure_ink(rgb).is_blank]
    if len(patches) < 2:
        raise InputError(
            f"calibration needs at least two pages with text, found {len(patches)}",
            hint="name more files, or none to use self-made pages",
        )
    return patches


def _pages_of(files: Sequence[Path], config: PreprocessorConfig) -> Iterator[NDArray[np.uint8]]:
    target = RenderTarget(fit=config.size_rule, dpi=None)
    for path in files:
        with open_document(
            path, name=path.name, password=None, max_pixels=DEFAULT_MAX_PIXELS
        ) as document:
            numbers = range(1, document.source.num_pages + 1)
            for picture in document.pages(numbers, target):
                if not isinstance(picture, PageFailed):
                    yield picture.rgb


def patches_of(rgb: NDArray[np.uint8], preprocessor: PreprocessorConfig) -> ImagePatches:
    """A picture [H, W, 3] as the vision tower wants it."""
    cut = page_patches(rgb, preprocessor)
    return ImagePatches(torch.from_numpy(cut.values), cut.grid_h, cut.grid_w)
