"""Releases by footprints for tests: made-up towns, fixed strategies, seeded noise."""

from __future__ import annotations

import numpy as np
import shapely

import dpregions as dpr
from dpregions.mechanisms.footprint.measuring import Measurement, Strategy
from dpregions.mechanisms.footprint.mechanism import Footprint
from dpregions.privacy.seeded import StudyNoise
from dpregions.releases.make import release_with
from dpregions.releases.published import Release

UNIT_GRID = dpr.Grid(0, 0, 1, n_rows=4, n_cols=5)
PLAIN = Strategy("sizes", (Measurement(1, "letters", 10),))
BLOCKS = Strategy("sizes", (Measurement(2, "all", 3), Measurement(1, "letters", 7)))
SHAPES = Strategy("patterns", PLAIN.measurements)
JOINED = Strategy(
    "sizes",
    (Measurement(1, "joined", 9), Measurement(1, "letters", 0), Measurement(0, "letters", 1)),
)


def town(grid: dpr.Grid, max_diameter: float, n: int = 200, seed: int = 0) -> np.ndarray:
    """Hulls of six places each, some of them partly outside the area, some too long."""
    rng = np.random.default_rng(seed)
    across, up = rng.uniform(-0.5, 0.5, (2, n)) + rng.uniform(0, 1, (2, n)) * [
        [grid.n_cols],
        [grid.n_rows],
    ]
    homes = np.stack([grid.xmin + across * grid.cell_size, grid.ymin + up * grid.cell_size], -1)
    places = homes[:, None] + rng.normal(size=(n, 6, 2)) * max_diameter / 4
    return shapely.convex_hull(shapely.linestrings(places))


def study(regions=None, grid=UNIT_GRID, *, noise=None, strategy=None, **changes) -> Release:
    """A release of records with seeded noise; with a strategy, by footprints that follow it."""
    arguments = {"epsilon": 1, "max_diameter": 2, "user_id": None, "crs": grid.crs} | changes
    if strategy is not None:
        arguments["method"] = Footprint(strategy=strategy)
    regions = town(grid, float(arguments["max_diameter"])) if regions is None else regions
    return release_with(StudyNoise(1) if noise is None else noise, regions, grid, **arguments)
