"""Models of published sizes with random weights: their speed is real, their text is not.

Source of the sizes: Hugging Face configs of the qwen3_5 family (`transformers` 5.24).
"""

import math
import zlib
from collections.abc import Iterable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ocria.bench.options import ShapeName
from ocria.bench.page_set import BenchPage, PageSet
from ocria.bench.traffic import parameter_shapes
from ocria.errors import DeviceError
from ocria.models.base import ImagePatches, Prompt, Target
from ocria.models.qwen3_5.config import Qwen35Config
from ocria.models.qwen3_5.model import Qwen35
from ocria.models.qwen3_5.names import FLOAT32_NAMES
from ocria.quantization import fp8, nvfp4
from ocria.quantization.schemes import SchemeName
from ocria.weights import assign


class _Size(NamedTuple):
    """What differs between the published sizes."""

    hidden: int
    inner: int
    layers: int
    heads: int
    kv_heads: int
    value_heads: int
    tied: bool
    vision: tuple[int, int, int, int]


_SIZES: dict[ShapeName, _Size] = {
    # Vision: depth, width, heads, feed-forward.
    "0.8b": _Size(1024, 3584, 24, 8, 2, 16, True, (12, 768, 12, 3072)),
    "4b": _Size(2560, 9216, 32, 16, 4, 32, True, (24, 1024, 16, 4096)),
    "9b": _Size(4096, 12288, 32, 16, 4, 32, False, (27, 1152, 16, 4304)),
}
_VOCABULARY, _IMAGE_ID, _FIRST_SPECIAL = 248_320, 248_056, 248_044
_TEXT_IDS_AROUND = 16
NUM_PAGES = 4
GRID = 64
"""Patches along each side of a made-up page: 1,024 image tokens."""
QUICK_GRID = 16


def shape_config(name: ShapeName) -> Qwen35Config:
    """Config of a published size; not of `shipped`."""
    return Qwen35Config.from_mapping(_config(_SIZES[name]))


def _config(size: _Size) -> dict[str, Any]:
    depth, width, heads, inner = size.vision
    return {
        "model_type": "qwen3_5",
        "tie_word_embeddings": size.tied,
        "image_token_id": _IMAGE_ID,
        "video_token_id": 248_057,
        "vision_start_token_id": 248_053,
        "vision_end_token_id": 248_054,
        "text_config": {
            "vocab_size": _VOCABULARY,
            "hidden_size": size.hidden,
            "intermediate_size": size.inner,
            "num_hidden_layers": size.layers,
            "num_attention_heads": size.heads,
            "num_key_value_heads": size.kv_heads,
            "head_dim": 256,
            "linear_num_key_heads": 16,
            "linear_num_value_heads": size.value_heads,
            "linear_key_head_dim": 128,
            "linear_value_head_dim": 128,
            "linear_conv_kernel_dim": 4,
            "max_position_embeddings": 262_144,
        },
        "vision_config": {
            "depth": depth,
            "hidden_size": width,
            "num_heads": heads,
            "intermediate_size": inner,
            "patch_size": 16,
            "num_position_embeddings": 2304,
            "out_hidden_size": size.hidden,
        },
    }


def random_target(config: Qwen35Config, device: torch.device, dtype: torch.dtype) -> Target:
    """A model of this config, filled with noise on the device itself.

    On CUDA the noise is rounded to the mixed formats (`mixed_format`): fused kernels read the
    codes, the reference path what they stand for.

    Raises:
        DeviceError: it does not fit.
    """
    try:
        with torch.device("meta"):
            model = Qwen35(config)
        noise = Noise(config, device, mixed=device.type == "cuda")
        assign(model, noise, dtype=dtype, float32_names=FLOAT32_NAMES)
        model.prepare(dtype, device, stored=noise.read_packed)
    except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
        raise DeviceError(
            "a model of this shape does not fit in memory", hint="take a smaller --shape"
        ) from error
    return model


def made_up_pages(config: Qwen35Config, *, num_pages: int, grid: int) -> PageSet:
    """Noise for pictures between random ids: as much work as a page of `grid` x `grid` patches."""
    generator = torch.Generator().manual_seed(1)
    merged = grid // config.vision.spatial_merge_size
    width = config.vision.in_channels * config.vision.patch_size**2
    pages = []
    for number in range(1, num_pages + 1):
        ids = torch.randint(_FIRST_SPECIAL, (2 * _TEXT_IDS_AROUND,), generator=generator).tolist()
        before, after = ids[:_TEXT_IDS_AROUND], ids[_TEXT_IDS_AROUND:]
        image = (config.image_token_id,) * merged**2
        values = torch.randn(grid * grid, width, generator=generator)
        pages.append(
            BenchPage(
                document=number,
                name=f"made-up page {number}",
                prompt=Prompt((*before, *image, *after), len(before), merged, merged),
                image=ImagePatches(values, grid, grid),
            )
        )
    return PageSet(pages=tuple(pages))


def mixed_format(name: str, shape: tuple[int, ...], config: Qwen35Config) -> SchemeName | None:
    """Format of a tensor in a mixed checkpoint: NVFP4 for feed-forward and head, FP8 for mixers.

    None for what stays plain: vectors, the vision tower, gates of few rows, and an embedding that
    is not the head.
    """
    if len(shape) != 2 or shape[1] % nvfp4.BLOCK or ".visual." in name:
        return None
    if name.endswith("embed_tokens.weight"):
        return "nvfp4" if config.tie_word_embeddings else None
    if ".mlp." in name or name == "lm_head.weight":
        return "nvfp4"
    return None if name.endswith(("in_proj_a.weight", "in_proj_b.weight")) else "fp8"


def mixed_weight_bytes(config: Qwen35Config) -> int:
    """Bytes of the weights that a pass reads, in their mixed formats with scales."""
    total = 0.0
    for name, shape in parameter_shapes(config).items():
        is_table = name.endswith("embed_tokens.weight") and not config.tie_word_embeddings
        if ".visual." in name or is_table:
            continue
        count, kind = math.prod(shape), mixed_format(name, shape, config)
        if kind == "nvfp4":
            total += count * (0.5 + 1 / nvfp4.BLOCK) + 4
        elif kind == "fp8":
            total += count + 4 * shape[0]
        else:
            total += count * (4 if name.rpartition(".")[2] in FLOAT32_NAMES else 2)
    return round(total)


class Noise:
    """Random tensors by name, a `TensorSource`; of a size that keeps activations near one.

    A name's tensor is the same at every call: codes and what they stand for belong together.
    """

    def __init__(self, config: Qwen35Config, device: torch.device, *, mixed: bool) -> None:
        self._config = config
        self._shapes = parameter_shapes(config)
        self._device = device
        self._mixed = mixed

    def names(self) -> Iterable[str]:
        """Names of all tensors."""
        return self._shapes.keys()

    def shape(self, name: str) -> tuple[int, ...]:
        """Shape of a tensor."""
        return self._shapes[name]

    def read(self, name: str, dtype: torch.dtype) -> Tensor:
        """The tensor, or what its codes stand for."""
        packed = self.read_packed(name)
        if isinstance(packed, nvfp4.NVFP4Tensor):
            return nvfp4.dequantize(packed, dtype)
        if isinstance(packed, fp8.FP8Tensor):
            return fp8.dequantize(packed, dtype)
        return packed.to(dtype)

    def read_packed(self, name: str) -> Tensor | nvfp4.NVFP4Tensor | fp8.FP8Tensor:
        """The tensor as a checkpoint would hold it."""
        shape = self._shapes[name]
        generator = torch.Generator(self._device).manual_seed(zlib.crc32(name.encode()))
        # A matrix keeps the size of what it multiplies; vectors are deltas, biases and log decays.
        scale = math.prod(shape[1:]) ** -0.5 if len(shape) > 1 else 0.1
        noise = torch.empty(shape, device=self._device).normal_(0.0, scale, generator=generator)
        kind = mixed_format(name, shape, self._config) if self._mixed else None
        if kind is None:
            return noise if name.rpartition(".")[2] in FLOAT32_NAMES else noise.bfloat16()
        return nvfp4.quantize(noise) if kind == "nvfp4" else fp8.quantize(noise)
