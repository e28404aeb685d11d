"""One self-contained HTML page: each item's picture, truth and predictions, worst first.

The page refers to nothing outside itself, and a policy in its head lets it load nothing, so that
text from documents and models cannot do more than be read.
"""

from __future__ import annotations

import base64
import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from PIL import Image

from ocria.errors import OcriaError, OutputError
from ocria.eval.differences import marked_differences, safe, table_html
from ocria.eval.engines import UnreadablePage
from ocria.eval.figures import METRICS, Aggregate
from ocria.eval.items import Item, Truth
from ocria.eval.normalize import normalise, plain_from_markdown
from ocria.eval.page_images import page_images
from ocria.eval.report import SHARED_SECONDS, EvalReport, ScoredItem
from ocria.eval.score import ItemScore, plain_truth_text
from ocria.eval.tables import tables_in

PICTURE_WIDTH_PX = 900
PICTURE_DPI = 110
PICTURE_QUALITY = 30
MAX_PICTURES = 4

_STYLE = """
body{font:14px/1.5 system-ui,sans-serif;margin:1.5rem;color:#1b1b1b;background:#fff}
h2{margin-top:2rem;border-bottom:1px solid #ccc}
table{border-collapse:collapse;margin:.5rem 0;font-size:12px}
td,th{border:1px solid #bbb;padding:.15rem .4rem;text-align:left;
vertical-align:top;overflow-wrap:normal}
details{border:1px solid #ddd;border-radius:4px;margin:.4rem 0;padding:.3rem .7rem}
summary{cursor:pointer}summary b{font-variant-numeric:tabular-nums}
.row{display:flex;gap:1rem;align-items:flex-start;overflow-x:auto}
.row>div{flex:1 1 0;min-width:19rem;max-width:44rem;overflow-wrap:anywhere}
img{max-width:100%;border:1px solid #ccc}
img:focus{position:fixed;inset:0;margin:auto;max-height:100vh;max-width:100vw;width:auto;
z-index:9;box-shadow:0 0 0 100vmax #000a;cursor:zoom-out}img{cursor:zoom-in}
del{background:#fdd;color:#900}ins{background:#fe9;color:#640;text-decoration:none}
.fail{color:#900}.dim{color:#666}
@media(prefers-color-scheme:dark){body{background:#161616;color:#ddd}
del{background:#511;color:#fbb}ins{background:#540;color:#fe9}}
"""


def write_html(report: EvalReport, path: Path) -> None:
    """Write the page under another name, then rename it. Raises OutputError."""
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        with partial.open("w", encoding="utf-8", newline="\n") as stream:
            _write_page(report, stream)
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise OutputError(f"the report cannot be written: {path}: {error}") from error


def _write_page(report: EvalReport, stream: TextIO) -> None:
    engines = ", ".join(f"{run.engine} {run.version}".strip() for run in report.runs)
    shared = "".join(
        f" {safe(run.engine)}: {run.num_in_company} {SHARED_SECONDS}."
        for run in report.runs
        if run.num_in_company
    )
    stream.write(
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none';img-src data:;style-src 'unsafe-inline'\">"
        f"<title>ocria eval: {safe(report.dataset.name)}</title><style>{_STYLE}</style>"
        f"<h1>{safe(report.dataset.name)}</h1><p>{safe(engines)}. Pages at {report.dpi} dpi. "
        "<del>Missing</del> and <ins>added or misread</ins> words are marked in each reading, "
        "after normalisation; a click on a page enlarges it. Formulas are compared as "
        f"{safe(report.formulas_compared)}.{shared}</p>"
    )
    stream.write(_figures_html("Overall (machine-made truth left out)", report, None))
    stream.write(_suites_html(report))
    if report.problems:
        rows = "".join(f"<li>{safe(p.where)}: {safe(p.what)}</li>" for p in report.problems)
        stream.write(f"<h2>Not used or not read ({len(report.problems)})</h2><ul>{rows}</ul>")
    for group, lines in _by_group(report).items():
        stream.write(_figures_html(group, report, group))
        for number, line in enumerate(lines):
            stream.write(_item_html(report, line, is_open=number == 0))
    stream.write("</html>\n")


def _suites_html(report: EvalReport) -> str:
    """The named figures of the frozen suites; nothing for other data sets."""
    known = {figure.name: figure for run in report.runs for figure in run.suites}
    if not known:
        return ""
    head = "".join(f"<th>{safe(run.engine)}</th>" for run in report.runs)
    rows = ""
    for figure in known.values():
        cells = "".join(f"<td>{run.suite_text(figure.name)}</td>" for run in report.runs)
        rows += f"<tr><td>{safe(figure.title)}</td><td>{figure.n}</td>{cells}</tr>"
    return (
        f"<h2>Frozen suites</h2><table><tr><th>figure</th><th>pages</th>{head}</tr>{rows}</table>"
    )


def _by_group(report: EvalReport) -> dict[str, list[tuple[ScoredItem | None, ...]]]:
    """For each set its items, worst first, each with one result (or None) an engine."""
    # By set too: the rules of one page can lie in two of olmOCR-bench's files, as two items.
    by_key = [{_key(found.score.item): found for found in run.items} for run in report.runs]
    groups: dict[str, list[tuple[ScoredItem | None, ...]]] = {}
    for item in report.dataset.items:
        line = tuple(found.get(_key(item)) for found in by_key)
        if any(line):
            groups.setdefault(item.group, []).append(line)
    for lines in groups.values():
        lines.sort(key=_badness, reverse=True)
    return groups


def _key(item: Item) -> tuple[str, str]:
    return item.group, item.name


def _badness(line: tuple[ScoredItem | None, ...]) -> float:
    return next((found.score.badness for found in line if found is not None), 0.0)


def _figures_html(title: str, report: EvalReport, group: str | None) -> str:
    chosen: list[tuple[str, Aggregate | None]] = []
    for run in report.runs:
        match = run.overall if group is None else next(
            (g for g in run.groups if g.name == group), None
        )  # fmt: skip
        chosen.append((run.engine, match))
    head = "".join(f"<th>{safe(engine)}</th>" for engine, _ in chosen)
    rows = ""
    for metric in METRICS:
        values = [found.figure(metric.name) if found else None for _, found in chosen]
        if any(values):
            cells = "".join(
                f"<td>{v.mean:.3f} ({v.median:.3f}) n={v.n}</td>" if v else "<td></td>"
                for v in values
            )
            rows += f"<tr><td>{safe(metric.title)}</td>{cells}</tr>"
    times = "".join(
        f"<td>{f.seconds_mean:.2f}</td>" if f and f.seconds_mean is not None else "<td></td>"
        for _, f in chosen
    )
    return (
        f"<h2>{safe(title)}</h2><table><tr><th>mean (median)</th>{head}</tr>{rows}"
        f"<tr><td>s/page</td>{times}</tr></table>"
    )


def _item_html(report: EvalReport, line: tuple[ScoredItem | None, ...], *, is_open: bool) -> str:
    item = next(found.score.item for found in line if found is not None)
    columns = "".join(
        f"<div><b>{safe(run.engine)}</b> {_score_line(found.score)}"
        f"{_reading_html(item, found)}</div>"
        for run, found in zip(report.runs, line, strict=True)
        if found is not None
    )
    first = next(found for found in line if found is not None)
    return (
        f"<details{' open' if is_open else ''}>"
        f"<summary>{safe(item.name)} {_score_line(first.score)}</summary>"
        f"<p class=dim>{safe(item.kind)}, {safe(item.lang)}, truth: {item.truth_origin}</p>"
        f'<div class="row"><div>{"".join(_pictures(item))}</div>'
        f"<div><b>truth</b>{_truth_html(item.truth)}</div>{columns}</div></details>\n"
    )


def _score_line(score: ItemScore) -> str:
    parts = []
    for metric in METRICS:
        value = getattr(score, metric.name)
        if value is not None and metric.name in ("cer", "teds", "rules_passed", "formula_match",
                                                 "invented_chars"):  # fmt: skip
            shown = f"{value:.3f}" if metric.is_rate else f"{value:.0f}"
            parts.append(f"{safe(metric.title)} <b>{shown}</b>")
    if score.looping:
        parts.append("<b class=fail>loop</b>")
    if score.pages_failed:
        parts.append(f"<b class=fail>{score.pages_failed} failed</b>")
    if score.seconds is not None:
        parts.append(f"{score.seconds:.2f} s")
    return " · ".join(parts)


def _truth_html(truth: Truth | None) -> str:
    if truth is None:
        return "<p class=dim>none</p>"
    parts = []
    text = plain_truth_text(truth)
    if text is not None:
        parts.append(f"<p>{safe(text)}</p>")
    parts.extend(table_html(table) for table in truth.tables or ())
    return "".join(parts)


def _reading_html(item: Item, found: ScoredItem) -> str:
    markdown = found.prediction.markdown
    plain = normalise(plain_from_markdown(markdown))
    truth = plain_truth_text(item.truth) if item.truth else None
    parts = [f"<p>{safe(plain) if truth is None else marked_differences(truth, plain)}</p>"]
    if item.truth and item.truth.tables is not None:
        parts.extend(table_html(table) for table in tables_in(markdown))
    rules = "".join(
        f"<li{'' if rule.passed else ' class=fail'}>{'holds' if rule.passed else 'fails'}: "
        f"{safe(rule.type)} {safe(rule.id)}</li>"
        for rule in found.score.rules
    )
    return "".join(parts) + (f"<ul>{rules}</ul>" if rules else "")


def _pictures(item: Item) -> Iterator[str]:
    try:
        for count, page in enumerate(page_images(item.path, item.pages, dpi=PICTURE_DPI)):
            if count == MAX_PICTURES:
                yield "<p class=dim>more pages are not shown</p>"
                return
            if isinstance(page, UnreadablePage):
                yield f"<p class=fail>page {page.number}: {safe(page.reason)}</p>"
            else:
                yield (f'<img alt="page {page.number}" tabindex="0" src="{_data_uri(page.image)}">')
    except OcriaError as error:
        yield f"<p class=fail>{safe(str(error))}</p>"


def _data_uri(image: Image.Image) -> str:
    width = min(PICTURE_WIDTH_PX, image.width)
    small = image.convert("L").resize((width, max(1, image.height * width // image.width)))
    buffer = io.BytesIO()
    small.save(buffer, "WEBP", quality=PICTURE_QUALITY)
    return "data:image/webp;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")
