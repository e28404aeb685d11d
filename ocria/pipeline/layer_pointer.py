"""Where in a text layer the model is, from what it writes."""

from ocria.pipeline.layer_stream import JOINED, LayerStream, line_at

_MARKUP = frozenset("*#|`_$\\>~[]^{}-'")
"""Keys that a model may write where the layer has none: emphasis, tables, marks, hyphens."""
_SUFFIXES = (24, 12, 8, 5, 3)
"""Lengths of written text that are looked for, the longest first."""
_SURE = 5
"""A shorter suffix stands in many places: it counts near the pointer only."""
_NEAR = 400
_MOST_SKIPPED = 4
_PATIENCE = 16
"""Searches in vain after which only every `_PATIENCE`-th character is searched for."""
_FAR_X, _FAR_Y = 0.1, 0.06
"""How far, in fractions of the page, a block's corner may lie from the line next in order."""
_CLOSE_X, _CLOSE_Y = 0.01, 0.02
"""The same for a line out of order."""


class LayerPointer:
    """Follows written text through a stream, and finds it again after a difference.

    Attributes:
        place: the key that should come next.
        run: keys in a row that have been as expected; 0 when lost.
    """

    def __init__(self, stream: LayerStream) -> None:
        self._stream = stream
        self.place = 0
        self.run = 0
        self._written = ""
        self._num_vain = 0

    @property
    def is_lost(self) -> bool:
        """Whether what was written last in this block is not what the layer has."""
        return bool(self._written) and self.run == 0

    def begin(self) -> None:
        """A block or cell begins: it goes on here if nothing tells otherwise."""
        self._written, self.run = "", 0

    def feed(self, keys: str) -> None:
        """Follows newly written keys."""
        for key in keys:
            self._step(key)

    def go_near(self, x: float, y: float) -> None:
        """Goes to the line whose top left corner is nearest to a block's, if one is close.

        The line at the pointer is kept when it is not far: reading order is the better guide.
        """
        boxes = self._stream.boxes
        if not boxes:
            return
        here = boxes[line_at(self._stream, self.place)]
        if abs(here[0] - x) <= _FAR_X and abs(here[1] - y) <= _FAR_Y:
            return
        close = [
            (abs(box[1] - y) + abs(box[0] - x), line)
            for line, box in enumerate(boxes)
            if abs(box[0] - x) <= _CLOSE_X and abs(box[1] - y) <= _CLOSE_Y
        ]
        if close:
            self.place = self._stream.line_starts[min(close)[1]]

    def _step(self, key: str) -> None:
        expected = self._stream.keys
        if expected[self.place : self.place + 1] == key:
            self._written = (self._written + key)[-_SUFFIXES[0] :]
            self.place += 1
            self.run += 1
            self._num_vain = 0
        elif key not in _MARKUP:
            self._written = (self._written + key)[-_SUFFIXES[0] :]
            self._recover(key)

    def _recover(self, key: str) -> None:
        was_lost, self.run = self.run == 0, 0
        if not self._find_written() and (was_lost or self._num_vain == 0):
            # One key misread, or a few that the model left out.
            ahead = self._stream.keys[self.place + 1 : self.place + 1 + _MOST_SKIPPED]
            skipped = ahead.find(key)
            if skipped >= 0:
                self.place += skipped + 2
                self.run = 1

    def _find_written(self) -> bool:
        self._num_vain += 1
        if self._num_vain > _PATIENCE and self._num_vain % _PATIENCE:
            return False
        for length in _SUFFIXES:
            if len(self._written) < min(length, 2):
                continue
            found = self._nearest(self._written[-length:])
            if found is not None:
                self.run = min(length, len(self._written))
                self.place, self._num_vain = found + self.run, 0
                return True
        return False

    def _nearest(self, suffix: str) -> int | None:
        """Start of the occurrence nearest to the pointer, forward ones before backward ones."""
        keys, place = self._stream.keys, self.place
        low, high = 0, len(keys)
        if len(suffix) < _SURE:
            low, high = max(0, place - _NEAR), place + _NEAR
        whole = len(suffix) == len(self._written)
        for start in (keys.find(suffix, place, high), keys.rfind(suffix, low, place)):
            # A block or cell begins with a whole word.
            if start >= 0 and (not whole or self._stream.parted[start] != JOINED):
                return start
        return None
