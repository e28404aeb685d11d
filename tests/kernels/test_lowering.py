"""Every kernel compiles for GPUs that are not here, to the instructions that are meant."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TENSOR_CORES = {
    "sm_80": ("mma.sync",),
    "sm_90": ("wgmma", "mma.sync"),
    "sm_100": ("tcgen05.mma", "mma.sync"),
}


def lowered(arch: str, folder: Path, *only: str) -> dict[str, str]:
    """PTX by kernel, from a process of its own: this one may interpret Triton."""
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    command = [sys.executable, "-m", "ocria.kernels.lowering", "--arch", arch, "--out", folder]
    ran = subprocess.run(
        [*map(str, command), *only], env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return {path.stem: path.read_text() for path in folder.glob("*.ptx")}


def assert_tensor_cores(found: dict[str, str], arch: str) -> None:
    without_dot = (
        "rotary", "join", "gated_norm", "draft_mix", "draft_write", "choice", "append", "gains"
    )  # fmt: skip
    for name, ptx in found.items():
        assert f".target {arch}" in ptx
        if not any(part in name for part in without_dot):
            assert any(part in ptx for part in TENSOR_CORES[arch]), name


def test_products_use_tensor_cores_on_hopper(tmp_path: Path) -> None:
    found = lowered("sm_90", tmp_path, "--only", "small_gemm_nvfp4")
    assert len(found) == 2
    assert_tensor_cores(found, "sm_90")
    assert "wgmma" in found["small_gemm_nvfp4_18432x2560"]


def test_streamed_codes_go_straight_to_registers(tmp_path: Path) -> None:
    found = lowered("sm_90", tmp_path, "--only", "streamed")
    shapes = [
        f"{name}_{shape}" for name in ("nvfp4", "fp8") for shape in ("18432x2560", "2560x9216")
    ]
    assert set(found) == {"streamed_gains_2560", *(f"streamed_{shape}" for shape in shapes)}
    assert_tensor_cores(found, "sm_90")
    for name, ptx in found.items():
        # No copy to shared memory.
        assert "cp.async" not in ptx, name


def test_the_narrowest_heads_compile(tmp_path: Path) -> None:
    found = lowered("sm_90", tmp_path, "--only", "4x32")
    kinds = (kernel + mode for kernel in ("prepare", "apply") for mode in ("", "_fold", "_prefill"))
    assert set(found) == {f"delta_{kind}_4x32" for kind in kinds}
    assert_tensor_cores(found, "sm_90")


@pytest.mark.slow
@pytest.mark.parametrize("arch", TENSOR_CORES)
def test_every_kernel_compiles(arch: str, tmp_path: Path) -> None:
    found = lowered(arch, tmp_path)
    assert {name.split("_")[0] for name in found} == {
        "small", "two", "streamed", "delta", "gated", "attention", "draft", "choice", "head"
    }  # fmt: skip
    assert_tensor_cores(found, arch)
