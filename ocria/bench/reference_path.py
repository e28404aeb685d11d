"""The model by its reference path, also where it has fused kernels: what those are held against."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from torch import Tensor

from ocria.models.base import Fold, ImagePatches, Output, Prompt, SequenceState, Target, Window

_FUSED = "fused"
"""Attribute of a model that holds its fused decoder; None runs the plain one."""


def has_fused_path(target: Target) -> bool:
    """Whether passes of this target run by fused kernels."""
    return getattr(target, _FUSED, None) is not None


def reference_path(target: Target) -> Target:
    """The target without its fused decoder, and the target itself if it has none."""
    return ReferencePath(target) if has_fused_path(target) else target


class ReferencePath:
    """Takes the fused decoder off for each call; both paths share weights and vision tower."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self.layout, self.vocab_size = target.layout, target.vocab_size
        self.device, self.dtype = target.device, target.dtype

    @property
    def tap_layers(self) -> tuple[int, ...]:
        """The model's own."""
        return self._target.tap_layers

    @tap_layers.setter
    def tap_layers(self, layers: tuple[int, ...]) -> None:
        self._target.tap_layers = layers

    def encode_image(self, image: ImagePatches) -> Tensor:
        """See `Target.encode_image`."""
        return self._target.encode_image(image)

    def prefill(self, state: SequenceState, prompt: Prompt, image_ND: Tensor | None) -> Output:
        """See `Target.prefill`."""
        with self._unfused():
            return self._target.prefill(state, prompt, image_ND)

    def verify(self, windows: Sequence[Window]) -> Output:
        """See `Target.verify`."""
        with self._unfused():
            return self._target.verify(windows)

    def fold(self, folds: Sequence[Fold]) -> None:
        """See `Target.fold`."""
        with self._unfused():
            self._target.fold(folds)

    @contextmanager
    def _unfused(self) -> Iterator[None]:
        fused = getattr(self._target, _FUSED)
        setattr(self._target, _FUSED, None)
        try:
            yield
        finally:
            setattr(self._target, _FUSED, fused)
