"""`ocria batch`: folders of documents to folders of results."""

from pathlib import Path
from typing import Annotated

import typer

from ocria.cli import arguments
from ocria.errors import ExitCode, UsageError
from ocria.options import DEFAULT_MAX_TOKENS, DEFAULT_MODEL, ParseOptions


def batch(
    context: typer.Context,
    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="INPUT", help="Folders, files or globs; - reads a list from standard input."
        ),
    ],
    out_dir: Annotated[
        str,
        typer.Argument(metavar="OUT_DIR", help="Results, manifest and report; a run goes on here."),
    ],
    formats: Annotated[
        str,
        typer.Option(
            "-f",
            "--format",
            metavar="LIST",
            envvar="OCRIA_FORMAT",
            help="Such as md,json: several from one pass.",
        ),
    ] = "md",
    recursive: Annotated[
        bool,
        typer.Option(
            "--recursive/--no-recursive", envvar="OCRIA_RECURSIVE", help="Look into folders."
        ),
    ] = True,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs",
            metavar="N",
            envvar="OCRIA_JOBS",
            help="Processes that rasterise. Default: one a core, 8 at most.",
        ),
    ] = None,
    gpus: Annotated[
        str | None,
        typer.Option(
            "--gpus", metavar="N|all", envvar="OCRIA_GPUS", help="GPUs of this machine to use."
        ),
    ] = None,
    lanes: Annotated[
        int | None,
        typer.Option(
            "--lanes",
            metavar="N",
            envvar="OCRIA_LANES",
            help="Processes with a model on each GPU. Default: up to 4, by cores and memory.",
        ),
    ] = None,
    ray: Annotated[
        str | None,
        typer.Option(
            "--ray",
            metavar="ADDRESS|local",
            envvar="OCRIA_RAY",
            help="Read on a Ray cluster; local starts one here.",
        ),
    ] = None,
    retry_failed: Annotated[
        bool,
        typer.Option(
            "--retry-failed", envvar="OCRIA_RETRY_FAILED", help="Read failed pages again."
        ),
    ] = False,
    fail_fast: Annotated[
        bool,
        typer.Option(
            "--fail-fast",
            envvar="OCRIA_FAIL_FAST",
            help="Stop at the first page that fails, or document that cannot be opened.",
        ),
    ] = False,
    timeout: Annotated[
        float | None,
        typer.Option(
            "--timeout",
            metavar="S",
            envvar="OCRIA_TIMEOUT",
            help="Seconds for a page, drawing and reading each; one that takes longer fails.",
        ),
    ] = None,
    pages: Annotated[
        str | None,
        typer.Option(
            "--pages", metavar="LIST", envvar="OCRIA_PAGES", help="Of every document; see parse."
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
    stats: arguments.StatsOption = False,
    progress: arguments.ProgressOption = "auto",
    overwrite: arguments.OverwriteOption = False,
    verbose: arguments.VerboseOption = 0,
    quiet: arguments.QuietOption = False,
) -> ExitCode:
    """Turn many documents into Markdown, JSON or HTML; the same command goes on after a stop."""
    from ocria.batch import BatchOptions, parse_formats
    from ocria.cli.batch_run import deliver_batch

    quiet = arguments.settle_verbosity(context, verbose, quiet=quiet)
    if not all(inputs):
        raise UsageError("INPUT is empty", hint="name folders, files or globs, or `-` for a list")
    if Path(out_dir) == Path():
        what = "the current folder" if out_dir else "empty"
        raise UsageError(f"OUT_DIR is {what}", hint="name a folder for the results")
    options = BatchOptions(
        inputs=tuple(inputs),
        out_dir=Path(out_dir),
        formats=parse_formats(formats),
        parse=ParseOptions(
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
        ),
        furniture=furniture,
        page_markers=page_markers,
        recursive=recursive,
        jobs=jobs,
        gpus=parse_gpus(gpus),
        lanes=lanes,
        ray=ray,
        retry_failed=retry_failed,
        fail_fast=fail_fast,
        timeout_s=timeout,
        overwrite=overwrite,
    )
    return deliver_batch(options, progress, quiet=quiet)


def parse_gpus(text: str | None) -> int | None:
    """`all` as 0, otherwise the number; None where nothing was said.

    Raises:
        UsageError: neither.
    """
    if text is None:
        return None
    if text == "all":
        return 0
    if not (text.isascii() and text.isdigit() and int(text)):
        raise UsageError(f"--gpus must be `all` or a whole number above 0, not `{text}`")
    return int(text)
