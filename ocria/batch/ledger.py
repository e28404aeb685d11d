"""Which results are there, and how a new one comes about: files, manifest line, end of journal."""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocria.batch.discovery import Found
from ocria.batch.identity import file_digest, identity
from ocria.batch.journal import Journal
from ocria.batch.manifest import DocumentStatus, Entry, Manifest, Troubled
from ocria.batch.options import BatchOptions
from ocria.batch.outputs import output_paths, write_outputs
from ocria.batch.thumbnail import from_png
from ocria.document import Generator, Page, Source

STATE_FOLDER = ".ocria"
TROUBLE = frozenset({"failed", "truncated"})


class Ledger:
    """The results of an output folder.

    Args:
        options: see `BatchOptions`.
        generator: who reads.
        manifest: of the output folder.
    """

    def __init__(self, options: BatchOptions, generator: Generator, manifest: Manifest) -> None:
        self.identity = identity(generator, options.output_settings)
        self._options = options
        self._generator = generator
        self._manifest = manifest

    def journal_path(self, found: Found) -> Path:
        """Where the pages of an unfinished document are kept."""
        name = sha256(found.output.encode("utf-8", "surrogateescape")).hexdigest()[:32]
        return self._options.out_dir / STATE_FOLDER / "journal" / f"{name}.jsonl"

    def is_finished(self, found: Found) -> bool:
        """Whether its files are there, of this content, with these settings and this model."""
        if not self.is_listed(found) or not all(
            path.exists() for path in output_paths(self._options, found.output)
        ):
            return False
        return self._manifest.is_settled(found.output, file_digest(found.path), self.identity)

    def is_listed(self, found: Found) -> bool:
        """Whether the manifest has it as finished, of whatever content: quicker to ask."""
        known = self._manifest.known(found.output)
        if known is None or not known.has_result:
            return False
        is_retried = known.status != "ok" and self._options.retry_failed
        return not (is_retried and self.journal_path(found).exists())

    def troubled(self, found: Found) -> Troubled | None:
        """The pages of its result that are not whole; None if all of them are."""
        known = self._manifest.known(found.output)
        return None if known is None or known.status == "ok" else known.troubled

    def refusal(self, found: Found) -> str | None:
        """Why it is not read, if its files would replace those of others."""
        if self._options.overwrite:
            return None
        known = self._manifest.known(found.output)
        is_there = any(path.exists() for path in output_paths(self._options, found.output))
        if known is None:
            is_foreign = is_there and not self.journal_path(found).exists()
            return "its output exists already; replace it with --overwrite" if is_foreign else None
        is_elsewhere = os.path.realpath(known.input) != os.path.realpath(found.path)
        is_kept = is_elsewhere and (known.has_result or is_there)
        if is_kept and known.sha256 != file_digest(found.path):
            advice = "name another OUT_DIR, or replace it with --overwrite"
            return f"its output is that of {known.input}; {advice}"
        return None

    def finish(
        self,
        found: Found,
        source: Source,
        journal: Journal,
        wanted: Sequence[int],
        seconds: float,
    ) -> Entry:
        """Files first, then the manifest's line, then the journal's end.

        Raises:
            OSError: something cannot be written.
        """
        statuses: Counter[str] = Counter()
        troubled: dict[str, list[int]] = {}
        num_tokens = 0

        def counted() -> Iterator[tuple[Page, NDArray[np.uint8] | None]]:
            nonlocal num_tokens
            for page in journal.pages(wanted):
                statuses[page.status] += 1
                if page.status in TROUBLE:
                    troubled.setdefault(page.status, []).append(page.number)
                num_tokens += page.num_tokens
                image = journal.image(page.number)
                yield page, None if image is None else from_png(image)

        write_outputs(self._options, found.output, source, self._generator, counted())
        status: DocumentStatus = "partial" if troubled else "ok"
        status = "failed" if statuses["failed"] == len(wanted) else status
        entry = self._entry(
            found,
            source.sha256,
            status,
            seconds,
            num_pages=len(wanted),
            pages=dict(statuses),
            troubled=troubled,
            num_tokens=num_tokens,
        )
        self._manifest.add(entry)
        if statuses["failed"]:
            # `--retry-failed` needs the rest.
            journal.sync()
            journal.close()
        else:
            journal.delete()
        return entry

    def fail(self, found: Found, code: str, message: str, seconds: float) -> Entry:
        """A document that has no result."""
        error = {"code": code, "message": message}
        digest = file_digest(found.path)
        entry = self._entry(found, digest, "failed", seconds, error=error)
        self._manifest.add(entry)
        return entry

    def sync(self) -> None:
        """Brings the manifest to the disk."""
        self._manifest.sync()

    def _entry(
        self,
        found: Found,
        digest: str | None,
        status: DocumentStatus,
        seconds: float,
        **figures: Any,
    ) -> Entry:
        return Entry(
            input=str(found.path),
            output=found.output,
            sha256=digest,
            settings=self.identity.settings,
            model=self.identity.model,
            status=status,
            seconds=round(seconds, 3),
            **figures,
        )
