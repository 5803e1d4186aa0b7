"""Made-up towns whose users are in groups, and releases by groups with seeded noise."""

from __future__ import annotations

import geopandas
import numpy as np
import shapely

from dpregions.privacy.seeded import StudyNoise
from dpregions.releases.make import release_with
from dpregions.releases.published import Release
from support.small_releases import GRID

AGES = ("18-25", "26-60", "61+")


def grouped_town(n: int = 90, seed: int = 0, ages=AGES) -> geopandas.GeoDataFrame:
    """Boxes of up to 1.2 by 1.2 cells, one a user, some of them partly outside."""
    rng = np.random.default_rng(seed)
    x, y = rng.uniform(-0.5, 4.5, (2, n))
    width, height = rng.uniform(0.1, 1.2, (2, n))
    columns = {"user_id": np.arange(n), "age": rng.choice(ages, n)}
    return geopandas.GeoDataFrame(columns, geometry=shapely.box(x, y, x + width, y + height))


def study_by_age(regions=None, *, noise=None, grid=GRID, **changes) -> Release:
    """A release by groups of age with seeded noise."""
    terms = {"epsilon": 1, "max_diameter": 2, "by": "age", "groups": AGES} | changes
    regions = grouped_town() if regions is None else regions
    return release_with(StudyNoise(1) if noise is None else noise, regions, grid, **terms)
