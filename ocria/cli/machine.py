"""What this machine has and what OCRia would use of it, found out part by part."""

import os
import pkgutil
import platform
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from ocria.cli.table import format_bytes
from ocria.errors import OcriaError, WeightsError
from ocria.version import __version__

if TYPE_CHECKING:
    import torch

PACKAGES = ("torch", "triton", "pypdfium2", "pillow", "numpy", "safetensors", "tokenizers")
MISSING = "missing"


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One line of `ocria doctor`. `fault` is set when `ocria parse` would fail for it."""

    subject: str
    text: str
    fault: OcriaError | None = None


def examine(*, device: str, model: str) -> Iterator[Finding]:
    """Every finding for a parse with this `--device` and `--model`; raises nothing of ours."""
    yield Finding(subject="ocria", text=f"{__version__}, {Path(__file__).parents[1]}")
    yield Finding(subject="python", text=f"{platform.python_version()}, {platform.platform()}")
    for package in PACKAGES:
        yield Finding(subject=package, text=_version(package))
    yield Finding(subject="cpu", text=_cpu())
    yield Finding(subject="threads", text=_threads())
    chosen = _caught("device", lambda: _device(device))
    yield chosen
    if chosen.fault is None:
        yield Finding(subject="kernels", text=_kernels(device))
    yield _caught("model", lambda: _model(model))
    yield _caught("drafter", lambda: _drafter(model, device))


def _caught(subject: str, find: Callable[[], str]) -> Finding:
    try:
        return Finding(subject=subject, text=find())
    except OcriaError as error:
        return Finding(subject=subject, text=str(error), fault=error)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return MISSING


def _cpu() -> str:
    import torch

    from ocria.models.device import cpu_multiplies_bfloat16

    products = "bfloat16 products" if cpu_multiplies_bfloat16() else "no bfloat16 products"
    return f"{platform.machine()}, {torch.backends.cpu.get_cpu_capability()}, {products}"


def _threads() -> str:
    import torch

    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{torch.get_num_threads()} of {usable} usable cores (OMP_NUM_THREADS sets them)"


def _device(name: str) -> str:
    from ocria.models.device import dtype_of, resolve_device

    device = resolve_device(name)
    dtype = str(dtype_of(device)).removeprefix("torch.")
    return f"{device} with {dtype}: {_why(name, device)}"


def _why(name: str, device: "torch.device") -> str:
    import torch

    if device.type == "cuda":
        properties = torch.cuda.get_device_properties(device)
        return f"{properties.name}, {properties.total_memory / 2**30:.0f} GiB"
    if name != "auto":
        return "as asked for"
    build = torch.version.cuda
    return "no CUDA device here" if build else "this torch is built without CUDA"


def _kernels(device: str) -> str:
    import ocria.kernels
    from ocria.models.device import resolve_device

    on_cuda = resolve_device(device).type == "cuda"
    chosen = []
    for module in pkgutil.iter_modules(ocria.kernels.__path__):
        finder_path = Path(getattr(module.module_finder, "path", ""))
        has_triton = (finder_path / module.name / "triton_impl.py").is_file()
        chosen.append(f"{module.name}: {'triton' if has_triton and on_cuda else 'reference'}")
    return ", ".join(chosen)


def _drafter(model: str, device_name: str) -> str:
    from ocria.models.drafter import DrafterConfig, find_drafter
    from ocria.models.finding import find_checkpoint
    from ocria.models.qwen3_5.config import read_config
    from ocria.pipeline.draft_costs import draft_costs
    from ocria.pipeline.mtp import brings_mtp

    checkpoint, device = find_checkpoint(model, may_fetch=False), _usable(device_name)
    if not _keeps_rows_apart(device, checkpoint):
        return "auto: none, since the fused kernels do not take this model"
    chosen = "auto, step by step: text-layer, ngram"
    folder = find_drafter(checkpoint)
    if folder is None:
        has_mtp = draft_costs(device).may_pay("mtp") and brings_mtp(checkpoint)
        return f"{chosen}, mtp" if has_mtp else f"{chosen}; no dflash weights"
    config = DrafterConfig.from_mapping(read_config(folder))
    return f"{chosen}, dflash {config.generation} with blocks of {config.block_size}"


def _usable(name: str) -> "torch.device":
    """The device, or a CPU for one that cannot be used, which is said elsewhere."""
    import torch

    from ocria.models.device import resolve_device

    try:
        return resolve_device(name)
    except OcriaError:
        return torch.device("cpu")


def _keeps_rows_apart(device: "torch.device", checkpoint: Path) -> bool:
    """Whether `auto` drafts on this device."""
    from ocria.models.device import dtype_of
    from ocria.models.qwen3_5.config import Qwen35Config
    from ocria.models.qwen3_5.fused import can_fuse

    if device.type == "cpu":
        return True
    return can_fuse(Qwen35Config.from_folder(checkpoint).text, device, dtype_of(device))


def _model(name: str) -> str:
    from ocria.models.finding import find_checkpoint
    from ocria.weights import read_manifest, verify

    folder = find_checkpoint(name, may_fetch=False)
    manifest = read_manifest(folder)
    if manifest is None:
        return f"{folder}: no manifest, cannot be verified"
    problems = verify(folder)
    if problems:
        files = ", ".join(f"{problem.file} ({problem.message})" for problem in problems)
        raise WeightsError(
            f"{manifest.name} is damaged: {files}",
            hint="install ocria again, or copy the checkpoint again from where it came from",
        )
    size = format_bytes(manifest.num_bytes)
    return f"{manifest.name}, {manifest.precision}, {size}, {manifest.digest[:12]}, verified"
