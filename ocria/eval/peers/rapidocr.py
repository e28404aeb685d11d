"""RapidOCR (PP-OCR detection and recognition on ONNX Runtime): lines in its own order."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from ocria.eval.engines import PageImage
from ocria.eval.normalize import escape_markdown
from ocria.eval.options import EvalOptions
from ocria.eval.peers.absent import absent
from ocria.eval.predictions import PagePrediction, ReadBlock


class RapidOcr:
    """The package's default models, each recognised line a block with its score."""

    name = "rapidocr"

    def __init__(self, reader: Any) -> None:
        self._reader = reader
        self.version = version("rapidocr")

    def read(self, pages: Sequence[PageImage], *, lang: str) -> Iterator[PagePrediction]:
        """Read each page image in turn; the language is not asked for by the package."""
        for page in pages:
            start = time.perf_counter()
            # RapidOCR takes arrays as OpenCV does, in the order blue, green, red.
            result = self._reader(np.ascontiguousarray(np.asarray(page.image)[:, :, ::-1]))
            lines = [escape_markdown(text) for text in (result.txts or ())]
            scores = [float(score) for score in (result.scores or ())]
            yield PagePrediction(
                number=page.number,
                markdown="\n".join(lines),
                seconds=time.perf_counter() - start,
                blocks=tuple(
                    ReadBlock(text=text, confidence=score)
                    for text, score in zip(lines, scores, strict=True)
                ),
            )


def make(options: EvalOptions) -> RapidOcr:
    """Load the models that the package brings. Raises WeightsError where it is absent."""
    try:
        from rapidocr import RapidOCR

        version("rapidocr")
    except (ImportError, PackageNotFoundError) as error:
        raise absent("rapidocr", "pip install 'rapidocr==3.10.0' onnxruntime") from error
    threads = {
        "EngineConfig.onnxruntime.intra_op_num_threads": options.num_threads,
        "EngineConfig.onnxruntime.inter_op_num_threads": 1,
        "Global.log_level": "critical",
    }
    return RapidOcr(RapidOCR(params=threads))
