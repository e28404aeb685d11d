"""`ocria parse`: one document to Markdown, JSON or HTML."""

from pathlib import Path
from typing import Annotated

import typer

from ocria.cli import arguments
from ocria.errors import ExitCode, OutputError, UsageError
from ocria.options import DEFAULT_MAX_TOKENS, DEFAULT_MODEL, OutputFormat, ParseOptions

SUFFIXES: dict[str, OutputFormat] = {
    ".md": "md",
    ".markdown": "md",
    ".json": "json",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".html": "html",
    ".htm": "html",
}
STDOUT_NAMES = frozenset({"-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"})


def parse(
    context: typer.Context,
    document: Annotated[
        str, typer.Argument(metavar="INPUT", help="A PDF or image; - reads standard input.")
    ],
    output: Annotated[
        str | None,
        typer.Option(
            "-o",
            "--output",
            metavar="PATH",
            help="Write a file; its suffix sets the format. Default: standard output.",
        ),
    ] = None,
    format_: Annotated[
        OutputFormat | None,
        typer.Option("-f", "--format", envvar="OCRIA_FORMAT", help="Default: md."),
    ] = None,
    pages: Annotated[
        str | None,
        typer.Option(
            "--pages",
            metavar="LIST",
            envvar="OCRIA_PAGES",
            help="Such as 1,3-5,8-,-1: from 1, with open ends, negative from the end.",
        ),
    ] = None,
    model: arguments.ModelOption = DEFAULT_MODEL,
    device: arguments.DeviceOption = "auto",
    precision: arguments.PrecisionOption = "auto",
    drafter: arguments.DrafterOption = "auto",
    drafter_model: arguments.DrafterModelOption = None,
    max_tokens: arguments.MaxTokensOption = DEFAULT_MAX_TOKENS,
    dpi: arguments.DpiOption = "auto",
    password_file: arguments.PasswordFileOption = None,
    page_markers: arguments.PageMarkersOption = False,
    furniture: arguments.FurnitureOption = "drop",
    images: Annotated[
        Path | None, typer.Option("--images", metavar="DIR", help="Reserved for later.")
    ] = None,
    stats: arguments.StatsOption = False,
    progress: arguments.ProgressOption = "auto",
    overwrite: arguments.OverwriteOption = False,
    verbose: arguments.VerboseOption = 0,
    quiet: arguments.QuietOption = False,
) -> ExitCode:
    """Turn one document into Markdown, JSON or HTML."""
    from ocria.cli.delivery import DeliveryOptions, deliver

    quiet = arguments.settle_verbosity(context, verbose, quiet=quiet)
    target = choose_target(output)
    _refuse_reserved(images)
    if not document:
        raise UsageError("INPUT is empty", hint="name a file, or `-` for standard input")
    options = ParseOptions(
        pages=pages,
        model=model,
        device=device,
        precision=precision,
        drafter=drafter,
        drafter_model=drafter_model,
        max_tokens=max_tokens,
        dpi=arguments.parse_dpi(dpi),
        password=arguments.find_password(password_file),
        stats=stats,
    )
    delivery = DeliveryOptions(
        format=choose_format(
            format_, target, is_variable=arguments.came_from_variable(context, "format_")
        ),
        output=target,
        overwrite=overwrite,
        furniture=furniture,
        page_markers=page_markers,
        progress=progress,
        quiet=quiet,
        stats=stats,
    )
    return deliver(document, options, delivery)


def choose_target(output: str | None) -> Path | None:
    """The file that `-o` names; None for standard output, under whichever name.

    Raises:
        UsageError: an empty name.
        OutputError: a folder.
    """
    if output is None or output in STDOUT_NAMES:
        return None
    if not output:
        raise UsageError("-o is empty", hint="name a file, or leave `-o` out for standard output")
    path = Path(output)
    if output.endswith("/") or _is_folder(path):
        raise OutputError(
            f"the output is a folder: {output}", hint=f"name a file in it: {path / 'result.md'}"
        )
    return path


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # an impossible name: said where the file is made
        return False


def choose_format(
    format_: OutputFormat | None, output: Path | None, *, is_variable: bool
) -> OutputFormat:
    """The flag, else what the output's suffix says, else the variable, else Markdown.

    Raises:
        UsageError: no flag, and a suffix that stands for no format.
    """
    if format_ is not None and not is_variable:
        return format_
    if output is None:
        return format_ or "md"
    by_suffix = SUFFIXES.get(output.suffix.lower())
    if by_suffix is None and format_ is None:
        raise UsageError(
            f"no format belongs to the suffix of {output.name}"
            if output.suffix
            else f"the output {output.name} has no suffix to tell the format",
            hint=f"say it with `-f`, or use one of {' '.join(SUFFIXES)}",
        )
    return by_suffix or format_ or "md"


def _refuse_reserved(images: Path | None) -> None:
    if images is not None:
        raise UsageError(
            "--images is reserved: this version cuts no figures out of pages",
            hint="`-f html` shows each page beside its text",
        )
