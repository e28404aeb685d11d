"""What a model takes, and what is said when it does not fit."""

import shutil
from pathlib import Path

import pytest
import torch

from ocria.errors import DeviceError
from ocria.models.finding import find_checkpoint
from ocria.models.registry import Checkpoint, open_checkpoint
from ocria.options import DEFAULT_MODEL, ParseOptions
from ocria.pipeline import admission
from ocria.pipeline.admission import MemoryNeed, admit, memory_need, mixed_bytes, weight_bytes
from ocria.pipeline.page_reader import load_page_reader

CPU, CUDA = torch.device("cpu"), torch.device("cuda")
GB = 1_000_000_000


@pytest.fixture(scope="module")
def shipped() -> Checkpoint:
    return open_checkpoint(find_checkpoint(DEFAULT_MODEL), device=CPU)


def free(monkeypatch: pytest.MonkeyPatch, num_bytes: int) -> None:
    monkeypatch.setattr(admission, "free_bytes", lambda device: num_bytes)


def test_weights_count_as_they_lie_on_the_device(shipped: Checkpoint) -> None:
    source = shipped.source
    plain = weight_bytes(source, torch.bfloat16, in_codes=False)
    codes = weight_bytes(source, torch.bfloat16, in_codes=True)
    numbers = sum(torch.Size(source.shape(name)).numel() for name in source.names())
    assert plain == 2 * numbers
    stored = sum(info.num_bytes for info in source._reader)  # type: ignore[union-attr]
    assert codes == pytest.approx(stored, rel=0.02) and codes < 0.7 * plain


def test_a_page_s_state_grows_with_its_length(shipped: Checkpoint) -> None:
    def need(positions: int, pixels: int = 1_000_000) -> MemoryNeed:
        return memory_need(
            shipped,
            device=CUDA,
            dtype=torch.bfloat16,
            max_positions=positions,
            max_pixels=pixels,
        )

    layout = 2 * 2 * sum(kind == "full_attention" for kind in shipped.config.text.layer_types)
    layout *= shipped.config.text.num_key_value_heads * shipped.config.text.head_dim
    assert need(2048).state - need(1024).state == 1024 * layout
    assert need(1024, 4_000_000).activations == pytest.approx(4 * need(1024).activations, rel=1e-3)
    assert need(1024).total == need(1024).weights + need(1024).state + need(1024).activations


def test_what_does_not_fit_is_told_with_what_would(
    shipped: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    need = MemoryNeed(weights=19 * GB, state=GB, activations=GB)
    free(monkeypatch, 21 * GB)
    admit(need, shipped, CUDA)
    free(monkeypatch, 20 * GB)
    with pytest.raises(DeviceError) as caught:
        admit(need, shipped, CUDA)
    assert str(caught.value) == (
        "ocria-nano needs 21.0 GB on cuda (weights 19.0 GB, a page's state 1.0 GB, "
        "activations 1.0 GB), and 20.0 GB are free"
    )
    assert "`--precision mixed` needs" in (caught.value.hint or "")
    # On a CPU codes are expanded: rounding saves nothing there.
    with pytest.raises(DeviceError) as caught:
        admit(need, shipped, CPU)
    hint = caught.value.hint or ""
    assert "chandra-ocr-2" in hint and "qwen3.5-27b" not in hint and "mixed" not in hint
    free(monkeypatch, 0)
    with pytest.raises(DeviceError) as caught:
        admit(need, shipped, CPU)
    assert "a device with more memory" in (caught.value.hint or "")


def test_mixed_takes_about_the_stored_bytes(shipped: Checkpoint) -> None:
    stored = weight_bytes(shipped.source, torch.bfloat16, in_codes=True)
    assert mixed_bytes(shipped.source) == pytest.approx(stored, rel=0.02)


def test_the_program_ends_before_the_weights_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    free(monkeypatch, 1000)
    monkeypatch.setattr("ocria.pipeline.page_reader.fill", None)
    with pytest.raises(DeviceError, match="ocria-nano needs"):
        load_page_reader(ParseOptions(device="cpu"))


def test_memory_that_went_away_while_loading(monkeypatch: pytest.MonkeyPatch) -> None:
    def run_out(*arguments: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr("ocria.pipeline.page_reader.fill", run_out)
    with pytest.raises(DeviceError, match="out of memory while loading ocria-nano"):
        load_page_reader(ParseOptions(device="cpu"))


def test_precision_is_told_in_the_result(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(find_checkpoint(DEFAULT_MODEL), tmp_path / "copy"))
    expanded = open_checkpoint(folder, device=CPU, precision="bf16")
    assert expanded.info.precision == "bf16"
    mixed = open_checkpoint(folder, device=CPU, precision="mixed")
    # Its products are in codes already, but for one that calibration left in FP8.
    assert mixed.info.precision == "nvfp4+fp8"
