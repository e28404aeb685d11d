"""Bytes to tensors: memory-mapped safetensors folders, digests, strict assignment.

Knows no architecture and no bit format. Importing this room loads no torch: a model that cannot be
had says so without it. What handles tensors is imported when it is first asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ocria.weights.manifest import Manifest, Problem, read_manifest, verify, write_manifest

if TYPE_CHECKING:
    from ocria.weights.assignment import LoadReport, TensorSource, assign
    from ocria.weights.reader import CheckpointReader, TensorInfo

__all__ = [
    "CheckpointReader",
    "LoadReport",
    "Manifest",
    "Problem",
    "TensorInfo",
    "TensorSource",
    "assign",
    "read_manifest",
    "verify",
    "write_manifest",
]

_OF_TENSORS = {
    "CheckpointReader": "reader",
    "LoadReport": "assignment",
    "TensorInfo": "reader",
    "TensorSource": "assignment",
    "assign": "assignment",
}


def __getattr__(name: str) -> Any:
    if name not in _OF_TENSORS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_OF_TENSORS[name]}"), name)
