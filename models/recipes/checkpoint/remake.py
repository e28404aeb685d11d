"""A bf16 parent to the checkpoint that ships, calibrated, in one command; deterministic.

    python -m ocria.models.recipes.checkpoint.remake SOURCE TARGET --corpus DIR --fonts DIR
        [--rounds 1] [--training FILE]

calibrate.py and make.py one after the other. One round of pages takes three minutes of one core.
What it cost is told by compare.py, and on real pages by benchmarks/checkpoints/agreement.py.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from ocria.models.recipes.checkpoint import card
from ocria.models.recipes.checkpoint.calibrate import calibrate
from ocria.models.recipes.checkpoint.make import DECODER_LIMIT, make

# Headers of the shards, beside the tensors.
_HEADER_BYTES = 96 << 10


def main() -> None:
    """Command line of this recipe."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("source", type=Path, help="bf16 folder")
    parser.add_argument("target", type=Path, help="folder to make; must not be there")
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--fonts", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=1, help="pages of each kind")
    parser.add_argument("--name", default="ocria-nano")
    parser.add_argument("--training", type=Path, help="text file: what the weights were trained on")
    given = parser.parse_args()
    training = card.TRAINING
    if given.training:
        training = given.training.read_text(encoding="utf-8").strip()
    with tempfile.TemporaryDirectory() as room:
        quantized = Path(room) / "quantized"
        result = calibrate(
            given.source,
            quantized,
            corpus=given.corpus,
            fonts=given.fonts,
            rounds=given.rounds,
            budget_bytes=DECODER_LIMIT - _HEADER_BYTES,
        )
        manifest = make(
            given.source,
            given.target,
            name=given.name,
            training=training,
            grayscale=True,
            quantized=quantized,
        )
    print(result.divergence, file=sys.stderr)
    print(f"{manifest.num_bytes} bytes, {manifest.digest}, {manifest.precision}")


if __name__ == "__main__":
    main()
