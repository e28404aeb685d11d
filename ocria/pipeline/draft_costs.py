"""What drafting costs on a kind of device, as data: passes by their rows, and calls of drafters."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from ocria.engine.speculative import PassCost


@dataclass(frozen=True, kw_only=True, slots=True)
class DraftCosts:
    """Costs in target passes of one row.

    Attributes:
        of_pass: of a pass by its rows.
        of_call: of one call of a source, by its name.
    """

    of_pass: PassCost
    of_call: Mapping[str, float]

    def may_pay(self, name: str) -> bool:
        """Whether `auto` should have this source at all: what it is handed costs time, too."""
        return self.of_call[name] < 1.0


CPU = DraftCosts(
    of_pass=PassCost(points=((1, 1.0), (16, 1.26), (17, 2.0), (32, 2.3))),
    of_call={"ngram": 0.001, "text-layer": 0.01, "dflash": 0.35, "mtp": 0.7},
)
"""A CPU with bfloat16 products, 2026-11-30, one core, 1,200 positions: 54.0 ms for 1 row, 67.8 for
16, 107.9 for 17, 125.0 for 32. In float32 it is flatter (81.4, 79.3, 116.2 and 136.3): there, too,
a single row pays for its tile. DFlash of 4 M parameters: 7.7 ms a call, beside 22.4 for a row and
26.8 for 16 (in float32: 10.3, 30.1 and 35.7). MTP is counted, not measured: four times one layer of
32 and the head, which is a seventh of a 4B decoder."""

CUDA = DraftCosts(
    of_pass=PassCost(points=((1, 1.0), (4, 1.05), (16, 1.16), (17, 1.17), (32, 1.31))),
    of_call={"ngram": 0.02, "text-layer": 0.1, "dflash": 0.5, "mtp": 4.0},
)
"""One H200, 2026-11-30, the shipped model at 1,500 positions. A plain step takes 704 us with its
host work. Its captured pass takes 656 us from host to host for 1 row and 675 for 4; windows that
cross a multiple of 32 take 172 more (860 for 16), and a window of n rows crosses one in n - 1 of 32
places: the points are means over places. 17 and 32 rows are counted from a second tile of rows.
A pass with a proposal of `text-layer` took 175 us more than its rows explain, two fifths of it to
follow the page, which is paid whether it is asked or not; `ngram` is allowed 14, its time on a CPU.
DFlash is counted from its launches, not measured. An MTP call took 5 ms beside steps of 5 in mixed
formats and 72 in bfloat16, both of a 4B model with random weights: it is not worth asking."""


CUDA_SIDE_BY_SIDE = DraftCosts(
    of_pass=PassCost(points=((1, 1.0), (16, 1.85), (32, 2.6))),
    of_call={"ngram": 0.12, "text-layer": 0.5, "dflash": 3.0, "mtp": 30.0},
)
"""Eight pages on the same machine: 797 us from host to host for a row each, 1,555 for 16, and some
100 of host work beside either. A pass is shared and a call is not, so calls weigh more: of the 897
us an eighth is one page's."""


def draft_costs(device: torch.device, *, side_by_side: bool = False) -> DraftCosts:
    """The costs of a device's kind, for pages that are read alone or several at once."""
    if device.type == "cpu":
        return CPU
    return CUDA_SIDE_BY_SIDE if side_by_side else CUDA
