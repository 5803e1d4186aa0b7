"""A private kd-tree of centroid points, which splits where the points are: a baseline.

Study on exact data: not a private release. The hybrid tree ("kd-hybrid") of G. Cormode, C.
Procopiuc, D. Srivastava, E. Shen, T. Yu, "Differentially private spatial decompositions", ICDE
2012: medians in the upper half of the tree, for a part of the budget, quarters below, and counts
at all depths, made consistent by least squares.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dpregions.privacy.budget import PrivacyUnit
from dpregions.study.methods.baselines import CellSums
from dpregions.study.methods.trees import least_squares, quadtree_height

if TYPE_CHECKING:
    from dpregions.arrays import Floats, Ints
    from dpregions.choices import Neighbours
    from dpregions.planning.exact_data import ExactData
    from dpregions.privacy.budget import Budget
    from dpregions.privacy.noise import NoiseSource

MEDIANS = Fraction(3, 10)
"""Share of the budget for medians, as in the paper."""

CANDIDATES = 32
"""A part may be cut at the ends of so many equal steps, its own ends left out."""


class Parts(NamedTuple):
    """Parts of the area, along rows and along columns, and which of them each point is in."""

    low: Floats
    high: Floats
    of_point: Ints

    def steps(self, points: Floats, axis: int) -> Ints:
        """Return which of its part's equal steps along an axis each point is in."""
        low, high = (ends[axis, self.of_point] for ends in (self.low, self.high))
        step = np.floor((points[axis] - low) / (high - low) * CANDIDATES).astype(np.int64)
        return np.clip(step, 0, CANDIDATES - 1)

    def cut(self, points: Floats, axis: int, first: Ints) -> Parts:
        """Return twice as many parts: each one's steps before `first`, then the others."""
        low, high = np.repeat(self.low, 2, axis=1), np.repeat(self.high, 2, axis=1)
        sides = self.high[axis] - self.low[axis]
        at = self.low[axis] + sides * (first / CANDIDATES)
        high[axis, ::2] = low[axis, 1::2] = at
        beyond = self.steps(points, axis) >= first[self.of_point]
        return Parts(low, high, 2 * self.of_point + beyond)


def kd_tree(
    data: ExactData, budget: Budget, neighbours: Neighbours, noise: NoiseSource
) -> CellSums:
    """Centroid points on a hybrid kd-tree, made consistent by least squares.

    As high as the quadtree beside it, with four children for each part: cut along rows, then both
    halves along columns. In the upper half of the tree at noisy medians: the candidate whose two
    sides hold most nearly as many points, by counts with noise for that choice alone (report noisy
    max; the paper has the exponential mechanism, which errs about alike). Below, in the middle.
    Depths share what is left as in the quadtree. Subtrees with few points are not pruned.
    """
    reach = PrivacyUnit(neighbours).sensitivity_factor
    height = quadtree_height(data.grid)
    depths = (height + 1) // 2
    # A part of one cell has nothing to cut: all is for its count.
    for_medians, for_counts = budget.split(MEDIANS, 1 - MEDIANS) if height else (None, budget)
    choices = iter(for_medians.split(*[1] * (2 * depths)) if for_medians else ())
    shares = for_counts.split(*(2 ** (depth / 3) for depth in range(height + 1)))
    points = data.points
    ends = np.array(data.grid.shape, np.float64)[:, None]
    parts = Parts(np.zeros((2, 1)), ends, np.zeros(points.shape[1], np.int64))
    noisy = []
    for depth, share in enumerate(shares):
        if depth:
            for axis in (0, 1):
                middle = np.full(parts.low.shape[1], CANDIDATES // 2)
                if depth <= depths:
                    middle = _medians(parts, points, axis, next(choices), reach, noise)
                parts = parts.cut(points, axis, middle)
        exact = np.bincount(parts.of_point, minlength=4**depth)
        noisy.append(noise.add(exact, epsilon=share, sensitivity=reach))
    parents = [np.arange(4**depth) // 4 for depth in range(1, height + 1)]
    leaves = least_squares(noisy, parents, shares)[-1]
    rows, cols = (
        spread(low, high, n)
        for low, high, n in zip(parts.low, parts.high, data.grid.shape, strict=True)
    )
    return CellSums(rows.T @ (leaves[:, None] * cols))


def _medians(
    parts: Parts, points: Floats, axis: int, share: Budget, reach: int, noise: NoiseSource
) -> Ints:
    """Return the step of each part at which it is cut about in half, by a noisy choice.

    One point more or fewer moves the difference between the two sides of every candidate of its
    part by 1, up or down: so the largest of noisy scores is chosen with twice the noise of a count.
    """
    n = parts.low.shape[1]
    place = parts.of_point * CANDIDATES + parts.steps(points, axis)
    held = np.bincount(place, minlength=n * CANDIDATES).reshape(n, CANDIDATES)
    below = held.cumsum(axis=1)[:, :-1]
    scores = -np.abs(2 * below - held.sum(axis=1, keepdims=True))
    found = noise.add(scores.ravel(), epsilon=share, sensitivity=2 * reach)
    return 1 + np.asarray(found).reshape(scores.shape).argmax(axis=1)


def spread(low: Floats, high: Floats, n_cells: int) -> Floats:
    """Return which share of each piece of an axis lies in each of its cells.

    Examples
    --------
    >>> spread(np.array([0.0, 1.5]), np.array([1.5, 2.0]), 2)
    array([[0.66666667, 0.33333333],
           [0.        , 1.        ]])
    """
    cell = np.arange(n_cells)
    common = np.minimum(high[:, None], cell + 1) - np.maximum(low[:, None], cell)
    return np.maximum(common, 0) / (high - low)[:, None]
