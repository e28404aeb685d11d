"""The preprocessor file of a checkpoint: where it lies, what it may say, what is refused."""

import json
import pickle

import pytest

from ocria.errors import WeightsError
from ocria.vision import PreprocessorConfig

FIELDS = {
    "image_mean": [0.5, 0.4, 0.3],
    "image_std": [0.5, 0.5, 0.5],
    "patch_size": 16,
    "merge_size": 2,
    "size": {"shortest_edge": 65536, "longest_edge": 1441792},
    "do_grayscale": True,
}


def test_reads_the_plain_file(tmp_path):
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(FIELDS))
    config = PreprocessorConfig.from_folder(tmp_path)
    assert (config.min_pixels, config.max_pixels) == (65536, 1441792)
    assert config.image_mean == (0.5, 0.4, 0.3)
    assert config.do_grayscale


def test_reads_the_nested_file(tmp_path):
    nested = {"processor_class": "Qwen3VLProcessor", "image_processor": FIELDS}
    (tmp_path / "processor_config.json").write_text(json.dumps(nested))
    assert PreprocessorConfig.from_folder(tmp_path).max_pixels == 1441792


@pytest.mark.parametrize(
    "change",
    [
        {"image_mean": [0.5, 0.5]},
        {"size": {"shortest_edge": 100, "longest_edge": 10}},
        {"patch_size": 0},
        {"patch_size": "large"},
        {"resample": 2},
        {"do_normalize": False},
        {"size": 5},
    ],
)
def test_refuses_what_it_cannot_honour(tmp_path, change):
    (tmp_path / "preprocessor_config.json").write_text(json.dumps({**FIELDS, **change}))
    with pytest.raises(WeightsError) as caught:
        PreprocessorConfig.from_folder(tmp_path)
    assert "preprocessor_config.json" in str(caught.value)
    assert caught.value.hint


@pytest.mark.parametrize("content", ["", "[]", "{", '{"processor_class": "x"}'])
def test_refuses_a_file_that_is_none(tmp_path, content):
    (tmp_path / "preprocessor_config.json").write_text(content)
    with pytest.raises(WeightsError):
        PreprocessorConfig.from_folder(tmp_path)


def test_missing_file(tmp_path):
    with pytest.raises(WeightsError, match=r"has no preprocessor_config\.json"):
        PreprocessorConfig.from_folder(tmp_path)


def test_size_rule_crosses_process_borders():
    rule = PreprocessorConfig().size_rule
    assert pickle.loads(pickle.dumps(rule))(1754, 1240) == rule(1754, 1240) == (1760, 1248)
