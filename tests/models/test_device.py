"""Device names, and the dtype that follows from the hardware."""

import pytest
import torch

from ocria.errors import DeviceError, UsageError
from ocria.models.device import dtype_of, resolve_device


@pytest.fixture
def no_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)


@pytest.fixture
def two_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)


@pytest.mark.usefixtures("no_cuda")
def test_without_cuda_only_the_cpu_is_left() -> None:
    assert resolve_device("auto") == resolve_device("cpu") == torch.device("cpu")
    for name in ("cuda", "cuda:0"):
        with pytest.raises(DeviceError, match="no CUDA device") as caught:
            resolve_device(name)
        assert "--device cpu" in (caught.value.hint or "")


@pytest.mark.usefixtures("two_gpus")
def test_with_cuda_devices_go_by_number() -> None:
    assert resolve_device("auto") == resolve_device("cuda") == torch.device("cuda:0")
    assert resolve_device("cuda:1") == torch.device("cuda:1")
    assert resolve_device("cpu") == torch.device("cpu")
    with pytest.raises(DeviceError, match="no device cuda:2") as caught:
        resolve_device("cuda:2")
    assert "cuda:0 to cuda:1" in (caught.value.hint or "")


@pytest.mark.parametrize("name", ["", "gpu", "cuda:", "cuda:x", "cuda:-1", "CPU", "mps"])
def test_other_names_are_usage_errors(name: str) -> None:
    with pytest.raises(UsageError, match="unknown device"):
        resolve_device(name)


@pytest.mark.parametrize(
    ("capabilities", "expected"),
    [
        ({"avx512_bf16": True}, torch.bfloat16),
        ({"amx_bf16": True, "avx512_bf16": False}, torch.bfloat16),
        ({"avx512_f": True, "avx2": True}, torch.float32),
        ({}, torch.float32),
    ],
)
def test_the_dtype_of_a_cpu_follows_from_its_instructions(
    capabilities: dict[str, bool], expected: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: capabilities)
    assert dtype_of(torch.device("cpu")) == expected
