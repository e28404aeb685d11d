"""A small random checkpoint that can be loaded and calibrated in seconds."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer as Backend
from tokenizers import decoders, models, pre_tokenizers

from ocria.models.qwen3_5.config import Qwen35Config
from ocria.models.qwen3_5.model import Qwen35
from ocria.weights.shards import SINGLE_FILE

SPECIALS = {0: "<pad>", 1: "<eos>", 2: "<vs>", 3: "<ve>", 260: "<|image_pad|>"}
CONFIG: dict[str, Any] = {
    "model_type": "qwen3_5",
    "tie_word_embeddings": True,
    "image_token_id": 260,
    "vision_start_token_id": 2,
    "vision_end_token_id": 3,
    "text_config": {
        "vocab_size": 272,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 16,
        "linear_num_key_heads": 2,
        "linear_num_value_heads": 2,
        "linear_key_head_dim": 16,
        "linear_value_head_dim": 16,
        "linear_conv_kernel_dim": 4,
        "layer_types": ["linear_attention", "full_attention"],
        "max_position_embeddings": 512,
        "eos_token_id": 1,
        "rope_parameters": {"partial_rotary_factor": 0.5, "mrope_section": [2, 1, 1]},
    },
    "vision_config": {
        "depth": 1,
        "hidden_size": 16,
        "num_heads": 2,
        "intermediate_size": 32,
        "patch_size": 4,
        "out_hidden_size": 32,
        "num_position_embeddings": 16,
    },
}
PREPROCESSOR = {
    "patch_size": 4,
    "merge_size": 2,
    "size": {"shortest_edge": 1024, "longest_edge": 4096},
}


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """A bf16 folder; its own copy for each test."""
    folder = tmp_path / "parent"
    folder.mkdir()
    generator = torch.Generator().manual_seed(3)
    shapes = {
        name: v.shape for name, v in Qwen35(Qwen35Config.from_mapping(CONFIG)).state_dict().items()
    }
    tensors = {
        name: (torch.randn(shape, generator=generator) * 0.2).bfloat16()
        for name, shape in shapes.items()
    }
    save_file(tensors, folder / SINGLE_FILE)
    for name, content in {
        "config.json": CONFIG,
        "preprocessor_config.json": PREPROCESSOR,
        "generation_config.json": {"eos_token_id": 1},
        "tokenizer_config.json": {"eos_token": "<eos>"},
    }.items():
        (folder / name).write_text(json.dumps(content))
    _byte_tokenizer().save(str(folder / "tokenizer.json"))
    return folder


def _byte_tokenizer() -> Backend:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {piece: index + 4 for index, piece in enumerate(alphabet)}
    vocabulary |= {text: index for index, text in SPECIALS.items()}
    backend = Backend(models.BPE(vocab=vocabulary, merges=[]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    document = json.loads(backend.to_str())
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    document["added_tokens"] = [
        {"id": index, "content": text, **flags, "special": True} for index, text in SPECIALS.items()
    ]
    return Backend.from_str(json.dumps(document))
