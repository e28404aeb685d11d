"""The JSON objects of the document schema, keys in the contract's order."""

import math
from collections.abc import Mapping
from typing import Any

from ocria.document import SCHEMA, Block, Generator, Page, PageStats, Source
from ocria.output.clean import clean, clean_line, encodable

JsonObject = dict[str, Any]


def header_object(source: Source, generator: Generator) -> JsonObject:
    """`schema`, `source` and `generator`: what stands before the pages."""
    model = generator.model
    return {
        "schema": SCHEMA,
        "source": {
            # The file's own name, so that it can be found by it.
            "name": encodable(source.name),
            "sha256": source.sha256,
            "media_type": source.media_type,
            "num_pages": source.num_pages,
        },
        "generator": {
            "ocria": generator.ocria,
            "model": {
                "name": clean_line(model.name),
                "digest": model.digest,
                "precision": model.precision,
            },
            "settings": _plain(dict(sorted(generator.settings.items()))),
        },
    }


def page_object(page: Page) -> JsonObject:
    """One page. `seconds` and `decoding` are there only if the page was measured."""
    error = page.error
    found: JsonObject = {
        "number": page.number,
        "label": None,
        "width_pt": _rounded(page.width_pt),
        "height_pt": _rounded(page.height_pt),
        "rotation": page.rotation,
        "status": page.status,
        "error": error and {"code": error.code, "message": clean_line(error.message)},
        "blocks": [_block_object(block) for block in page.blocks],
        "confidence": _rounded(page.confidence),
        "num_tokens": page.num_tokens,
    }
    return found if page.stats is None else found | _stats_object(page.stats)


def _block_object(block: Block) -> JsonObject:
    bbox = None if block.bbox is None else [_rounded(value) for value in block.bbox]
    return {
        "id": block.id,
        "type": block.type,
        "level": block.level,
        "bbox": None if bbox is None or None in bbox else bbox,
        "text": clean(block.text),
        "markdown": clean(block.markdown),
        "html": None if block.html is None else clean(block.html),
        "latex": None if block.latex is None else clean(block.latex),
        "confidence": _rounded(block.confidence),
        "provenance": "vision",
        "links": None,
    }


def _stats_object(stats: PageStats) -> JsonObject:
    seconds, decoding = stats.seconds, stats.decoding
    return {
        "seconds": {
            "rasterize": _rounded(seconds.rasterize, 4),
            "vision": _rounded(seconds.vision, 4),
            "prefill": _rounded(seconds.prefill, 4),
            "decode": _rounded(seconds.decode, 4),
        },
        "decoding": decoding
        and {
            "drafter": decoding.drafter,
            "steps": decoding.steps,
            "tokens_per_step": _rounded(decoding.tokens_per_step, 3),
            "accepted_histogram": list(decoding.accepted_histogram),
        },
    }


def _rounded(value: float | None, digits: int = 2) -> float | None:
    # JSON knows no infinity and no NaN. Adding 0.0 turns -0.0 into 0.0.
    return None if value is None or not math.isfinite(value) else round(float(value), digits) + 0.0


def _plain(value: Any) -> Any:
    """A setting as JSON can hold it, strings cleaned."""
    if isinstance(value, str):
        return clean_line(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value
