"""Finds the folder that a model's name means: shipped, on this machine, or on the hub.

Needs no torch, whose import takes seconds: a name that cannot be had is told of without it.
"""

from dataclasses import dataclass
from pathlib import Path

from ocria.errors import WeightsError
from ocria.models.presets import PRESETS, preset_named
from ocria.weights import read_manifest
from ocria.weights.hub import fetch
from ocria.weights.hub_cache import DRAFTER_FILES, NEEDED, parse_hub_id

SHIPPED = Path(__file__).parent / "checkpoints"


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckpointRow:
    """One line of `ocria models`; `drafter_bytes` come on top of `num_bytes`."""

    name: str
    folder: Path
    licence: str
    precision: str
    num_bytes: int
    digest: str
    drafter_bytes: int = 0


def find_checkpoint(name: str | Path, *, may_fetch: bool = True) -> Path:
    """Folder of a checkpoint by name: shipped, a folder's path, a preset, or an id of the hub.

    A preset and an id are looked up in the hub's local cache; only what is not there is fetched,
    unless `may_fetch` is unset.

    Raises:
        WeightsError: none of these, or not on this machine and not to be had; the hint lists
            the names, or the files that were looked for.
    """
    folder = Path(name)
    exists = _exists(folder)
    shipped = SHIPPED / folder.name if len(folder.parts) == 1 else folder
    for candidate in (shipped, folder):
        if (candidate / "config.json").is_file():
            return candidate
    if exists:
        found = "no config.json" if folder.is_dir() else "it is a file"
        raise WeightsError(
            f"model `{name}` is not a checkpoint folder ({found})",
            hint=f"a folder holds {', '.join(names[0] for names in NEEDED)} and *.safetensors",
        )
    preset = preset_named(str(name))
    hub_id = parse_hub_id((preset.hub_id if preset else None) or str(name))
    if hub_id is not None:
        return fetch(hub_id, may_fetch=may_fetch)
    shipped_names = [row.name for row in list_checkpoints()]
    names = ", ".join([*shipped_names, *(preset.name for preset in PRESETS)])
    raise WeightsError(f"model `{name}` is unknown", hint=f"a folder, or one of: {names}")


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError as error:
        # Too long to be a name on this machine, or on the hub.
        raise WeightsError(f"`{str(path)[:80]}...` is unknown: {error.strerror}") from error


def list_checkpoints() -> tuple[CheckpointRow, ...]:
    """The shipped checkpoints, by name.

    Raises:
        WeightsError: a manifest cannot be understood.
    """
    rows = []
    for folder in sorted(SHIPPED.iterdir()) if SHIPPED.is_dir() else ():
        manifest = read_manifest(folder)
        if manifest is not None:
            rows.append(
                CheckpointRow(
                    name=manifest.name,
                    folder=folder,
                    licence=manifest.licence,
                    precision=manifest.precision,
                    num_bytes=manifest.num_bytes,
                    digest=manifest.digest,
                    drafter_bytes=manifest.drafter_bytes,
                )
            )
    return tuple(rows)


def named_drafter(name: str | None) -> Path | None:
    """The folder that `--drafter-model` names: a path, or an id of the hub, fetched if need be.

    Raises:
        WeightsError: an id that is not on this machine and cannot be fetched.
    """
    if name is None:
        return None
    hub_id = None if _exists(Path(name)) else parse_hub_id(name)
    return Path(name) if hub_id is None else fetch(hub_id, DRAFTER_FILES)
