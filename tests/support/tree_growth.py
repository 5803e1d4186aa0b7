"""Adaptive trees on small grids: every point there is, noisy answers at will, who spent what."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cache

import numpy as np

import dpregions as dpr
from dpregions.geometry.outlines import Bound
from dpregions.mechanisms.footprint.measuring import integer_variance
from dpregions.mechanisms.footprint.tree.growing import Adaptive, Batch, grow
from dpregions.mechanisms.footprint.tree.ladder import Ladder, ladder_of
from dpregions.privacy.budget import Budget

SHAPES = [(1, 1), (1, 7), (2, 2), (3, 4), (5, 5), (6, 2), (8, 8), (4, 9)]
DIAMETERS = [0.3, 1, 1.5, 2, 3, 4.2]


@cache
def ladder_on(shape: tuple[int, int], diameter: float) -> Ladder:
    """The levels of a grid of unit cells for regions up to a diameter."""
    bound = Bound.of(dpr.Grid(0, 0, 1, *shape), diameter, "shrink")
    return ladder_of(shape, min(bound.k + 1, max(shape)), bound.steps)


@cache
def every_point(ladder: Ladder) -> np.ndarray:
    """Centre cell and size (row, col, height, width) of every footprint that a region can have."""
    found = [
        (row + (h - 1) // 2, col + (w - 1) // 2, h, w)
        for h, w in np.argwhere(ladder.prior > 0).tolist()
        for row in range(ladder.n_rows - h + 1)
        for col in range(ladder.n_cols - w + 1)
    ]
    return np.array(found).reshape(-1, 4)


@cache
def every_key(ladder: Ladder) -> np.ndarray:
    """Their keys, in the order of `every_point`."""
    return ladder.keys(*every_point(ladder).T)


class Watched:
    """Gives what it likes for noisy counts, and keeps what it was asked."""

    def __init__(self, answers: Callable[[int, np.ndarray], np.ndarray]) -> None:
        self.answers, self.asked = answers, []

    def __call__(self, level, nodes, share):
        self.asked.append((level, nodes.copy(), share.epsilon))
        return self.answers(level, nodes)


def grown_by(
    ladder: Ladder,
    how: Adaptive,
    total: float,
    counts,
    *,
    budget: Fraction = Fraction(1),
    factor: int = 1,
) -> list[Batch]:
    """What a tree measures with sizes as the prior has them."""
    return grow(ladder, how, ladder.prior, total, Budget(budget), factor, counts, integer_variance)


def spent_on(ladder: Ladder, asked, keys: np.ndarray) -> list[Fraction]:
    """What each key spent, counted one measurement after another: no steps, no ranges."""
    found = [Fraction(0)] * len(keys)
    for level, nodes, share in asked:
        within, times = np.unique(nodes, return_counts=True)
        often = dict(zip(within.tolist(), times.tolist(), strict=True))
        for i, node in enumerate((keys >> ladder.rungs[level].shift).tolist()):
            found[i] += share * often.get(node, 0)
    return found
