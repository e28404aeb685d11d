"""A training checkpoint to a Hugging Face folder."""

from __future__ import annotations

import argparse
from pathlib import Path

from safetensors.torch import load_file
from tokenizers import Tokenizer

from .layout import save_folder

_PREFIX = "model."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--tokenizer", type=Path, required=True)
    arguments = parser.parse_args()
    tensors = load_file(arguments.checkpoint)
    state = {
        name.removeprefix(_PREFIX): tensor
        for name, tensor in tensors.items()
        if name.startswith(_PREFIX)
    }
    save_folder(arguments.out, state, Tokenizer.from_file(str(arguments.tokenizer)))


if __name__ == "__main__":
    main()
