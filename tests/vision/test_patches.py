"""Sizes, grids, patch order and values against the reference processor of `transformers`."""

import dataclasses

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from PIL import Image

from ocria.errors import PageError
from ocria.vision import PreprocessorConfig, SizeRule, page_patches
from ocria.vision.patches import cut
from ocria.vision.resize import resize

SMALL = PreprocessorConfig(min_pixels=64 * 64, max_pixels=192 * 192)


@pytest.fixture(scope="module")
def qwen2_vl():
    return pytest.importorskip(
        "transformers.models.qwen2_vl.image_processing_pil_qwen2_vl",
        reason="the reference processor is an optional test dependency",
    )


def reference(
    qwen2_vl, rgb: np.ndarray, config: PreprocessorConfig
) -> tuple[np.ndarray, list[int]]:
    """Patches [P, 768] and grid (time, height, width), the repetition along time removed."""
    processor = qwen2_vl.Qwen2VLImageProcessorPil(
        patch_size=config.patch_size,
        merge_size=config.merge_size,
        temporal_patch_size=2,
        size={"shortest_edge": config.min_pixels, "longest_edge": config.max_pixels},
        image_mean=list(config.image_mean),
        image_std=list(config.image_std),
    )
    output = processor(images=[Image.fromarray(rgb)], return_tensors="np")
    values = output["pixel_values"].reshape(-1, 3, 2, config.patch_size**2)
    assert np.array_equal(values[:, :, 0], values[:, :, 1])
    return values[:, :, 0].reshape(len(values), -1), output["image_grid_thw"][0].tolist()


@settings(max_examples=300, deadline=None)
@given(
    height=st.integers(1, 30_000),
    width=st.integers(1, 30_000),
    bounds=st.sampled_from([(65_536, 1_441_792), (3136, 12_845_056), (65_536, 16_777_216)]),
    factor=st.sampled_from([28, 32]),
)
@example(height=1, width=1, bounds=(65_536, 1_441_792), factor=32)
@example(height=1, width=200, bounds=(65_536, 1_441_792), factor=32)
@example(height=20_000, width=100, bounds=(65_536, 1_441_792), factor=32)
@example(height=48, width=80, bounds=(1, 1_441_792), factor=32)
def test_size_is_the_references(qwen2_vl, height, width, bounds, factor):
    rule = SizeRule(factor=factor, min_pixels=bounds[0], max_pixels=bounds[1])
    if max(height, width) / min(height, width) > 200:
        with pytest.raises(PageError) as caught:
            rule(height, width)
        assert caught.value.code == "pixel_limit"
        return
    assert rule(height, width) == qwen2_vl.smart_resize(height, width, factor, *bounds)


@pytest.mark.parametrize(
    ("height", "width"),
    [(1, 1), (64, 64), (96, 160), (33, 47), (301, 97), (50, 400), (5, 900), (257, 255), (700, 41)],
)
def test_patches_are_the_references(qwen2_vl, height, width):
    rgb = np.random.default_rng(height * width).integers(0, 256, (height, width, 3), np.uint8)
    config = dataclasses.replace(SMALL, image_mean=(0.48, 0.46, 0.41), image_std=(0.27, 0.26, 0.28))
    expected, grid = reference(qwen2_vl, rgb, config)
    patches = page_patches(rgb, config)
    assert [1, patches.grid_h, patches.grid_w] == grid
    assert patches.values.dtype == np.float32
    np.testing.assert_allclose(patches.values, expected, rtol=0, atol=2e-6)


def test_grey_is_what_the_reference_makes_of_a_grey_page(qwen2_vl):
    rgb = np.random.default_rng(7).integers(0, 256, (150, 210, 3), np.uint8)
    grey = np.asarray(Image.fromarray(rgb).convert("L").convert("RGB"))
    expected, _ = reference(qwen2_vl, grey, SMALL)
    patches = page_patches(rgb, dataclasses.replace(SMALL, do_grayscale=True))
    np.testing.assert_allclose(patches.values, expected, rtol=0, atol=2e-6)


def test_order_is_block_then_row_then_column():
    """Every pixel carries its own patch's place, so the order is read off the values."""
    patch_row = np.repeat(np.arange(4), 16)[:, None] * np.ones((1, 96), int)
    patch_column = np.repeat(np.arange(6), 16)[None, :] * np.ones((64, 1), int)
    pixels = np.stack([patch_row, patch_column, 0 * patch_row], axis=-1).astype(np.uint8)
    config = PreprocessorConfig(image_mean=(0, 0, 0), image_std=(1, 1, 1), rescale_factor=1.0)
    patches = cut(pixels, config)
    rows, columns = patches.values[:, 0].astype(int), patches.values[:, 256].astype(int)
    places = list(zip(rows.tolist(), columns.tolist(), strict=True))
    assert places[:8] == [(0, 0), (0, 1), (1, 0), (1, 1), (0, 2), (0, 3), (1, 2), (1, 3)]
    assert len(set(places)) == 24 == patches.grid_h * patches.grid_w


def test_a_page_of_the_right_size_is_not_resampled():
    rgb = np.random.default_rng(1).integers(0, 256, (96, 128, 3), np.uint8)
    assert resize(rgb, 96, 128) is rgb


def test_cut_refuses_other_sizes():
    with pytest.raises(ValueError, match="multiple of 32"):
        cut(np.zeros((48, 64, 3), np.uint8), PreprocessorConfig())
