"""The weighted mean of two readers' weights, as a bf16 folder.

    python -m ocria.models.recipes.nano.average ONE TWO OUT --tokenizer FILE [--share 0.5]

A reader and one that was trained further from it lie in one valley of the loss; what lies between
them keeps more of both than either (Wortsman et al., 2022, "Robust fine-tuning of zero-shot
models"). ONE and TWO are folders of this layout, shipped ones too.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from tokenizers import Tokenizer
from torch import Tensor

from .layout import Folder, load_reader, save_folder


@torch.no_grad()
def averaged(one: Path, two: Path, share: float) -> dict[str, Tensor]:
    """(1 - share) * ONE + share * TWO under the trainable names, float32.

    Raises:
        ValueError: the two are not of one shape.
    """
    first, second = (dict(load_reader(Folder(path=p)).named_parameters()) for p in (one, two))
    if {name: p.shape for name, p in first.items()} != {n: p.shape for n, p in second.items()}:
        raise ValueError(f"{one} and {two} are not of one shape")
    return {
        name: (1 - share) * tensor.float() + share * second[name].float()
        for name, tensor in first.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("one", type=Path)
    parser.add_argument("two", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--share", type=float, default=0.5, help="of TWO")
    given = parser.parse_args()
    state = averaged(given.one, given.two, given.share)
    save_folder(given.out, state, Tokenizer.from_file(str(given.tokenizer)), [])


if __name__ == "__main__":
    main()
