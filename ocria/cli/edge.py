"""The edge of the program: whatever happens inside becomes a printed form and an exit code."""

import re
import sys
from collections.abc import Sequence

import typer
from typer.main import get_command

from ocria.cli.app import VERSION_LINE
from ocria.console import guarded_streams, print_failure, print_notice, silence
from ocria.errors import DeviceError, ExitCode, OcriaError, UsageError

# Typer raises the usage error of the click it carries, and names only this subclass of it.
TyperUsageError: type[Exception] = typer.BadParameter.__mro__[1]
STDOUT = 1
# How the library that converts the values words what is wrong with them.
PYDANTIC_TALK = (
    ("Value error, ", ""),
    ("Input should be a valid integer.*", "it must be a whole number"),
    ("Input should be a valid boolean.*", "it must be 1 or 0, or true or false"),
    ("Input should be ", "it must be "),
)


def run(app: typer.Typer, arguments: Sequence[str]) -> int:
    """Runs one command line and returns the exit code; raises nothing."""
    with guarded_streams():
        try:
            return _invoke(app, list(arguments))
        except BrokenPipeError:
            silence(STDOUT)
            return ExitCode.PIPE_CLOSED
        except (KeyboardInterrupt, typer.Abort):
            print_notice("interrupted", "stopped before the end")
            return ExitCode.INTERRUPTED
        except Exception as error:
            failure = _translate(error)
            print_failure(failure)
            return failure.exit_code if isinstance(failure, OcriaError) else ExitCode.BUG


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
        message = _in_plain_words(error.format_message())  # type: ignore[attr-defined]
        return UsageError(message.rstrip("."), hint=f"`{command} --help` lists what can be given")
    if isinstance(error, MemoryError):
        translated = DeviceError("out of memory", hint="free memory, or lower --max-tokens")
        translated.__cause__ = error
        return translated
    return error


def _in_plain_words(message: str) -> str:
    for theirs, ours in PYDANTIC_TALK:
        message = re.sub(theirs, ours, message)
    return message
