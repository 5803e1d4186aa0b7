"""How answers are judged: errors relative to the truth, ratios of two methods' errors.

Study on exact data: not a private release. Nothing here knows how an answer was made, and
what is asked comes from `geometry.rectangles`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dpregions.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

FLOOR = 0.001
"""Errors are relative to the true answer, or to this share of all regions where that is more."""


def relative_errors(
    answers: ArrayLike, truth: ArrayLike, n_regions: int, floor: float = FLOOR
) -> NDArray[np.float64]:
    """Return how far answers are off, relative to the truth or to a floor of all regions.

    Examples
    --------
    >>> relative_errors([110, 2], [100, 0], n_regions=1000).tolist()
    [0.1, 2.0]
    """
    truth = np.asarray(truth, np.float64)
    scale = np.maximum(truth, max(floor * n_regions, np.finfo(float).tiny))
    return np.abs(np.asarray(answers, np.float64) - truth) / scale


def l1_distance(released: ArrayLike, exact: ArrayLike) -> float:
    """Return the sum of absolute differences of two histograms."""
    return float(np.abs(np.asarray(released, np.float64) - np.asarray(exact)).sum())


class Ratio(NamedTuple):
    """A ratio of two methods' errors with its bootstrap interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f} ({self.low:.2f}-{self.high:.2f})"


def bootstrap_ratio(
    errors: Sequence[float] | NDArray[np.float64],
    others: Sequence[float] | NDArray[np.float64],
    *,
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Ratio:
    """Return the ratio of two methods' median errors, over the same repetitions.

    Parameters
    ----------
    errors, others
        One error a repetition. Repetition `i` of both asked the same rectangles, so they are
        drawn together.
    """
    above, below = np.asarray(errors, np.float64), np.asarray(others, np.float64)
    if above.shape != below.shape or above.ndim != 1 or not above.size:
        raise InputError(
            f"a ratio needs the same repetitions of both methods, got {above.size} and {below.size}"
        )
    drawn = np.random.default_rng(seed).integers(0, above.size, (resamples, above.size))
    with np.errstate(divide="ignore", invalid="ignore"):  # 0 / 0 where both answer exactly
        value = float(np.median(above) / np.median(below))
        ratios = np.median(above[drawn], axis=1) / np.median(below[drawn], axis=1)
    tail = (1 - confidence) / 2
    low, high = np.nanquantile(ratios, [tail, 1 - tail], method="nearest")
    return Ratio(value, float(low), float(high))
