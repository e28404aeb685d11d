"""Bytes to tensors: memory-mapped safetensors folders, digests, strict assignment.

Knows no architecture and no bit format.
"""

from ocria.weights.assign import LoadReport, TensorSource, assign
from ocria.weights.manifest import Manifest, Problem, read_manifest, verify, write_manifest
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
