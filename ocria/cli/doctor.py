"""`ocria doctor`: what would be used on this machine, and why."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from ocria.cli import arguments
from ocria.cli.table import format_table
from ocria.console import claim_stdout, print_failure, reporting_write_errors
from ocria.errors import ExitCode
from ocria.options import DEFAULT_MODEL

if TYPE_CHECKING:
    from ocria.cli.machine import Finding


def doctor(
    context: typer.Context,
    model: arguments.ModelOption = DEFAULT_MODEL,
    device: arguments.DeviceOption = "auto",
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object instead of lines.")
    ] = False,
    verbose: arguments.VerboseOption = 0,
    quiet: arguments.QuietOption = False,
) -> ExitCode:
    """Say what would be used on this machine, and what is missing."""
    arguments.settle_verbosity(context, verbose, quiet=quiet)
    with claim_stdout() as sink:
        from ocria.cli.machine import examine

        findings = tuple(examine(device=device, model=model))
        with reporting_write_errors("standard output"):
            sink.write(_as_json(findings) if as_json else _as_table(findings))
    faults = [finding.fault for finding in findings if finding.fault is not None]
    for fault in faults:
        print_failure(fault)
    return faults[0].exit_code if faults else ExitCode.OK


def _as_table(findings: "Sequence[Finding]") -> str:
    return format_table([(finding.subject, finding.text) for finding in findings])


def _as_json(findings: "Sequence[Finding]") -> str:
    content = {finding.subject: finding.text for finding in findings}
    faults = [finding.subject for finding in findings if finding.fault is not None]
    return json.dumps(content | {"faults": faults}, ensure_ascii=False) + "\n"
