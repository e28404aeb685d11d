"""Which preset a checkpoint gets, and the prompt that comes of it."""

import json
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer as Backend
from tokenizers import decoders, models, pre_tokenizers

from ocria.errors import WeightsError
from ocria.models import finding
from ocria.models.chat_template import read_chat_template, render_turn
from ocria.models.presets import GENERIC, NATIVE, PRESETS, Preset, preset_named, preset_of
from ocria.models.qwen3_5.config import Qwen35Config
from ocria.models.special_tokens import SpecialTokens, special_tokens
from ocria.options import DEFAULT_MODEL
from ocria.tokenizer import Tokenizer
from ocria.weights import hub_cache

from .test_registry import CONFIG, TEXT

CHAT = {"<|im_start|>": 1, "<|im_end|>": 2}
TEMPLATE = (
    "{%- for m in messages -%}{{ '<|im_start|>' + m.role + '\n' }}"
    "{%- for c in m.content -%}{%- if c.type == 'image' -%}"
    "<|vision_start|><|image_pad|><|vision_end|>"
    "{%- else -%}{{ c.text }}{%- endif -%}{%- endfor -%}{{ '<|im_end|>\n' }}{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\n' }}"
    "{%- if enable_thinking is defined and not enable_thinking -%}"
    "{{ '<think>\n\n</think>\n\n' }}{%- endif -%}{%- endif -%}"
)
SPECIALS = (
    *("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>"),
    *("<|image_pad|>", "<|video_pad|>", "<think>", "</think>"),
)


def chat_tokenizer(path: Path) -> Tokenizer:
    """Byte-level, with the specials of the family at 300 and on."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    ids = {text: 300 + place for place, text in enumerate(SPECIALS)}
    vocabulary = {piece: place for place, piece in enumerate(alphabet)} | ids
    backend = Backend(models.BPE(vocab=vocabulary, merges=[]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    document = json.loads(backend.to_str())
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    document["added_tokens"] = [
        {"id": index, "content": text, **flags, "special": True} for text, index in ids.items()
    ]
    Backend.from_str(json.dumps(document)).save(str(path))
    return Tokenizer(path)


def chat_config(**changes: Any) -> dict[str, Any]:
    ids = {text: 300 + place for place, text in enumerate(SPECIALS)}
    return {
        **CONFIG,
        "image_token_id": ids["<|image_pad|>"],
        "video_token_id": ids["<|video_pad|>"],
        "vision_start_token_id": ids["<|vision_start|>"],
        "vision_end_token_id": ids["<|vision_end|>"],
        "text_config": {**TEXT, "vocab_size": 320, "eos_token_id": ids["<|endoftext|>"]},
        **changes,
    }


def tokens_of(folder: Path, preset: Preset = GENERIC, **changes: Any) -> SpecialTokens:
    tokenizer = chat_tokenizer(folder / "tokenizer.json")
    config = Qwen35Config.from_mapping(chat_config(**changes))
    return special_tokens(folder, config, tokenizer, preset)


def prompt_text(folder: Path, tokens: SpecialTokens) -> str:
    tokenizer = Tokenizer(folder / "tokenizer.json")
    return tokenizer.spell(tokens.prompt.fill(1, 1).token_ids).text


def test_presets_have_names_and_ids_of_their_own() -> None:
    names = [preset.name for preset in PRESETS] + [DEFAULT_MODEL]
    assert len(set(names)) == len(names) and all(name == name.lower() for name in names)
    ids = [preset.hub_id or "" for preset in PRESETS]
    assert len(set(ids)) == len(ids) and all(hub_cache.parse_hub_id(found) for found in ids)
    for preset in (*PRESETS, GENERIC):
        assert preset.instruction == preset.instruction.strip() and preset.licence
        if preset.budget is not None:
            assert 0 < preset.budget.min_pixels < preset.budget.max_pixels


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("chandra-ocr-2", "chandra-ocr-2"),
        ("datalab-to/chandra-ocr-2", "chandra-ocr-2"),
        ("Datalab-To/Chandra-OCR-2", "chandra-ocr-2"),
        ("generic", "generic"),
        ("chandra", None),
        ("", None),
    ],
)
def test_a_preset_is_found_by_name_or_id(name: str, expected: str | None) -> None:
    found = preset_named(name)
    assert (found and found.name) == expected


@pytest.mark.parametrize(
    ("place", "config", "expected"),
    [
        ("x/chandra-ocr-2", {}, "chandra-ocr-2"),
        ("x/chandra-ocr-2-NVFP4A16", {}, "chandra-ocr-2"),
        ("hub/models--datalab-to--surya-ocr-2/snapshots/abc", {}, "surya-ocr-2"),
        ("hub/models--datalab-to--surya-ocr-2.5/snapshots/abc", {}, "surya-ocr-2.5"),
        ("hub/models--numind--NuExtract3/snapshots/abc", {}, "nuextract3"),
        ("hub/models--Qwen--Qwen3.5-4B/snapshots/abc", {}, "qwen3.5-4b"),
        ("x/mine", {"_name_or_path": "infly/Infinity-Parser2-Flash"}, "infinity-parser2-flash"),
        ("x/mine", {"ocria_preset": "surya-ocr-2"}, "surya-ocr-2"),
        ("x/chandra-ocr-2", {"ocria_preset": "generic"}, "generic"),
        ("chandra-ocr-2/mine", {}, "generic"),
        ("x/chandra-ocr-20", {}, "generic"),
        ("x/mine", {}, "generic"),
    ],
)
def test_a_folder_gets_its_preset(place: str, config: dict[str, str], expected: str) -> None:
    assert preset_of(Path("/data") / place, config, CHAT).name == expected


def test_our_own_vocabulary_decides() -> None:
    own = {"<|paragraph|>": 5, "<|fcel|>": 6, "<|511|>": 7, **CHAT}
    assert preset_of(Path("/data/chandra-ocr-2"), {}, own) is NATIVE
    assert preset_of(Path("/data/mine"), {}, {"<eos>": 1}) is NATIVE


def test_without_a_template_the_turn_is_the_family_s(tmp_path: Path) -> None:
    text = prompt_text(tmp_path, tokens_of(tmp_path))
    assert text == (
        "<|im_start|>user\n<|vision_start|><|image_pad|><|vision_end|>"
        f"{GENERIC.instruction}<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
    )


def test_the_checkpoint_s_own_template_is_rendered(tmp_path: Path) -> None:
    # As older checkpoints have it, with text first.
    template = "{{ messages[0].content[1].text }}|<|image_pad|>|{{ mode }}"
    (tmp_path / "tokenizer_config.json").write_text(
        json.dumps({"chat_template": [{"name": "default", "template": template}]})
    )
    preset = preset_named("nuextract3")
    assert preset is not None
    text = prompt_text(tmp_path, tokens_of(tmp_path, preset))
    assert text == f"{preset.instruction}|<|image_pad|>|markdown"
    (tmp_path / "chat_template.jinja").write_text(TEMPLATE)
    assert prompt_text(tmp_path, tokens_of(tmp_path)).endswith("<think>\n\n</think>\n\n")


def test_an_instruction_of_the_folder_counts_more(tmp_path: Path) -> None:
    (tmp_path / "instruction.txt").write_text("Read it.\n")
    assert "<|vision_end|>Read it.<|im_end|>" in prompt_text(tmp_path, tokens_of(tmp_path))


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("no image at all", "places the image token 305 0 times"),
        ("<|image_pad|><|image_pad|>", "305 2 times"),
        ("{{ raise_exception('only text') }}", "does not take a page: only text"),
        ("{% if %}", "does not take a page"),
        ("{{ messages[0].content + 1 }}", "does not take a page"),
        ("{{ ''.__class__.__mro__[1].__subclasses__() }}", "does not take a page"),
    ],
)
def test_a_template_that_cannot_be_used_is_refused(
    tmp_path: Path, template: str, words: str
) -> None:
    (tmp_path / "chat_template.jinja").write_text(template)
    with pytest.raises(WeightsError, match=words):
        tokens_of(tmp_path)


def test_templates_see_json_as_it_is() -> None:
    assert render_turn("{{ {'a': '<é>'} | tojson }}", "", {}) == '{"a": "<é>"}'


def test_a_damaged_template_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "chat_template.json").write_text("{")
    with pytest.raises(WeightsError, match="cannot read the chat template"):
        read_chat_template(tmp_path)


def test_both_ends_stop_and_thinking_cannot_begin(tmp_path: Path) -> None:
    (tmp_path / "generation_config.json").write_text('{"eos_token_id": 302}')
    tokens = tokens_of(tmp_path, eos_token_id=248044)
    assert tokens.stop_ids == {300, 302}
    assert 307 in tokens.suppressed_ids and 308 not in tokens.suppressed_ids


def test_a_name_leads_to_the_cache_and_a_path_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(
        finding, "fetch", lambda found, **options: asked.append(found.repo) or tmp_path
    )
    assert finding.find_checkpoint("chandra-ocr-2") == tmp_path
    assert finding.find_checkpoint("someone/else") == tmp_path
    assert asked == ["datalab-to/chandra-ocr-2", "someone/else"]
    with pytest.raises(WeightsError, match="is unknown"):
        finding.find_checkpoint(tmp_path / "not" / "there")
    assert len(asked) == 2
