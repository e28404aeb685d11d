"""Pixels to the patch rows that the vision encoder's first product reads.

Shape suffixes: P patches, D = channels * patch * patch values of a patch.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from ocria.vision.preprocessor import PreprocessorConfig
from ocria.vision.resize import resize


class Patches(NamedTuple):
    """A page as the encoder reads it.

    `values` is float32 [P, D]: channel, y, x within a patch; the patches of one merge block (2x2)
    follow each other, blocks run left to right, top to bottom. `grid_h` and `grid_w` count
    patches, so P = grid_h * grid_w.
    """

    values: NDArray[np.float32]
    grid_h: int
    grid_w: int


def page_patches(rgb: NDArray[np.uint8], config: PreprocessorConfig) -> Patches:
    """Resizes a page, uint8 [H, W, 3], by the model's size rule and cuts it.

    Raises:
        PageError: `pixel_limit` for an impossible shape.
    """
    return cut(sized(seen(rgb, config), config), config)


def seen(rgb: NDArray[np.uint8], config: PreprocessorConfig) -> NDArray[np.uint8]:
    """A page, uint8 [H, W, 3], as the model sees it: as it is, or its luma [H, W]."""
    # Grey before the resize: a checkpoint with grey eyes was trained on pages that were grey.
    return luma(rgb) if config.do_grayscale else rgb


def sized(pixels: NDArray[np.uint8], config: PreprocessorConfig) -> NDArray[np.uint8]:
    """What the model sees of a page in the size of its rule, uint8 [H, W, C].

    Raises:
        PageError: `pixel_limit` for an impossible shape.
    """
    height_px, width_px = config.size_rule(pixels.shape[0], pixels.shape[1])
    return resize(pixels.reshape(*pixels.shape[:2], -1), height_px, width_px)


def cut(pixels: NDArray[np.uint8], config: PreprocessorConfig) -> Patches:
    """Normalises and cuts a page that has the model's size.

    The reference processor repeats every patch along time, for videos; a still page needs it
    once, and the encoder's first product is folded accordingly.

    Args:
        pixels: uint8 [H, W, 3], or [H, W, 1] to be repeated as RGB; sides are multiples of patch
            size times merge size.
    """
    patch, merge = config.patch_size, config.merge_size
    height_px, width_px, channels = pixels.shape
    grid_h, grid_w = height_px // patch, width_px // patch
    if height_px % (patch * merge) or width_px % (patch * merge):
        raise ValueError(f"{width_px} x {height_px} is not a multiple of {patch * merge} pixels")
    blocks = pixels.reshape(grid_h // merge, merge, patch, grid_w // merge, merge, patch, channels)
    # Transposed as bytes, a quarter of the traffic of floats.
    ordered = np.ascontiguousarray(blocks.transpose(0, 3, 1, 4, 6, 2, 5))
    rows = ordered.reshape(grid_h * grid_w, channels, patch * patch)
    values = np.broadcast_to(rows, (len(rows), 3, patch * patch)).astype(np.float32, order="C")
    # In place: a product that casts as it goes is four times slower.
    values *= _scale(config)
    values += _offset(config)
    return Patches(values.reshape(grid_h * grid_w, -1), grid_h, grid_w)


def luma(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """ITU-R BT.601 luma of uint8 [H, W, 3] as uint8 [H, W], the same bytes as Pillow's `L`.

    What is luma already is returned as it is.
    """
    return pixels if pixels.ndim == 2 else np.asarray(Image.fromarray(pixels).convert("L"))


def _scale(config: PreprocessorConfig) -> NDArray[np.float32]:
    return _column([config.rescale_factor / std for std in config.image_std])


def _offset(config: PreprocessorConfig) -> NDArray[np.float32]:
    pairs = zip(config.image_mean, config.image_std, strict=True)
    return _column([-mean / std for mean, std in pairs])


def _column(values: list[float]) -> NDArray[np.float32]:
    return np.asarray(values, np.float32)[:, None]
