"""The `quantization_config` of a config.json: which module is stored in which format.

Reads and writes the compressed-tensors layout, weights only: activations are computed in the
run's own dtype whatever the config says of them.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ocria.errors import WeightsError
from ocria.quantization.fp8 import SQUARE
from ocria.quantization.schemes import NVFP4, SCHEMES, WeightScheme

METHOD = "compressed-tensors"
_SQUARE = (SQUARE, SQUARE)
# Targets that name a class of modules instead of modules.
_CLASSES = frozenset({"Linear", "Embedding"})


@dataclass(frozen=True, kw_only=True, slots=True)
class TargetGroup:
    """Modules that share a format. A target is a name, `re:` and a pattern, or a class."""

    targets: tuple[str, ...]
    scheme: WeightScheme


@dataclass(frozen=True, kw_only=True, slots=True)
class QuantizationConfig:
    """Which module is stored how. `ignore` wins over every group."""

    groups: tuple[TargetGroup, ...] = ()
    ignore: tuple[str, ...] = ()

    def scheme_of(self, module: str) -> WeightScheme | None:
        """Format of a module's weight by its name, or None if it is stored as it is.

        A target by class (`Linear`) takes every module that no other target names: only the
        stored tensors can tell which modules are meant.
        """
        if _matches(module, self.ignore):
            return None
        for group in self.groups:
            if _matches(module, group.targets):
                return group.scheme
        for group in self.groups:
            if not _CLASSES.isdisjoint(group.targets):
                return group.scheme
        return None

    def to_json(self) -> dict[str, Any]:
        """The `quantization_config` object of a config.json."""
        mixed = len(self.groups) > 1
        groups = {
            f"group_{i}": {
                "targets": list(group.targets),
                "format": group.scheme.format,
                "weights": _weight_arguments(group.scheme),
                "input_activations": None,
                "output_activations": None,
            }
            for i, group in enumerate(self.groups)
        }
        return {
            "quant_method": METHOD,
            "quantization_status": "compressed",
            "format": "mixed-precision" if mixed else self.groups[0].scheme.format,
            "config_groups": groups,
            "ignore": list(self.ignore),
        }


def quantization_config(config: Mapping[str, Any]) -> QuantizationConfig:
    """Reads the `quantization_config` of a parsed config.json; an absent one quantises nothing.

    Raises:
        WeightsError: another method than compressed-tensors, or a format that is not supported.
    """
    section = config.get("quantization_config") or config.get("compression_config")
    if not section:
        return QuantizationConfig()
    method = section.get("quant_method")
    if method != METHOD:
        raise WeightsError(
            f"unknown quantization method: `{method}`",
            hint=f"only `{METHOD}` checkpoints and unquantised ones are loaded",
        )
    groups = section.get("config_groups") or {}
    return QuantizationConfig(
        groups=tuple(
            TargetGroup(
                targets=tuple(group["targets"]),
                scheme=_scheme(name, group, section.get("format")),
            )
            for name, group in groups.items()
        ),
        ignore=tuple(section.get("ignore") or ()),
    )


def _scheme(name: str, group: Mapping[str, Any], default_format: str | None) -> WeightScheme:
    found = group.get("format") or default_format
    scheme = SCHEMES.get(found or "")
    if scheme is None:
        raise WeightsError(
            f"unknown quantization format in `{name}`: `{found}`",
            hint=f"supported: {', '.join(SCHEMES)}",
        )
    weights = group.get("weights") or {}
    strategies = ("tensor_group",) if scheme is NVFP4 else ("channel", "tensor", "block")
    expected = {
        "num_bits": (scheme.bits,),
        "type": ("float",),
        "strategy": strategies,
        "group_size": (scheme.group_size,),
        "symmetric": (True, None),
        "actorder": (None,),
        "block_structure": (None, _SQUARE, list(_SQUARE)),
    }
    for key, allowed in expected.items():
        if weights.get(key) not in allowed:
            raise WeightsError(
                f"`{name}` stores `{scheme.format}` weights with {key} {weights.get(key)!r}; "
                f"supported: {allowed[0]!r}"
            )
    return scheme


def _weight_arguments(scheme: WeightScheme) -> dict[str, Any]:
    return {
        "num_bits": scheme.bits,
        "type": "float",
        "strategy": "tensor_group" if scheme is NVFP4 else "channel",
        "group_size": scheme.group_size,
        "symmetric": True,
        "dynamic": False,
        "scale_dtype": "torch.float8_e4m3fn" if scheme is NVFP4 else None,
    }


def _matches(module: str, targets: Sequence[str]) -> bool:
    return any(
        re.match(target[3:], module) is not None
        if target.startswith("re:")
        else target == module and target not in _CLASSES
        for target in targets
    )
