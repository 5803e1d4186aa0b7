"""Releases by footprints for tests: made-up towns, fixed strategies, seeded noise."""

from __future__ import annotations

import numpy as np
import shapely

import dpregions as dpr
from dpregions.mechanisms.footprint import mechanism as footprint
from dpregions.mechanisms.footprint.choice import Strategy
from dpregions.mechanisms.footprint.levels import Level
from dpregions.privacy.seeded import StudyNoise
from dpregions.releases.make import release_with
from dpregions.releases.published import Release

UNIT_GRID = dpr.Grid(0, 0, 1, n_rows=4, n_cols=5)
PLAIN = Strategy("sizes", (Level(0, "all"), Level(1, "letters")), (0, 10))
BLOCKS = Strategy("sizes", (Level(0, "all"), Level(2, "all"), Level(1, "letters")), (0, 3, 7))
SHAPES = Strategy("patterns", PLAIN.levels, PLAIN.weights)
JOINED = Strategy("sizes", (Level(0, "all"), Level(1, "joined"), Level(1, "letters")), (0, 9, 0), 1)


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


def study(regions=None, grid=UNIT_GRID, *, noise=None, **changes) -> Release:
    """A release of records with seeded noise."""
    arguments = {"epsilon": 1, "max_diameter": 2, "user_id": None, "crs": grid.crs} | changes
    regions = town(grid, float(arguments["max_diameter"])) if regions is None else regions
    return release_with(StudyNoise(1) if noise is None else noise, regions, grid, **arguments)


def fix_strategy(monkeypatch, plan: Strategy) -> None:
    monkeypatch.setattr(footprint, "choose", lambda *_, **__: plan)
