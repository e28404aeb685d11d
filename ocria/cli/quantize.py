"""`ocria quantize`: a bf16 checkpoint folder to a mixed NVFP4/FP8 one."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from ocria.cli import arguments
from ocria.console import set_verbosity
from ocria.errors import ExitCode


def quantize(
    source: Annotated[
        Path, typer.Argument(metavar="SRC", help="A bf16 checkpoint folder (qwen3_5).")
    ],
    target: Annotated[Path, typer.Argument(metavar="DST", help="The folder to make.")],
    calibrate: Annotated[
        list[Path] | None,
        typer.Option(
            "--calibrate",
            metavar="FILE",
            help="PDF or image to calibrate on; repeat for more. Default: self-made pages.",
        ),
    ] = None,
    budget: Annotated[
        int | None,
        typer.Option(
            "--budget",
            metavar="BYTES",
            help="Most bytes read for a token (decoder, embedding, head). Default: 40 % of bf16.",
        ),
    ] = None,
    max_loss: Annotated[
        float | None,
        typer.Option(
            "--max-loss",
            metavar="NATS",
            help="Widen formats until the summed loss of all products is below this.",
        ),
    ] = None,
    format: Annotated[
        Literal["compressed-tensors", "modelopt"],
        typer.Option("--format", "-f", help="How the weights are stored."),
    ] = "compressed-tensors",
    report: Annotated[
        bool, typer.Option("--report", help="Print what each product loses and what it got.")
    ] = False,
    pages: Annotated[
        int, typer.Option("--pages", metavar="N", help="Self-made pages to draw.")
    ] = 16,
    calibration: Annotated[
        bool,
        typer.Option(
            "--calibration/--no-calibration",
            help="Round towards what the model computes on pages, or to nearest (runs no model).",
        ),
    ] = True,
    stream: Annotated[
        bool | None,
        typer.Option(
            "--stream/--no-stream",
            help="Hold one layer in memory, or the model. Default: one layer above 1 GiB.",
            show_default=False,
        ),
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="Name of the new checkpoint.")
    ] = None,
    device: arguments.DeviceOption = "auto",
    overwrite: arguments.OverwriteOption = False,
    verbose: arguments.VerboseOption = 0,
    quiet: arguments.QuietOption = False,
) -> ExitCode:
    """Quantise a checkpoint; the last line of standard output is one JSON object."""
    from ocria.calibration import QuantizeOptions
    from ocria.cli.quantize_run import run_quantize

    set_verbosity(verbose, quiet=quiet)
    options = QuantizeOptions(
        source=source,
        target=target,
        calibrate=tuple(calibrate or ()),
        budget_bytes=budget,
        max_loss=max_loss,
        layout=format,
        num_pages=pages,
        name=name,
        overwrite=overwrite,
        device=device,
        calibration=calibration,
        stream=stream,
    )
    return run_quantize(options, with_table=report, quiet=quiet)
