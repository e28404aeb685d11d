"""Quantises checkpoints on page pictures: statistics, sensitivity, formats, rounding, writing."""

from ocria.calibration.options import QuantizeOptions, QuantizeResult
from ocria.calibration.progress import Progress
from ocria.calibration.run import quantize

__all__ = ["Progress", "QuantizeOptions", "QuantizeResult", "quantize"]
