"""The message for a peer that is not installed."""

from __future__ import annotations

from ocria.errors import UsageError


def absent(engine: str, install: str) -> UsageError:
    """An error that names the package to install."""
    return UsageError(f"engine `{engine}` is not installed", hint=install)
