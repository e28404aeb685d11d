"""A tiny random checkpoint that reads anything, and two small documents."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image, ImageDraw
from safetensors.torch import save_file
from tokenizers import Tokenizer as Backend
from tokenizers import decoders, models, pre_tokenizers

from ocria.bench import BenchOptions, BenchReport, bench
from ocria.bench.bench_model import BenchModel
from ocria.bench.run import open_bench_model
from ocria.models.qwen3_5.config import Qwen35Config
from ocria.models.qwen3_5.model import Qwen35

SPECIALS = {0: "<pad>", 1: "<eos>", 2: "<vs>", 3: "<ve>", 260: "<|image_pad|>", 262: "<|mask|>"}
CONFIG: dict[str, Any] = {
    "model_type": "qwen3_5",
    "tie_word_embeddings": True,
    "image_token_id": 260,
    "video_token_id": 261,
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
        "max_position_embeddings": 2048,
        "eos_token_id": 1,
        "rope_parameters": {"partial_rotary_factor": 0.5, "mrope_section": [2, 1, 1]},
    },
    "vision_config": {
        "depth": 1,
        "hidden_size": 16,
        "num_heads": 2,
        "intermediate_size": 32,
        "patch_size": 16,
        "out_hidden_size": 32,
        "num_position_embeddings": 16,
    },
}
PREPROCESSOR: dict[str, Any] = {
    "image_mean": [0.5] * 3,
    "image_std": [0.5] * 3,
    "patch_size": 16,
    "merge_size": 2,
    "size": {"shortest_edge": 4096, "longest_edge": 65536},
}
MAX_TOKENS = 12


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tiny")
    generator = torch.Generator().manual_seed(3)
    model = Qwen35(Qwen35Config.from_mapping(CONFIG))
    tensors = {}
    for name, value in model.state_dict().items():
        scale = 0.3 if value.dim() < 2 else 2 * value.shape[-1] ** -0.5
        tensors[name] = (torch.randn(value.shape, generator=generator) * scale).bfloat16()
    # The stop token is never the best: every page runs to its limit.
    tensors["model.language_model.embed_tokens.weight"][1] = 0
    save_file(tensors, folder / "model.safetensors")
    for name, content in (
        ("config.json", CONFIG),
        ("generation_config.json", {"eos_token_id": 1}),
        ("tokenizer_config.json", {"eos_token": "<eos>"}),
        ("preprocessor_config.json", PREPROCESSOR),
    ):
        (folder / name).write_text(json.dumps(content))
    byte_tokenizer().save(str(folder / "tokenizer.json"))
    return folder


def byte_tokenizer() -> Backend:
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


@pytest.fixture(scope="session")
def documents(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ...]:
    """A file of two pages and a blank one, and a file of one page."""
    folder = tmp_path_factory.mktemp("documents")
    blank = Image.new("L", (192, 128), 255)
    frames = [drawn("one"), blank, drawn("two")]
    frames[0].save(folder / "a.tif", save_all=True, append_images=frames[1:])
    drawn("three").save(folder / "b.png")
    return folder / "a.tif", folder / "b.png"


def drawn(text: str) -> Image.Image:
    image = Image.new("L", (192, 128), 250)
    ImageDraw.Draw(image).text((20, 40), text * 4, fill=10)
    return image


@pytest.fixture(scope="session")
def options(checkpoint: Path, documents: tuple[Path, ...]) -> BenchOptions:
    return BenchOptions(
        inputs=documents,
        model=str(checkpoint),
        device="cpu",
        max_tokens=MAX_TOKENS,
        rounds=2,
        batch=2,
    )


@pytest.fixture
def model(options: BenchOptions) -> BenchModel:
    return open_bench_model(options, torch.device("cpu"))


@pytest.fixture(scope="session", autouse=True)
def small_ceilings() -> Iterator[None]:
    """Copies and products that take no time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ocria.bench.ceilings._COPY_BYTES", {"cpu": 1 << 20})
        patch.setattr("ocria.bench.ceilings._PRODUCT_SIDE", {"cpu": 64})
        yield


@pytest.fixture(scope="session")
def report(options: BenchOptions, small_ceilings: None) -> BenchReport:
    """A run of the whole ladder."""
    return bench(options)
