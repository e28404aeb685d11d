"""A clock that waits for the device before it is read."""

import time

import torch


class Clock:
    """Seconds by the host's clock; on CUDA, of work that the device has finished."""

    def __init__(self, device: torch.device) -> None:
        self._device = device

    def now_s(self) -> float:
        """Seconds since some fixed moment."""
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        return time.perf_counter()
