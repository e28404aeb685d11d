"""Build the frozen suites into a folder that `ocria eval` reads.

    python -m ocria.models.recipes.suites.build --corpus DIR --fonts DIR OUT [--check FILE]

OUT gets `index.jsonl`, a document and a truth file a page, and `suites.json`: digests of each
page's pixels at 200 dpi and of its truth. `--check` compares these with a committed `suites.json`
and fails with the names of the pages that are not the same, so that "frozen" can be believed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pypdfium2 as pdfium
import typst
from PIL import Image

from ocria.models.recipes.suites.empty import empty_sheets
from ocria.models.recipes.suites.prose import column_sheets, vietnamese_sheets
from ocria.models.recipes.suites.scripts import unknown_script_sheets
from ocria.models.recipes.suites.sheet import Sheet
from ocria.models.recipes.suites.sources import Sources
from ocria.models.recipes.suites.tables import table_sheets
from ocria.models.recipes.suites.verbatim import loop_sheets, string_sheets

SEED = 2025
RASTER_DPI = 200
# Of a digest, which nobody needs to forge: the first quarter of a sha256.
_DIGITS = 16
Maker = Callable[[Sources, random.Random, int], Iterator[Sheet]]
SUITES: dict[str, tuple[Maker, int]] = {
    "blank": (empty_sheets, 24),
    "columns": (column_sheets, 24),
    "vietnamese": (vietnamese_sheets, 20),
    "tables": (table_sheets, 24),
    "strings": (string_sheets, 20),
    "loops": (loop_sheets, 24),
    "scripts": (unknown_script_sheets, 24),
}


class Press:
    """Typst with its fonts loaded once."""

    def __init__(self, fonts: Path) -> None:
        self._compiler = typst.Compiler(font_paths=[str(fonts)], ignore_system_fonts=True)

    def print(self, sheet: Sheet) -> tuple[bytes, str]:
        """PDF of one page and its truth, after as many cuts as it takes.

        Raises ValueError where even the shortest version fills two pages.
        """
        versions = [(sheet.typst or "", sheet.truth or ""), *sheet.cuts]
        for source, truth in versions:
            pdf = self._compiler.compile(input=source.encode(), format="pdf")
            with pdfium.PdfDocument(pdf) as document:
                if len(document) == 1:
                    return pdf, truth
        raise ValueError(f"a page of {sheet.kind} does not fit")


def build(sources: Sources, out: Path) -> dict[str, dict[str, str]]:
    """Write every suite; returns the digests of each page by name."""
    press = Press(sources.fonts)
    digests: dict[str, dict[str, str]] = {}
    rows = []
    for suite, (maker, count) in SUITES.items():
        (out / suite).mkdir(parents=True, exist_ok=True)
        rng = random.Random(f"{SEED}-{suite}")
        for number, sheet in enumerate(maker(sources, rng, count)):
            name, truth = _write(press, sheet, out, f"{suite}/{number:02d}")
            rows.append(_row(sheet, suite, name, truth))
            digests[name] = _digests(out, name, truth)
    _write_lines(out / "index.jsonl", rows)
    return digests


def _write(press: Press, sheet: Sheet, out: Path, stem: str) -> tuple[str, str | None]:
    """Write document and truth; returns both names."""
    if sheet.picture is not None:
        sheet.picture.save(out / f"{stem}.png")
        return f"{stem}.png", None
    pdf, truth = press.print(sheet)
    (out / f"{stem}.pdf").write_bytes(pdf)
    truth_name = f"{stem}.{'html' if sheet.metric == 'teds' else 'txt'}"
    (out / truth_name).write_text(truth, encoding="utf-8")
    return f"{stem}.pdf", truth_name


def _row(sheet: Sheet, suite: str, name: str, truth: str | None) -> dict[str, str | None]:
    kinds = {"text": "text", "teds": "html table", "blank": "blank"}
    return {
        "file": name,
        "truth": truth,
        "truth_type": kinds[sheet.metric],
        "truth_origin": "exact",
        "metric": sheet.metric,
        "kind": sheet.kind,
        "lang": sheet.lang,
        "set": suite,
    }


def _digests(out: Path, name: str, truth: str | None) -> dict[str, str]:
    found = (
        {"truth": hashlib.sha256((out / truth).read_bytes()).hexdigest()[:_DIGITS]} if truth else {}
    )
    found["pixels"] = _pixel_digest(out / name)
    return found


def _pixel_digest(path: Path) -> str:
    if path.suffix == ".png":
        with Image.open(path) as picture:
            image = picture.convert("RGB")
    else:
        with pdfium.PdfDocument(path) as document:
            page = document[0].render(scale=RASTER_DPI / 72, rev_byteorder=True)
            image = page.to_pil().convert("RGB")
    return hashlib.sha256(repr(image.size).encode() + image.tobytes()).hexdigest()[:_DIGITS]


def _write_lines(path: Path, rows: list[dict[str, str | None]]) -> None:
    lines = (json.dumps(row, ensure_ascii=False) for row in rows)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def main() -> int:
    """Build, and compare where asked; 1 where a page differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--fonts", type=Path, required=True)
    parser.add_argument("--check", type=Path)
    arguments = parser.parse_args()
    digests = build(Sources(corpus=arguments.corpus, fonts=arguments.fonts), arguments.out)
    written = json.dumps(digests, indent=1, sort_keys=True) + "\n"
    (arguments.out / "suites.json").write_text(written, encoding="utf-8")
    print(f"{len(digests)} pages in {arguments.out}", file=sys.stderr)
    if arguments.check is None:
        return 0
    frozen = json.loads(arguments.check.read_text(encoding="utf-8"))
    changed = [n for n in sorted({*frozen, *digests}) if frozen.get(n) != digests.get(n)]
    for name in changed:
        print(f"not as frozen: {name}", file=sys.stderr)
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main())
