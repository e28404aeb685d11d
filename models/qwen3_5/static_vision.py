"""The vision tower over pages of one grid, patches on the device: it can be captured once."""

import torch
from torch import Tensor

from ocria.models.base import ImagePatches
from ocria.models.qwen3_5.vision import VisionTower


class StaticVision:
    """Room for the patches of one page.

    Args:
        tower: the vision tower.
        image: a page of that grid, which is loaded.
    """

    def __init__(self, tower: VisionTower, image: ImagePatches) -> None:
        self._tower = tower
        self._geometry = tower.geometry(image.grid_h, image.grid_w)
        table = tower.pos_embed.weight
        self._values_PX = torch.empty(image.values_PC.shape, dtype=table.dtype, device=table.device)
        self.load(image)

    @torch.inference_mode()
    def load(self, image: ImagePatches) -> None:
        """Puts a page in place for the next run on this stream."""
        self._values_PX.copy_(image.values_PC, non_blocking=True)

    @torch.inference_mode()
    def run(self) -> Tensor:
        """Its image tokens [N, D]."""
        return self._tower.encode(self._values_PX, self._geometry)
