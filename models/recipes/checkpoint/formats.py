"""Which weight of a qwen3_5 model is stored in which format, and the quantising itself.

Round to nearest, each block with the scale that leaves the least error; no calibration, which
`ocria quantize` does.
"""

import re
from collections.abc import Iterable, Iterator

import torch
from torch import Tensor

from ocria.quantization import fp8, nvfp4
from ocria.quantization.compressed_tensors import QuantizationConfig, TargetGroup
from ocria.quantization.scale_search import roomy_global_scale, search_block_scales
from ocria.quantization.schemes import FP8, NVFP4
from ocria.weights import CheckpointReader

EMBEDDING = "model.language_model.embed_tokens"
VISION_PREFIX = "model.visual."
_LAYER = r"model\.language_model\.layers\.\d+\."
# Projections that read the same input are one product at run time and share a global scale.
_FUSED = (
    r"mlp\.(gate|up)_proj",
    r"self_attn\.[qkv]_proj",
    r"linear_attn\.in_proj_(qkv|z)",
)
_ALONE = (r"mlp\.down_proj", r"self_attn\.o_proj", r"linear_attn\.out_proj")

CONFIG = QuantizationConfig(
    groups=(
        TargetGroup(
            targets=tuple(f"re:{_LAYER}{pattern}$" for pattern in (*_FUSED, *_ALONE)),
            scheme=NVFP4,
        ),
        TargetGroup(targets=(EMBEDDING,), scheme=FP8),
    ),
    # Gates of the recurrence and the vision tower lose too much for the bytes they hold.
    ignore=("lm_head", r"re:model\.visual\..*", rf"re:{_LAYER}linear_attn\.in_proj_[ab]$"),
)


def decoder_tensors(reader: CheckpointReader) -> Iterator[tuple[str, Tensor]]:
    """The decoder's tensors as they are stored, without the embedding, sorted by name.

    Raises:
        ValueError: a weight is NaN or infinite, or its inputs are no multiple of 16.
    """
    names = sorted(
        info.name for info in reader if not info.name.startswith((VISION_PREFIX, EMBEDDING))
    )
    scales = _global_scales(reader, names)
    for name in names:
        module = name.removesuffix(".weight")
        weight = reader.read(name)
        if CONFIG.scheme_of(module) is None:
            yield name, weight
            continue
        shared = scales[_fusion(module)]
        packed = nvfp4.quantize_with(weight, search_block_scales(weight, shared), shared)
        yield f"{module}.weight_global_scale", packed.global_scale
        yield f"{module}.weight_packed", packed.packed_NH
        yield f"{module}.weight_scale", packed.scale_NB


def embedding_tensors(reader: CheckpointReader) -> Iterator[tuple[str, Tensor]]:
    """The embedding in FP8, a scale for each entry."""
    # transformers casts scales to the dtype of the run: bf16 ones survive that.
    packed = fp8.quantize(reader.read(f"{EMBEDDING}.weight"), scale_dtype=torch.bfloat16)
    yield f"{EMBEDDING}.weight", packed.codes_NK
    yield f"{EMBEDDING}.weight_scale", packed.scale_N1


def ready_tensors(quantized: CheckpointReader, *, embedding: bool) -> Iterator[tuple[str, Tensor]]:
    """Decoder or embedding of a folder that `ocria quantize` has made, sorted by name."""
    for name in sorted(info.name for info in quantized):
        if not name.startswith(VISION_PREFIX) and name.startswith(EMBEDDING) == embedding:
            yield name, quantized.read(name)


def vision_tensors(reader: CheckpointReader) -> Iterator[tuple[str, Tensor]]:
    """The vision tower as it is, sorted by name."""
    for name in sorted(info.name for info in reader if info.name.startswith(VISION_PREFIX)):
        yield name, reader.read(name)


def _global_scales(reader: CheckpointReader, names: Iterable[str]) -> dict[str, Tensor]:
    members: dict[str, list[Tensor]] = {}
    for name in names:
        module = name.removesuffix(".weight")
        if CONFIG.scheme_of(module) is not None:
            members.setdefault(_fusion(module), []).append(reader.read(name))
    return {group: roomy_global_scale(*weights) for group, weights in members.items()}


def _fusion(module: str) -> str:
    """Name of the run-time product that a projection is part of."""
    for pattern in _FUSED:
        if re.fullmatch(_LAYER + pattern, module):
            return f"{module.rpartition('.')[0]}:{pattern}"
    return module
