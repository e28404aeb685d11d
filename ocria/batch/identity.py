"""What a result belongs to: content, settings and model, as digests."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ocria.document import Generator

_DIGEST_CHARS = 16


class Identity(NamedTuple):
    """What decides a document's files, beside its content.

    Attributes:
        settings: digest of the settings.
        model: digest of the model.
    """

    settings: str
    model: str


def identity(generator: Generator, output_settings: Mapping[str, Any]) -> Identity:
    """The identity of a run's results."""
    everything = {
        "ocria": generator.ocria,
        "settings": dict(generator.settings),
        "output": dict(output_settings),
    }
    text = json.dumps(everything, sort_keys=True)
    return Identity(
        hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_CHARS], generator.model.digest
    )


def file_digest(path: Path) -> str | None:
    """SHA-256 of a file; None if it cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None
