"""The report at the terminal: machine, stages, ladder."""

from typing import TextIO

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ocria.bench.figures import Quantiles, RungFigures, StageFigures
from ocria.bench.report import BenchReport

WIDTH_IN_FILES = 150
_MEGA, _GIGA, _TERA = 1e6, 1e9, 1e12


def print_report(report: BenchReport, stream: TextIO) -> None:
    """Prints the tables to a stream (standard error)."""
    console = Console(file=stream, highlight=False)
    if not console.is_terminal:
        console = Console(file=stream, highlight=False, width=WIDTH_IN_FILES)
    for line in _head(report):
        console.print(escape(line))
    console.print(_stage_table(report.stages))
    console.print(_rung_table(report.rungs))
    for line in _notes(report):
        console.print(escape(line), style="dim")


def _head(report: BenchReport) -> list[str]:
    machine, ceilings = report.machine, report.ceilings
    versions = ", ".join(f"{name} {number}" for name, number in machine.versions.items())
    copy, product = ceilings.copy_bytes_per_s, ceilings.product_flops_per_s
    return [
        f"{machine.device}, {machine.dtype}, {machine.num_threads} threads, load {machine.load}",
        f"{versions}, commit {machine.commit or 'unknown'}",
        f"{report.model}: {len(report.pages)} pages, at most {report.max_tokens} tokens each, "
        f"{report.num_rounds} rounds",
        f"copy {copy.p50 / _GIGA:.1f} GB/s [{copy.p20 / _GIGA:.1f}, {copy.p80 / _GIGA:.1f}], "
        f"product {product.p50 / _TERA:.3g} TFLOP/s, cache {ceilings.cache_bytes / 2**20:.0f} MiB",
    ]


def _stage_table(stages: tuple[StageFigures, ...]) -> Table:
    table = Table(title="Stages: seconds a page", title_justify="left")
    table.add_column("stage")
    for heading in ("p50 [p20, p80]", "n", "GFLOP", "share of product rate"):
        table.add_column(heading, justify="right")
    for stage in stages:
        table.add_row(
            escape(stage.name),
            _spread(stage.seconds, 4),
            str(stage.seconds.n),
            "" if stage.flops is None else f"{stage.flops / _GIGA:.0f}",
            "" if stage.peak_share is None else f"{stage.peak_share:.1%}",
        )
    return table


def _rung_table(rungs: tuple[RungFigures, ...]) -> Table:
    table = Table(title="Decoding, one sequence at a time unless said", title_justify="left")
    table.add_column("rung", no_wrap=True)
    table.add_column("tokens/s [p20, p80]", justify="right")
    table.add_column("ms a step [p20, p80]", justify="right")
    for heading in ("tokens", "rows", "MB", "of copy", "launches", "waits"):
        table.add_column(heading, justify="right")
    table.add_column("speed-up", justify="right", style="bold")
    table.add_column("note", overflow="fold")
    for rung in rungs:
        style = {"ok": "", "differs": "red", "unavailable": "dim"}[rung.status]
        table.add_row(*_cells(rung), style=style)
    return table


def _cells(rung: RungFigures) -> list[str]:
    if rung.tokens_per_s is None or rung.step_ms is None or rung.step_bytes is None:
        return [escape(rung.name), *[""] * 9, escape(rung.note)]
    launches = rung.launches
    return [
        escape(rung.name),
        _spread(rung.tokens_per_s, 4),
        _spread(rung.step_ms, 3),
        f"{rung.tokens_per_step:.2f}",
        f"{rung.rows_per_step:.1f}",
        f"{rung.step_bytes.total / _MEGA:.1f}",
        f"{rung.copy_share:.1%}",
        "" if launches is None else f"{launches.launches:.0f}",
        "" if launches is None else f"{launches.synchronisations:.1f}",
        "" if rung.speedup is None else f"{rung.speedup:.2f}x",
        escape(rung.note),
    ]


def _notes(report: BenchReport) -> list[str]:
    notes = [
        "Columns from `tokens` to `waits` count a step: tokens emitted, rows computed, bytes that "
        "must be read (weights, state), their rate as a share of the copy, launches and waits of "
        "the host."
    ]
    largest = max((r.step_bytes.weights for r in report.rungs if r.step_bytes), default=0)
    if 0 < largest <= report.ceilings.cache_bytes:
        notes.append("The weights fit in the last-level cache: the share of the copy can pass 1.")
    if report.accepted is not None:
        notes.append(
            f"Random weights: the acceptance of {report.accepted} tokens a pass is stated, "
            "not measured."
        )
    skipped = ", ".join(f"{name} ({why})" for name, why in report.skipped)
    return [*notes, f"Not read: {skipped}."] if skipped else notes


def _spread(value: Quantiles, digits: int) -> str:
    middle, low, high = (_short(v, digits) for v in (value.p50, value.p20, value.p80))
    return escape(f"{middle} [{low}, {high}]")


def _short(value: float, digits: int) -> str:
    """Significant digits without an exponent."""
    whole = f"{value:,.0f}"
    return whole if abs(value) >= 10 ** (digits - 1) else f"{value:.{digits}g}"
