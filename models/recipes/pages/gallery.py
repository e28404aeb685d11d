"""A gallery to look at before training: pages of each kind with boxes drawn, markup beside."""

from __future__ import annotations

import argparse
import random
import re
import time
from pathlib import Path

import cv2

from .kinds import KINDS
from .sampler import make_samples, open_studio

_SHAPES = {
    "slide": (1024, 1408), "table": (640, 832), "receipt": (1408, 640), "roll": (1408, 640),
    "region": (512, 640),
    "science_table": (512, 640), "statistics_table": (640, 896),
    "line": (128, 512), "formula": (320, 640), "strings": (512, 640),
}  # fmt: skip
_PAGE = (1408, 1024)
_BOX = re.compile(r"<\|([a-z_0-9]+)\|><\|(\d+)\|><\|(\d+)\|><\|(\d+)\|><\|(\d+)\|>")


def draw_boxes(pixels: object, markup: str) -> object:
    """The page with each block's box and type in colour."""
    picture = cv2.cvtColor(pixels, cv2.COLOR_GRAY2BGR)
    height, width = picture.shape[:2]
    for match in _BOX.finditer(markup):
        x0, y0, x1, y1 = (int(v) / 511 for v in match.groups()[1:])
        corner = (int(x0 * width), int(y0 * height))
        cv2.rectangle(picture, corner, (int(x1 * width), int(y1 * height)), (0, 0, 255), 1)
        cv2.putText(picture, match[1], corner, cv2.FONT_HERSHEY_SIMPLEX, 0.4, (255, 0, 0), 1)
    return picture


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--fonts", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--kinds", nargs="*", default=list(KINDS))
    parser.add_argument("--count", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--strength", type=float, default=1.0)
    arguments = parser.parse_args()
    studio = open_studio(arguments.corpus, arguments.fonts)
    arguments.out.mkdir(parents=True, exist_ok=True)
    for kind in arguments.kinds:
        height, width = _SHAPES.get(kind, _PAGE)
        rng, made, tries = random.Random(f"{kind}{arguments.seed}"), [], 0
        start = time.perf_counter()
        while len(made) < arguments.count and tries < arguments.count * 10 + 10:
            made += make_samples(
                studio, kind, rng, width_px=width, height_px=height, strength=arguments.strength
            )
            tries += 1
        spent = time.perf_counter() - start
        for i, sample in enumerate(made[: arguments.count]):
            cv2.imwrite(
                str(arguments.out / f"{kind}{i}.png"), draw_boxes(sample.pixels, sample.markup)
            )
            (arguments.out / f"{kind}{i}.txt").write_text(sample.markup, encoding="utf-8")
        print(f"{kind}: {len(made)} pages, {tries} documents, {spent:.2f} s")


if __name__ == "__main__":
    main()
