"""A target between the engine and the model: counts passes, times the prefill, sees a page once."""

from collections.abc import Sequence

from torch import Tensor

from ocria.bench.clock import Clock
from ocria.models.base import Fold, ImagePatches, Output, Prompt, SequenceState, Target, Window

ImageTokens = dict[int, Tensor]
"""Image tokens [N, D] by the identity of a page's patches. Keep one for each vision path."""


class MeasuredTarget:
    """Hands everything through.

    Attributes:
        num_passes: calls of `verify`, each one walk over the decoder's weights.
        num_windows: sequences in them, `num_rows` token rows.
        apart_s: seconds in prefill and vision, which a decoding step is not charged with.
        num_prefills: calls of `prefill`.
    """

    def __init__(self, target: Target, images: ImageTokens) -> None:
        self._target = target
        self._images = images
        self._clock = Clock(target.device)
        self.layout, self.vocab_size = target.layout, target.vocab_size
        self.device, self.dtype = target.device, target.dtype
        self.num_passes = self.num_windows = self.num_rows = self.num_prefills = 0
        self.apart_s = 0.0

    @property
    def tap_layers(self) -> tuple[int, ...]:
        """The model's own."""
        return self._target.tap_layers

    @tap_layers.setter
    def tap_layers(self, layers: tuple[int, ...]) -> None:
        self._target.tap_layers = layers

    def encode_image(self, image: ImagePatches) -> Tensor:
        """Image tokens [N, D], computed when a page is seen for the first time."""
        key = id(image.values_PC)
        if key not in self._images:
            started = self._clock.now_s()
            self._images[key] = self._target.encode_image(image)
            self.apart_s += self._clock.now_s() - started
        return self._images[key]

    def prefill(self, state: SequenceState, prompt: Prompt, image_ND: Tensor | None) -> Output:
        """See `Target.prefill`."""
        started = self._clock.now_s()
        output = self._target.prefill(state, prompt, image_ND)
        self.apart_s += self._clock.now_s() - started
        self.num_prefills += 1
        return output

    def verify(self, windows: Sequence[Window]) -> Output:
        """See `Target.verify`."""
        output = self._target.verify(windows)
        self.num_passes += 1
        self.num_windows += len(windows)
        self.num_rows += len(output.logits_TV)
        return output

    def fold(self, folds: Sequence[Fold]) -> None:
        """See `Target.fold`."""
        self._target.fold(folds)
