"""Tesseract 5 through its own program: page segmentation 3, LSTM engine, plain text out."""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence

from ocria.eval.engines import PageImage
from ocria.eval.normalize import escape_markdown
from ocria.eval.options import EvalOptions
from ocria.eval.peers.absent import absent
from ocria.eval.predictions import PagePrediction

_LANGUAGES = {
    "en": "eng", "de": "deu", "fr": "fra", "es": "spa", "it": "ita", "pt": "por", "nl": "nld",
    "pl": "pol", "vi": "vie", "ja": "jpn", "ru": "rus", "el": "ell", "la": "lat",
}  # fmt: skip
TIMEOUT_S = 300
MIN_STATED_DPI = 150
"""Below, a resolution is some program's default, and Tesseract estimates it better."""


class Tesseract:
    """One process a page. The language is the one that the data set states, where installed."""

    name = "tesseract"

    def __init__(self, program: str, threads: int) -> None:
        self._program = program
        self._threads = threads
        self.version = _output([program, "--version"]).split()[1]
        heading, *listed = _output([program, "--list-langs"]).splitlines()
        self._installed = frozenset(line.strip() for line in listed)
        self.data_folder = heading.partition('"')[2].partition('"')[0]

    def read(self, pages: Sequence[PageImage], *, lang: str) -> Iterator[PagePrediction]:
        """Read each page image in turn."""
        languages = self.languages(lang)
        for page in pages:
            start = time.perf_counter()
            text = self._recognise(page, languages)
            yield PagePrediction(
                number=page.number,
                markdown=_paragraphs(text),
                seconds=time.perf_counter() - start,
            )

    def languages(self, lang: str) -> str:
        """Language codes of Tesseract for what a data set states; English where none fits."""
        stated = [_LANGUAGES.get(code, "") for code in re.split(r"[^a-z]+", lang.lower())]
        chosen = [code for code in stated if code in self._installed]
        return "+".join(dict.fromkeys(chosen)) or "eng"

    def _recognise(self, page: PageImage, languages: str) -> str:
        buffer = io.BytesIO()
        page.image.save(buffer, "PNG", compress_level=1)
        command = [self._program, "stdin", "stdout", "-l", languages, "--psm", "3"]
        if page.dpi >= MIN_STATED_DPI:
            command += ["--dpi", str(round(page.dpi))]
        done = subprocess.run(
            command,
            input=buffer.getvalue(),
            capture_output=True,
            timeout=TIMEOUT_S,
            check=True,
            env={**os.environ, "OMP_THREAD_LIMIT": str(self._threads)},
        )
        return done.stdout.decode("utf-8", "replace")


def make(options: EvalOptions) -> Tesseract:
    """Find the program. Raises WeightsError where it is absent."""
    return Tesseract(find_program("tesseract"), options.num_threads)


def find_program(engine: str) -> str:
    """Path of the program. Raises WeightsError, in the name of `engine`, where it is absent."""
    program = shutil.which("tesseract")
    if program is None:
        raise absent(engine, "install Tesseract 5 with its language data (Debian: tesseract-ocr)")
    return program


def _paragraphs(text: str) -> str:
    return escape_markdown(text.replace("\f", "").strip())


def _output(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30)
    return done.stdout or done.stderr
