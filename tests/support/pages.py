"""Releases for tests of the page: made-up towns in several CRSs, seeded noise, their HTML files."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np

import dpregions as dpr
from dpregions.releases.published import Release
from support.footprint_releases import study, town


@cache
def tilted() -> Release:
    """24 x 30 cells of 500 m, two degrees east of the meridian of its CRS."""
    around = dpr.Grid.around(11.7, 48.5, "15km", "500m", crs="EPSG:32632")
    grid = dpr.Grid(around.xmin, around.ymin, 500, 24, 30, crs=around.crs)
    regions = town(grid, 1000, n=3000)
    return study(regions, grid, max_diameter=1000, epsilon=1)


@cache
def small() -> Release:
    """12 x 10 cells of 1 km around 9.0 E: every rectangle has its interval in the file."""
    grid = dpr.Grid(493000, 5366000, 1000, 12, 10, crs="EPSG:32632")
    return study(town(grid, 2000, n=2000), grid, max_diameter=2000, epsilon=1)


@cache
def plane() -> Release:
    """6 x 8 cells of a plane without a CRS."""
    grid = dpr.Grid(0, 0, 1, 6, 8)
    return study(town(grid, 2, n=400), grid, max_diameter=2, epsilon=1)


def on_grid(grid: dpr.Grid, n: int = 2000, **changes: object) -> Release:
    """A release on any grid, of regions up to two cells long."""
    bound = 2 * grid.cell_size
    return study(town(grid, bound, n=n), grid, **{"max_diameter": bound, "epsilon": 2} | changes)


def html_of(release: Release, folder: Path, name: str = "city") -> str:
    """The address of a release's HTML file."""
    path = folder / f"{name}.html"
    release.explore(name).save(path)
    return path.as_uri()


def random_rectangles(grid: dpr.Grid, n: int, seed: int = 0) -> np.ndarray:
    """Rows ``row0, row1, col0, col1`` of random rectangles of cells."""
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.integers(0, grid.n_rows, (2, n)), axis=0)
    cols = np.sort(rng.integers(0, grid.n_cols, (2, n)), axis=0)
    return np.stack([*rows, *cols])
