"""How consistent a doubled array is: the paper's constraints, and what they are to ensure.

C1: an edge is at most each of its two faces. C2: a vertex is at most each of its four edges.
C3: every 2 x 2 block of cells answers F - E + V >= 0. They are necessary for an array to be
the histogram of some bodies, not sufficient. The stronger measure asks the answers themselves:
none negative, and no rectangle answering more than one that contains it.

Works on any array, noisy or released; needs nothing secret.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dpregions.geometry.doubled import SignedTable, doubled_array

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

ALL_PAIRS_LIMIT = 100_000_000
LONG_SIDE_LIMIT = 1_000_000
SAMPLED_PAIRS = 5_000_000


def n_constraints(n_rows: int, n_cols: int) -> dict[str, int]:
    """Return how many constraints of each family a grid has.

    Examples
    --------
    >>> n_constraints(20, 20)
    {'C1': 1520, 'C2': 1444, 'C3': 361}
    """
    edges = n_rows * (n_cols - 1) + (n_rows - 1) * n_cols
    vertices = (n_rows - 1) * (n_cols - 1)
    return {"C1": 2 * edges, "C2": 4 * vertices, "C3": vertices}


def violations(counts: ArrayLike, *, percent: bool = False) -> dict[str, Any]:
    """Return how many constraints of each family C1, C2, C3 an array breaks.

    Parameters
    ----------
    counts : array
        Doubled array of any numbers.
    percent : bool
        Return percentages of each family instead (0 for a family without members).
    """
    x = doubled_array(counts)
    face, upright, flat, vertex = x[::2, ::2], x[::2, 1::2], x[1::2, ::2], x[1::2, 1::2]
    c1 = (upright > face[:, :-1], upright > face[:, 1:], flat > face[:-1], flat > face[1:])
    c2 = (vertex > upright[:-1], vertex > upright[1:], vertex > flat[:, :-1], vertex > flat[:, 1:])
    # Each edge stands at the place of a face of its own, so that where C1 holds the rounded sum
    # of the edges is no larger than that of the faces: floats break C3 only where they break it.
    block = (
        (face[:-1, :-1] + face[1:, 1:] + face[1:, :-1] + face[:-1, 1:])
        - (upright[:-1] + upright[1:] + flat[:, :-1] + flat[:, 1:])
        + vertex
    )
    broken = {
        "C1": sum(int(part.sum()) for part in c1),
        "C2": sum(int(part.sum()) for part in c2),
        "C3": int((block < 0).sum()),
    }
    return in_percent(broken, n_constraints(*face.shape)) if percent else broken


def in_percent(broken: dict[str, int], total: dict[str, int]) -> dict[str, float]:
    """Return what is broken of each family in percent of the family, 0 for an empty one."""
    return {name: 100 * n / max(total[name], 1) for name, n in broken.items()}


class Inconsistency(NamedTuple):
    """How often the answers of an array contradict any set of bodies."""

    rectangles: int
    """Rectangles of cells looked at."""
    negative: int
    """Of those, with a negative answer."""
    pairs: int
    """Pairs of a rectangle and another that contains it, looked at."""
    non_monotone: int
    """Of those, where the smaller rectangle answers more."""


def inconsistency(counts: ArrayLike, *, seed: int = 0) -> Inconsistency:
    """Measure real consistency: negative answers, and smaller rectangles answering more.

    Looks at every rectangle and every nested pair where there are at most a hundred million
    (grids up to about 20 x 20), otherwise at five million of each, drawn evenly.

    Parameters
    ----------
    counts : array
        Doubled array.
    seed : int
        Of the draw on large grids. It chooses which answers to check, nothing else.
    """
    array = doubled_array(counts)
    if array.shape[0] > array.shape[1]:  # the loop is over rows, whole arrays over columns
        array = array.T
    table = SignedTable(array)
    n_rows, n_cols = (n // 2 + 1 for n in array.shape)
    pairs_of_rows, pairs_of_cols = math.comb(n_rows + 3, 4), math.comb(n_cols + 3, 4)
    if pairs_of_cols <= LONG_SIDE_LIMIT and pairs_of_rows * pairs_of_cols <= ALL_PAIRS_LIMIT:
        return _all_pairs(table, n_rows, n_cols)
    return _sampled_pairs(table, n_rows, n_cols, SAMPLED_PAIRS, seed)


def _sampled_pairs(
    table: SignedTable, n_rows: int, n_cols: int, n_pairs: int, seed: int
) -> Inconsistency:
    """Look at so many rectangles and so many nested pairs, drawn evenly."""
    rng = np.random.default_rng(seed)
    rows, cols = (_rising(n, 2, n_pairs, rng) for n in (n_rows, n_cols))
    negative = int((table.rectangles(*rows, *cols) < 0).sum())
    rows, cols = (_rising(n, 4, n_pairs, rng) for n in (n_rows, n_cols))
    outer = table.rectangles(rows[0], rows[3], cols[0], cols[3])
    inner = table.rectangles(rows[1], rows[2], cols[1], cols[2])
    return Inconsistency(n_pairs, negative, n_pairs, int((inner > outer).sum()))


def _all_pairs(table: SignedTable, n_rows: int, n_cols: int) -> Inconsistency:
    """Look at every nested pair: for each pair of row intervals, all pairs of columns at once."""
    col0, col1 = np.triu_indices(n_cols)
    inside = (col0[:, None] <= col0) & (col1 <= col1[:, None])
    outer, inner = np.nonzero(inside)
    row_pairs = [(a, b) for a in range(n_rows) for b in range(a, n_rows)]
    answer = {(a, b): table.rectangles(a, b, col0, col1) for a, b in row_pairs}
    negative = sum(int((values < 0).sum()) for values in answer.values())
    pairs = non_monotone = 0
    for a, b in row_pairs:
        large = answer[a, b][outer]
        for c in range(a, b + 1):
            for d in range(c, b + 1):
                non_monotone += int((answer[c, d][inner] > large).sum())
                pairs += outer.size
    return Inconsistency(len(row_pairs) * col0.size, negative, pairs, non_monotone)


def _rising(n: int, members: int, size: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw rising numbers below n evenly, ties allowed: two an interval, four a nested pair."""
    # Sets of distinct numbers below n + members - 1 (Floyd's draw, nothing thrown away); one
    # less for each smaller member makes them rising numbers below n, each as likely.
    drawn = np.empty((members, size), np.int64)
    for i in range(members):
        largest = n - 1 + i
        number = rng.integers(0, largest + 1, size)
        drawn[i] = np.where((drawn[:i] == number).any(axis=0), largest, number)
    drawn.sort(axis=0)
    return drawn - np.arange(members)[:, None]
