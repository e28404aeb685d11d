"""The DFlash drafter of a loaded model: found, loaded once, and one object made for each page."""

from pathlib import Path

from ocria.engine.speculative import DFlashDrafter, DraftRooms
from ocria.errors import WeightsError
from ocria.models.drafter import DraftHost, LoadedDrafter, find_drafter, load_drafter
from ocria.models.registry import LoadedModel
from ocria.weights.hub import fetch
from ocria.weights.hub_cache import DRAFTER_FILES, parse_hub_id


class DFlashMaker:
    """Makes the drafters of pages; weights are shared, memory goes from page to page.

    Args:
        model: the target.
        drafter: made for it.
    """

    def __init__(self, model: LoadedModel, drafter: LoadedDrafter) -> None:
        assert isinstance(model.target, DraftHost), "the target lends nothing to a drafter"
        self._target, self._taps = model.target, drafter.model.config.target_layer_ids
        self._rooms = DraftRooms(
            drafter.model, model.target, forbidden_ids=model.tokens.suppressed_ids
        )

    def __call__(self) -> DFlashDrafter:
        """The drafter of one page. From now on the target hands its hidden rows over."""
        self._target.tap_layers = self._taps
        return DFlashDrafter(self._rooms)


def drafter_folder(named: str | None) -> Path | None:
    """The folder that `--drafter-model` names: a path, or an id of the hub, fetched if need be.

    Raises:
        WeightsError: an id that is not on this machine and cannot be fetched.
    """
    if named is None:
        return None
    hub_id = None if Path(named).exists() else parse_hub_id(named)
    return Path(named) if hub_id is None else fetch(hub_id, DRAFTER_FILES)


def dflash_maker(model: LoadedModel, named: str | None = None) -> DFlashMaker | None:
    """Loads the drafter that lies in the checkpoint's folder, or the one that is named.

    Returns:
        None if there is neither.

    Raises:
        WeightsError: it is damaged, or made for another target.
    """
    folder = find_drafter(model.folder, drafter_folder(named))
    if folder is None:
        return None
    if not isinstance(model.target, DraftHost):
        raise WeightsError(f"the model {model.info.name} cannot lend a drafter what it needs")
    return DFlashMaker(model, load_drafter(folder, model.target))
