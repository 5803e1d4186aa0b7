"""Two private decompositions of centroid points that a mechanism must beat: AG and a quadtree.

Study on exact data: not a private release. Both count one point a region, at two or more levels
of their own, make the levels agree by least squares and spread each leaf's count evenly over
its area. Where their leaves lie depends on noisy counts and public parameters alone.

- Adaptive grid: W. Qardaji, W. Yang, N. Li, "Differentially private grids for geospatial data",
  ICDE 2013.
- Quadtree ("quad-opt"): G. Cormode, C. Procopiuc, D. Srivastava, E. Shen, T. Yu,
  "Differentially private spatial decompositions", ICDE 2012.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from dpregions.mechanisms.least_squares import tree_fit
from dpregions.privacy.budget import PrivacyUnit
from dpregions.study.methods.baselines import CellSums

if TYPE_CHECKING:
    from dpregions.arrays import Floats, Ints, Numbers
    from dpregions.choices import Neighbours
    from dpregions.geometry.grid import Grid
    from dpregions.planning.exact_data import ExactData
    from dpregions.privacy.budget import Budget
    from dpregions.privacy.noise import NoiseSource

ALPHA = Fraction(1, 2)
"""AG's share for the first level, of what its two levels have."""

TOTAL_SHARE = Fraction(1, 100)
"""What AG pays to learn N: off by about 100 / epsilon, where m1 leaves 10 at 16,000 / epsilon."""

_LEAST_M1 = 10
_C1, _C2 = 10, 5


def adaptive_grid(
    data: ExactData, budget: Budget, neighbours: Neighbours, noise: NoiseSource
) -> CellSums:
    """Centroid points on AG: m1 x m1 blocks, each split the finer the more points it holds.

    As in the paper (alpha = 0.5, c1 = 10, c2 = 5), but for what it takes as known: N is a noisy
    count here, for a hundredth of epsilon. Where a neighbour moves two points, the paper's
    rules read half of epsilon, because the noise is that of half of it.

    Like the paper's, it leans upwards a little: noise that adds to a block splits it finer, and
    the finer it is split, the more that noisy count weighs against the sum of its leaves.
    """
    reach = PrivacyUnit(neighbours).sensitivity_factor
    for_total, coarse, fine = budget.split(
        TOTAL_SHARE, (1 - TOTAL_SHARE) * ALPHA, (1 - TOTAL_SHARE) * (1 - ALPHA)
    )
    n_points = np.array([data.points.shape[1]])
    total = noise.add(n_points, epsilon=for_total, sensitivity=reach)[0]
    m1 = first_side(int(total), (float(coarse) + float(fine)) / reach)
    place = data.points * m1 / np.array(data.grid.shape)[:, None]
    row, col = _whole(place)
    block = row * m1 + col
    blocks = noise.add(np.bincount(block, minlength=m1 * m1), epsilon=coarse, sensitivity=reach)

    m2 = second_sides(blocks, float(fine) / reach)
    starts = np.concatenate([[0], np.cumsum(m2 * m2)])
    inner_row, inner_col = _whole((place - [row, col]) * m2[block])
    leaf = starts[block] + inner_row * m2[block] + inner_col
    leaves = noise.add(np.bincount(leaf, minlength=starts[-1]), epsilon=fine, sensitivity=reach)

    parent = np.repeat(np.arange(m1 * m1), m2 * m2)
    fit = least_squares([blocks, leaves], [parent], [coarse, fine])[-1]
    across = m2[parent]
    within = np.divmod(np.arange(len(leaves)) - starts[parent], across)
    low = np.stack(np.divmod(parent, m1)) * across + np.stack(within)
    rows, cols = (
        overlaps(first, m1 * across, n) for first, n in zip(low, data.grid.shape, strict=True)
    )
    return CellSums(rows.T @ (fit[:, None] * cols))


def first_side(noisy_total: int, epsilon: float) -> int:
    """Return AG's m1 = max(10, sqrt(N * epsilon / 10) / 4), rounded up.

    Examples
    --------
    >>> [first_side(n, 1.0) for n in (-5, 10_000, 1_000_000)]
    [10, 10, 80]
    """
    return max(_LEAST_M1, math.ceil(math.sqrt(max(noisy_total, 0) * epsilon / _C1) / 4))


def second_sides(noisy: Ints, epsilon: float) -> Ints:
    """Return AG's m2 = sqrt(N' * epsilon / 5) of each block, rounded up; at least 1.

    Parameters
    ----------
    noisy : array of int
        Noisy counts N' of the blocks; whatever is below 0 counts as 0.
    epsilon : float
        The second level's own, (1 - alpha) * epsilon in the paper.

    Examples
    --------
    >>> second_sides(np.array([-3, 1, 10, 11, 1000]), 0.5).tolist()
    [1, 1, 1, 2, 10]
    """
    sides = np.ceil(np.sqrt(np.maximum(noisy, 0) * epsilon / _C2)).astype(np.int64)
    return np.maximum(sides, 1)


def quadtree(
    data: ExactData, budget: Budget, neighbours: Neighbours, noise: NoiseSource
) -> CellSums:
    """Centroid points on a complete quadtree over the area, made consistent by least squares.

    The paper's quad-opt: depth `d` from the root has a share in proportion to 2**(d/3) and the
    counts of all depths are fitted together. Its answers, which add up whole nodes and evenly
    spread leaves, are then those of the fitted leaves alone. Subtrees with few points are not
    pruned, a further step of the paper's.
    """
    reach = PrivacyUnit(neighbours).sensitivity_factor
    height = quadtree_height(data.grid)
    n = 2**height
    row, col = _whole(data.points * n / np.array(data.grid.shape)[:, None])
    exact = [np.bincount(row * n + col, minlength=n * n).reshape(n, n)]
    for _ in range(height):
        exact.insert(0, _fours(exact[0]))
    shares = budget.split(*(2 ** (depth / 3) for depth in range(height + 1)))
    noisy = [
        noise.add(counts, epsilon=share, sensitivity=reach).ravel()
        for counts, share in zip(exact, shares, strict=True)
    ]
    parents = [_quarters(2**depth) for depth in range(1, height + 1)]
    leaves = least_squares(noisy, parents, shares)[-1].reshape(n, n)
    rows, cols = (overlaps(np.arange(n), n, cells) for cells in data.grid.shape)
    return CellSums(rows.T @ leaves @ cols)


def quadtree_height(grid: Grid) -> int:
    """Return the least height whose leaves are no wider and no higher than a cell; public."""
    return (max(grid.shape) - 1).bit_length()


def least_squares(
    noisy: Sequence[Numbers], parents: Sequence[Ints], shares: Sequence[Budget]
) -> list[Floats]:
    """Return, level by level, the counts nearest the noisy ones in which children sum to parents.

    Nearest in squares, each weighted by its level's epsilon squared: the noise's inverse
    variance, up to a common factor and to the small difference between integer and
    continuous Laplace noise. As in both papers, and as the footprint mechanism does it.

    Parameters
    ----------
    noisy : sequence of arrays
        The counts of each level, from coarse to fine; every part has children but the last's.
    parents : sequence of arrays
        For each level but the first, which part of the level before each of its parts is in.
    shares : sequence of Budget
        Each level's epsilon.
    """
    total = sum(share.epsilon for share in shares)
    variances = [float(total / share.epsilon) ** 2 for share in shares]
    return tree_fit(parents, [np.asarray(counts, np.float64) for counts in noisy], variances)


def overlaps(piece: Ints, pieces: Ints | int, n_cells: int) -> Floats:
    """Return which share of each piece of an axis lies in each of its cells.

    Parameters
    ----------
    piece, pieces
        The piece's number, from 0, among so many equal pieces of the whole axis.
    n_cells : int
        Cells along the axis.

    Examples
    --------
    >>> overlaps(np.array([0, 1]), 2, 3)
    array([[0.66666667, 0.33333333, 0.        ],
           [0.        , 0.33333333, 0.66666667]])
    """
    # In units of one cell split into `pieces`, so that all bounds are whole numbers.
    whole = np.broadcast_to(pieces, piece.shape)[:, None]
    low = piece[:, None] * n_cells
    cell = np.arange(n_cells) * whole
    common = np.minimum(low + n_cells, cell + whole) - np.maximum(low, cell)
    return np.maximum(common, 0) / n_cells


def _whole(place: Floats) -> Ints:
    """Return the number, from 0, of the interval of length 1 that each place is in."""
    # No place is carried over the far edge: a float below a whole number n, times or over a
    # whole number, is nearer to a float below the exact result of n than to that result.
    return np.floor(place).astype(np.int64)


def _fours(counts: Ints) -> Ints:
    """Return the sums of the quarters of each square."""
    half = len(counts) // 2
    return counts.reshape(half, 2, half, 2).sum(axis=(1, 3))


def _quarters(n: int) -> Ints:
    """Return which square of n/2 x n/2 each of n x n squares is a quarter of."""
    half = np.arange(n) // 2
    return (half[:, None] * (n // 2) + half).ravel()
