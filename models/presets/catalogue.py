"""All presets, and which of them fits a checkpoint folder."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ocria.models.presets.chandra import CHANDRA_OCR_2
from ocria.models.presets.generic import GENERIC, NATIVE
from ocria.models.presets.infinity_parser import INFINITY_PARSER_2_FLASH, INFINITY_PARSER_2_PRO
from ocria.models.presets.nuextract import NUEXTRACT_3
from ocria.models.presets.preset import Preset
from ocria.models.presets.qwen import QWEN_BASE
from ocria.models.presets.surya import SURYA_OCR_2, SURYA_OCR_2_5

PRESETS: tuple[Preset, ...] = (
    CHANDRA_OCR_2,
    SURYA_OCR_2,
    SURYA_OCR_2_5,
    NUEXTRACT_3,
    INFINITY_PARSER_2_PRO,
    INFINITY_PARSER_2_FLASH,
    *QWEN_BASE,
)
PRESET_KEY = "ocria_preset"
"""Key of config.json that names the preset; `ocria quantize` writes it, people may."""

_BY_NAME = {preset.name: preset for preset in (*PRESETS, GENERIC, NATIVE)}
_MARKER_TOKENS = frozenset({"<|paragraph|>", "<|fcel|>", "<|511|>"})


def preset_named(name: str) -> Preset | None:
    """The preset of this name or hub id, whatever its case; None if there is none."""
    wanted = name.lower()
    for preset in PRESETS:
        if wanted in (preset.name, (preset.hub_id or "").lower()):
            return preset
    return _BY_NAME.get(wanted)


def preset_of(folder: Path, config: Mapping[str, Any], special_tokens: Mapping[str, int]) -> Preset:
    """The preset that a checkpoint folder is to be read with.

    In this order: what config.json names under `ocria_preset`; our own markup in the vocabulary;
    a known name in the folder's own name (exports are called `chandra-ocr-2-NVFP4A16`), in the
    hub's cache above it, or in config.json's `_name_or_path`; else `generic`.

    Args:
        folder: the checkpoint.
        config: its config.json, parsed.
        special_tokens: special tokens of its tokenizer, by their text.
    """
    named = preset_named(str(config.get(PRESET_KEY, "")))
    if named is not None:
        return named
    if special_tokens.keys() >= _MARKER_TOKENS or "<|im_start|>" not in special_tokens:
        return NATIVE
    return _by_place(folder, config) or GENERIC


def with_preset(config: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The config of a checkpoint that will lie elsewhere: it names the preset its place told."""
    found = None if PRESET_KEY in config else _by_place(folder, config)
    return {**config, **({PRESET_KEY: found.name} if found else {})}


def _by_place(folder: Path, config: Mapping[str, Any]) -> Preset | None:
    path = folder.absolute()
    cached = [part for part in path.parts if part.startswith("models--")]
    places = (path.name, *cached, str(config.get("_name_or_path", "")))
    return next((preset for place in places for preset in _named_in(place)), None)


def _named_in(place: str) -> list[Preset]:
    """Presets whose name a path's part holds as a whole, the longest name first."""
    text = place.lower().replace("--", "/")
    found = [
        preset
        for preset in PRESETS
        if re.search(rf"(?<![\w.]){re.escape(preset.name)}(?![\w.])", text)
    ]
    return sorted(found, key=lambda preset: -len(preset.name))
