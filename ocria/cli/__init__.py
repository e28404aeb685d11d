"""The command line: options in, exit code out. The only room that ends the program.

A command is a module here with one function: it builds options, calls one function and returns an
`ExitCode`. To add one, write `ocria/cli/NAME.py` and add its line to `ocria/cli/app.py`. Modules
import torch and the like inside their function, so that `ocria --help` stays quick.
"""

import sys
from collections.abc import Sequence

from ocria.errors import ExitCode


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the program on `arguments` (default: those of the process); returns its exit code."""
    try:
        from ocria.cli.app import build_app
        from ocria.cli.edge import run

        return run(build_app(), sys.argv[1:] if arguments is None else arguments)
    except KeyboardInterrupt:
        # While the modules above load, nobody else answers it yet.
        return ExitCode.INTERRUPTED
