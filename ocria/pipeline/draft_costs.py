"""What drafting costs on a kind of device, as data: passes by their rows, and calls of drafters."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from ocria.engine.speculative import GRANT, PassCost
from ocria.models.base import ROW_TILE, WINDOW

START: Mapping[str, tuple[float, float]] = {
    "ngram": (0.3, 0.6),
    "text-layer": (0.6, 0.9),
    "dflash": (0.7, 0.8),
    "mtp": (0.7, 0.7),
}
"""Acceptance (first token, later ones) that is expected before anything is known."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DraftCosts:
    """Costs in target passes of one row.

    Attributes:
        of_pass: of a pass by its rows.
        of_call: of one step with a source, by its name.
        grant: what `auto` may lose at a page's start.
    """

    of_pass: PassCost
    of_call: Mapping[str, float]
    grant: float = GRANT

    def may_pay(self, name: str) -> bool:
        """Whether `auto` should have this source at all: what it is handed costs time, too.

        It should if it gives more tokens for its cost than a plain pass as long as it is as good as
        is expected at the start.
        """
        chance, later = START[name]
        expected = 1.0
        for depth in range(1, ROW_TILE):
            expected += chance
            if expected > self.of_pass.of(1 + depth) + self.of_call[name]:
                return True
            chance *= later
        return False


CPU = DraftCosts(
    of_pass=PassCost(points=((1, 1.0), (4, 1.05), (16, 1.35), (17, 2.0), (32, 2.3))),
    of_call={"ngram": 0.001, "text-layer": 0.01, "dflash": 0.49, "mtp": 0.7},
)
"""A CPU with bfloat16 products, 2026-11-30, the shipped model and drafter, one thread of a busy
machine, CPU time, medians of 70 passes each, taken in turn, from 1,366 positions on: 30.6 ms for 1
row, 32.1 for 4, 36.0 for 8, 39.5 for 12, 40.5 for 16, 15.0 for a call of DFlash; in another run
26.6 for 1, 37.7 for 16, 12.8 for a call. 17 and 32 rows are older: 107.9 and 125.0 beside 54.0 for
1. In float32 it was flatter: there, too, a single row pays for its tile. MTP is counted, not
measured: four times one layer of 32 and the head, which is a seventh of a 4B decoder."""

_LAUNCHES_US = 365.0
_PAGE_US = 20.0
_ROW_US = 2.4
_MEASURED_LAYERS = 9
_CUDA_CALLS_US = {"ngram": 35.0, "text-layer": 80.0, "dflash": 276.0, "mtp": 5000.0}


def cuda_costs(*, num_pages: int, num_layers: int) -> DraftCosts:
    """Costs for a page in the company of others: they share a pass, and none of a call.

    Measured on one H200, 2026-11-30, the shipped model (9 layers) at 1,500 positions, captured
    passes from host to host: 513 us for 1 row, 522 for 4, 551 for 16 over two blocks, 590 for a row
    each of 8 pages, 895 for 16 each. A plain step of one page took 548 with its host work, of
    eight some 690: 528 and 20 a page, and 2.4 us a row more. Since then joined and split products
    take 163 us less a pass (449 to 286 alone, 2026-12-01): counted, steps were not timed again.
    Decoders of other depths are counted: time goes with their layers.

    A step with `text-layer` took 58 us more than its rows explain, with `ngram` 24; `auto` adds
    some 30 to them. Beside 8 and 32 pages both took 85 to 90 together. A DFlash call takes 211 us
    from host to host, a step with it 276 more. An MTP call of a 4B model took 5 ms.
    """
    share = num_layers / _MEASURED_LAYERS
    pass_us = share * (_LAUNCHES_US + _PAGE_US * num_pages)
    added = (WINDOW - 1) * num_pages * share * _ROW_US / pass_us
    of_pass = PassCost(points=((1, 1.0), (WINDOW, 1.0 + added)))
    of_call = {name: us * num_pages / pass_us for name, us in _CUDA_CALLS_US.items()}
    # Where passes are cheap, half of one is less than a call.
    two_tries = 2 * (of_pass.of(ROW_TILE) - 1 + of_call["text-layer"])
    return DraftCosts(of_pass=of_pass, of_call=of_call, grant=max(GRANT, two_tries))


def draft_costs(
    device: torch.device, *, num_pages: int = 1, num_layers: int = _MEASURED_LAYERS
) -> DraftCosts:
    """The costs of a device's kind.

    Args:
        num_pages: that are read side by side; on a CPU each row pays for itself.
        num_layers: of the decoder; on a CPU drafting is cheap beside any pass.
    """
    if device.type == "cpu":
        return CPU
    return cuda_costs(num_pages=num_pages, num_layers=num_layers)
