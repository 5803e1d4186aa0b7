"""What methods are asked, and how their answers are judged: rectangles, errors, ratios.

Study on exact data: not a private release. Nothing here knows how an answer was made.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dpregions.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

SHARES = (0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 0.75, 1.0)
"""Sizes of rectangles, as shares of the area."""

FLOOR = 0.001
"""Errors are relative to the true answer, or to this share of all regions where that is more."""

_SQUARENESS = 0.1


def shape_of(share: float, n_rows: int, n_cols: int) -> tuple[int, int]:
    """Return the near-square rectangle, in cells, whose area is nearest a share of the grid's.

    A little area is given up for a squarer shape: on 20 x 20 cells, 50 % is 14 x 14, not
    10 x 20. At least one cell.

    Examples
    --------
    >>> [shape_of(share, 20, 20) for share in (0.01, 0.05, 0.5, 1.0)]
    [(2, 2), (4, 5), (14, 14), (20, 20)]
    """
    if not 0 < share <= 1:
        raise InputError(f"a share of the area lies above 0 and at most at 1, got {share!r}")
    rows, cols = np.arange(1, n_rows + 1)[:, None], np.arange(1, n_cols + 1)[None, :]
    target = max(share * n_rows * n_cols, 1.0)
    slim = np.abs(np.log(rows * n_cols / (cols * n_rows)))
    off = np.abs(rows * cols - target) / target + _SQUARENESS * slim
    row, col = np.unravel_index(np.argmin(off), off.shape)
    return int(row) + 1, int(col) + 1


def rectangles(
    share: float, n_rows: int, n_cols: int, n: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Return `n` placements of a share's rectangle: rows ``row0, row1, col0, col1``, inclusive.

    Placed evenly over the grid, on their side half of the time where they fit.
    """
    return placements(*shape_of(share, n_rows, n_cols), n_rows, n_cols, n, rng)


def placements(
    rows: int, cols: int, n_rows: int, n_cols: int, n: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Return `n` placements of a rectangle of `rows` x `cols` cells, as `rectangles` does."""
    turned = (rng.random(n) < 0.5) & (cols <= n_rows) & (rows <= n_cols)
    height, width = np.where(turned, cols, rows), np.where(turned, rows, cols)
    row0 = rng.integers(0, n_rows - height + 1)
    col0 = rng.integers(0, n_cols - width + 1)
    return np.stack([row0, row0 + height - 1, col0, col0 + width - 1])


def shapes_of_area(cells: int, n_rows: int, n_cols: int) -> list[tuple[int, int]]:
    """Return every height and width of exactly so many cells that fits on the grid.

    Examples
    --------
    >>> shapes_of_area(12, 20, 6)
    [(2, 6), (3, 4), (4, 3), (6, 2), (12, 1)]
    """
    heights = (h for h in range(1, min(cells, n_rows) + 1) if cells % h == 0)
    return [(h, cells // h) for h in heights if cells // h <= n_cols]


def placed(
    height: int, width: int, n_rows: int, n_cols: int, n: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Return `n` placements of one shape, evenly over the grid, as `rectangles` does."""
    row0 = rng.integers(0, n_rows - height + 1, n)
    col0 = rng.integers(0, n_cols - width + 1, n)
    return np.stack([row0, row0 + height - 1, col0, col0 + width - 1])


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
