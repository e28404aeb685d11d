"""A whole batch: claims the output folder, finds documents, loads the model, reads everything."""

import fcntl
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TextIO

from ocria.batch.discovery import discover
from ocria.batch.lane import Lane, Reader
from ocria.batch.ledger import STATE_FOLDER, Ledger
from ocria.batch.listener import Figures, Listener
from ocria.batch.manifest import Manifest
from ocria.batch.options import BatchOptions
from ocria.batch.run import BatchRun, Lanes
from ocria.errors import DeviceError, ExitCode, InputError, OutputError, UsageError

_MOST_JOBS = 8
PAGES_SIDE_BY_SIDE = {"cpu": 8, "cuda": 64}
"""Pages that a model reads at once if memory allows. On a CPU eight pages of one row share a pass
for 0.35 of its time each; more share little else (docs/log.md)."""

MOST_LANES = 4
CORES_A_LANE = 4
"""A process writes tokens on one core and cuts and lays out pages on some others, so that a GPU
waits for one process about half of the time (docs/log.md)."""

LanesOpener = Callable[[BatchOptions], Lanes]


def run_batch(
    options: BatchOptions,
    listener: Listener,
    *,
    listing: TextIO | None = None,
    open_lanes: LanesOpener | None = None,
) -> tuple[ExitCode, Figures]:
    """Reads all documents that are not finished.

    Args:
        options: see `BatchOptions`.
        listener: hears of everything as it happens.
        listing: what the input `-` reads; None is standard input.
        open_lanes: who reads; None chooses by the options (`choose_lanes`).

    Raises:
        InputError: an input does not exist, or there is no document in any.
        OutputError: the output folder cannot be written, or another run is at work in it.
        WeightsError, DeviceError: the model cannot be loaded.
        WorkerError: a process cannot be started.
    """
    if options.ray is None:
        options = replace(options, jobs=options.jobs or default_jobs())
    with _writing(options), _claimed(options):
        documents, num_passed_over = discover(
            options.inputs, options.out_dir, recursive=options.recursive, listing=listing
        )
        if not documents:
            hint = f"only PDFs and images are read; other files: {num_passed_over:,}"
            raise InputError("no document was found", hint=hint)
        lanes = (open_lanes or choose_lanes)(options)
        with closing(lanes), closing(Manifest(options.out_dir)) as manifest:
            ledger = Ledger(options, lanes.generator, manifest)
            run = BatchRun(options, lanes, ledger, listener)
            run.figures.num_passed_over = num_passed_over
            try:
                run.run(documents)
            finally:
                # Of a run that was stopped, too: it says what there was until then.
                run.report.write(options.out_dir, run.figures, manifest.entries())
    return run.exit_code, run.figures


def choose_lanes(options: BatchOptions) -> Lanes:
    """A Ray cluster, processes on GPUs of this machine, or one model in this process.

    Raises:
        UsageError: `--gpus` together with `--ray` or a device that is not `auto` or `cuda`.
        DeviceError: fewer GPUs than asked for.
    """
    if options.ray is not None:
        from ocria.batch.ray_crew import RayCrew

        return RayCrew(options, open_lane)
    if options.gpus is None:
        if options.lanes == 1 or options.parse.device == "cpu":
            return open_lane(options)
        _find_weights(options)
    devices = _gpus(options)
    devices *= options.lanes or default_lanes(options, devices)
    if options.gpus is None and len(devices) < 2:
        return open_lane(options)
    from ocria.batch.process_crew import ProcessCrew

    return ProcessCrew(options, devices)


def _gpus(options: BatchOptions) -> list[str]:
    """Devices of the GPUs to use; none without `--gpus` where the model runs on a CPU."""
    import torch

    from ocria.models.device import resolve_device

    wanted = options.gpus
    if wanted is None:
        device = resolve_device(options.parse.device)
        return [str(device)] if device.type == "cuda" else []
    if options.parse.device not in ("auto", "cuda"):
        raise UsageError(
            f"--gpus and --device {options.parse.device} exclude each other", hint="leave one out"
        )
    there = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if there < max(1, wanted):
        raise DeviceError(
            f"{wanted or 'all'} GPUs were asked for, and {there} can be used here",
            hint="leave `--gpus` out, or use `--device cpu`",
        )
    return [f"cuda:{index}" for index in range(wanted or there)]


def default_lanes(options: BatchOptions, devices: Sequence[str]) -> int:
    """Processes for each GPU: as many as cores can feed, while their models take no more than half
    of what is free."""
    if not devices:
        return 1
    cores = len(os.sched_getaffinity(0)) // (CORES_A_LANE * len(devices))
    most = max(1, min(MOST_LANES, cores))
    if most == 1:
        return 1
    import torch

    from ocria.engine.memory import free_bytes
    from ocria.pipeline.page_reader import page_need

    devices_free = [free_bytes(torch.device(device)) for device in devices]
    need = page_need(options.parse, torch.device(devices[0]))
    return max(1, min(most, min(devices_free) // (2 * need.total)))


def open_lane(options: BatchOptions) -> Lane:
    """One model in this process."""
    _find_weights(options)
    # Imports torch: after everything that can fail sooner.
    from ocria.models.device import resolve_device
    from ocria.pipeline.page_reader import PAGE_THREADS, load_page_reader

    device = resolve_device(options.parse.device).type
    # One core writes tokens; threads wait for the others, so more processes would be idle.
    cores = len(os.sched_getaffinity(0)) // (options.lanes or 1)
    num_processes = min(PAGE_THREADS, max(1, cores - 1))
    reader: Reader = load_page_reader(
        options.parse,
        most_pages=PAGES_SIDE_BY_SIDE[device],
        isolates=True,
        num_threads=PAGE_THREADS if device == "cuda" else 0,
        num_processes=num_processes if device == "cuda" else 0,
    )
    return Lane(
        reader,
        options.parse,
        jobs=options.jobs or 1,
        timeout_s=options.timeout_s,
        with_images=options.shows_pages,
    )


def _find_weights(options: BatchOptions) -> None:
    """Says at once what is not there, before torch is imported."""
    from ocria.models.finding import find_checkpoint, named_drafter

    find_checkpoint(options.parse.model)
    named_drafter(options.parse.drafter_model)


def default_jobs() -> int:
    """Processes that rasterise: one a core that this process may use, 8 at most."""
    return min(_MOST_JOBS, len(os.sched_getaffinity(0)))


@contextmanager
def _writing(options: BatchOptions) -> Iterator[None]:
    """Whatever cannot be written ends the run with what to do; what is finished is kept."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(
            f"cannot write into {options.out_dir}",
            hint="free space or mend the permissions, then give the same command: it goes on",
        ) from error


@contextmanager
def _claimed(options: BatchOptions) -> Iterator[None]:
    """Holds the output folder against a second run; the lock goes with the process.

    Folders that were made for it go again if the block leaves nothing in them.
    """
    there = next(path for path in (options.out_dir, *options.out_dir.parents) if path.exists())
    if not there.is_dir():
        raise OutputError(f"{there} is a file", hint="name a folder for the results")
    folder = options.out_dir / STATE_FOLDER
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise OutputError(
                f"another run is at work in {options.out_dir}",
                hint="wait for its end, or name another folder",
            ) from error
        try:
            yield
        finally:
            if options.out_dir in made:
                _remove_unused(Path(lock.name), made)


def _remove_unused(lock: Path, made: Sequence[Path]) -> None:
    """Removes the folders that were made, innermost first, if a lock is all that is in them."""
    folder = lock.parent
    if [*folder.iterdir(), *folder.parent.iterdir()] == [lock, folder]:
        lock.unlink()
        for path in made:
            # Somebody else may have put something beside it.
            with suppress(OSError):
                path.rmdir()
