"""ModelOpt's layout: which module is stored in which format, read from `hf_quant_config.json`.

The same facts may stand in a config.json's `quantization_config`, with quant_method `modelopt`.
Weights only: activations are computed in the run's own dtype whatever the config says of them.
Source: the export formats of NVIDIA's Model Optimizer.
"""

import fnmatch
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ocria.errors import WeightsError
from ocria.quantization.compressed_tensors import QuantizationConfig, TargetGroup
from ocria.quantization.schemes import MODELOPT_FP8, MODELOPT_NVFP4, SchemeName, WeightScheme

METHOD = "modelopt"
CONFIG_FILE = "hf_quant_config.json"
# W4A4 and W4A16 exports store the same weights.
ALGORITHMS: Mapping[str, WeightScheme] = {
    "NVFP4": MODELOPT_NVFP4,
    "W4A16_NVFP4": MODELOPT_NVFP4,
    "FP8": MODELOPT_FP8,
    "FP8_PER_CHANNEL_PER_TOKEN": MODELOPT_FP8,
    "FP8_PB_WO": MODELOPT_FP8,
}
_MIXED = "MIXED_PRECISION"


def read_config_file(folder: Path) -> QuantizationConfig | None:
    """Formats that a folder's `hf_quant_config.json` names, or None without such a file.

    Raises:
        WeightsError: the file cannot be understood, or names a format that is not supported.
    """
    path = folder / CONFIG_FILE
    if not path.is_file():
        return None
    try:
        section = json.loads(path.read_text(encoding="utf-8"))["quantization"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise WeightsError(f"cannot understand {path}") from error
    return parse_section(section)


def parse_section(section: Mapping[str, Any]) -> QuantizationConfig:
    """Formats named by a `quantization` object, or by a config.json's `quantization_config`.

    Raises:
        WeightsError: a format, or a size of blocks, that is not supported.
    """
    excluded = section.get("exclude_modules") or section.get("ignore") or ()
    algorithm = section.get("quant_algo")
    if algorithm == _MIXED:
        groups = _layer_groups(section.get("quantized_layers") or {})
    else:
        scheme = _scheme(algorithm, section.get("group_size"), "the checkpoint")
        groups = (TargetGroup(targets=("Linear",), scheme=scheme),)
    return QuantizationConfig(groups=groups, ignore=tuple(_pattern(name) for name in excluded))


def to_json(layers: Mapping[str, WeightScheme], excluded: Sequence[str]) -> dict[str, Any]:
    """Content of `hf_quant_config.json` for modules by name; at least one."""
    schemes = {scheme.format for scheme in layers.values()}
    quantization: dict[str, Any] = {
        "quant_algo": _MIXED if len(schemes) > 1 else next(iter(schemes)),
        "kv_cache_quant_algo": None,
        "exclude_modules": list(excluded),
    }
    if len(schemes) > 1:
        quantization["quantized_layers"] = {
            name: _layer_json(scheme) for name, scheme in sorted(layers.items())
        }
    elif MODELOPT_NVFP4.format in schemes:
        quantization["group_size"] = MODELOPT_NVFP4.group_size
    return {"producer": {"name": "ocria"}, "quantization": quantization}


def _layer_json(scheme: WeightScheme) -> dict[str, Any]:
    content: dict[str, Any] = {"quant_algo": scheme.format}
    return content | ({"group_size": scheme.group_size} if scheme.group_size else {})


def _layer_groups(layers: Mapping[str, Mapping[str, Any]]) -> tuple[TargetGroup, ...]:
    names: dict[SchemeName, list[str]] = {}
    for name, layer in layers.items():
        scheme = _scheme(layer.get("quant_algo"), layer.get("group_size"), f"`{name}`")
        names.setdefault(scheme.name, []).append(name)
    by_name = {scheme.name: scheme for scheme in ALGORITHMS.values()}
    return tuple(
        TargetGroup(targets=tuple(members), scheme=by_name[scheme])
        for scheme, members in names.items()
    )


def _scheme(algorithm: str | None, group_size: int | None, what: str) -> WeightScheme:
    scheme = ALGORITHMS.get(algorithm or "")
    if scheme is None:
        raise WeightsError(
            f"unknown quant_algo of {what}: `{algorithm}`",
            hint=f"supported: {', '.join((*ALGORITHMS, _MIXED))}",
        )
    if scheme is MODELOPT_NVFP4 and group_size not in (None, scheme.group_size):
        raise WeightsError(
            f"{what} stores {algorithm} with group_size {group_size}; "
            f"supported: {scheme.group_size}"
        )
    return scheme


def _pattern(name: str) -> str:
    """A wildcard as a regular expression that matches a whole name; a plain name as it is."""
    return f"re:{fnmatch.translate(name)}" if any(mark in name for mark in "*?[") else name
