"""`ocria bench`: speed on this machine, rung by rung."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from ocria.cli import arguments
from ocria.console import print_notice
from ocria.errors import ExitCode
from ocria.options import DEFAULT_MODEL


def bench(
    context: typer.Context,
    inputs: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[INPUT]...", help="Documents to read. Default: examples/."),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="First pages, 64 tokens each, 3 rounds.")
    ] = False,
    rounds: Annotated[
        int | None,
        typer.Option("--rounds", metavar="N", help="Times to run the whole ladder. Default: 5."),
    ] = None,
    max_tokens: Annotated[
        int | None,
        typer.Option("--max-tokens", metavar="N", help="Limit for each page. Default: 512."),
    ] = None,
    rung: Annotated[
        list[str] | None,
        typer.Option(
            "--rung", metavar="NAME", help="Run this rung beside the first; repeat for more."
        ),
    ] = None,
    batch: Annotated[
        int | None,
        typer.Option("--batch", metavar="N", help="Sequences at once on that rung. Default: 8."),
    ] = None,
    transformers: Annotated[
        bool,
        typer.Option("--transformers", help="Also time greedy `generate` of transformers."),
    ] = False,
    shape: Annotated[
        Literal["shipped", "0.8b", "4b", "9b"],
        typer.Option("--shape", help="Random weights of a published size instead of the model."),
    ] = "shipped",
    accepted: Annotated[
        int | None,
        typer.Option(
            "--accepted",
            metavar="N",
            help="Tokens a pass that random weights are given to emit. Default: 4.",
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", metavar="OUT.svg", help="Draw the ladder and the roofline."),
    ] = None,
    model: arguments.ModelOption = DEFAULT_MODEL,
    device: arguments.DeviceOption = "auto",
    overwrite: arguments.OverwriteOption = False,
    verbose: arguments.VerboseOption = 0,
    quiet: arguments.QuietOption = False,
) -> ExitCode:
    """Measure speed, stage by stage; the last line of standard output is one JSON object."""
    from ocria.bench import BenchOptions
    from ocria.cli.bench_run import run_bench

    quiet = arguments.settle_verbosity(context, verbose, quiet=quiet)
    notify = None if quiet else lambda line: print_notice("bench", line)
    options = BenchOptions(
        inputs=tuple(inputs or ()),
        model=model,
        device=device,
        shape=shape,
        accepted=accepted,
        rungs=tuple(rung or ()),
        batch=batch,
        max_tokens=max_tokens,
        rounds=rounds,
        quick=quick,
        transformers=transformers,
    )
    return run_bench(options, plot=plot, overwrite=overwrite, notify=notify)
