"""Options that several commands share, with their variables and help texts.

Precedence everywhere: flag, then `OCRIA_*` variable, then default.
"""

import os
from pathlib import Path
from typing import Annotated

import typer

from ocria.console import ProgressMode, set_verbosity
from ocria.errors import InputError, UsageError
from ocria.options import DrafterName, Furniture, Precision

PASSWORD_VARIABLE = "OCRIA_PASSWORD"

ModelOption = Annotated[
    str,
    typer.Option(
        "--model",
        metavar="NAME|DIR",
        envvar="OCRIA_MODEL",
        help="Checkpoint to use; owner/name is fetched from the hub unless it is here.",
    ),
]
DeviceOption = Annotated[
    str,
    typer.Option(
        "--device",
        metavar="auto|cpu|cuda|cuda:N",
        envvar="OCRIA_DEVICE",
        help="Where the model runs.",
    ),
]
PrecisionOption = Annotated[
    Precision,
    typer.Option(
        "--precision",
        envvar="OCRIA_PRECISION",
        help="Of the weights; mixed rounds to NVFP4 and FP8 while loading, uncalibrated.",
    ),
]
DrafterOption = Annotated[
    DrafterName,
    typer.Option(
        "--drafter",
        envvar="OCRIA_DRAFTER",
        help="Source of speculative proposals; never changes the result.",
    ),
]
DrafterModelOption = Annotated[
    str | None,
    typer.Option(
        "--drafter-model",
        metavar="DIR",
        envvar="OCRIA_DRAFTER_MODEL",
        help="Folder of a DFlash drafter made for the model. Default: the one in its own folder.",
    ),
]
MaxTokensOption = Annotated[
    int,
    typer.Option(
        "--max-tokens",
        metavar="N",
        envvar="OCRIA_MAX_TOKENS",
        help="Limit for each page; reaching it gives status `truncated`.",
    ),
]
DpiOption = Annotated[
    str,
    typer.Option(
        "--dpi",
        metavar="auto|N",
        envvar="OCRIA_DPI",
        help="Rasterise at N dots per inch; auto goes straight to the size the model wants.",
    ),
]
PasswordFileOption = Annotated[
    Path | None,
    typer.Option(
        "--password-file",
        metavar="FILE",
        envvar="OCRIA_PASSWORD_FILE",
        help="First line is the password of an encrypted PDF (or set OCRIA_PASSWORD).",
    ),
]
FurnitureOption = Annotated[
    Furniture,
    typer.Option(
        "--furniture",
        envvar="OCRIA_FURNITURE",
        help="Running heads, feet and page numbers; JSON always keeps them.",
    ),
]
PageMarkersOption = Annotated[
    bool,
    typer.Option(
        "--page-markers",
        envvar="OCRIA_PAGE_MARKERS",
        help="Put `<!-- page 3 -->` before each page.",
    ),
]
StatsOption = Annotated[
    bool,
    typer.Option(
        "--stats",
        envvar="OCRIA_STATS",
        help="Decoding figures and times in the JSON, and as one JSON line on standard error.",
    ),
]
ProgressOption = Annotated[
    ProgressMode,
    typer.Option("--progress", envvar="OCRIA_PROGRESS", help="How progress is shown."),
]
OverwriteOption = Annotated[
    bool,
    typer.Option("--overwrite", envvar="OCRIA_OVERWRITE", help="Replace existing output."),
]
VerboseOption = Annotated[
    int,
    typer.Option(
        "-v",
        "--verbose",
        count=True,
        envvar="OCRIA_VERBOSE",
        help="Say more, with tracebacks; -vv says most.",
    ),
]
QuietOption = Annotated[
    bool, typer.Option("-q", "--quiet", envvar="OCRIA_QUIET", help="Say only what went wrong.")
]


def parse_dpi(text: str) -> int | None:
    """`auto` as None, otherwise the number.

    Raises:
        UsageError: neither.
    """
    if text == "auto":
        return None
    if not (text.isascii() and text.isdigit()):
        raise UsageError(f"--dpi must be `auto` or a whole number, not `{text}`")
    return int(text)


def came_from_variable(context: typer.Context, parameter: str) -> bool:
    """True when no flag set `parameter` and an `OCRIA_*` variable did."""
    source = context.get_parameter_source(parameter)
    return source is not None and source.name == "ENVIRONMENT"


def settle_verbosity(context: typer.Context, verbose: int, *, quiet: bool) -> bool:
    """Sets how much is said; returns whether it is only what went wrong.

    Of `-v` and `-q`, a flag silences the other one's variable.

    Raises:
        UsageError: both flags, or both variables.
    """
    if verbose and quiet:
        variables = [came_from_variable(context, name) for name in ("verbose", "quiet")]
        if all(variables):
            raise UsageError("OCRIA_VERBOSE and OCRIA_QUIET exclude each other", hint="unset one")
        verbose, quiet = (0 if variables[0] else verbose), quiet and not variables[1]
    set_verbosity(verbose, quiet=quiet)
    return quiet


def find_password(file: Path | None) -> str | None:
    """The first line of `file`, or else the variable `OCRIA_PASSWORD`; None without either.

    A file outranks the variable even when it has no password in it: that is an error.

    Raises:
        InputError: the file cannot be read or begins with no password, or the variable is not
            UTF-8.
    """
    if file is not None:
        return _first_line(file)
    password = os.environ.get(PASSWORD_VARIABLE) or None
    if password is not None and any("\udc80" <= c <= "\udcff" for c in password):
        raise InputError(
            f"{PASSWORD_VARIABLE} is not UTF-8", hint="set it again in a UTF-8 terminal"
        )
    return password


def _first_line(file: Path) -> str:
    try:
        # Some editors begin a file with a byte order mark, which belongs to no password.
        with file.open(encoding="utf-8-sig") as lines:
            password = lines.readline().rstrip("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"cannot read the password file: {file}",
            hint="it must be a readable text file with the password on its first line",
        ) from error
    if not password:
        raise InputError(
            f"the password file has no password on its first line: {file}",
            hint=f"write it there, or leave --password-file out and set {PASSWORD_VARIABLE}",
        )
    return password
