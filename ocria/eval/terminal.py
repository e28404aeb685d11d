"""The report at the terminal: engines side by side, overall and for each set."""

from __future__ import annotations

from typing import TextIO

from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable

from ocria.eval.figures import METRICS, Aggregate, MetricSpec
from ocria.eval.report import SHARED_SECONDS, EngineRun, EvalReport

SHOWN = ("cer", "word_f1", "order_edit", "teds", "teds_structure", "formula_match",
         "formula_match_drawn", "rules_passed", "invented_words", "invented_chars")  # fmt: skip
MAX_PROBLEMS = 20
WIDTH_IN_FILES = 160


def print_report(report: EvalReport, stream: TextIO) -> None:
    """Print the tables, then what could not be used, to a stream (standard error)."""
    console = Console(file=stream, highlight=False)
    if not console.is_terminal:
        console = Console(file=stream, highlight=False, width=WIDTH_IN_FILES)
    console.print(_overall_table(report))
    console.print(_set_table(report))
    if any(run.suites for run in report.runs):
        console.print(_suite_table(report))
    console.print(
        f"{report.dataset.name}: {report.dpi} dpi, images only unless said. Formulas are compared "
        f"as {report.formulas_compared}. Mean (median) over n "
        "items; CER and WER are clipped at 1 an item; \\[low, high] is the 95 % bootstrap interval "
        "of the mean.",
        style="dim",
    )
    for run in report.runs:
        if run.num_in_company:
            console.print(escape(f"{run.engine}: {run.num_in_company} {SHARED_SECONDS}."))
    _print_problems(report, console)


def _overall_table(report: EvalReport) -> RichTable:
    table = RichTable(title="Overall (machine-made truth left out)", title_justify="left")
    table.add_column("figure")
    for run in report.runs:
        table.add_column(escape(f"{run.engine} {run.version}".strip()), justify="right")
    for metric in METRICS:
        cells = [_long_cell(run.overall, metric) for run in report.runs]
        if any(cells):
            table.add_row(_title(metric), *cells)
    table.add_row("loop rate", *(f"{run.overall.loop_rate:.1%}" for run in report.runs))
    table.add_row("confidence AUROC", *map(_auroc, report.runs))
    table.add_row("pages failed, truncated", *map(_failed, report.runs))
    table.add_row("s/page mean (median)", *map(_seconds, report.runs))
    table.add_row("CPU s/page mean (median)", *map(_cpu_seconds, report.runs))
    table.add_row("tokens/page", *map(_tokens, report.runs))
    return table


def _set_table(report: EvalReport) -> RichTable:
    table = RichTable(title="By set: mean, then median", title_justify="left")
    table.add_column("set (truth)", no_wrap=True, min_width=28)
    table.add_column("n", justify="right")
    table.add_column("engine", no_wrap=True, min_width=9)
    shown = [m for m in METRICS if m.name in SHOWN and _occurs(report, m)]
    for metric in shown:
        table.add_column(_title(metric), justify="right")
    table.add_column("s/page", justify="right")
    names = dict.fromkeys(group.name for run in report.runs for group in run.groups)
    for name in names:
        for run in report.runs:
            group = next((group for group in run.groups if group.name == name), None)
            if group is not None:
                label = escape(f"{name} ({_origin(run, name)})") if run is report.runs[0] else ""
                table.add_row(
                    label,
                    str(group.num_items),
                    escape(run.engine),
                    *(_short_cell(group, metric) for metric in shown),
                    "" if group.seconds_mean is None else f"{group.seconds_mean:.2f}",
                )
        table.add_section()
    return table


def _suite_table(report: EvalReport) -> RichTable:
    table = RichTable(title="Frozen suites", title_justify="left")
    table.add_column("figure")
    table.add_column("pages", justify="right")
    for run in report.runs:
        table.add_column(escape(run.engine), justify="right")
    known = {figure.name: figure for run in report.runs for figure in run.suites}
    for figure in known.values():
        values = (run.suite_text(figure.name) for run in report.runs)
        table.add_row(escape(figure.title), str(figure.n), *values)
    return table


def _print_problems(report: EvalReport, console: Console) -> None:
    problems = report.problems
    if not problems:
        return
    console.print(f"{len(problems)} could not be used or read:", style="bold")
    for problem in problems[:MAX_PROBLEMS]:
        console.print(escape(f"  {problem.where}: {problem.what}"))
    if len(problems) > MAX_PROBLEMS:
        console.print(f"  and {len(problems) - MAX_PROBLEMS} more (all are in the JSON line)")


def _title(metric: MetricSpec) -> str:
    return f"{metric.title} {'↓' if metric.better == 'lower' else '↑'}"


def _occurs(report: EvalReport, metric: MetricSpec) -> bool:
    return any(group.figure(metric.name) for run in report.runs for group in run.groups)


def _long_cell(group: Aggregate, metric: MetricSpec) -> str:
    value = group.figure(metric.name)
    if value is None:
        return ""
    interval = escape(f"[{value.low:.3f}, {value.high:.3f}]")
    return f"{value.mean:.3f} ({value.median:.3f}) {interval} n={value.n}"


def _short_cell(group: Aggregate, metric: MetricSpec) -> str:
    value = group.figure(metric.name)
    return "" if value is None else f"{value.mean:.3f} {value.median:.3f}"


def _origin(run: EngineRun, group: str) -> str:
    origins = {i.score.item.truth_origin for i in run.items if i.score.item.group == group}
    return ", ".join(sorted(origins))


def _auroc(run: EngineRun) -> str:
    group = run.overall
    return "" if group.auroc is None else f"{group.auroc:.3f} over {group.num_blocks} blocks"


def _failed(run: EngineRun) -> str:
    group = run.overall
    return f"{group.pages_failed}, {group.pages_truncated} of {group.num_pages}"


def _seconds(run: EngineRun) -> str:
    group = run.overall
    if group.seconds_mean is None or group.seconds_median is None:
        return ""
    return f"{group.seconds_mean:.2f} ({group.seconds_median:.2f})"


def _cpu_seconds(run: EngineRun) -> str:
    group = run.overall
    if group.cpu_seconds_mean is None or group.cpu_seconds_median is None:
        return ""
    threads = "/".join(map(str, group.threads))
    return f"{group.cpu_seconds_mean:.2f} ({group.cpu_seconds_median:.2f}), {threads} thread(s)"


def _tokens(run: EngineRun) -> str:
    return "" if run.overall.tokens_mean is None else f"{run.overall.tokens_mean:.0f}"
