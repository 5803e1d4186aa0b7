"""Strategies for partitions and for bodies that graze them: on vertices, along edges, thin."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import shapely
from hypothesis import assume
from hypothesis import strategies as st

from dpregions import Grid, Partition
from support.exact_bodies import hull_of

AREA = (0.0, 0.0, 8.0, 8.0)


def bricks(n_rows: int, n_cols: int, angle: float = 0.0) -> np.ndarray:
    """Return bricks of 2 x 1 in bond, the ends cut straight: T-junctions everywhere."""
    cells = []
    for row in range(n_rows):
        ends = [0, *range(2 - row % 2, 2 * n_cols, 2), 2 * n_cols]
        cells += [shapely.box(a, row, b, row + 1) for a, b in pairwise(ends)]
    return np.array([shapely.affinity.rotate(c, angle, origin=(0, 0)) for c in cells], object)


@st.composite
def site_lists(draw) -> np.ndarray:
    """Return two or more sites in `AREA`: in general position, or in every position that is not."""
    whole = st.tuples(st.integers(0, 8), st.integers(0, 8))
    kind = draw(st.sampled_from(["whole", "random", "line", "circle", "cluster", "near", "border"]))
    n = draw(st.integers(2, 14))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    if kind == "whole":
        sites = np.array(draw(st.lists(whole, min_size=2, max_size=14, unique=True)), float)
    elif kind == "line":
        end = np.array(draw(st.sampled_from([(8, 0), (0, 8), (8, 8), (8, 3)])), float)
        sites = np.linspace(0.1, 0.9, n)[:, None] * end
    elif kind == "circle":
        turn = 2 * np.pi * np.arange(n + 2) / (n + 2)
        sites = 4 + draw(st.sampled_from([1, 2.5, 3.9])) * np.stack(
            [np.cos(turn), np.sin(turn)], -1
        )
    elif kind == "cluster":
        sites = np.clip(rng.normal(3, draw(st.sampled_from([1e-4, 1e-2, 0.5])), (n, 2)), 0, 8)
    elif kind == "near":
        sites = np.repeat(rng.uniform(1, 7, (n, 2)), 2, axis=0)
        sites[::2] += rng.choice([-1, 1], (n, 2)) * 1e-5
    elif kind == "border":
        sites = rng.uniform(0, 8, (n, 2))
        sites[:, rng.integers(2)] = rng.choice([0, 8], n)
    else:
        sites = rng.uniform(0, 8, (n, 2))
    return sites


@st.composite
def convex_partitions(draw) -> Partition:
    """Return small partitions whose cells are convex, of every kind."""
    kind = draw(st.sampled_from(["voronoi", "voronoi", "oval", "hexagons", "grid", "bricks"]))
    if kind in ("voronoi", "oval"):
        sites = draw(site_lists())
        apart = np.hypot(*(sites[:, None] - sites).transpose(2, 0, 1))[
            np.triu_indices(len(sites), 1)
        ]
        assume(apart.min() > 1e-5)
        if kind == "voronoi":
            return Partition.voronoi(sites, AREA)
        oval = shapely.Point(4, 4).buffer(4, draw(st.integers(2, 9)))
        return Partition.voronoi(4 + (sites - 4) / 1.5, oval)
    if kind == "hexagons":
        return Partition.hexagons(AREA, draw(st.sampled_from([2, 3.3, 8])))
    if kind == "grid":
        return Partition.from_grid(Grid(0, 0, draw(st.sampled_from([1, 0.7])), 4, 3))
    angle = draw(st.sampled_from([0.0, 17.0, 45.0]))
    return Partition.from_polygons(bricks(4, 3, angle))


@st.composite
def grazing_bodies(draw, partition: Partition, n: int = 6) -> list[list[tuple[int, int]]]:
    """Return hulls in steps whose corners lie on vertices, on edges, a step off, or anywhere.

    They lie in the area where bodies are cut to it.
    """
    c = partition.complex
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    points = np.stack([c.x, c.y], axis=-1).astype(np.int64)
    low, high = points.min(axis=0), points.max(axis=0)
    offsets, items = c.edge_points
    ends = np.stack([items[offsets[:-1]], items[offsets[1:] - 1]], axis=-1)

    def place() -> np.ndarray:
        kind = rng.integers(5)
        if kind < 2:
            return points[rng.integers(len(points))] + rng.choice([0, 0, 1, -1], 2)
        if kind == 2 and len(ends):
            u, v = points[ends[rng.integers(len(ends))]]
            return u + (v - u) * rng.integers(-4, 13) // 8
        if kind == 3:
            return points[rng.integers(len(points), size=2)].mean(axis=0).astype(np.int64)
        return rng.integers(low, high)

    bodies = []
    for _ in range(n):
        size = int(draw(st.sampled_from([1, 2, 2, 3, 4, 6])))
        corners = np.array([place() for _ in range(size)])
        if c.area.size:
            corners = _pulled_inside(corners, c.area.astype(np.int64))
        bodies.append(hull_of([tuple(p) for p in corners]))
    return bodies


def _pulled_inside(corners: np.ndarray, area: np.ndarray) -> np.ndarray:
    """Return corners moved towards the middle of a convex ring until they are in it."""
    middle, ring = area.mean(axis=0).astype(np.int64), shapely.Polygon(area)
    for _ in range(40):
        out = ~shapely.intersects(ring, shapely.points(corners.astype(float)))
        if not out.any():
            break
        corners[out] += np.sign(middle - corners[out]) * (np.abs(middle - corners[out]) // 16 + 1)
    return corners
