"""`ocria eval`: how well engines read a dataset, held against its truth."""

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from ocria.cli import arguments
from ocria.console import print_notice
from ocria.errors import ExitCode, UsageError
from ocria.options import DEFAULT_MODEL

SCORERS = ("rapidfuzz", "apted", "fuzzysearch")


def eval_(
    context: typer.Context,
    dataset: Annotated[
        Path,
        typer.Argument(metavar="DATASET", help="A folder with index.jsonl, or a known layout."),
    ],
    engine: Annotated[
        list[str] | None,
        typer.Option(
            "--engine",
            metavar="NAME",
            help="ocria (default), tesseract, rapidocr, docling or liteparse; repeat to compare.",
        ),
    ] = None,
    pred: Annotated[
        Path | None,
        typer.Option(
            "--pred", metavar="DIR", help="Score existing Markdown, DIR/<file>.md; run nothing."
        ),
    ] = None,
    only: Annotated[
        str | None,
        typer.Option("--only", metavar="KIND", help="Items whose kind or set contains KIND."),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option("--limit", metavar="N", help="At most N items, from every set in turn."),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report", metavar="OUT.html", help="Write a self-contained page to look at."
        ),
    ] = None,
    work: Annotated[
        Path,
        typer.Option(
            "--work", metavar="DIR", help="Where predictions are kept; a second run goes on there."
        ),
    ] = Path("ocria-eval"),
    shard: Annotated[
        str,
        typer.Option("--shard", metavar="I/N", help="Every Nth item from the Ith, counted from 0."),
    ] = "0/1",
    rerun: Annotated[bool, typer.Option("--rerun", help="Do not use kept predictions.")] = False,
    unscored: Annotated[
        bool, typer.Option("--unscored", help="Also run files without truth: failures and loops.")
    ] = False,
    with_text_layer: Annotated[
        bool,
        typer.Option("--with-text-layer", help="Give OCRia the PDF itself, not its page images."),
    ] = False,
    threads: Annotated[
        int | None,
        typer.Option(
            "--threads", metavar="N", help="CPU threads of each engine.  [default: every core]"
        ),
    ] = None,
    side_by_side: Annotated[
        int | None,
        typer.Option(
            "--side-by-side",
            metavar="N",
            help="Pages that OCRia reads at once; their seconds are shares. 1: one by one.  "
            "[default: 8 on a CPU, else 1]",
        ),
    ] = None,
    katex: Annotated[
        Path | None,
        typer.Option(
            "--katex",
            metavar="DIR",
            help="Also compare formulas as pictures: an installed npm package katex, and Chromium.",
        ),
    ] = None,
    furniture: arguments.FurnitureOption = "drop",
    model: arguments.ModelOption = DEFAULT_MODEL,
    device: arguments.DeviceOption = "auto",
    dpi: Annotated[
        int, typer.Option("--dpi", metavar="N", help="Resolution of PDF pages for every engine.")
    ] = 200,
    overwrite: arguments.OverwriteOption = False,
    verbose: arguments.VerboseOption = 0,
    quiet: arguments.QuietOption = False,
) -> ExitCode:
    """Score accuracy against truth; the last line of standard output is one JSON object."""
    _require_scorers()
    from ocria.cli.eval_run import run_eval
    from ocria.eval import EvalOptions, parse_shard

    quiet = arguments.settle_verbosity(context, verbose, quiet=quiet)
    if pred is not None and engine:
        raise UsageError("--pred scores what is there: leave out --engine, or --pred")
    options = EvalOptions(
        dataset=dataset,
        engines=tuple(engine or ["ocria"]),
        pred=pred,
        only=only,
        limit=limit,
        work=work,
        device=device,
        model=model,
        dpi=dpi,
        with_text_layer=with_text_layer,
        shard=parse_shard(shard),
        rerun=rerun,
        unscored=unscored,
        threads=threads,
        side_by_side=side_by_side,
        katex=katex,
        furniture=furniture,
    )
    notify = None if quiet else lambda line: print_notice("eval", line)
    return run_eval(options, report_path=report, overwrite=overwrite, notify=notify)


def _require_scorers() -> None:
    """The libraries that scores come from are an extra: reading documents needs none of them."""
    missing = [name for name in SCORERS if find_spec(name) is None]
    if missing:
        raise UsageError(
            f"`ocria eval` needs {', '.join(missing)}",
            hint="pip install 'ocria[eval]' (in a clone: `.venv/bin/pip install -e '.[eval]'`)",
        )
