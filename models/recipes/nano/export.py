"""A training checkpoint to a Hugging Face folder.

python -m ocria.models.recipes.nano.export CHECKPOINT OUT --tokenizer FILE [--masters]
"""

from __future__ import annotations

import argparse
from pathlib import Path

from safetensors.torch import load_file
from tokenizers import Tokenizer

from .layout import save_folder
from .rounding import ships_rounded

_PREFIX = "model."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument(
        "--masters",
        action="store_true",
        help="keep what ships rounded in float32, for the rounding that training saw",
    )
    arguments = parser.parse_args()
    tensors = load_file(arguments.checkpoint)
    state = {
        name.removeprefix(_PREFIX): tensor
        for name, tensor in tensors.items()
        if name.startswith(_PREFIX)
    }
    wide = [name for name in state if arguments.masters and ships_rounded(name)]
    save_folder(arguments.out, state, Tokenizer.from_file(str(arguments.tokenizer)), wide)


if __name__ == "__main__":
    main()
