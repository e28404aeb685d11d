"""How much memory `ocria quantize` takes: a random checkpoint of a public size, quantised.

    python benchmarks/checkpoints/memory.py 0.8B FOLDER [--shards 4] [--layers N]
        [--out memory.csv] [-- options of ocria quantize]

FOLDER/bf16 is written if it is not there yet (4B: 9 GB); FOLDER/child is made anew. Peak resident
memory is the system's count for the child process, pages of mapped shards included.
"""

import argparse
import csv
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from ocria.models.qwen3_5.config import Qwen35Config
from ocria.models.qwen3_5.model import Qwen35

SPECIALS = {
    "<pad>": 256, "<eos>": 257, "<|vision_start|>": 258, "<|vision_end|>": 259,
    "<|image_pad|>": 260,
}  # fmt: skip
# Hidden size, feed-forward, layers, query and key-value heads, value heads of the delta rule;
# depth, width, heads and feed-forward of the vision tower.
SIZES: dict[str, tuple[int, ...]] = {
    "0.8B": (1024, 3584, 24, 8, 2, 16, 12, 768, 12, 3072),
    "4B": (2560, 9216, 32, 16, 4, 32, 24, 1024, 16, 4096),
}


def config_of(size: str, num_layers: int | None) -> dict[str, Any]:
    """The config.json of a public size, with all of its layers or some."""
    hidden, inner, all_layers, heads, kv, values, depth, width, eyes, vision_inner = SIZES[size]
    return {
        "model_type": "qwen3_5",
        "tie_word_embeddings": True,
        "image_token_id": SPECIALS["<|image_pad|>"],
        "vision_start_token_id": SPECIALS["<|vision_start|>"],
        "vision_end_token_id": SPECIALS["<|vision_end|>"],
        "text_config": {
            "vocab_size": 248320,
            "hidden_size": hidden,
            "intermediate_size": inner,
            "num_hidden_layers": num_layers or all_layers,
            "num_attention_heads": heads,
            "num_key_value_heads": kv,
            "head_dim": 256,
            "linear_num_key_heads": 16,
            "linear_num_value_heads": values,
            "linear_key_head_dim": 128,
            "linear_value_head_dim": 128,
            "linear_conv_kernel_dim": 4,
            "full_attention_interval": 4,
            "max_position_embeddings": 8192,
            "eos_token_id": SPECIALS["<eos>"],
            "rope_parameters": {"partial_rotary_factor": 0.25, "mrope_section": [11, 11, 10]},
        },
        "vision_config": {
            "depth": depth,
            "hidden_size": width,
            "num_heads": eyes,
            "intermediate_size": vision_inner,
            "patch_size": 16,
            "out_hidden_size": hidden,
            "num_position_embeddings": 2304,
        },
    }


def write_checkpoint(folder: Path, config: dict[str, Any], num_shards: int) -> None:
    """A folder of random weights, about as large as trained ones, one shard in memory at a time."""
    folder.mkdir(parents=True)
    with torch.device("meta"):
        model = Qwen35(Qwen35Config.from_mapping(config))
    shapes = {name: value.shape for name, value in model.state_dict().items()}
    limit = sum(2 * shape.numel() for shape in shapes.values()) / num_shards
    groups: list[list[str]] = [[]]
    held = 0
    for name, shape in shapes.items():
        if held > limit:
            groups.append([])
            held = 0
        groups[-1].append(name)
        held += 2 * shape.numel()
    generator, placed = torch.Generator().manual_seed(0), {}
    for i, names in enumerate(groups, start=1):
        file = f"model-{i:05d}-of-{len(groups):05d}.safetensors"
        shard = {}
        for name in names:
            spread = shapes[name][-1] ** -0.5 if len(shapes[name]) > 1 else 0.1
            values = torch.randn(shapes[name], dtype=torch.bfloat16, generator=generator)
            shard[name] = values.mul_(spread)
        save_file(shard, folder / file)
        placed |= dict.fromkeys(names, file)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": placed}))
    for name, content in {
        "config.json": config,
        "preprocessor_config.json": {
            "patch_size": 16,
            "merge_size": 2,
            "size": {"shortest_edge": 65536, "longest_edge": 1048576},
        },
        "tokenizer_config.json": {"eos_token": "<eos>"},
    }.items():
        (folder / name).write_text(json.dumps(content))
    byte_tokenizer().save(str(folder / "tokenizer.json"))


def byte_tokenizer() -> Tokenizer:
    """One token a byte, and the special ones."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {piece: index for index, piece in enumerate(alphabet)} | SPECIALS
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(list(SPECIALS))
    return tokenizer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("size", choices=SIZES)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--shards", type=int, default=4)
    parser.add_argument("--layers", type=int, help="fewer layers than the size has")
    parser.add_argument("--out", type=Path, help="CSV to append to")
    own, _, theirs = (" ".join(sys.argv[1:]) + " ").partition(" -- ")
    given = parser.parse_args(own.split())
    source, target = given.folder / "bf16", given.folder / "child"
    if not (source / "tokenizer.json").is_file():
        write_checkpoint(source, config_of(given.size, given.layers), given.shards)
    largest = max(path.stat().st_size for path in source.glob("*.safetensors"))
    options = theirs.split()
    command = [sys.executable, "-m", "ocria", "quantize", str(source), str(target), "--overwrite"]
    started = time.monotonic()
    done = subprocess.run([*command, *options], stdout=subprocess.PIPE, check=True)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    summary = json.loads(done.stdout)
    row = {
        "size": given.size,
        "layers": given.layers or SIZES[given.size][2],
        "options": " ".join(options),
        "largest_shard_mb": largest // 10**6,
        "peak_mb": peak // 10**6,
        "ratio": round(peak / largest, 3),
        "source_mb": summary["source_bytes"] // 10**6,
        "target_mb": summary["target_bytes"] // 10**6,
        "seconds": round(time.monotonic() - started),
    }
    print(json.dumps(row))
    if given.out:
        is_new = not given.out.exists()
        with given.out.open("a", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(row), lineterminator="\n")
            if is_new:
                writer.writeheader()
            writer.writerow(row)


if __name__ == "__main__":
    main()
