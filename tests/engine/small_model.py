"""A small random model of the real architecture, whose best tokens nearly tie."""

from typing import Any

import torch
from torch import Tensor

from ocria.models.qwen3_5.config import Qwen35Config
from ocria.models.qwen3_5.model import Qwen35
from ocria.weights import assign

VOCABULARY = 96
CONFIG: dict[str, Any] = {
    "model_type": "qwen3_5",
    "tie_word_embeddings": False,
    "image_token_id": 90,
    "video_token_id": 91,
    "vision_start_token_id": 92,
    "vision_end_token_id": 93,
    "text_config": {
        "vocab_size": VOCABULARY,
        "hidden_size": 64,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 32,
        "linear_num_key_heads": 2,
        "linear_num_value_heads": 2,
        "linear_key_head_dim": 16,
        "linear_value_head_dim": 16,
        "linear_conv_kernel_dim": 4,
        "layer_types": ["linear_attention", "full_attention"],
        "hidden_act": "silu",
        "max_position_embeddings": 4096,
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": 10000.0,
            "partial_rotary_factor": 0.5,
            "mrope_section": [3, 3, 2],
            "mrope_interleaved": True,
        },
    },
    "vision_config": {
        "depth": 1,
        "hidden_size": 32,
        "num_heads": 2,
        "intermediate_size": 32,
        "patch_size": 16,
        "temporal_patch_size": 2,
        "spatial_merge_size": 2,
        "out_hidden_size": 64,
        "num_position_embeddings": 16,
        "in_channels": 3,
        "hidden_act": "gelu_pytorch_tanh",
    },
}


class RandomWeights:
    """Random tensors of the shapes that a model asks for; output rows in pairs that nearly tie."""

    def __init__(self, model: Qwen35) -> None:
        generator = torch.Generator().manual_seed(11)
        self._tensors = {}
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            scale = 0.3 if parameter.dim() < 2 else parameter.shape[-1] ** -0.5
            self._tensors[name] = noise * scale
        head = self._tensors["lm_head.weight"]
        # One unit in the last place apart: which of the two wins hangs on the last bit of a sum.
        head[1::2] = torch.nextafter(head[0::2], torch.full_like(head[0::2], torch.inf))
        head *= 8

    def names(self) -> list[str]:
        return list(self._tensors)

    def shape(self, name: str) -> tuple[int, ...]:
        return tuple(self._tensors[name].shape)

    def read(self, name: str, dtype: torch.dtype) -> Tensor:
        return self._tensors[name].to(dtype).clone()


def build(dtype: torch.dtype = torch.float32) -> Qwen35:
    """The model with its random weights."""
    with torch.device("meta"):
        model = Qwen35(Qwen35Config.from_mapping(CONFIG))
    assign(model, RandomWeights(model), dtype=dtype)
    model.prepare(dtype, torch.device("cpu"))
    return model
