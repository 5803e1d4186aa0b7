"""Releases on partitions for tests: one small partition of each kind, towns on them, seeded noise.

Partitions are made when they are asked for, and once: a test that needs none pays for none.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import geopandas
import numpy as np
import shapely

import dpregions as dpr
from dpregions.privacy.seeded import StudyNoise
from dpregions.releases.make import release_with
from dpregions.releases.published import Release

AREA = (0.0, 0.0, 10.0, 8.0)
CRS = "EPSG:32632"


@cache
def voronoi() -> dpr.Partition:
    """Forty cells with names, in a projected CRS."""
    sites = np.random.default_rng(5).uniform(AREA[:2], AREA[2:], (40, 2))
    return dpr.Partition.voronoi(sites, AREA, labels=[f"mast {i}" for i in range(40)], crs=CRS)


@cache
def hexagons() -> dpr.Partition:
    """Hexagons over the same area, in the same CRS."""
    return dpr.Partition.hexagons(AREA, 1.7, crs=CRS)


@cache
def districts() -> dpr.Partition:
    """Five districts with bent borders, in the same CRS: flagged, since they are not convex."""
    xmin, ymin, xmax, ymax = AREA
    bends = [[(x, ymin), (x + 0.8, 2.5), (x - 0.5, 5.5), (x, ymax)] for x in (2, 4, 6, 8)]
    sides = [[(xmin, ymin), (xmin, ymax)], *bends, [(xmax, ymin), (xmax, ymax)]]
    shapes = [shapely.Polygon(right + left[::-1]) for left, right in pairwise(sides)]
    frame = geopandas.GeoDataFrame({"name": list("abcde")}, geometry=shapes, crs=CRS)
    return dpr.Partition.from_polygons(frame, labels="name", convex=False)


@cache
def squares() -> dpr.Partition:
    """The cells of a grid over the same area."""
    return dpr.Partition.from_grid(dpr.Grid(0, 0, 1, n_rows=8, n_cols=10, crs=CRS))


@cache
def capped() -> dpr.Partition:
    """The forty cells, on which nobody touches more than seven components."""
    return voronoi().capped(7)


PARTITIONS = {
    "voronoi": voronoi,
    "hexagons": hexagons,
    "polygons": districts,
    "grid": squares,
}
WITH_CAP = PARTITIONS | {"capped": capped}
"""For the paper's method alone: a cap is nothing to the default mechanism, which refuses it."""


def town_on(cells, n=200, seed=0) -> np.ndarray:
    """Hulls of six places each, some of them partly outside the area, some wholly."""
    rng = np.random.default_rng(seed)
    xmin, ymin, xmax, ymax = cells.bounds
    homes = rng.uniform([xmin - 0.3, ymin - 0.3], [xmax + 0.3, ymax + 0.3], (n, 1, 2))
    places = homes + rng.normal(size=(n, 6, 2)) * rng.uniform(0.02, 0.6, (n, 1, 1))
    return shapely.convex_hull(shapely.multipoints(places))


def study_on(cells, regions=None, *, noise=None, **changes) -> Release:
    """A release of records on a partition or grid with seeded noise."""
    given = {"epsilon": 1, "max_diameter": 2.0, "user_id": None, "crs": cells.crs} | changes
    regions = town_on(cells) if regions is None else regions
    return release_with(StudyNoise(1) if noise is None else noise, regions, cells, **given)


def ring_points(shapes) -> tuple[np.ndarray, np.ndarray]:
    """Return the points of geometries, and where those of each begin and end."""
    coords, owner = shapely.get_coordinates(shapes, return_index=True)
    return coords, np.searchsorted(owner, np.arange(len(shapes) + 1))


def union_of(cells: dpr.Partition, labels) -> shapely.Geometry:
    """Return the union of some cells, by shapely."""
    faces = cells.to_geodataframe().set_index("label").geometry
    return shapely.union_all([faces[label] for label in labels])
