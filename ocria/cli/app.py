"""The commands, and the options that stand before them."""

from typing import Annotated

import typer

from ocria.cli.batch import batch
from ocria.cli.bench import bench
from ocria.cli.doctor import doctor
from ocria.cli.eval import eval_
from ocria.cli.models import models
from ocria.cli.parse import parse
from ocria.cli.quantize import quantize
from ocria.console import say
from ocria.errors import ExitCode
from ocria.version import __version__

COMMANDS = (parse, batch, bench, eval_, quantize, models, doctor)

VERSION_LINE = f"ocria {__version__}"
EXIT_CODES = (
    "Exit codes: 0 done, 1 a bug of OCRia, 2 usage, 3 input, 4 output, 5 device or memory, "
    "6 weights, 7 finished but some pages failed or were truncated, 130 interrupted."
)


def build_app() -> typer.Typer:
    """The Typer application with every command that this installation has."""
    app = typer.Typer(
        # Rich markup would import rich for `--help`, a third of its time budget.
        rich_markup_mode=None,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(invoke_without_command=True, epilog=EXIT_CODES)(ocria)
    for command in COMMANDS:
        app.command(command.__name__.rstrip("_"))(command)
    return app


def ocria(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True)
    ] = False,
) -> ExitCode:
    """Turn PDFs and page images into Markdown and JSON."""
    if version:
        typer.echo(VERSION_LINE)
        raise typer.Exit
    if context.invoked_subcommand is None:
        say(context.get_help())
        raise typer.Exit(ExitCode.USAGE)
    return ExitCode.OK
