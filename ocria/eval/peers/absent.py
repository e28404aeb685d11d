"""The message for a peer that is not installed, or whose weights are not there."""

from __future__ import annotations

from ocria.errors import WeightsError


def absent(engine: str, hint: str, *, what: str = "is not installed") -> WeightsError:
    """An error that says what to install. It ends the program as missing weights do, with 6."""
    return WeightsError(f"engine `{engine}` {what}", hint=hint)
