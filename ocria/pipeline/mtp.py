"""The MTP head of a loaded model: found in its folder, loaded once, one drafter made a page."""

import logging
from pathlib import Path

import torch

from ocria.engine.speculative import MtpDrafter
from ocria.errors import WeightsError
from ocria.models.qwen3_5.config import read_config
from ocria.models.qwen3_5.model import Qwen35
from ocria.models.qwen3_5.mtp import MtpHead, has_mtp, load_mtp
from ocria.models.qwen3_5.names import canonical_name
from ocria.models.registry import LoadedModel
from ocria.quantization.layouts import read_quantization
from ocria.quantization.source import QuantizedSource
from ocria.weights import CheckpointReader

_LOGGER = logging.getLogger(__name__)


class MtpMaker:
    """Makes the drafters of pages; the weights are shared."""

    def __init__(self, model: LoadedModel, target: Qwen35, head: MtpHead) -> None:
        self._model, self._target, self._head = model, target, head

    def __call__(self) -> MtpDrafter:
        """The drafter of one page. From now on the target hands its last rows over."""
        self._target.tap_layers = (self._target.num_layers - 1,)
        return MtpDrafter(self._head, self._target, forbidden_ids=self._model.tokens.suppressed_ids)


def brings_mtp(folder: Path) -> bool:
    """Whether a checkpoint folder holds a head; reads headers only."""
    return has_mtp(_source(folder, torch.device("cpu")))


def mtp_maker(model: LoadedModel, *, needed: bool = False) -> MtpMaker | None:
    """Loads the head that the checkpoint brings; None if there is none.

    A damaged head costs speed, not the page: it is told with `-v`, unless it is `needed`.

    Raises:
        WeightsError: it is needed and cannot be used.
    """
    target = model.target
    if not isinstance(target, Qwen35):
        return None
    source = _source(model.folder, target.device)
    if not has_mtp(source):
        return None
    try:
        return MtpMaker(model, target, load_mtp(target.config.text, source, target))
    except WeightsError as error:
        if needed:
            raise
        _LOGGER.info("the MTP head is not used: %s", error)
        return None


def _source(folder: Path, device: torch.device) -> QuantizedSource:
    quantization = read_quantization(folder, read_config(folder))
    return QuantizedSource(CheckpointReader(folder), quantization, canonical_name, device)
