"""The two layouts of quantised checkpoints: telling which one a folder has, and writing either."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from torch import Tensor

from ocria.quantization import compressed_tensors, fp8, modelopt, nvfp4
from ocria.quantization.compressed_tensors import QuantizationConfig, TargetGroup
from ocria.quantization.schemes import (
    FP8,
    MODELOPT_FP8,
    MODELOPT_NVFP4,
    NVFP4,
    SchemeName,
    WeightScheme,
)

LayoutName = Literal["compressed-tensors", "modelopt"]
PackedTensor = nvfp4.NVFP4Tensor | fp8.FP8Tensor


def read_quantization(folder: Path, config: Mapping[str, Any]) -> QuantizationConfig:
    """Which module of a checkpoint folder is stored how.

    Args:
        folder: may hold ModelOpt's `hf_quant_config.json`.
        config: the folder's config.json, parsed; its own section has the first word.

    Raises:
        WeightsError: an unknown method, or a format that is not supported.
    """
    section = config.get("quantization_config") or config.get("compression_config")
    if section and section.get("quant_method") == modelopt.METHOD:
        return modelopt.parse_section(section)
    if section:
        return compressed_tensors.quantization_config(config)
    return modelopt.read_config_file(folder) or QuantizationConfig()


def format_of(packed: PackedTensor) -> SchemeName:
    """Short name of a packed tensor's format."""
    return "nvfp4" if isinstance(packed, nvfp4.NVFP4Tensor) else "fp8"


def scheme_of(format: SchemeName, layout: LayoutName) -> WeightScheme:
    """How `layout` stores a format."""
    if layout == "modelopt":
        return MODELOPT_NVFP4 if format == "nvfp4" else MODELOPT_FP8
    return NVFP4 if format == "nvfp4" else FP8


def stored_tensors(
    module: str, packed: PackedTensor, layout: LayoutName
) -> Iterator[tuple[str, Tensor]]:
    """Full names and tensors that hold a module's weight, sorted by name."""
    scheme = scheme_of(format_of(packed), layout)
    parts = list(packed)
    if scheme.global_multiplies:
        parts[-1] = (1 / parts[-1]).reshape(())
    named = zip(scheme.parts, parts, strict=True)
    yield from sorted((f"{module}.{part}", tensor) for part, tensor in named)


def packed_from(
    tensors: Mapping[str, Tensor], module: str, format: SchemeName, layout: LayoutName
) -> PackedTensor:
    """What `stored_tensors` named, as a packed tensor again."""
    scheme = scheme_of(format, layout)
    codes, *scales = (tensors[f"{module}.{part}"] for part in scheme.parts)
    if format == "fp8":
        return fp8.FP8Tensor(codes, scales[0])
    shared = scales[1].reshape(1)
    return nvfp4.NVFP4Tensor(codes, scales[0], 1 / shared if scheme.global_multiplies else shared)


def config_sections(
    layers: Mapping[str, SchemeName], ignore: Sequence[str], layout: LayoutName
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """`quantization_config` of config.json, and content of `hf_quant_config.json` if there is one.

    Args:
        layers: formats by module name.
        ignore: names, or wildcards with `*`, of modules that stay as they are.
        layout: which layout is written.
    """
    schemes = {name: scheme_of(format, layout) for name, format in layers.items()}
    if layout == "modelopt":
        content = modelopt.to_json(schemes, ignore)
        return {"quant_method": modelopt.METHOD, **content["quantization"]}, content
    groups = tuple(
        TargetGroup(targets=tuple(sorted(n for n, s in schemes.items() if s is kind)), scheme=kind)
        for kind in (NVFP4, FP8)
        if kind in schemes.values()
    )
    patterns = tuple(
        "re:" + name.replace(".", r"\.").replace("*", ".*") if "*" in name else name
        for name in ignore
    )
    return QuantizationConfig(groups=groups, ignore=patterns).to_json(), None
