"""The documents name what there is."""

from pathlib import Path

import pytest

from ocria.cli.app import COMMANDS

ROOT = Path(__file__).resolve().parents[2]
README, STRUCTURE = ROOT / "README.md", ROOT / "docs" / "structure.md"
ROOMS = sorted(path.parent.name for path in (ROOT / "ocria").glob("*/__init__.py"))


@pytest.mark.parametrize("command", [command.__name__.rstrip("_") for command in COMMANDS])
def test_the_readme_shows_every_command(command: str) -> None:
    if not README.is_file():
        pytest.skip("needs the checkout's README.md")
    assert f"ocria {command} " in README.read_text(encoding="utf-8")


@pytest.mark.parametrize("room", ROOMS)
def test_the_structure_names_every_room(room: str) -> None:
    if not STRUCTURE.is_file():
        pytest.skip("needs the checkout's docs")
    assert f"`{room}`" in STRUCTURE.read_text(encoding="utf-8")
