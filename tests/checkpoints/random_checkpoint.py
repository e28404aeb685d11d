"""Folders as publishers make them, filled at random: true names, shards, templates, odd settings.

Names, shards and config.json are written by `transformers`' own `save_pretrained`, so that they do
not depend on what our code believes.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from tokenizers import Tokenizer as Backend
from tokenizers import decoders, models, pre_tokenizers

from .shapes import shrunk

SPECIALS = (
    *("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>"),
    *("<|image_pad|>", "<|video_pad|>", "<think>", "</think>"),
)
TEMPLATE = (
    "{%- for m in messages -%}{{ '<|im_start|>' + m.role + '\\n' }}"
    "{%- for c in m.content -%}{%- if c.type == 'image' -%}"
    "<|vision_start|><|image_pad|><|vision_end|>"
    "{%- else -%}{{ c.text }}{%- endif -%}{%- endfor -%}{{ '<|im_end|>\\n' }}{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\\n' }}"
    "{%- if enable_thinking is defined and not enable_thinking -%}"
    "{{ '<think>\\n\\n</think>\\n\\n' }}{%- endif -%}{%- endif -%}"
)
VOCABULARY = 320


@dataclass(frozen=True)
class Recipe:
    """What is particular about a publisher's folder.

    Attributes:
        name: of the folder.
        size: whose heads it has.
        first_special: id of the first special token.
        shard_size: `save_pretrained`'s limit; None for one file.
        with_mtp: the checkpoint brings an MTP head.
        nested_processor: image settings lie in processor_config.json.
        stale_eos: an id of the larger vocabulary stays in the text config.
    """

    name: str
    size: str
    first_special: int = 300
    shard_size: str | None = None
    with_mtp: bool = False
    nested_processor: bool = False
    stale_eos: bool = False
    changes: dict[str, Any] = field(default_factory=dict)

    @property
    def ids(self) -> dict[str, int]:
        """Special ids by text."""
        return {text: self.first_special + place for place, text in enumerate(SPECIALS)}


RECIPES = (
    Recipe("chandra-ocr-2", "4B"),
    Recipe("surya-ocr-2", "0.8B", first_special=0, with_mtp=True, stale_eos=True),
    Recipe("NuExtract3", "4B", shard_size="4MB", nested_processor=True),
    Recipe("Infinity-Parser2-Flash", "9B", shard_size="8MB"),
    Recipe("Qwen3.5-27B", "27B", shard_size="8MB", with_mtp=True),
    Recipe("somebody-s-reader", "0.8B"),
)


def write_checkpoint(folder: Path, recipe: Recipe, *, hidden: int = 256) -> dict[str, Any]:
    """Writes the folder; its config."""
    transformers = __import__("transformers")
    folder.mkdir(parents=True)
    config = _config(recipe, hidden)
    torch.manual_seed(7)
    model = transformers.Qwen3_5ForConditionalGeneration(transformers.Qwen3_5Config(**config))
    generator = torch.Generator().manual_seed(11)
    for parameter in model.parameters():
        # Wide enough that every part matters; the library's own start is near zero.
        noise = torch.randn(parameter.shape, generator=generator)
        scale = 0.3 if parameter.dim() < 2 else parameter.shape[-1] ** -0.5
        parameter.data = noise.mul_(scale)
    model.to(torch.bfloat16).save_pretrained(
        folder, max_shard_size=recipe.shard_size or "50GB", save_original_format=True
    )
    if recipe.with_mtp:
        add_mtp(folder, config["text_config"], generator)
    _write_settings(folder, recipe)
    return config


def mtp_shapes(text: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    """The 15 tensors of an MTP head."""
    hidden, inner, width = text["hidden_size"], text["intermediate_size"], text["head_dim"]
    queries, kv = text["num_attention_heads"] * width, text["num_key_value_heads"] * width
    layer = "mtp.layers.0"
    return {
        "mtp.fc.weight": (hidden, 2 * hidden),
        "mtp.pre_fc_norm_embedding.weight": (hidden,),
        "mtp.pre_fc_norm_hidden.weight": (hidden,),
        "mtp.norm.weight": (hidden,),
        f"{layer}.input_layernorm.weight": (hidden,),
        f"{layer}.post_attention_layernorm.weight": (hidden,),
        f"{layer}.self_attn.q_proj.weight": (2 * queries, hidden),
        f"{layer}.self_attn.k_proj.weight": (kv, hidden),
        f"{layer}.self_attn.v_proj.weight": (kv, hidden),
        f"{layer}.self_attn.o_proj.weight": (hidden, queries),
        f"{layer}.self_attn.q_norm.weight": (width,),
        f"{layer}.self_attn.k_norm.weight": (width,),
        f"{layer}.mlp.gate_proj.weight": (inner, hidden),
        f"{layer}.mlp.up_proj.weight": (inner, hidden),
        f"{layer}.mlp.down_proj.weight": (hidden, inner),
    }


def add_mtp(folder: Path, text: dict[str, Any], generator: torch.Generator) -> None:
    """Puts an MTP head beside the model's tensors, in the last shard."""
    shard = sorted(folder.glob("*.safetensors"))[-1]
    with safe_open(shard, framework="pt") as file:
        tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
    for name, shape in mtp_shapes(text).items():
        scale = 0.1 if len(shape) < 2 else shape[-1] ** -0.5
        tensors[name] = (torch.randn(shape, generator=generator) * scale).bfloat16()
    save_file(tensors, shard, metadata={"format": "pt"})
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        content = json.loads(index.read_text())
        content["weight_map"].update(dict.fromkeys(mtp_shapes(text), shard.name))
        index.write_text(json.dumps(content))


def _config(recipe: Recipe, hidden: int) -> dict[str, Any]:
    ids = recipe.ids
    named = {
        "image_token_id": ids["<|image_pad|>"],
        "video_token_id": ids["<|video_pad|>"],
        "vision_start_token_id": ids["<|vision_start|>"],
        "vision_end_token_id": ids["<|vision_end|>"],
    }
    config = shrunk(recipe.size, vocab_size=VOCABULARY, ids=named, hidden=hidden)
    stale = 248_044 if recipe.stale_eos else ids["<|endoftext|>"]
    config["text_config"]["eos_token_id"] = stale
    return {**config, **recipe.changes}


def _write_settings(folder: Path, recipe: Recipe) -> None:
    ids = recipe.ids
    write_tokenizer(folder / "tokenizer.json", ids)
    settings = {"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    stops = [ids["<|im_end|>"], ids["<|endoftext|>"]]
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": stops}))
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    pictures = {
        "patch_size": 16,
        "merge_size": 2,
        "temporal_patch_size": 2,
        "image_mean": [0.5, 0.5, 0.5],
        "image_std": [0.5, 0.5, 0.5],
        "size": {"shortest_edge": 65_536, "longest_edge": 131_072},
    }
    if recipe.nested_processor:
        video = {**pictures, "size": {"shortest_edge": 4096, "longest_edge": 25_165_824}}
        content = {"image_processor": pictures, "video_processor": video}
        (folder / "processor_config.json").write_text(json.dumps(content))
    else:
        (folder / "preprocessor_config.json").write_text(json.dumps(pictures))


def write_tokenizer(path: Path, ids: dict[str, int]) -> None:
    """Byte-level BPE without merges; the specials stand where `ids` says."""
    taken = set(ids.values())
    free = (index for index in range(VOCABULARY) if index not in taken)
    alphabet = dict(zip(sorted(pre_tokenizers.ByteLevel.alphabet()), free, strict=False))
    backend = Backend(models.BPE(vocab={**alphabet, **ids}, merges=[]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    document = json.loads(backend.to_str())
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    document["added_tokens"] = [
        {"id": index, "content": text, **flags, "special": True}
        for text, index in sorted(ids.items(), key=lambda pair: pair[1])
    ]
    path.write_text(json.dumps(document))
