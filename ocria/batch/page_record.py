"""A page as JSON and back, exactly: what a journal holds."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from ocria.document import Block, Decoding, Page, PageFailure, PageSeconds, PageStats

Record = dict[str, Any]


def to_record(page: Page) -> Record:
    """Nested dicts of plain values; floats keep every bit in JSON's shortest form."""
    return dataclasses.asdict(page)


def from_record(record: Mapping[str, Any]) -> Page:
    """The page of which `to_record` made the record."""
    error, stats = record["error"], record["stats"]
    return Page(
        **{
            **record,
            "error": error and PageFailure(**error),
            "blocks": tuple(map(_block, record["blocks"])),
            "stats": stats and _stats(stats),
        }
    )


def _block(record: Mapping[str, Any]) -> Block:
    bbox = record["bbox"]
    return Block(**{**record, "bbox": bbox and tuple(bbox)})


def _stats(record: Mapping[str, Any]) -> PageStats:
    decoding = record["decoding"]
    if decoding:
        histogram = tuple(decoding["accepted_histogram"])
        decoding = Decoding(**{**decoding, "accepted_histogram": histogram})
    return PageStats(seconds=PageSeconds(**record["seconds"]), decoding=decoding)
