"""How far polygon answers are off: Euler sums over staircases of cells against exact counts.

Not a speed benchmark. The truth is the number of regions that meet the union of the cells a
polygon touches; a region that meets it in two pieces adds 2 to the Euler sum.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
import shapely

from benchmarks.report import Row, show
from dpregions import EulerHistogram, synthetic
from dpregions.errors import DPRegionsWarning
from dpregions.geometry.cells import select


def outline(kind: str, at: np.ndarray, size: float, rng: np.random.Generator) -> np.ndarray:
    """Return polygons about `size` across, about places; all but squares are turned at will."""
    if kind == "disc":
        return shapely.buffer(shapely.points(at), size / 2)
    if kind == "square":
        return shapely.box(*(at - size / 2).T, *(at + size / 2).T)
    turn = rng.uniform(0, 2 * np.pi, (len(at), 1))
    if kind == "triangle":
        angles, radius = turn + np.array([0, 2, 4]) * np.pi / 3, size / 2
    else:  # an L: two arms of a third of the size
        corners = np.array([[0, 0], [3, 0], [3, 1], [1, 1], [1, 3], [0, 3]]) - 1.0
        angles, radius = turn + np.arctan2(*corners.T[::-1]), np.hypot(*corners.T) * size / 3
    rings = np.stack([np.cos(angles) * radius, np.sin(angles) * radius], axis=-1)
    return shapely.polygons(at[:, None] + rings)


def shapes(kind: str, n: int, size: float, rng: np.random.Generator) -> np.ndarray:
    """Return n polygons about `size` across, anywhere in the inner area."""
    area = synthetic.grid()
    centres = rng.uniform(0.2, 0.8, (n, 2)) * (area.xmax - area.xmin) + [area.xmin, area.ymin]
    return outline(kind, centres, size, rng)


def run(quick: bool = False) -> list[Row]:
    """Measure discs, triangles and L shapes of 3 and 8 cells across."""
    n_users, n = (500, 5) if quick else (10_000, 200)
    regions = synthetic.regions(n_users)
    grid = synthetic.grid()
    hist = EulerHistogram.from_regions(regions, grid)
    tree = shapely.STRtree(regions.geometry.values)
    cells = np.asarray(grid.to_geodataframe("faces").geometry.array).reshape(grid.shape)
    rng = np.random.default_rng(0)
    rows = []
    for kind in ("disc", "triangle", "L"):
        for across in (3, 8):
            errors, used = [], 0
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DPRegionsWarning)
                for polygon in shapes(kind, n, across * grid.cell_size, rng):
                    found = select(grid, (polygon,))
                    if found.exact.all():
                        continue
                    row0, row1, col0, col1 = found.ranges[:, 0]
                    touched = cells[row0 : row1 + 1, col0 : col1 + 1][found.masks[0]]
                    truth = len(tree.query(shapely.union_all(touched), predicate="intersects"))
                    if truth:
                        errors.append((hist.count(polygon) - truth) / truth)
                        used += 1
            rows.append(
                Row(
                    f"{kind}, {across} cells across",
                    float(np.mean(errors)) * 100 if errors else 0.0,
                    "% too many, mean",
                    note=f"largest {max(errors, default=0) * 100:.1f} %, {used} polygons",
                )
            )
    return rows


if __name__ == "__main__":
    show("Polygon queries on the synthetic city", run("--quick" in sys.argv))
