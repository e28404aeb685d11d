"""Quantises checkpoints on page pictures: statistics, sensitivity, formats, rounding, writing."""

from ocria.calibration.options import QuantizeOptions, QuantizeResult
from ocria.calibration.run import Progress, quantize

__all__ = ["Progress", "QuantizeOptions", "QuantizeResult", "quantize"]
