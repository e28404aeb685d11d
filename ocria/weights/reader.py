"""Reads the tensors of a checkpoint folder from memory-mapped safetensors, and nothing else.

A folder holds one `model.safetensors`, or shards named by `model.safetensors.index.json`.
Pickled files are never opened.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from ocria.errors import WeightsError
from ocria.weights.shards import INDEX_FILE, REPAIR_HINT, read_index, shard_names

DTYPES: dict[str, torch.dtype] = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "F8_E4M3": torch.float8_e4m3fn,
    "F8_E5M2": torch.float8_e5m2,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}


class TensorInfo(NamedTuple):
    """What a shard's header says of one tensor."""

    name: str
    dtype: torch.dtype
    shape: tuple[int, ...]
    shard: str

    @property
    def num_bytes(self) -> int:
        """Bytes of the tensor on disk."""
        count = 1
        for size in self.shape:
            count *= size
        return count * self.dtype.itemsize


class CheckpointReader:
    """The tensors of a folder, by name.

    Opening reads headers only. Shards stay mapped until `release` or the reader's end, so tensors
    are paged in as they are used.

    Raises:
        WeightsError: no weights, a missing or damaged shard, or an index that contradicts it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.shards = shard_names(folder)
        self._files: dict[str, Any] = {}
        self._tensors: dict[str, TensorInfo] = {}
        for shard in self.shards:
            self._open(shard)
        self._check_index()

    def __iter__(self) -> Iterator[TensorInfo]:
        return iter(self._tensors.values())

    def __len__(self) -> int:
        return len(self._tensors)

    def __contains__(self, name: object) -> bool:
        return name in self._tensors

    def info(self, name: str) -> TensorInfo:
        """Dtype, shape and shard of a tensor, from the header.

        Raises:
            WeightsError: no tensor has that name.
        """
        if name not in self._tensors:
            raise WeightsError(f"no tensor `{name}` in {self.folder}")
        return self._tensors[name]

    def read(self, name: str) -> Tensor:
        """The tensor as stored. It may alias the mapped file: do not write to it.

        Raises:
            WeightsError: no such tensor, or its bytes cannot be read.
        """
        shard = self.info(name).shard
        with _translated(self.folder / shard):
            return self._file(shard).get_tensor(name)

    def read_rows(self, name: str, start: int, stop: int) -> Tensor:
        """Rows `start` to `stop` of the first axis, without reading the others."""
        shard = self.info(name).shard
        with _translated(self.folder / shard):
            return self._file(shard).get_slice(name)[start:stop]

    def release(self) -> None:
        """Unmaps all shards, so that pages read so far leave this process's memory.

        Tensors that are still held keep their shard mapped. The next read maps it again.
        """
        self._files.clear()

    def _file(self, shard: str) -> Any:
        if shard not in self._files:
            self._files[shard] = safe_open(self.folder / shard, framework="pt", device="cpu")
        return self._files[shard]

    def _open(self, shard: str) -> None:
        path = self.folder / shard
        with _translated(path):
            file = self._file(shard)
            names = list(file.keys())
        for name in names:
            if name in self._tensors:
                raise WeightsError(
                    f"`{name}` is in two shards: {self._tensors[name].shard} and {shard}"
                )
            header = file.get_slice(name)
            stored = header.get_dtype()
            if stored not in DTYPES:
                raise WeightsError(f"`{name}` in {shard} has the unknown dtype {stored}")
            shape = tuple(header.get_shape())
            self._tensors[name] = TensorInfo(name, DTYPES[stored], shape, shard)

    def _check_index(self) -> None:
        for name, shard in read_index(self.folder).items():
            if name not in self._tensors or self._tensors[name].shard != shard:
                raise WeightsError(
                    f"{INDEX_FILE} places `{name}` in {shard}, which does not hold it",
                    hint=REPAIR_HINT,
                )


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    """Foreign errors of one shard as WeightsError that names the file and the repair."""
    try:
        yield
    except (SafetensorError, OSError) as error:
        size = path.stat().st_size if path.exists() else 0
        raise WeightsError(
            f"damaged weights file: {path} ({size} bytes): {error}", hint=REPAIR_HINT
        ) from error
