"""A document's files: written whole under a temporary name, then renamed."""

import os
from collections.abc import Iterable
from contextlib import ExitStack
from hashlib import sha256
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ocria.batch.options import BatchOptions
from ocria.document import Generator, Page, Source
from ocria.output import open_writer


def output_paths(options: BatchOptions, output: str) -> list[Path]:
    """Where the files of a result go, one a format."""
    return [options.out_dir / f"{output}.{format_}" for format_ in options.formats]


def write_outputs(
    options: BatchOptions,
    output: str,
    source: Source,
    generator: Generator,
    pages: Iterable[tuple[Page, NDArray[np.uint8] | None]],
) -> None:
    """Writes all formats in one pass over the pages, in order; none appears before all are whole.

    Args:
        options: see `BatchOptions`.
        output: where the files go, below the output folder, without suffix.
        source: what was read.
        generator: what read it.
        pages: pages with their pictures, where a format shows them.

    Raises:
        OSError: a file cannot be written.
    """
    targets = output_paths(options, output)
    targets[0].parent.mkdir(parents=True, exist_ok=True)
    parts = [_part_of(path) for path in targets]
    try:
        with ExitStack() as stack:
            sinks = [
                stack.enter_context(
                    part.open("w", encoding="utf-8", errors="backslashreplace", newline="\n")
                )
                for part in parts
            ]
            writers = [
                open_writer(
                    format_,
                    sink,
                    source=source,
                    generator=generator,
                    furniture=options.furniture,
                    page_markers=options.page_markers,
                )
                for format_, sink in zip(options.formats, sinks, strict=True)
            ]
            for page, image in pages:
                for writer in writers:
                    writer.write(page, image)
            for writer, sink in zip(writers, sinks, strict=True):
                writer.close()
                sink.flush()
                os.fsync(sink.fileno())
        for part, target in zip(parts, targets, strict=True):
            part.replace(target)
    finally:
        for part in parts:
            part.unlink(missing_ok=True)


def _part_of(target: Path) -> Path:
    """The temporary name: always the same, so that what a killed run has left is written over.

    Short, since the target's name may already be as long as names can be.
    """
    return target.with_name(f".ocria-{sha256(os.fsencode(target.name)).hexdigest()[:16]}.part")
