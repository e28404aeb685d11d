"""Random checkpoints of every preset, written once."""

from collections.abc import Callable
from pathlib import Path

import pytest

from .random_checkpoint import RECIPES, Recipe, write_checkpoint

FolderOf = Callable[[Recipe], Path]


@pytest.fixture(scope="session")
def folder_of(tmp_path_factory: pytest.TempPathFactory) -> FolderOf:
    pytest.importorskip("transformers")
    base = tmp_path_factory.mktemp("checkpoints")

    def find(recipe: Recipe) -> Path:
        folder = base / recipe.name
        if not folder.exists():
            write_checkpoint(folder, recipe)
        return folder

    return find


@pytest.fixture(params=RECIPES, ids=lambda recipe: recipe.name)
def recipe(request: pytest.FixtureRequest) -> Recipe:
    found: Recipe = request.param
    return found
