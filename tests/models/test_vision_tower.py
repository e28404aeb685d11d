"""The vision tower against `transformers`, on random small towers and on the real one."""

import os
from pathlib import Path

import pytest
import torch
from torch import Tensor

from ocria.models.qwen3_5.config import Qwen35Config, VisionConfig
from ocria.models.qwen3_5.vision import _KEPT_GRIDS, VisionTower
from ocria.models.qwen3_5.vision_attention import page_attention
from ocria.models.qwen3_5.vision_geometry import patch_coordinates
from ocria.weights import CheckpointReader

transformers = pytest.importorskip("transformers")
from transformers.models.qwen3_5.configuration_qwen3_5 import (  # noqa: E402
    Qwen3_5VisionConfig,
)
from transformers.models.qwen3_5.modeling_qwen3_5 import Qwen3_5VisionModel  # noqa: E402

TINY = VisionConfig(
    depth=2,
    hidden_size=48,
    num_heads=3,
    intermediate_size=64,
    patch_size=4,
    temporal_patch_size=2,
    spatial_merge_size=2,
    in_channels=3,
    num_position_embeddings=25,
    out_hidden_size=40,
    rope_theta=10_000.0,
)
GRIDS = [(2, 2), (2, 6), (8, 4), (12, 14)]


def oracle(config: VisionConfig) -> Qwen3_5VisionModel:
    names = [name for name in config.__slots__ if name != "rope_theta"]
    torch.manual_seed(0)
    reference = Qwen3_5VisionModel(
        Qwen3_5VisionConfig(**{name: getattr(config, name) for name in names})
    ).eval()
    for parameter in reference.parameters():
        # Wide enough that positions, biases and norms all leave their mark on the result.
        torch.nn.init.normal_(parameter, std=0.2)
    return reference


def tower(config: VisionConfig, reference: Qwen3_5VisionModel, dtype: torch.dtype) -> VisionTower:
    ours = VisionTower(config)
    ours.load_state_dict(reference.state_dict(), strict=True)
    ours.to(dtype)
    ours.prepare()
    return ours


def reference_tokens(
    reference: Qwen3_5VisionModel, values_PX: Tensor, grid_h: int, grid_w: int
) -> Tensor:
    """The oracle wants the frame twice: [P, channels, time, y * x]."""
    channels = reference.config.in_channels
    frames = values_PX.unflatten(1, (channels, 1, -1)).expand(-1, -1, 2, -1).flatten(1)
    with torch.no_grad():
        return reference(frames, torch.tensor([[1, grid_h, grid_w]])).pooler_output


def relative_error(found: Tensor, expected: Tensor) -> float:
    return float((found.float() - expected.float()).norm() / expected.float().norm())


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize(("heads", "merge"), [(3, 2), (6, 1), (4, 2)])
def test_tokens_equal_the_oracles(grid: tuple[int, int], heads: int, merge: int) -> None:
    config = _with(num_heads=heads, spatial_merge_size=merge)
    reference = oracle(config)
    values_PX = torch.randn(grid[0] * grid[1], 48)
    with torch.inference_mode():
        found = tower(config, reference, torch.float32)(values_PX, *grid)
    assert relative_error(found, reference_tokens(reference, values_PX, *grid)) < 1e-5


def test_a_wrong_patch_order_is_seen() -> None:
    reference = oracle(TINY)
    values_PX = torch.randn(48, 48)
    with torch.inference_mode():
        found = tower(TINY, reference, torch.float32)(values_PX, 6, 8)
    assert relative_error(found, reference_tokens(reference, values_PX.flip(0), 6, 8)) > 0.1
    assert relative_error(found, reference_tokens(reference, values_PX, 8, 6)) > 0.01


def test_bfloat16_is_close_to_float32() -> None:
    reference = oracle(TINY)
    values_PX = torch.randn(12 * 14, 48)
    with torch.inference_mode():
        found = tower(TINY, reference, torch.bfloat16)(values_PX, 12, 14)
    assert found.dtype == torch.bfloat16
    assert relative_error(found, reference_tokens(reference, values_PX, 12, 14)) < 0.03


def test_one_page_after_others_has_the_same_bytes() -> None:
    reference = oracle(TINY)
    ours = tower(TINY, reference, torch.float32)
    values_PX = torch.randn(8 * 4, 48)
    with torch.inference_mode():
        first = ours(values_PX, 8, 4)
        for width in range(2, 4 + 2 * _KEPT_GRIDS, 2):
            ours(torch.randn(6 * width, 48), 6, width)
        assert (8, 4) not in ours._geometries
        assert torch.equal(ours(values_PX, 8, 4), first)
    assert len(ours._geometries) == _KEPT_GRIDS


def test_patches_come_by_merge_blocks() -> None:
    rows, columns = patch_coordinates(4, 4, 2)
    assert list(zip(rows.tolist(), columns.tolist(), strict=True))[:8] == [
        *[(0, 0), (0, 1), (1, 0), (1, 1)],
        *[(0, 2), (0, 3), (1, 2), (1, 3)],
    ]


def test_parameter_names_are_the_oracles() -> None:
    with torch.device("meta"):
        ours = {name: tuple(value.shape) for name, value in VisionTower(TINY).state_dict().items()}
    theirs = oracle(TINY).state_dict()
    assert ours == {name: tuple(value.shape) for name, value in theirs.items()}


def _with(**changes: int) -> VisionConfig:
    values = {name: getattr(TINY, name) for name in TINY.__slots__}
    return VisionConfig(**{**values, **changes})


@pytest.mark.slow
def test_the_real_tower_equals_the_oracle() -> None:
    shared = Path(os.environ.get("OCRIA_SHARED", Path(__file__).parents[3] / "shared"))
    folder = shared / "seed-model"
    if not folder.is_dir():
        pytest.skip(f"no {folder}: set OCRIA_SHARED to the material's folder")
    config = Qwen35Config.from_folder(folder)
    prefix = "model.visual."
    reader = CheckpointReader(folder)
    stored = {
        info.name.removeprefix(prefix): reader.read(info.name).float()
        for info in reader
        if info.name.startswith(prefix)
    }
    reference = oracle(config.vision)
    reference.load_state_dict(stored)
    values_PX = torch.rand(24 * 40, 768, generator=torch.Generator().manual_seed(1)) * 2 - 1
    expected = reference_tokens(reference, values_PX, 24, 40)
    with torch.inference_mode():
        wide = tower(config.vision, reference, torch.float32)(values_PX, 24, 40)
        narrow = tower(config.vision, reference, torch.bfloat16)(values_PX, 24, 40)
    assert relative_error(wide, expected) < 1e-4
    assert relative_error(narrow, expected) < 0.03


@pytest.mark.parametrize("patches", [4, 300])
@pytest.mark.parametrize("channels", [12, 64, 72])
def test_attention_in_bfloat16_is_attention(patches: int, channels: int) -> None:
    generator = torch.Generator().manual_seed(2)
    qkv = torch.randn(3, 2, patches, channels, generator=generator).bfloat16()
    qkv[:2] *= 3
    expected = torch.nn.functional.scaled_dot_product_attention(*qkv.double())
    found = page_attention(*qkv)
    assert found.dtype == torch.bfloat16 and found.shape == qkv.shape[1:]
    assert relative_error(found, expected) < 0.02


def test_attention_has_the_same_bytes_for_any_number_of_threads() -> None:
    qkv = torch.randn(3, 2, 777, 64, generator=torch.Generator().manual_seed(2)).bfloat16()
    before = torch.get_num_threads()
    try:
        found = []
        for count in (1, 2, 3):
            torch.set_num_threads(count)
            found.append(page_attention(*qkv))
    finally:
        torch.set_num_threads(before)
    assert torch.equal(found[0], found[1]) and torch.equal(found[0], found[2])
