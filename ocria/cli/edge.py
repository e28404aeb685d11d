"""The edge of the program: whatever happens inside becomes a printed form and an exit code."""

import os
import sys
from collections.abc import Callable, Sequence

import typer
from typer.main import get_command

from ocria.cli.app import VERSION_LINE
from ocria.console import print_failure, print_notice
from ocria.errors import DeviceError, ExitCode, OcriaError, UsageError

# Typer raises the usage error of the click it carries, and names only this subclass of it.
TyperUsageError: type[Exception] = typer.BadParameter.__mro__[1]


def run(app: typer.Typer, arguments: Sequence[str]) -> int:
    """Runs one command line and returns the exit code; raises nothing."""
    try:
        return _invoke(app, list(arguments))
    except BrokenPipeError:
        _drop_standard_streams()
        return ExitCode.PIPE_CLOSED
    except (KeyboardInterrupt, typer.Abort):
        return _quietly(_say_interrupted, ExitCode.INTERRUPTED)
    except Exception as error:
        failure = _translate(error)
        code = failure.exit_code if isinstance(failure, OcriaError) else ExitCode.BUG
        return _quietly(lambda: print_failure(failure), code)


def _invoke(app: typer.Typer, arguments: list[str]) -> int:
    if arguments == ["--version"]:
        # Typer would load pydantic to convert the flag: 0.12 s of processor time more than this.
        typer.echo(VERSION_LINE)
        code = 0
    else:
        code = _invoke_command(app, arguments)
    if sys.stdout is not None:
        sys.stdout.flush()
    return code


def _invoke_command(app: typer.Typer, arguments: list[str]) -> int:
    # Typer's own main() turns a broken pipe into exit code 1 and swallows interrupts.
    command = get_command(app)
    try:
        with command.make_context("ocria", arguments) as context:
            return int(command.invoke(context))
    except typer.Exit as leaving:
        return int(leaving.exit_code)


def _translate(error: Exception) -> Exception:
    if isinstance(error, TyperUsageError):
        context = getattr(error, "ctx", None)
        command = context.command_path if context else "ocria"
        message = error.format_message()  # type: ignore[attr-defined]
        return UsageError(message.rstrip("."), hint=f"`{command} --help` lists what can be given")
    if isinstance(error, MemoryError):
        translated = DeviceError("out of memory", hint="free memory, or lower --max-tokens")
        translated.__cause__ = error
        return translated
    return error


def _say_interrupted() -> None:
    print_notice("interrupted", "stopped before the end")


def _quietly(say: Callable[[], None], code: ExitCode) -> ExitCode:
    try:
        say()
    except BrokenPipeError:
        _drop_standard_streams()
    return code


def _drop_standard_streams() -> None:
    # Python flushes both once more at exit and would complain about the closed pipe.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for descriptor in (1, 2):
        os.dup2(nowhere, descriptor)
    os.close(nowhere)
