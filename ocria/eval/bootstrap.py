"""Percentile bootstrap: how much a mean would move with another draw of pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

NUM_RESAMPLES = 2000
SEED = 20251


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """Mean and median over n pages, with the 95 % interval of the mean."""

    mean: float
    median: float
    low: float
    high: float
    n: int


def estimate(values: Sequence[float]) -> Estimate | None:
    """Mean, median and interval; None for no values. The seed is fixed: same values, same result.

    Efron and Tibshirani, An Introduction to the Bootstrap, chapter 13 (percentile interval).
    """
    if not values:
        return None
    data = np.asarray(values, dtype=np.float64)
    picks = np.random.default_rng(SEED).integers(0, len(data), size=(NUM_RESAMPLES, len(data)))
    low, high = np.quantile(data[picks].mean(axis=1), (0.025, 0.975))
    return Estimate(
        mean=float(data.mean()),
        median=float(np.median(data)),
        low=float(low),
        high=float(high),
        n=len(data),
    )
