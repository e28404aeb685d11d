"""The recipe of shipped checkpoints: same bytes, joint scales, the right weights quantised."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from ocria.errors import WeightsError
from ocria.models.qwen3_5.config import Qwen35Config, read_config
from ocria.models.qwen3_5.model import Qwen35
from ocria.models.recipes.checkpoint import make
from ocria.quantization.compressed_tensors import quantization_config
from ocria.quantization.source import QuantizedSource
from ocria.weights import CheckpointReader, verify
from ocria.weights.shards import SINGLE_FILE

CONFIG = {
    "model_type": "qwen3_5",
    "tie_word_embeddings": True,
    "image_token_id": 60,
    "vision_start_token_id": 2,
    "vision_end_token_id": 3,
    "text_config": {
        "vocab_size": 64,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 16,
        "linear_num_key_heads": 2,
        "linear_num_value_heads": 2,
        "linear_key_head_dim": 16,
        "linear_value_head_dim": 16,
        "linear_conv_kernel_dim": 4,
        "layer_types": ["linear_attention", "full_attention"],
        "max_position_embeddings": 512,
        "rope_parameters": {"partial_rotary_factor": 0.5, "mrope_section": [2, 1, 1]},
    },
    "vision_config": {
        "depth": 1,
        "hidden_size": 16,
        "num_heads": 2,
        "intermediate_size": 32,
        "patch_size": 4,
        "out_hidden_size": 32,
        "num_position_embeddings": 16,
    },
}
LAYER = "model.language_model.layers."


def tensors() -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(5)
    model = Qwen35(Qwen35Config.from_mapping(CONFIG))
    return {
        name: (torch.randn(value.shape, generator=generator) * 0.05).bfloat16()
        for name, value in model.state_dict().items()
    }


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "bf16"
    folder.mkdir()
    save_file(tensors(), folder / SINGLE_FILE)
    (folder / "config.json").write_text(json.dumps(CONFIG))
    (folder / "preprocessor_config.json").write_text('{"size": {"longest_edge": 65536}}')
    (folder / "tokenizer.json").write_text("{}")
    return folder


def run(source: Path, target: Path) -> Path:
    make.make(source, target, name="small", training="on nothing", grayscale=True)
    return target


def opened(folder: Path) -> QuantizedSource:
    config = json.loads((folder / "config.json").read_text())
    return QuantizedSource(CheckpointReader(folder), quantization_config(config))


def test_the_same_source_gives_the_same_bytes(source: Path, tmp_path: Path) -> None:
    first, second = run(source, tmp_path / "a"), run(source, tmp_path / "b")
    names = sorted(path.name for path in first.iterdir())
    assert names == sorted(path.name for path in second.iterdir())
    assert all((first / name).read_bytes() == (second / name).read_bytes() for name in names)
    assert verify(first) == ()


def test_each_weight_has_the_format_it_should(source: Path, tmp_path: Path) -> None:
    made, before = opened(run(source, tmp_path / "a")), tensors()
    assert set(made.names()) == set(before)
    formats = {name: made.scheme(name) for name in before}
    by_format = {name: scheme.name for name, scheme in formats.items() if scheme is not None}
    assert by_format.pop("model.language_model.embed_tokens.weight") == "fp8"
    assert set(by_format.values()) == {"nvfp4"}
    assert {name.removeprefix(LAYER)[2:] for name in by_format} == {
        *(f"mlp.{part}_proj.weight" for part in ("gate", "up", "down")),
        *(f"self_attn.{part}_proj.weight" for part in "qkvo"),
        *(f"linear_attn.{part}.weight" for part in ("in_proj_qkv", "in_proj_z", "out_proj")),
    }
    for name, scheme in formats.items():
        found, expected = made.read(name, torch.float32), before[name].float()
        error = float((found - expected).norm() / expected.norm())
        assert error < {None: 1e-9, "nvfp4": 0.13, "fp8": 0.04}[scheme and scheme.name], name


def test_fused_projections_share_their_global_scale(source: Path, tmp_path: Path) -> None:
    unlike = tensors()
    for name in ("0.mlp.gate_proj", "0.linear_attn.in_proj_z", "1.self_attn.k_proj"):
        unlike[f"{LAYER}{name}.weight"] *= 8
    save_file(unlike, source / SINGLE_FILE)
    reader = CheckpointReader(run(source, tmp_path / "a"))

    def scale(name: str) -> float:
        return float(reader.read(f"{LAYER}{name}.weight_global_scale"))

    assert scale("0.mlp.gate_proj") == scale("0.mlp.up_proj") != scale("1.mlp.up_proj")
    assert scale("0.linear_attn.in_proj_qkv") == scale("0.linear_attn.in_proj_z")
    assert len({scale(f"1.self_attn.{part}_proj") for part in "qkv"}) == 1
    assert scale("0.mlp.down_proj") != scale("0.mlp.up_proj")


def test_settings_and_card_are_written(source: Path, tmp_path: Path) -> None:
    folder = run(source, tmp_path / "a")
    preprocessor = json.loads((folder / "preprocessor_config.json").read_text())
    assert preprocessor["do_grayscale"] is True
    card = (folder / "README.md").read_text()
    assert "# small" in card and "on nothing" in card and "65,536 pixels" in card
    assert {path.stat().st_mode & 0o777 for path in folder.glob("*.safetensors")} == {0o644}


def test_shards_are_cut_at_the_limit_and_the_total_is_guarded(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(make, "_SHARD_TENSOR_BYTES", 4096)
    folder = run(source, tmp_path / "a")
    assert len(list(folder.glob("vision-*"))) > 1
    assert set(opened(folder).names()) == set(tensors())
    monkeypatch.setattr(make, "DECODER_LIMIT", 4096)
    with pytest.raises(ValueError, match="over 4096 bytes"):
        run(source, tmp_path / "b")


def test_a_folder_in_use_is_not_written_over(source: Path, tmp_path: Path) -> None:
    run(source, tmp_path / "a")
    with pytest.raises(ValueError, match="not empty"):
        run(source, tmp_path / "a")


def test_damaged_weights_and_other_models_are_refused(source: Path, tmp_path: Path) -> None:
    broken = tensors()
    broken[f"{LAYER}1.mlp.up_proj.weight"][0, 0] = float("nan")
    save_file(broken, source / SINGLE_FILE)
    with pytest.raises(ValueError, match="finite"):
        run(source, tmp_path / "a")
    (source / "config.json").write_text('{"model_type": "llama"}')
    with pytest.raises(WeightsError, match="unknown architecture"):
        run(source, tmp_path / "b")


def test_decoder_of_a_quantised_folder_is_taken_as_it_is(source: Path, tmp_path: Path) -> None:
    plain = run(source, tmp_path / "plain")
    shard = next(plain.glob("decoder-*.safetensors"))
    changed = {name: tensor.clone() for name, tensor in load_file(shard).items()}
    name = next(name for name in changed if name.endswith("weight_packed"))
    changed[name].fill_(17)
    save_file(changed, shard)
    target = tmp_path / "calibrated"
    make.make(source, target, name="small", training="on nothing", grayscale=True, quantized=plain)
    assert torch.equal(CheckpointReader(target).read(name), changed[name])
    assert read_config(target) == read_config(plain)
    assert not verify(target)
    assert "same token" not in (target / "README.md").read_text(encoding="utf-8")


def test_what_was_measured_goes_into_the_card(source: Path, tmp_path: Path) -> None:
    plain = run(source, tmp_path / "plain")
    rows = [f"{LAYER}{n}.mlp.down_proj,1536,0.00{n:02},0.9{n},0.1,nvfp4" for n in range(30, 10, -1)]
    head = "site,weights,kl_nats,agreement,fp8_ratio,format"
    (plain / "sensitivity.csv").write_text("\n".join([head, *rows]) + "\n")
    (plain / "sensitivity.svg").write_text("<svg/>")
    target = tmp_path / "calibrated"
    make.make(source, target, name="small", training="on nothing", grayscale=True, quantized=plain)
    text = (target / "README.md").read_text(encoding="utf-8")
    assert "The 12 of 20 that lose most" in text
    assert "| `30.mlp.down_proj` | 1,536 | 0.0030 | 0.930 | nvfp4 |" in text
    assert "`18.mlp" not in text and "](sensitivity.svg)" in text
    assert (target / "sensitivity.svg").read_text() == "<svg/>"
