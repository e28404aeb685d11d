"""Which tensors of a decoder a mixed checkpoint keeps in which format.

As `ocria quantize` decides without asking the pages: products of the layers in NVFP4, embedding
and head in FP8. The gates of the recurrence stay plain: they are small, and a wrong decay spoils
a whole state. So does the vision tower.
"""

import re
from collections.abc import Iterable

from ocria.quantization import nvfp4

_LAYER = re.compile(r"model\.language_model\.layers\.\d+\.")
# Products that read the same input run as one and share a scale.
_TOGETHER = (
    ("linear_attn.in_proj_qkv", "linear_attn.in_proj_z"),
    ("linear_attn.out_proj",),
    ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    ("self_attn.o_proj",),
    ("mlp.gate_proj", "mlp.up_proj"),
    ("mlp.down_proj",),
)
TABLES = ("model.language_model.embed_tokens.weight", "lm_head.weight")


def nvfp4_groups(names: Iterable[str]) -> list[tuple[str, ...]]:
    """Names of the matrices that become NVFP4, those with a common scale together."""
    offered = set(names)
    layers = sorted({match[0] for name in offered if (match := _LAYER.match(name))})
    groups = [
        tuple(f"{layer}{leaf}.weight" for leaf in leaves)
        for layer in layers
        for leaves in _TOGETHER
    ]
    return [group for group in groups if offered.issuperset(group)]


def fits_blocks(shape: tuple[int, ...]) -> bool:
    """Whether a matrix can be cut into NVFP4's blocks."""
    return len(shape) == 2 and shape[1] % nvfp4.BLOCK == 0
