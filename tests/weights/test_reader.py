"""Reading safetensors folders, whole and damaged."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from ocria.errors import WeightsError
from ocria.weights import CheckpointReader
from ocria.weights.shards import INDEX_FILE, SINGLE_FILE

ONE = {"a.weight": torch.arange(12, dtype=torch.bfloat16).view(3, 4), "a.bias": torch.zeros(3)}
TWO = {"b.weight": torch.ones(2, 2, dtype=torch.float8_e4m3fn)}


@pytest.fixture
def sharded(tmp_path: Path) -> Path:
    save_file(ONE, tmp_path / "one.safetensors")
    save_file(TWO, tmp_path / "two.safetensors")
    weight_map = {**dict.fromkeys(ONE, "one.safetensors"), **dict.fromkeys(TWO, "two.safetensors")}
    (tmp_path / INDEX_FILE).write_text(json.dumps({"weight_map": weight_map}))
    return tmp_path


def test_a_single_file_is_listed_and_read(tmp_path: Path) -> None:
    save_file(ONE, tmp_path / SINGLE_FILE)
    reader = CheckpointReader(tmp_path)
    assert {info.name for info in reader} == set(ONE) and len(reader) == 2
    info = reader.info("a.weight")
    assert info == ("a.weight", torch.bfloat16, (3, 4), SINGLE_FILE)
    assert info.num_bytes == 24
    assert torch.equal(reader.read("a.weight"), ONE["a.weight"])
    assert torch.equal(reader.read_rows("a.weight", 1, 3), ONE["a.weight"][1:3])


def test_shards_are_joined(sharded: Path) -> None:
    reader = CheckpointReader(sharded)
    assert reader.shards == ("one.safetensors", "two.safetensors")
    assert reader.info("b.weight").shard == "two.safetensors"
    assert torch.equal(reader.read("b.weight").float(), torch.ones(2, 2))


def test_an_unknown_name_is_refused(sharded: Path) -> None:
    with pytest.raises(WeightsError, match="no tensor `c`"):
        CheckpointReader(sharded).read("c")


def test_a_folder_without_weights_says_what_it_lacks(tmp_path: Path) -> None:
    (tmp_path / "pytorch_model.bin").write_bytes(b"pickle")
    with pytest.raises(WeightsError, match="no weights in") as caught:
        CheckpointReader(tmp_path)
    assert SINGLE_FILE in (caught.value.hint or "")


def test_a_missing_shard_is_named(sharded: Path) -> None:
    (sharded / "two.safetensors").unlink()
    with pytest.raises(WeightsError, match=r"shards missing in .*: two\.safetensors"):
        CheckpointReader(sharded)


@pytest.mark.parametrize("kept", [0, 5, 60, -1])
def test_a_shard_cut_short_is_named_with_its_repair(sharded: Path, kept: int) -> None:
    content = (sharded / "one.safetensors").read_bytes()
    (sharded / "one.safetensors").write_bytes(content[:kept])
    with pytest.raises(WeightsError, match=r"damaged weights file: .*one\.safetensors") as caught:
        CheckpointReader(sharded)
    assert "ocria models --verify" in (caught.value.hint or "")


def test_a_file_of_noise_is_refused(sharded: Path) -> None:
    (sharded / "one.safetensors").write_bytes(b"<html>not found</html>" * 9)
    with pytest.raises(WeightsError, match="damaged weights file"):
        CheckpointReader(sharded)


def test_an_index_that_lies_is_refused(sharded: Path) -> None:
    index = json.loads((sharded / INDEX_FILE).read_text())
    index["weight_map"]["a.bias"] = "two.safetensors"
    (sharded / INDEX_FILE).write_text(json.dumps(index))
    with pytest.raises(WeightsError, match=r"places `a.bias` in two\.safetensors"):
        CheckpointReader(sharded)


@pytest.mark.parametrize(
    "content",
    [
        "{", "[]", "{}", '{"weight_map": {"a": null}}', '{"weight_map": {"a": ["x"]}}',
        '{"weight_map": {"a": ""}}', "[" * 100_000,
    ],
)  # fmt: skip
def test_a_damaged_index_is_refused(sharded: Path, content: str) -> None:
    (sharded / INDEX_FILE).write_text(content)
    with pytest.raises(WeightsError, match="damaged index"):
        CheckpointReader(sharded)


def test_an_index_cannot_reach_outside_its_folder(sharded: Path, tmp_path: Path) -> None:
    folder = tmp_path / "inner"
    folder.mkdir()
    weight_map = dict.fromkeys(ONE, "../one.safetensors")
    (folder / INDEX_FILE).write_text(json.dumps({"weight_map": weight_map}))
    with pytest.raises(WeightsError, match="outside its folder"):
        CheckpointReader(folder)


def test_one_name_in_two_shards_is_refused(sharded: Path) -> None:
    save_file({**TWO, "a.bias": torch.ones(3)}, sharded / "two.safetensors")
    with pytest.raises(WeightsError, match=r"`a\.bias` is in two shards"):
        CheckpointReader(sharded)
