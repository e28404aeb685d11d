"""Between the trainable model's parameters and a Hugging Face qwen3_5 folder."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer
from torch import Tensor

from ocria.models.qwen3_5.config import read_config
from ocria.quantization.layouts import read_quantization
from ocria.quantization.source import QuantizedSource
from ocria.weights import CheckpointReader

from .model import Geometry, Reader
from .vocabulary import (
    EOS,
    FIRST_MARKUP,
    IMAGE,
    LAST_USED,
    MASK,
    NUM_ROWS,
    PAD,
    VIDEO,
    VISION_END,
    VISION_START,
    initial_rows,
)

_VISION, _TEXT = "model.visual.", "model.language_model."
_CONV = "linear_attn.conv1d"


@dataclass(frozen=True, kw_only=True)
class Folder:
    """The files of a checkpoint folder that the recipe reads or copies."""

    path: Path

    def weights(self) -> dict[str, Tensor]:
        """All tensors under the layout's names in float32; NVFP4 and FP8 ones dequantised.

        Codes times scales are exact in float32, so training resumes from a shipped folder at the
        very weights that it ships.
        """
        quantization = read_quantization(self.path, read_config(self.path))
        source = QuantizedSource(CheckpointReader(self.path), quantization)
        return {name: source.read(name, torch.float32) for name in source.names()}

    def tokenizer(self) -> Tokenizer:
        return Tokenizer.from_file(str(self.path / "tokenizer.json"))


def to_layout(state: dict[str, Tensor], wide: Collection[str] = ()) -> dict[str, Tensor]:
    """Trainable parameters to bf16 tensors under the layout's names; those of `wide` in float32.

    Grey patches: the layout sees three channels and two frames that are all the same grey, so the
    grey weight is spread evenly over the six.
    """
    out: dict[str, Tensor] = {}
    for name, tensor in state.items():
        tensor = tensor.detach().float().cpu()
        dtype = torch.float32 if name in wide else torch.bfloat16
        if name.startswith("visual."):
            name = _VISION + name.removeprefix("visual.")
            if name.endswith("patch_embed.weight"):
                tensor = tensor.view(-1, 1, 1, 16, 16).expand(-1, 3, 2, 16, 16) / 6
            name = name.replace("patch_embed.", "patch_embed.proj.")
        else:
            name = _TEXT + name
            if name.endswith(_CONV):
                name, tensor = name + ".weight", tensor[:, None]
            elif name.endswith("linear_attn.norm"):
                name += ".weight"
        out[name] = tensor.to(dtype).contiguous()
    return out


def from_layout(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The inverse of `to_layout`, in float32."""
    out: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        tensor = tensor.float()
        name = name.removeprefix(_TEXT).replace(_VISION, "visual.")
        name = name.replace("patch_embed.proj.", "patch_embed.")
        if name.endswith("patch_embed.weight"):
            tensor = tensor.sum((1, 2)).flatten(1)
        elif name.endswith(_CONV + ".weight"):
            name, tensor = name.removesuffix(".weight"), tensor[:, 0]
        elif name.endswith("linear_attn.norm.weight"):
            name = name.removesuffix(".weight")
        out[name] = tensor.clone()
    return out


def load_reader(folder: Folder, tokenizer: Tokenizer | None = None) -> Reader:
    """The trainable model with a folder's weights.

    With `tokenizer` given, and different from the folder's, embedding rows are made anew from the
    folder's rows (vocabulary.initial_rows).
    """
    state = from_layout(folder.weights())
    rows = state["embed_tokens.weight"]
    if tokenizer is not None and rows.shape[0] != NUM_ROWS:
        state["embed_tokens.weight"] = initial_rows(tokenizer, folder.tokenizer(), rows)
    reader = Reader(Geometry())
    reader.load_state_dict(state)
    return reader


def mask_row(width: int, spread: float) -> Tensor:
    """The fixed random vector that a drafter reads at places not yet known."""
    return torch.randn(width, generator=torch.Generator().manual_seed(MASK)) * spread


def save_folder(
    out: Path, state: dict[str, Tensor], tokenizer: Tokenizer, wide: Collection[str] = ()
) -> None:
    """Writes a complete folder that `transformers` loads; `wide` names stay in float32."""
    out.mkdir(parents=True, exist_ok=True)
    state = dict(state)
    rows = state["embed_tokens.weight"].clone()
    rows[MASK] = mask_row(rows.shape[1], float(rows[:IMAGE].float().std()))
    rows[[IMAGE, VIDEO]] = 0
    rows[LAST_USED + 1 :] = 0
    state["embed_tokens.weight"] = rows
    save_file(to_layout(state, wide), out / "model.safetensors", metadata={"format": "pt"})
    tokenizer.save(str(out / "tokenizer.json"))
    for name, content in _configs(Geometry()).items():
        (out / name).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def _configs(g: Geometry) -> dict[str, object]:
    suppressed = [IMAGE, VIDEO, MASK, *range(LAST_USED + 1, NUM_ROWS)]
    return {
        "config.json": {
            "architectures": ["Qwen3_5ForConditionalGeneration"],
            "model_type": "qwen3_5",
            "tie_word_embeddings": True,
            "image_token_id": IMAGE,
            "video_token_id": VIDEO,
            "vision_start_token_id": VISION_START,
            "vision_end_token_id": VISION_END,
            "dtype": "bfloat16",
            "text_config": _text_config(g),
            "vision_config": _vision_config(g),
        },
        "generation_config.json": {
            "eos_token_id": EOS,
            "pad_token_id": PAD,
            "do_sample": False,
            "suppress_tokens": suppressed,
        },
        "preprocessor_config.json": {
            "image_mean": [0.5] * 3,
            "image_std": [0.5] * 3,
            "patch_size": g.patch,
            "merge_size": 2,
            "temporal_patch_size": 2,
            "size": {"shortest_edge": 65536, "longest_edge": 1441792},
        },
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "eos_token": "<eos>",
            "pad_token": "<pad>",
        },
        "markup.json": {"version": 1, "first_id": FIRST_MARKUP, "last_id": LAST_USED},
    }


def _text_config(g: Geometry) -> dict[str, object]:
    kinds = [
        "full_attention" if (i + 1) % g.attention_every == 0 else "linear_attention"
        for i in range(g.layers)
    ]
    return {
        "model_type": "qwen3_5_text",
        "vocab_size": NUM_ROWS,
        "hidden_size": g.width,
        "intermediate_size": g.inner,
        "num_hidden_layers": g.layers,
        "num_attention_heads": g.heads,
        "num_key_value_heads": g.kv_heads,
        "head_dim": g.head_width,
        "linear_num_key_heads": g.linear_heads,
        "linear_num_value_heads": g.linear_heads,
        "linear_key_head_dim": g.linear_width,
        "linear_value_head_dim": g.linear_width,
        "linear_conv_kernel_dim": g.conv,
        "layer_types": kinds,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-6,
        "max_position_embeddings": 8192,
        "tie_word_embeddings": True,
        "pad_token_id": PAD,
        "eos_token_id": EOS,
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": g.theta,
            "partial_rotary_factor": 1.0,
            "mrope_section": list(g.sections),
            "mrope_interleaved": True,
        },
    }


def _vision_config(g: Geometry) -> dict[str, object]:
    return {
        "model_type": "qwen3_5_vision",
        "depth": g.vision_depth,
        "hidden_size": g.vision_width,
        "num_heads": g.vision_heads,
        "intermediate_size": g.vision_inner,
        "patch_size": g.patch,
        "temporal_patch_size": 2,
        "spatial_merge_size": 2,
        "out_hidden_size": g.width,
        "num_position_embeddings": g.grid**2,
        "in_channels": 3,
        "hidden_act": "gelu_pytorch_tanh",
    }
