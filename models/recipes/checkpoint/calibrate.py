"""Calibrates a bf16 folder on generated pages whose text is known; deterministic.

    python -m ocria.models.recipes.checkpoint.calibrate SOURCE TARGET --corpus DIR --fonts DIR

As `ocria quantize`, but nothing needs to be read first: the truth of each page is forced through
the model. The result goes to `make.py --quantized`.
"""

import argparse
import random
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer

from ocria.calibration import QuantizeOptions, quantize
from ocria.calibration.passages import Passage
from ocria.calibration.run import Parent
from ocria.models.base import ImagePatches
from ocria.models.recipes.pages.kinds import KINDS
from ocria.models.recipes.pages.sampler import Sample, make_samples, open_studio
from ocria.vision import PreprocessorConfig, page_patches

# Height and width in pixels. Pages are small: many kinds say more than many image tokens.
_SIZES = {
    "slide": (576, 768), "table": (512, 640), "receipt": (768, 384), "region": (512, 640),
    "line": (128, 512), "formula": (320, 640), "strings": (512, 640),
}  # fmt: skip
_SIZE = (896, 640)
_TRIES = 40
_MAX_TOKENS = 500


def draw_samples(corpus: Path, fonts: Path, rounds: int) -> Iterator[Sample]:
    """One page of each kind in every round, those without text left out."""
    studio = open_studio(corpus, fonts)
    for number in range(rounds):
        for kind in KINDS:
            rng = random.Random(f"calibration/{number}/{kind}")
            height, width = _SIZES.get(kind, _SIZE)
            for _ in range(_TRIES):
                try:
                    made = make_samples(studio, kind, rng, width_px=width, height_px=height)
                except (ValueError, IndexError, KeyError):
                    continue
                if made and made[0].markup:
                    yield made[0]
                    break


def passage_of(sample: Sample, parent: Parent, tokenizer: Tokenizer) -> Passage:
    """A page and the tokens of its truth."""
    preprocessor = PreprocessorConfig.from_folder(parent.model.folder)
    merge = preprocessor.merge_size
    cut = page_patches(np.repeat(sample.pixels[..., None], 3, axis=2), preprocessor)
    image = ImagePatches(torch.from_numpy(cut.values), cut.grid_h, cut.grid_w)
    token_ids = tokenizer.encode(sample.markup, add_special_tokens=False).ids
    return Passage(
        parent.model.tokens.prompt.fill(cut.grid_h // merge, cut.grid_w // merge),
        parent.target.encode_image(image),
        tuple(token_ids[:_MAX_TOKENS]),
    )


def main() -> None:
    """Command line of this recipe."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("source", type=Path, help="bf16 folder")
    parser.add_argument("target", type=Path, help="folder to make")
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--fonts", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=3, help="pages of each kind")
    parser.add_argument("--budget", type=int, help="bytes of decoder and embedding together")
    given = parser.parse_args()
    options = QuantizeOptions(
        source=given.source, target=given.target, budget_bytes=given.budget, device="cpu"
    )

    def passages(parent: Parent) -> list[Passage]:
        tokenizer = Tokenizer.from_file(str(given.source / "tokenizer.json"))
        samples = draw_samples(given.corpus, given.fonts, given.rounds)
        return [passage_of(sample, parent, tokenizer) for sample in samples]

    def say(what: str, done: int, total: int) -> None:
        print(f"{what}: {done} of {total}", file=sys.stderr)

    print(quantize(options, say, passages).divergence)


if __name__ == "__main__":
    main()
