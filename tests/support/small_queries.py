"""A small grid with bodies, and which cells queries select on it."""

from __future__ import annotations

import warnings

import numpy as np
from shapely import LineString, Point, Polygon, box

from dpregions import EulerHistogram, Grid
from dpregions.errors import DPRegionsWarning
from dpregions.geometry.cells import select

GRID = Grid(0, 0, 1, n_rows=4, n_cols=5)
BODIES = [
    box(0.5, 0.5, 1.5, 1.5),
    box(0.2, 0.2, 4.8, 3.8),
    Polygon([(2.5, 0.5), (4.5, 1.5), (3.5, 3.5)]),
    LineString([(0.5, 3.5), (4.5, 3.2)]),
    Point(4, 3),
]
HIST = EulerHistogram.from_regions(BODIES, GRID)
UTM = Grid(447_000, 4_418_000, 1000, n_rows=6, n_cols=7, crs=32650)


def quiet(call, *arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DPRegionsWarning)
        return call(*arguments, **options)


def touched_cells(grid, *query, crs=None):
    """Return which cells queries select (bool), one array a query."""
    selection = quiet(select, grid, query, crs)
    found = []
    for i, (row0, row1, col0, col1) in enumerate(selection.ranges.T):
        cells = np.zeros(grid.shape, bool)
        part = cells[row0 : row1 + 1, col0 : col1 + 1] if row0 <= row1 and col0 <= col1 else None
        if part is not None:
            part[...] = selection.masks.get(i, True)
        found.append(cells)
    return found
