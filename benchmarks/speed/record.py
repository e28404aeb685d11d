"""Appends the figures of an `ocria bench` run to the committed tables.

    ocria bench > run.json && python benchmarks/speed/record.py run.json

Only a run that can be trusted is taken: made on a quiet machine, from a commit, with every rung
writing what it had to. `decoding.csv` gets a row a rung, `stages.csv` a row a stage.
"""

from __future__ import annotations

import csv
import json
import os
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
MOST_LOAD = 0.3
"""Processes ready to run for each core, over the minute before the run."""


def main(run: Path, out: Path = HERE) -> None:
    """Checks the run and appends its rows."""
    report = json.loads(run.read_text(encoding="utf-8").splitlines()[-1])
    why = refusal(report, os.cpu_count() or 1)
    if why is not None:
        sys.exit(f"error: not recorded: {why}")
    append(out / "decoding.csv", decoding_rows(report))
    append(out / "stages.csv", stage_rows(report))


def refusal(report: dict[str, Any], num_cores: int) -> str | None:
    """Why a run is not to be recorded; None if it is good."""
    machine = report["machine"]
    if machine["commit"] is None or machine["commit"].endswith("-dirty"):
        return "it was not made from a commit; commit first, then run again"
    if machine["load"] is None or machine["load"] > MOST_LOAD * num_cores:
        return f"the machine was busy (load {machine['load']}); run again when it is quiet"
    differing = [rung["name"] for rung in report["rungs"] if rung["status"] == "differs"]
    if differing:
        return f"these rungs wrote something else: {', '.join(differing)}"
    return None


def decoding_rows(report: dict[str, Any]) -> list[dict[str, Any]]:
    """A row for each rung with a speed."""
    rows = []
    for rung in report["rungs"]:
        if rung["status"] != "ok":
            continue
        launches = rung["launches"] or {"launches": "", "synchronisations": ""}
        rows.append(
            {
                **_origin(report),
                "max_tokens": report["max_tokens"],
                "rounds": report["num_rounds"],
                "rung": rung["name"],
                **_spread("tokens_per_s", rung["tokens_per_s"]),
                **_spread("step_ms", rung["step_ms"]),
                "steps": rung["step_ms"]["n"],
                "tokens_per_step": rung["tokens_per_step"],
                "rows_per_step": rung["rows_per_step"],
                "weight_bytes": rung["step_bytes"]["weights"],
                "state_bytes": rung["step_bytes"]["state"],
                "copy_bytes_per_s": report["ceilings"]["copy_bytes_per_s"]["p50"],
                "copy_share": rung["copy_share"],
                "launches": launches["launches"],
                "synchronisations": launches["synchronisations"],
                "speedup": rung["speedup"],
                "note": rung["note"],
            }
        )
    return rows


def stage_rows(report: dict[str, Any]) -> list[dict[str, Any]]:
    """A row for each stage."""
    return [
        {
            **_origin(report),
            "max_tokens": report["max_tokens"],
            "stage": stage["name"],
            **_spread("seconds_a_page", stage["seconds"]),
            "flops": stage["flops"] or "",
            "peak_share": stage["peak_share"] or "",
        }
        for stage in report["stages"]
    ]


def append(path: Path, rows: list[dict[str, Any]]) -> None:
    """Adds rows to a table, which gets its heading with the first ones."""
    is_new = not path.exists()
    with path.open("a", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
        if is_new:
            writer.writeheader()
        writer.writerows(rows)


def _origin(report: dict[str, Any]) -> dict[str, Any]:
    machine = report["machine"]
    versions = machine["versions"]
    return {
        "date": report["date"],
        "commit": machine["commit"],
        "device": machine["device"],
        "dtype": machine["dtype"],
        "threads": machine["num_threads"],
        "torch": versions["torch"],
        "triton": versions.get("triton", ""),
        "model": report["model"],
        "digest": (report["digest"] or "")[:12],
        "accepted": report["accepted"] or "",
        "pages": len(report["pages"]),
    }


def _spread(name: str, value: dict[str, Any]) -> dict[str, Any]:
    return {f"{name}_{part}": value[part] for part in ("p20", "p50", "p80")}


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
