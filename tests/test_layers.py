"""A room imports only rooms below it; no room at the same height imports another."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

HEIGHT = {
    "errors": 0,
    "options": 0,
    "document": 0,
    "tokenizer": 0,
    "kernels": 1,
    "weights": 1,
    "rasterize": 1,
    "vision": 1,
    "output": 1,
    "quantization": 2,
    "models": 3,
    "engine": 4,
    "pipeline": 5,
    "batch": 6,
    "bench": 6,
    "eval": 6,
    "calibration": 6,
    "cli": 7,
    "console": 7,
    "recipes": 7,
}
# Rooms of plain nouns and the two edge rooms may know their neighbours.
NEIGHBOURLY = {0, 7}
# The public face re-exports, and the version is everybody's.
FACE = {"__init__", "__main__", "version"}


def room_of(module: str) -> str | None:
    """`ocria.models.recipes.x` -> recipes, `ocria.engine.state` -> engine, else None."""
    parts = module.split(".")
    if parts[0] != "ocria" or len(parts) < 2:
        return None
    if parts[1] == "models" and len(parts) > 2 and parts[2] == "recipes":
        return "recipes"
    return parts[1]


def module_name(path: Path) -> str:
    parts = list(path.relative_to(ROOT).with_suffix("").parts)
    if parts[0] in ("kernels", "models"):
        parts.insert(0, "ocria")
    if parts[-1] == "__init__":
        parts.pop()
    return ".".join(parts)


def imports_of(path: Path) -> set[str]:
    package = (
        module_name(path) if path.name == "__init__.py" else module_name(path).rpartition(".")[0]
    )
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, base] if base else above)
            found |= {f"{base}.{alias.name}" for alias in node.names}
    return found


def sources() -> list[Path]:
    return [
        path
        for top in ("ocria", "kernels", "models")
        for path in sorted((ROOT / top).rglob("*.py"))
        if not (top == "ocria" and path.relative_to(ROOT).parts[1] in ("kernels", "models"))
    ]


def violations(path: Path) -> list[str]:
    name = module_name(path)
    room = room_of(name)
    if room is None or room in FACE:
        return []
    found = []
    for imported in imports_of(path):
        other = room_of(imported)
        if other is None or other == room or other in FACE:
            continue
        if other not in HEIGHT:
            found.append(f"{name}: `{imported}` is in no known room")
        elif HEIGHT[other] > HEIGHT[room] or (
            HEIGHT[other] == HEIGHT[room] and HEIGHT[room] not in NEIGHBOURLY
        ):
            found.append(f"{name} ({room}) imports {imported} ({other})")
    return found


def test_every_module_belongs_to_a_known_room() -> None:
    rooms = {room_of(module_name(path)) for path in sources()} - {None} - FACE
    assert rooms <= HEIGHT.keys()


def test_rooms_import_only_rooms_below() -> None:
    assert [line for path in sources() for line in violations(path)] == []


@pytest.mark.parametrize("package", ["kernels", "models"])
def test_top_folders_are_not_importable_packages(package: str) -> None:
    # An `__init__.py` here would shadow the published package `kernels`.
    assert not (ROOT / package / "__init__.py").exists()
    assert (ROOT / "ocria" / package).is_symlink()


def test_a_wrong_import_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.ROOT", tmp_path)
    bad = tmp_path / "ocria" / "vision" / "bad.py"
    bad.parent.mkdir(parents=True)
    bad.write_text("from ocria.engine import state\n")
    assert violations(bad) == ["ocria.vision.bad (vision) imports ocria.engine.state (engine)"]


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(ROOT)))
def test_host_files_stay_small(path: Path) -> None:
    limit = 600 if path.relative_to(ROOT).parts[0] == "kernels" else 500
    assert len(path.read_text(encoding="utf-8").splitlines()) <= limit
