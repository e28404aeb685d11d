"""`ocria models`: the checkpoints that can be used here."""

import json
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from ocria.cli import arguments
from ocria.cli.table import format_bytes, format_table
from ocria.console import claim_stdout, reporting_write_errors
from ocria.errors import ExitCode, WeightsError
from ocria.options import DEFAULT_MODEL

if TYPE_CHECKING:
    from ocria.models.finding import CheckpointRow

DAMAGE_HINT = "install ocria again, or copy the checkpoint again from where it came from"


def models(
    context: typer.Context,
    verify: Annotated[
        bool, typer.Option("--verify", help="Read every file and check its digest.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object a line instead of a table.")
    ] = False,
    verbose: arguments.VerboseOption = 0,
    quiet: arguments.QuietOption = False,
) -> ExitCode:
    """List the checkpoints that can be used here."""
    arguments.settle_verbosity(context, verbose, quiet=quiet)
    with claim_stdout() as sink:
        return _list(sink, verify=verify, as_json=as_json)


def _list(sink: TextIO, *, verify: bool, as_json: bool) -> ExitCode:
    from ocria.models.finding import list_checkpoints
    from ocria.models.registry import list_cached

    shipped = list_checkpoints()
    if not shipped:
        raise WeightsError("no checkpoint is installed", hint=DAMAGE_HINT)
    rows = (*shipped, *list_cached())
    problems = {row.name: _problems(row) if verify else None for row in rows}
    with reporting_write_errors("standard output"):
        if as_json:
            sink.writelines(_json_line(row, problems[row.name]) for row in rows)
        else:
            sink.write(_table(rows, problems))
        sink.flush()
    damaged = [f"{row.name}: {line}" for row in rows for line in problems[row.name] or ()]
    if damaged:
        raise WeightsError(f"damaged checkpoint: {'; '.join(damaged)}", hint=DAMAGE_HINT)
    return ExitCode.OK


def _problems(row: "CheckpointRow") -> list[str]:
    from ocria.weights import read_manifest, verify
    from ocria.weights.hub_cache import verify_snapshot

    # What came from the hub has no manifest of ours; its cache keeps the digests.
    check = verify_snapshot if read_manifest(row.folder) is None else verify
    return [f"{problem.file}: {problem.message}" for problem in check(row.folder)]


def _table(rows: "tuple[CheckpointRow, ...]", problems: dict[str, list[str] | None]) -> str:
    lines = [("NAME", "PRECISION", "SIZE", "DRAFTER", "LICENCE", "DIGEST", "STATE")]
    for row in rows:
        size, digest = format_bytes(row.num_bytes), row.digest[:12]
        drafter = format_bytes(row.drafter_bytes) if row.drafter_bytes else "-"
        state = _state(row, problems[row.name])
        lines.append((row.name, row.precision, size, drafter, row.licence, digest, state))
    return format_table(lines)


def _state(row: "CheckpointRow", problems: list[str] | None) -> str:
    default = ["default"] if row.name == DEFAULT_MODEL else []
    checked = [] if problems is None else ["damaged" if problems else "verified"]
    return ", ".join(default + checked) or "-"


def _json_line(row: "CheckpointRow", problems: list[str] | None) -> str:
    content = {
        "name": row.name,
        "folder": str(row.folder),
        "precision": row.precision,
        "num_bytes": row.num_bytes,
        "drafter_bytes": row.drafter_bytes,
        "licence": row.licence,
        "digest": row.digest,
        "default": row.name == DEFAULT_MODEL,
        "problems": problems,
    }
    return json.dumps(content, ensure_ascii=False) + "\n"
