"""Sensitivity by trying all: every hull of lattice points, everywhere on and around small grids.

Hulls are up to a cell wider than the bound, which shrinks them or leaves them out.
What one region changes is counted here from its spans, one doubled row after the other, and held
against the sensitivity that a mechanism has noise for, under both neighbour relations.
"""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

import dpregions as dpr
from dpregions.geometry.outlines import Bound, Outlines
from dpregions.mechanisms.footprint.mechanism import Footprint
from dpregions.mechanisms.paper.mechanism import Paper
from dpregions.privacy.budget import Budget
from support.footprint_releases import BLOCKS, PLAIN, SHAPES
from support.watched_noise import Spy


def hulls(width: int, steps: int, most_points: int) -> list[list[tuple[int, int]]]:
    """All sets of so many points of a lattice within so many cells, and all rectangles of it."""
    side = range(width * steps + 1)
    points = list(product(side, side))
    sets = [list(some) for n in range(1, most_points + 1) for some in combinations(points, n)]
    spans = list(combinations(side, 2))
    return sets + [[(x, y) for x in xs for y in ys] for xs, ys in product(spans, spans)]


def bodies(grid: dpr.Grid, k: int, steps: int, most_points: int, oversize="drop") -> Outlines:
    """All hulls within k + 1 cells, at every lattice point from there to the area's other end."""
    shapes = hulls(k + 1, steps, most_points)
    sizes = np.array([len(shape) for shape in shapes])
    flat = np.array([point for shape in shapes for point in shape], float)
    rows, cols = grid.shape
    first = -(k + 1) * steps
    at = product(range(first, cols * steps + 1), range(first, rows * steps + 1))
    offsets = np.array(list(at), float)
    coords = (flat + offsets[:, None]).reshape(-1, 2) / steps
    starts = np.concatenate([[0], np.cumsum(np.tile(sizes, len(offsets)))])
    return Outlines.of(coords, starts, grid, Bound.of(grid, k, oversize))


def touched(outlines: Outlines, grid: dpr.Grid) -> np.ndarray:
    """The distinct sets of components that bodies touch, one row each."""
    rows, cols = grid.shape
    side = max(rows, cols)  # wider than the bound allows, to see what goes beyond it
    places, spans = outlines.footprints(rows, cols, side)
    both = np.unique(np.column_stack([places, spans.reshape(len(places), -1)]), axis=0)
    made = np.zeros((len(both), *grid.doubled_shape), np.int64)
    for i, line in enumerate(both):
        row, col, height, _ = line[:4]
        for step, (first, last) in enumerate(line[4:].reshape(-1, 2)[: 2 * height - 1]):
            made[i, 2 * row + step, 2 * (col + first) : 2 * (col + last) + 1] = 1
    return made.reshape(len(both), -1)


CASES = [
    # rows, columns, k, lattice steps for each cell, most points, whether the bound is reached
    (1, 1, 1, 2, 3, True),
    (2, 2, 1, 2, 3, True),
    (3, 3, 1, 3, 2, True),
    (2, 4, 1, 2, 3, True),
    (6, 6, 1, 2, 2, True),
    (3, 3, 2, 2, 2, False),
    (3, 3, 2, 3, 1, True),
    (4, 4, 3, 2, 1, False),  # the next test has the body that reaches it, on a finer lattice
]


@pytest.mark.parametrize("oversize", ["drop", "shrink"])
@pytest.mark.parametrize(("rows", "cols", "k", "steps", "most_points", "reached"), CASES)
def test_no_region_changes_the_papers_counts_by_more_than_the_bound_and_one_by_as_much(
    rows, cols, k, steps, most_points, reached, oversize
):
    grid = dpr.Grid(0, 0, 1, n_rows=rows, n_cols=cols)
    found = touched(bodies(grid, k, steps, most_points, oversize), grid)
    prepared = {
        relation: Paper().prepare(grid, Bound.of(grid, k, "shrink"), Budget(1), relation)
        for relation in ("add-remove", "replace-one")
    }
    added = int(found.sum(axis=1).max())
    assert added <= prepared["add-remove"].sensitivity
    assert not reached or added == prepared["add-remove"].sensitivity
    # Of two sets |A| + |B| - 2 |A and B|; a region may also leave the area.
    sizes = found.sum(axis=1)
    moved = int((sizes[:, None] + sizes - 2 * found @ found.T).max(initial=added))
    assert added <= moved <= prepared["replace-one"].sensitivity


def test_the_bound_is_reached_by_regions_of_three_cells():
    grid, square = (
        dpr.Grid(0, 0, 1, n_rows=4, n_cols=4),
        [(x, y) for x in (15, 48) for y in (15, 48)],
    )
    bound = Bound.of(grid, 3, "drop")
    found = touched(Outlines.of(np.array(square) / 16, np.array([0, 4]), grid, bound), grid)
    assert found.sum() == Paper().prepare(grid, bound, Budget(1), "add-remove").sensitivity == 49


@pytest.mark.parametrize("plan", [PLAIN, BLOCKS, SHAPES], ids=["sizes", "blocks", "patterns"])
@pytest.mark.parametrize(("rows", "cols", "k", "steps"), [(2, 2, 1, 3), (3, 3, 1, 2), (3, 4, 2, 2)])
def test_every_region_changes_each_measurement_of_footprints_by_one_or_not_at_all(
    plan, rows, cols, k, steps
):
    grid = dpr.Grid(0, 0, 1, n_rows=rows, n_cols=cols)
    prepared = Footprint(strategy=plan).prepare(
        grid, Bound.of(grid, k, "shrink"), Budget(1), "add-remove"
    )
    marks = np.unique(prepared.tally().marks(bodies(grid, k, steps, 2)))
    assert len(marks) > 4
    every = []
    for mark in marks[marks >= 0]:
        tally, spy = prepared.tally(), Spy(1)
        tally.add_marks(np.array([[mark]]))
        prepared.publish(tally, spy)
        changes = [values.ravel() for values, *_ in spy.asked]
        assert [np.abs(change).sum() for change in changes] == [1] * len(changes)
        every.append(changes)
    moved = [
        [int(np.abs(a - b).sum()) for a, b in zip(one, other, strict=True)]
        for one, other in combinations(every, 2)
    ]
    most = np.max(moved, axis=0)
    assert (most[1:] == 2).any() and (most <= 2).all()
    assert prepared.sensitivity == 1
