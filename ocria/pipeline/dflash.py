"""The DFlash drafter of a loaded model: found, loaded once, and one object made for each page."""

from ocria.engine.speculative import DFlashDrafter, DraftRooms
from ocria.errors import WeightsError
from ocria.models.drafter import DraftHost, LoadedDrafter, find_drafter, load_drafter
from ocria.models.finding import named_drafter
from ocria.models.registry import LoadedModel


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


def dflash_maker(model: LoadedModel, named: str | None = None) -> DFlashMaker | None:
    """Loads the drafter that lies in the checkpoint's folder, or the one that is named.

    Returns:
        None if there is neither.

    Raises:
        WeightsError: it is damaged, or made for another target.
    """
    folder = find_drafter(model.folder, named_drafter(named))
    if folder is None:
        return None
    if not isinstance(model.target, DraftHost):
        raise WeightsError(f"the model {model.info.name} cannot lend a drafter what it needs")
    return DFlashMaker(model, load_drafter(folder, model.target))
