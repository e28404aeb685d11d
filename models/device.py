"""Which device and dtype a run uses. Both follow from what the machine is, never from a timing."""

import torch

from ocria.errors import DeviceError, UsageError


def resolve_device(name: str) -> torch.device:
    """`auto`, `cpu`, `cuda` or `cuda:N` as a device that can be used; `auto` prefers CUDA.

    Raises:
        UsageError: another name.
        DeviceError: CUDA was asked for and is not there, or has no device N.
    """
    kind, _, index = name.partition(":")
    if name == "auto":
        return torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    if name == "cpu":
        return torch.device("cpu")
    if kind != "cuda" or (":" in name and not index.isdecimal()):
        raise UsageError(f"unknown device: `{name}`", hint="one of auto, cpu, cuda, cuda:N")
    if not torch.cuda.is_available():
        raise DeviceError(
            "no CUDA device can be used here",
            hint="use `--device cpu`, or install a CUDA build of torch and a driver for it",
        )
    number, available = int(index or 0), torch.cuda.device_count()
    if number >= available:
        raise DeviceError(
            f"no device cuda:{number}", hint=f"this machine has cuda:0 to cuda:{available - 1}"
        )
    return torch.device(f"cuda:{number}")


def dtype_of(device: torch.device) -> torch.dtype:
    """bfloat16 where the hardware multiplies it, else float32.

    On a CPU that is AVX-512 BF16 or AMX: emulated bfloat16 is slower than float32 there.
    """
    if device.type == "cuda":
        return torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float32
    return torch.bfloat16 if cpu_multiplies_bfloat16() else torch.float32


def staged(values: torch.Tensor, device: torch.device, dtype: torch.dtype) -> torch.Tensor:
    """Values on the host in the form that travels to the device fastest; as they are for a CPU.

    A GPU takes them as `dtype` from pinned memory, while the host goes on.
    """
    return values.to(dtype).pin_memory() if device.type == "cuda" else values


def cpu_multiplies_bfloat16() -> bool:
    """Whether this CPU has bfloat16 products that torch's matrix library uses."""
    # Public since torch 2.12 or so; before, one private question an instruction set.
    if hasattr(torch.cpu, "get_capabilities"):
        capabilities = torch.cpu.get_capabilities()
        return bool(capabilities.get("avx512_bf16") or capabilities.get("amx_bf16"))
    return bool(torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())
