"""Runs an evaluation and delivers its result: tables, page, JSON line, exit code."""

import sys
from collections.abc import Callable
from pathlib import Path

from ocria.cli.destination import refuse_bad_target
from ocria.console import claim_stdout, reporting_write_errors
from ocria.errors import ExitCode
from ocria.eval import EvalOptions, evaluate
from ocria.eval.html_report import write_html
from ocria.eval.terminal import print_report


def run_eval(
    options: EvalOptions,
    *,
    report_path: Path | None,
    overwrite: bool,
    notify: Callable[[str], None] | None,
) -> ExitCode:
    """Evaluates; the tables go to standard error, the JSON line to standard output.

    Raises:
        InputError, UsageError, WeightsError, DeviceError: as `evaluate`.
        OutputError: the page exists, or cannot be written.
    """
    # Hours of reading must not end at a file that was there from the start.
    if report_path is not None:
        refuse_bad_target(report_path, overwrite=overwrite, example="report.html")
    with claim_stdout() as stdout:
        report = evaluate(options, notify=notify or (lambda line: None))
        print_report(report, sys.stderr)
        if report_path is not None:
            write_html(report, report_path)
        with reporting_write_errors("standard output"):
            stdout.write(report.as_json_line() + "\n")
    return report.exit_code
