"""Runs a quantisation and says what came of it."""

import ctypes
import json
import sys

from ocria.calibration import QuantizeOptions, QuantizeResult, quantize
from ocria.cli.table import format_table
from ocria.console import claim_stdout, print_notice
from ocria.errors import ExitCode

# Lines of progress in each stage: a log stays readable, and a terminal sees that it goes on.
_LINES_A_STAGE = 10
# glibc's name for it, from malloc.h.
_M_MMAP_THRESHOLD = -3


def run_quantize(options: QuantizeOptions, *, with_table: bool, quiet: bool) -> ExitCode:
    """Quantises; the JSON line goes to standard output, all else to standard error.

    Raises:
        InputError, UsageError, WeightsError, DeviceError, OutputError: as `quantize`.
    """
    _give_freed_memory_back()
    with claim_stdout() as stdout:
        result = quantize(options, _silent if quiet else _say)
        if with_table:
            sys.stderr.write(_table(result))
        stdout.write(json.dumps(_summary(options, result), ensure_ascii=False) + "\n")
    return ExitCode.OK


def _give_freed_memory_back() -> None:
    """Has blocks of 1 MiB and more returned to the system as they are freed.

    glibc raises its limit to 32 MiB as it sees such blocks, and what lies below stays in its heap:
    600 MB for a checkpoint of 0.8B. Other C libraries have no such call.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, 1 << 20)


def _silent(what: str, done: int, total: int) -> None:
    """Says nothing."""


def _say(what: str, done: int, total: int) -> None:
    step = max(1, total // _LINES_A_STAGE)
    if done % step == 0 or done == total:
        print_notice("quantize", f"{what}: {done} of {total}")


def _table(result: QuantizeResult) -> str:
    streamed = any(loss.agreement is None for loss in result.losses)
    rows = [
        ("PRODUCT", "WEIGHTS", "NOISE ALONE" if streamed else "KL ALONE", "AGREEMENT", "FORMAT")
    ]
    for loss in sorted(result.losses, key=lambda loss: -loss.kl):
        same = "-" if loss.agreement is None else f"{loss.agreement:.4f}"
        figures = (str(loss.num_weights), f"{loss.kl:.6f}", same)
        rows.append((loss.site, *figures, result.plan[loss.site]))
    return format_table(rows)


def _summary(options: QuantizeOptions, result: QuantizeResult) -> dict[str, object]:
    found = result.divergence
    return {
        "folder": str(options.target),
        "name": result.manifest.name,
        "digest": result.manifest.digest,
        "precision": result.manifest.precision,
        "source_bytes": result.source_bytes,
        "target_bytes": result.target_bytes,
        "num_places": found.num_places if found else 0,
        "kl_nats": round(found.kl, 6) if found else None,
        "agreement": round(found.agreement, 5) if found else None,
    }
