"""Runs a benchmark and delivers its result: tables, picture, JSON line, exit code."""

import sys
from collections.abc import Callable
from contextlib import ExitStack, nullcontext
from pathlib import Path

from ocria.bench import BenchOptions, bench
from ocria.bench.plot import draw
from ocria.bench.terminal import print_report
from ocria.cli.destination import open_file
from ocria.console import claim_stdout, print_notice, reporting_write_errors
from ocria.errors import ExitCode


def run_bench(
    options: BenchOptions,
    *,
    plot: Path | None,
    overwrite: bool,
    notify: Callable[[str], None] | None,
) -> ExitCode:
    """Measures; the tables go to standard error, the JSON line to standard output.

    Raises:
        InputError, UsageError, WeightsError, DeviceError: as `bench`.
        OutputError: the picture exists, or cannot be written.
    """
    with claim_stdout() as stdout, ExitStack() as stack:
        # Minutes of measuring must not end at a file that was there from the start.
        opening = nullcontext() if plot is None else open_file(plot, overwrite=overwrite)
        picture = stack.enter_context(opening)
        report = bench(options, notify or (lambda line: None))
        print_report(report, sys.stderr)
        if picture is not None:
            picture.sink.write(draw(report))
            picture.publish()
        for rung in report.differing:
            print_notice("warning", f"{rung.name} {rung.note}: no speed is given for it")
        with reporting_write_errors("standard output"):
            stdout.write(report.as_json_line() + "\n")
    return report.exit_code
