"""Calibrates a bf16 folder on generated pages whose text is known; deterministic.

    python -m ocria.models.recipes.checkpoint.calibrate SOURCE TARGET --corpus DIR --fonts DIR

As `ocria quantize`, but nothing needs to be read first: the truth of each page is forced through
the model. The result goes to `make.py --quantized`.
"""

import argparse
import sys
from pathlib import Path

from ocria.calibration import QuantizeOptions, QuantizeResult, quantize
from ocria.calibration.passages import Passage
from ocria.calibration.run import Parent
from ocria.models.recipes.checkpoint.samples import draw_samples, passage_of


def calibrate(
    source: Path, target: Path, *, corpus: Path, fonts: Path, rounds: int, budget_bytes: int | None
) -> QuantizeResult:
    """Makes `target`, a folder that is quantised in whole.

    Raises:
        OcriaError: as `ocria.calibration.quantize`.
    """
    options = QuantizeOptions(source=source, target=target, budget_bytes=budget_bytes, device="cpu")

    def passages(parent: Parent) -> list[Passage]:
        samples = draw_samples(corpus, fonts, rounds)
        return [passage_of(sample, parent.model) for sample in samples]

    def say(what: str, done: int, total: int) -> None:
        print(f"{what}: {done} of {total}", file=sys.stderr)

    return quantize(options, say, passages)


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
    result = calibrate(
        given.source,
        given.target,
        corpus=given.corpus,
        fonts=given.fonts,
        rounds=given.rounds,
        budget_bytes=given.budget,
    )
    print(result.divergence)


if __name__ == "__main__":
    main()
