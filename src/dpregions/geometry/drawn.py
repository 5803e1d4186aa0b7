"""Queries as drawn: the geometries that bodies are laid on, valid and within the area.

No body reaches beyond the area, and none comes nearer to the grid's lines than a few lattice steps:
so what is cut here, or left out, touches none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dpregions.geometry.lattice import STEPS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dpregions.geometry.grid import Grid


def boxes_in_area(bounds: NDArray[np.float64], grid: Grid) -> NDArray[np.object_]:
    """Return rectangles ``xmin, ymin, xmax, ymax`` cut to the area; thin ones: lines, points."""
    import shapely

    low = np.clip(bounds[:2].T, [grid.xmin, grid.ymin], [grid.xmax, grid.ymax])
    high = np.clip(bounds[2:].T, [grid.xmin, grid.ymin], [grid.xmax, grid.ymax])
    shapes = np.asarray(shapely.box(*low.T, *high.T))
    extents = (low < high).sum(axis=1)
    thin, points = extents == 1, extents == 0
    shapes[thin] = shapely.linestrings(np.stack([low[thin], high[thin]], axis=1))
    shapes[points] = shapely.points(low[points])
    return shapes


def valid_in_area(
    shapes: NDArray[np.object_], grid: Grid
) -> tuple[NDArray[np.object_], NDArray[np.bool_]]:
    """Return geometries made valid, and which reach into the area.

    By even and odd where rings cross, which is how their cells are marked. A geometry that only
    touches the area's border is outside: bodies keep clear of the grid's lines.
    """
    import shapely

    valid = shapes.copy()
    bad = ~shapely.is_valid(valid)
    valid[bad] = shapely.make_valid(valid[bad])
    xmin, ymin, xmax, ymax = grid.bounds
    step = grid.cell_size / STEPS
    area = shapely.box(xmin + step, ymin + step, xmax - step, ymax - step)
    shapely.prepare(area)
    return valid, np.asarray(shapely.intersects(area, valid))
