"""A small grid, a made-up town, releases of it with seeded noise."""

from __future__ import annotations

from itertools import product

import geopandas
import numpy as np
import shapely

import dpregions as dpr
from dpregions.privacy.noise import scale_for
from dpregions.privacy.seeded import StudyNoise
from dpregions.releases.make import release_with
from dpregions.releases.published import Release

GRID = dpr.Grid(0, 0, 1, n_rows=4, n_cols=5)
HARDLY_ANY_NOISE = 10**15  # an epsilon at which every draw is 0: shows who was counted


def town(n: int = 60, seed: int = 0) -> geopandas.GeoDataFrame:
    """Boxes of up to 1.2 by 1.2 cells, one a user, some of them partly outside."""
    rng = np.random.default_rng(seed)
    x, y = rng.uniform(-0.5, 4.5, (2, n))
    width, height = rng.uniform(0.1, 1.2, (2, n))
    boxes = shapely.box(x, y, x + width, y + height)
    return geopandas.GeoDataFrame({"user_id": np.arange(n)}, geometry=boxes)


def study(regions=None, grid=GRID, *, noise=None, **changes) -> Release:
    """A release with seeded noise."""
    arguments = {"epsilon": 1, "max_diameter": 2} | changes
    regions = town() if regions is None else regions
    return release_with(StudyNoise(1) if noise is None else noise, regions, grid, **arguments)


def paper_study(regions=None, grid=GRID, **changes) -> Release:
    """A release by the paper's mechanism, with seeded noise."""
    return study(regions, grid, method="paper", **changes)


def scale_of(release: Release) -> float:
    """The scale of the noise on every component, for the paper's mechanism."""
    assert release.method == "paper"
    return scale_for(release.budget, release.sensitivity)


def euler_sum(counts: np.ndarray, row0: int, row1: int, col0: int, col1: int) -> int:
    """Faces - edges + vertices inside a rectangle of cells, one by one."""
    places = product(range(2 * row0, 2 * row1 + 1), range(2 * col0, 2 * col1 + 1))
    return sum((-1) ** (i + j) * int(counts[i, j]) for i, j in places)


def n_components(row0: int, row1: int, col0: int, col1: int) -> int:
    return (2 * (row1 - row0) + 1) * (2 * (col1 - col0) + 1)
