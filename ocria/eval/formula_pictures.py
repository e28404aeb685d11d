"""Formulas as pictures: drawn by KaTeX in a headless Chromium, compared sign by sign.

An extra: it takes a browser and an installed `katex` package. A picture is the list of signs of a
formula (letters, fraction lines, root signs) with their places, as olmOCR-bench compares them; two
formulas are the same picture where every sign is the same at the same place to 0.1 em.
"""

from __future__ import annotations

import html
import json
import logging
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from ocria.errors import UsageError
from ocria.eval.formulas import drawable_latex

Picture = tuple[tuple[str, int, int, int], ...]
"""Text or kind of each sign, with x, y and width in tenths of an em, sorted."""

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
STEPS_PER_EM = 10
BATCH = 500
MAX_CHARS = 4000
TIMEOUT_S = 120
_RESULT = re.compile(r'<pre id="pictures">(.*?)</pre>', re.DOTALL)
_log = logging.getLogger(__name__)


class FormulaPictures:
    """Draws each formula once, in batches, and remembers its picture.

    Attributes:
        version: of KaTeX.
        num_failed: formulas that were not drawn because the browser failed, not because of LaTeX.
    """

    def __init__(self, katex: Path, browser: str) -> None:
        self._katex = katex
        self._browser = browser
        self._known: dict[str, Picture | None] = {}
        self.num_failed = 0
        self.version = str(self._run(["x"])["version"])

    def draw(self, formulas: Iterable[str]) -> list[Picture | None]:
        """Pictures of LaTeX sources; None for what KaTeX does not understand."""
        sources = [drawable_latex(latex) for latex in formulas]
        new = [s for s in dict.fromkeys(sources) if s not in self._known and len(s) <= MAX_CHARS]
        for start in range(0, len(new), BATCH):
            self._draw_batch(new[start : start + BATCH])
        return [self._known.get(source) for source in sources]

    def holds(self, wanted: str, formulas: Sequence[str]) -> bool:
        """Whether one of the formulas is the same picture as `wanted`."""
        picture, *others = self.draw([wanted, *formulas])
        return picture is not None and picture in others

    def _draw_batch(self, sources: list[str]) -> None:
        try:
            pictures = self._run(sources)["pictures"]
        except (OSError, subprocess.SubprocessError, ValueError) as error:
            _log.warning("%d formulas were not drawn: %s", len(sources), error)
            self.num_failed += len(sources)
            pictures = [None] * len(sources)
        self._known.update(zip(sources, map(_picture, pictures), strict=True))

    def _run(self, sources: list[str]) -> dict[str, Any]:
        """One browser run. Raises OSError, SubprocessError or ValueError."""
        template = files("ocria.eval").joinpath("formula_page.html").read_text(encoding="utf-8")
        data = json.dumps(sources).replace("<", "\\u003c")
        page = template.replace("@KATEX@", self._katex.as_uri()).replace("@FORMULAS@", data)
        with tempfile.TemporaryDirectory(prefix="ocria-formulas-") as folder:
            path = Path(folder, "page.html")
            path.write_text(page, encoding="utf-8")
            command = [
                self._browser, "--headless", "--disable-gpu", "--no-first-run",
                "--disable-extensions", f"--user-data-dir={folder}/profile",
                "--virtual-time-budget=60000", "--dump-dom", path.as_uri(),
            ]  # fmt: skip
            if os.geteuid() == 0:
                command.insert(1, "--no-sandbox")  # Chromium has none for root.
            done = subprocess.run(command, capture_output=True, timeout=TIMEOUT_S, check=True)
        found = _RESULT.search(done.stdout.decode("utf-8", "replace"))
        if found is None or not found.group(1):
            raise ValueError("the browser gave no result")
        result: dict[str, Any] = json.loads(html.unescape(found.group(1)))
        return result


def open_formula_pictures(katex: Path) -> FormulaPictures:
    """Check the folder of a `katex` package and find a browser. Raises UsageError."""
    dist = (katex / "dist").resolve()
    if not all((dist / name).is_file() for name in ("katex.min.js", "katex.min.css")):
        raise UsageError(
            f"no KaTeX in {katex}",
            hint="`npm install katex` makes node_modules/katex; name that folder",
        )
    browser = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if browser is None:
        raise UsageError(
            "formulas cannot be drawn: no Chromium was found",
            hint=f"known are {', '.join(BROWSERS)}",
        )
    try:
        return FormulaPictures(dist, browser)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise UsageError(
            f"formulas cannot be drawn: {browser}: {error}", hint="leave out --katex"
        ) from error


def _picture(signs: list[tuple[str, float, float, float]] | None) -> Picture | None:
    if signs is None:
        return None
    return tuple(sorted((sign, _step(x), _step(y), _step(width)) for sign, x, y, width in signs))


def _step(place: float) -> int:
    return round(place * STEPS_PER_EM)
