"""Which files hold a checkpoint's weights: one, or shards that an index names.

Needs no torch: a name or a folder that leads nowhere is told of before that is imported.
"""

import json
from pathlib import Path

from ocria.errors import WeightsError

SINGLE_FILE = "model.safetensors"
INDEX_FILE = "model.safetensors.index.json"
REPAIR_HINT = (
    "copy the file again from where the checkpoint came from; "
    "`ocria models --verify` names every damaged file of the checkpoints that it lists"
)


def read_index(folder: Path) -> dict[str, str]:
    """Tensor name to shard name; empty for a folder without an index.

    Raises:
        WeightsError: the index is not the JSON that it should be.
    """
    path = folder / INDEX_FILE
    if not path.exists():
        return {}
    try:
        index = dict(json.loads(path.read_text(encoding="utf-8"))["weight_map"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise WeightsError(f"damaged index of shards: {path}", hint=REPAIR_HINT) from error
    if not all(isinstance(name, str) and name for name in index.values()):
        raise WeightsError(f"damaged index of shards: {path}", hint=REPAIR_HINT)
    return index


def shard_names(folder: Path) -> tuple[str, ...]:
    """File names of a folder's shards, sorted.

    Raises:
        WeightsError: neither an index nor a single file, or a named shard is not there.
    """
    index = read_index(folder)
    names = tuple(sorted(set(index.values()))) if index else (SINGLE_FILE,)
    missing = [name for name in names if not (folder / name).is_file()]
    if missing and not index:
        raise WeightsError(
            f"no weights in {folder}",
            hint=f"expected {SINGLE_FILE} or {INDEX_FILE}; other formats are not loaded",
        )
    if missing:
        raise WeightsError(f"shards missing in {folder}: {', '.join(missing)}", hint=REPAIR_HINT)
    if any(Path(name).name != name for name in names):
        raise WeightsError(f"{folder / INDEX_FILE} names files outside its folder")
    return names
