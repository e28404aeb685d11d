"""How much is said: `-q`, `-v` and `-vv` as levels of the `ocria` logger."""

import logging

from ocria.console.streams import say
from ocria.console.wording import printable_lines
from ocria.errors import UsageError

NOTICE = 25
"""Between information and warnings: what a person is told without `-v`, such as a download."""
_LOGGER = logging.getLogger("ocria")


class _StderrHandler(logging.Handler):
    """Writes to what `sys.stderr` is now: live progress replaces it while it draws."""

    def emit(self, record: logging.LogRecord) -> None:
        say(printable_lines(self.format(record)))


class _Words(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        if record.levelno == NOTICE:
            return f"note: {record.getMessage()}"
        return super().format(record)


def set_verbosity(verbose: int, *, quiet: bool) -> None:
    """Sends logs and Python warnings to standard error, as many as asked for.

    Libraries' warnings are for us, not for the person who parses: they show with `-v` only.

    Raises:
        UsageError: both `-v` and `-q`.
    """
    if verbose and quiet:
        raise UsageError("`-v` and `-q` exclude each other")
    level = logging.ERROR if quiet else NOTICE
    if verbose:
        level = logging.INFO if verbose == 1 else logging.DEBUG
    handler = _StderrHandler()
    handler.setFormatter(_Words("%(levelname)s %(name)s: %(message)s"))
    _LOGGER.handlers[:] = [handler]
    _LOGGER.setLevel(level)
    _LOGGER.propagate = False
    logging.captureWarnings(True)
    warnings_logger = logging.getLogger("py.warnings")
    warnings_logger.handlers[:] = [handler] if verbose else [logging.NullHandler()]
    warnings_logger.propagate = False


def is_verbose() -> bool:
    """True once `-v` was given."""
    return _LOGGER.isEnabledFor(logging.INFO)
