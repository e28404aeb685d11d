"""How an error is said: what happened, why, and what to do about it."""

import os
import sys
import traceback

from ocria.console.logs import is_verbose
from ocria.console.streams import say
from ocria.console.wording import printable, printable_lines
from ocria.errors import OcriaError

BUG_HINT = (
    "this is a bug of OCRia; please report it with the traceback that `-v` prints, "
    "and the document if you may share it"
)
BOLD_RED, BOLD_CYAN, DIM = "1;31", "1;36", "2"


def print_failure(error: BaseException) -> None:
    """Prints `error:`, its causes and its hint on standard error; with `-v` a traceback above.

    An error that is not an `OcriaError` is a bug, and says so.
    """
    if is_verbose():
        say(printable_lines("".join(traceback.format_exception(error))))
    known = isinstance(error, OcriaError)
    message = str(error) if known else f"internal error: {_describe(error)}"
    lines = [f"{paint('error:', BOLD_RED)} {printable(message)}"]
    lines += [f"  {paint('caused by:', DIM)} {cause}" for cause in _causes(error)]
    hint = error.hint if isinstance(error, OcriaError) else BUG_HINT
    if hint:
        lines += ["", f"{paint('hint:', BOLD_CYAN)} {printable(hint)}"]
    say("\n".join(lines))


def print_notice(kind: str, message: str) -> None:
    """Prints one line such as `note: …` or `warning: …` on standard error."""
    say(f"{paint(f'{kind}:', BOLD_CYAN)} {printable(message)}")


def paint(text: str, style: str) -> str:
    """`text` in an ANSI style, when standard error is a terminal that wants colour."""
    wanted = (
        sys.stderr is not None
        and sys.stderr.isatty()
        and not os.environ.get("NO_COLOR")
        and os.environ.get("TERM") != "dumb"
    )
    return f"\x1b[{style}m{text}\x1b[0m" if wanted else text


def _causes(error: BaseException) -> list[str]:
    """What lies beneath `error`, without what repeats the words above it."""
    causes, said = [], str(error)
    while (cause := error.__cause__) is not None:
        if not str(cause) or str(cause) not in said:
            causes.append(_indented(cause))
        said, error = f"{said}\n{cause}", cause
    return causes


def _indented(cause: BaseException) -> str:
    # Ours are one line, and may hold a file name with a line end; other people's may be several.
    text = _describe(cause)
    lines = [text] if isinstance(cause, OcriaError) else text.splitlines()
    return "\n    ".join(map(printable, lines))


def _describe(error: BaseException) -> str:
    if isinstance(error, OcriaError):
        return str(error)
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
