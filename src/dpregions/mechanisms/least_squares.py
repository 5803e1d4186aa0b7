"""Weighted least squares on a tree of noisy counts: the nearest in which children sum to parents.

Levels go from coarse to fine; `parents[l][j]` is the part of level `l` that part `j` of level
`l + 1` is in. One pass up gathers what is known of each part, one pass down settles it. Sees
noisy counts and public numbers alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from dpregions.arrays import Floats, Ints


def gathered(
    sizes: Sequence[int],
    parents: Sequence[Ints],
    values: Sequence[Floats | None],
    variances: Sequence[float],
) -> tuple[list[Floats], list[Floats]]:
    """Return, up the tree, each part's best estimate from itself and below, and its variance.

    Infinite where nothing at or below a part was measured: None among the values.
    """
    best = [np.zeros(size) for size in sizes]
    spread = [np.full(size, np.inf) for size in sizes]
    for level in range(len(sizes) - 1, -1, -1):
        if level < len(sizes) - 1:
            best[level] = sums(parents[level], best[level + 1], sizes[level])
            spread[level] = sums(parents[level], spread[level + 1], sizes[level])
        direct, own = values[level], variances[level]
        if direct is not None:
            # The weight of what comes from below; 0 where that was not measured.
            below = own / (own + spread[level])
            best[level] = np.where(below > 0, below * best[level] + (1 - below) * direct, direct)
            spread[level] = own * (1 - below)
    return best, spread


def settled(fit: Floats, up: Ints, best: Floats, spread: Floats) -> Floats:
    """Return a level's fit below its parents' fit: what is missing goes where least is known."""
    missing = fit - sums(up, best, len(fit))
    return best + spread * (missing / sums(up, spread, len(fit)))[up]


def tree_fit(
    parents: Sequence[Ints], values: Sequence[Floats], variances: Sequence[float]
) -> list[Floats]:
    """Return the fit of every level, where all were measured."""
    best, spread = gathered([len(level) for level in values], parents, values, variances)
    fit = best[:1]
    for level, up in enumerate(parents, start=1):
        fit.append(settled(fit[-1], up, best[level], spread[level]))
    return fit


def sums(part: Ints, values: Floats, n: int) -> Floats:
    """Return the sum of the values in each of n parts."""
    return np.bincount(part, values, minlength=n).astype(np.float64, copy=False)
