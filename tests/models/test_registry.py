"""From a folder to a model that is ready, and every folder that is not one."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer as Backend
from tokenizers import decoders, models, pre_tokenizers

from ocria.errors import WeightsError
from ocria.models import finding, registry
from ocria.models.base import ImagePatches
from ocria.models.qwen3_5.config import Qwen35Config
from ocria.models.qwen3_5.model import Qwen35
from ocria.weights import CheckpointReader, Manifest, verify, write_manifest
from ocria.weights.manifest import digest_files
from ocria.weights.shards import SINGLE_FILE

CPU = torch.device("cpu")
SPECIALS = {0: "<pad>", 1: "<eos>", 2: "<vs>", 3: "<ve>", 260: "<|image_pad|>", 262: "<|mask|>"}
TEXT: dict[str, Any] = {
    "vocab_size": 272,
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
    "eos_token_id": 1,
    "rope_parameters": {"partial_rotary_factor": 0.5, "mrope_section": [2, 1, 1]},
}
VISION: dict[str, Any] = {
    "depth": 1,
    "hidden_size": 16,
    "num_heads": 2,
    "intermediate_size": 32,
    "patch_size": 4,
    "out_hidden_size": 32,
    "num_position_embeddings": 16,
}
CONFIG: dict[str, Any] = {
    "model_type": "qwen3_5",
    "tie_word_embeddings": True,
    "image_token_id": 260,
    "video_token_id": 261,
    "vision_start_token_id": 2,
    "vision_end_token_id": 3,
    "text_config": TEXT,
    "vision_config": VISION,
}


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checkpoint")
    torch.manual_seed(3)
    model = Qwen35(Qwen35Config.from_mapping(CONFIG))
    tensors = {name: torch.randn(v.shape) * 0.05 for name, v in model.state_dict().items()}
    save_file({name: t.bfloat16() for name, t in tensors.items()}, folder / SINGLE_FILE)
    write_json(folder / "config.json", CONFIG)
    write_json(folder / "generation_config.json", {"eos_token_id": 1})
    write_json(folder / "tokenizer_config.json", {"eos_token": "<eos>"})
    byte_tokenizer().save(str(folder / "tokenizer.json"))
    return folder


def byte_tokenizer() -> Backend:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {piece: index + 4 for index, piece in enumerate(alphabet)}
    vocabulary |= {text: index for index, text in SPECIALS.items()}
    backend = Backend(models.BPE(vocab=vocabulary, merges=[]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    document = json.loads(backend.to_str())
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    document["added_tokens"] = [
        {"id": index, "content": text, **flags, "special": True} for index, text in SPECIALS.items()
    ]
    return Backend.from_str(json.dumps(document))


def write_json(path: Path, content: object) -> None:
    path.write_text(json.dumps(content))


@pytest.fixture
def folder(template: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(template, tmp_path / "small"))


def load(folder: Path) -> registry.LoadedModel:
    return registry.load(folder, device=CPU, dtype=torch.float32)


def change_weights(folder: Path, **changes: torch.Tensor | None) -> None:
    tensors = load_file(folder / SINGLE_FILE)
    for name, value in changes.items():
        tensors.pop(name, None)
        if value is not None:
            tensors[name] = value
    save_file(tensors, folder / SINGLE_FILE)


def test_a_folder_becomes_a_model(folder: Path) -> None:
    loaded = load(folder)
    assert loaded.info.name == "small" and loaded.info.precision == "bf16"
    assert len(loaded.info.digest) == 64
    assert loaded.report.unexpected == () and loaded.report.renamed == ()
    page = ImagePatches(torch.randn(16, 48), 4, 4)
    tokens_ND = loaded.target.encode_image(page)
    assert tokens_ND.shape == (4, 32) and torch.isfinite(tokens_ND).all()


def test_special_ids_come_from_the_tokenizer_and_unused_rows_are_suppressed(folder: Path) -> None:
    tokens = load(folder).tokens
    assert tokens.stop_ids == {1}
    assert tokens.suppressed_ids == {2, 3, *range(260, 272)}
    prompt = tokens.prompt.fill(2, 3)
    assert prompt.token_ids == (2, *[260] * 6, 3) and prompt.image_start == 1
    assert (prompt.grid_h, prompt.grid_w) == (2, 3)


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("generation_config.json", {"eos_token_id": [7, 8]}),
        ("tokenizer_config.json", {"eos_token": "<pad>"}),
        ("config.json", {**CONFIG, "eos_token_id": 9}),
    ],
)
def test_files_that_disagree_on_the_stop_token_are_refused(
    folder: Path, file: str, content: object
) -> None:
    write_json(folder / file, content)
    with pytest.raises(WeightsError, match="disagree on the stop token"):
        load(folder)


def test_a_stale_stop_id_without_a_token_is_ignored(folder: Path) -> None:
    write_json(folder / "config.json", {**CONFIG, "eos_token_id": 248044})
    assert load(folder).tokens.stop_ids == {1}


def test_several_stop_tokens_are_all_taken(folder: Path) -> None:
    write_json(folder / "generation_config.json", {"eos_token_id": [1, 0]})
    write_json(folder / "config.json", {**CONFIG, "eos_token_id": 0})
    assert load(folder).tokens.stop_ids == {0, 1}


def test_no_stop_token_is_refused(folder: Path) -> None:
    (folder / "generation_config.json").unlink()
    (folder / "tokenizer_config.json").unlink()
    text = {key: value for key, value in TEXT.items() if key != "eos_token_id"}
    write_json(folder / "config.json", {**CONFIG, "text_config": text})
    with pytest.raises(WeightsError, match="no stop token"):
        load(folder)


def test_a_stop_token_that_is_no_text_is_refused(folder: Path) -> None:
    (folder / "tokenizer_config.json").write_text('{"eos_token": {"content": 3}}')
    with pytest.raises(WeightsError, match="`eos_token` must be text"):
        load(folder)


def test_another_image_token_than_the_tokenizer_s_is_refused(folder: Path) -> None:
    write_json(folder / "config.json", {**CONFIG, "image_token_id": 100})
    with pytest.raises(WeightsError, match="disagree on the image token"):
        load(folder)


def test_a_tokenizer_larger_than_the_model_is_refused(folder: Path) -> None:
    text = {**TEXT, "vocab_size": 250}
    write_json(folder / "config.json", {**CONFIG, "text_config": text})
    with pytest.raises(WeightsError, match="ids up to 262, the model only 250 rows"):
        load(folder)


def test_heads_for_several_tokens_are_reported_not_dropped(folder: Path) -> None:
    change_weights(folder, **{"mtp.fc.weight": torch.ones(2), "model.extra": torch.ones(1)})
    assert load(folder).report.unexpected == ("model.extra", "mtp.fc.weight")


def test_a_missing_tensor_is_named(folder: Path) -> None:
    change_weights(folder, **{"model.language_model.norm.weight": None})
    with pytest.raises(WeightsError, match=r"lacks model\.language_model\.norm\.weight"):
        load(folder)


def test_weights_of_another_size_are_refused(folder: Path) -> None:
    write_json(folder / "config.json", {**CONFIG, "text_config": {**TEXT, "intermediate_size": 64}})
    with pytest.raises(WeightsError, match="the model wants"):
        load(folder)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("model.language_model.", "language_model.model."),
        ("model.language_model.", "model."),
        ("model.visual.", "visual."),
        ("model.visual.", "vision_tower."),
    ],
)
def test_older_and_foreign_prefixes_are_understood(folder: Path, ours: str, theirs: str) -> None:
    tensors = load_file(folder / SINGLE_FILE)
    renamed = {
        theirs + name.removeprefix(ours) if name.startswith(ours) else name: value
        for name, value in tensors.items()
    }
    save_file(renamed, folder / SINGLE_FILE)
    report = load(folder).report
    assert report.unexpected == ()
    assert len(report.renamed) == sum(name.startswith(ours) for name in tensors)


def test_norms_with_one_added_are_refused(folder: Path) -> None:
    tensors = load_file(folder / SINGLE_FILE)
    baked = {
        name: value + 1
        for name, value in tensors.items()
        if name.endswith(("layernorm.weight", "q_norm.weight", "k_norm.weight"))
    }
    save_file({**tensors, **baked}, folder / SINGLE_FILE)
    with pytest.raises(WeightsError, match="1 already added"):
        load(folder)


def test_a_manifest_names_the_model_and_guards_its_size(folder: Path) -> None:
    manifest = Manifest(
        name="given", licence="MIT", training="", precision="p", files=digest_files(folder)
    )
    write_manifest(folder, manifest)
    info = load(folder).info
    assert (info.name, info.digest, info.precision) == ("given", manifest.digest, "p")
    weights = folder / SINGLE_FILE
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(WeightsError, match="damaged checkpoint"):
        load(folder)


def test_unknown_models_are_told_the_names(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match="model `nothing` is unknown") as caught:
        finding.find_checkpoint("nothing")
    assert "ocria-nano" in (caught.value.hint or "")
    assert "chandra-ocr-2" in (caught.value.hint or "")
    with pytest.raises(WeightsError, match="is not a checkpoint folder"):
        finding.find_checkpoint(tmp_path)
    with pytest.raises(WeightsError, match="is unknown"):
        finding.find_checkpoint("/some/where")
    with pytest.raises(WeightsError, match="is unknown"):
        finding.find_checkpoint("x" * 300)
    with pytest.raises(WeightsError, match="is unknown"):
        finding.named_drafter("x" * 300)


def test_a_file_s_name_asks_no_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "some").mkdir()
    (tmp_path / "some" / "file.bin").write_bytes(b"weights")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(finding, "fetch", lambda *_, **__: pytest.fail("asked the hub"))
    with pytest.raises(WeightsError, match="it is a file"):
        finding.find_checkpoint("some/file.bin")


def test_a_folder_is_found_by_its_path(folder: Path) -> None:
    assert finding.find_checkpoint(str(folder)) == folder


def test_the_shipped_checkpoint_is_whole_and_within_its_bytes() -> None:
    rows = {row.name: row for row in finding.list_checkpoints()}
    row = rows["ocria-nano"]
    assert verify(row.folder) == ()
    assert (row.licence, row.precision) == ("Apache-2.0", "nvfp4+fp8")
    sizes = {file.name: file.stat().st_size for file in row.folder.iterdir()}
    assert max(sizes.values()) < 16 << 20
    vision = sum(size for name, size in sizes.items() if name.startswith("vision-"))
    decoder = sum(size for n, size in sizes.items() if n.startswith(("decoder-", "embedding-")))
    assert vision <= 30.5 * (1 << 20) and decoder <= 19 << 20
    files = row.folder / "drafter"
    assert row.drafter_bytes == sum(file.stat().st_size for file in files.iterdir()) <= 4 << 20


def test_the_shipped_tower_is_not_quantised() -> None:
    reader = CheckpointReader(finding.find_checkpoint("ocria-nano"))
    vision = [info for info in reader if info.name.startswith("model.visual.")]
    assert vision and {info.dtype for info in vision} == {torch.bfloat16}
    assert all(info.shard.startswith("vision-") for info in vision)
