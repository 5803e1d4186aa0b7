"""Voronoi cells in areas of many corners, of sites in every position: all have a certificate."""

from __future__ import annotations

import numpy as np
import pytest
import shapely
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from dpregions import Partition
from dpregions.errors import GridError
from dpregions.geometry import tilings, voronoi
from dpregions.geometry.drawn_cells import APART


def regular(n: int, turned: float = 0.0) -> shapely.Polygon:
    turn = turned + 2 * np.pi * np.arange(n) / n
    return shapely.Polygon(4 + 4 * np.stack([np.cos(turn), np.sin(turn)], -1))


def ellipse(quarter: int, flat: float, angle: float) -> shapely.Polygon:
    whole = shapely.affinity.scale(shapely.Point(4, 4).buffer(4, quarter), 1, flat)
    return shapely.affinity.rotate(whole, angle)


AREAS = st.one_of(
    st.builds(regular, st.integers(3, 200), st.sampled_from([0, 0.1, 0.7])),
    st.builds(ellipse, st.integers(2, 50), st.floats(0.01, 1), st.floats(0, 180)),
)
KINDS = ("random", "clustered", "near the border", "cocircular", "nearly cocircular", "corners")


def sites_in(area: shapely.Polygon, kind: str, n: int, seed: int) -> np.ndarray:
    """Return at most n sites inside an area."""
    rng = np.random.default_rng(seed)
    middle = shapely.get_coordinates(area.centroid)[0]
    ring = shapely.get_coordinates(area)[:-1]
    radius = rng.choice([0.05, 0.3, 0.5, 0.9]) * area.exterior.distance(area.centroid)
    turn = 2 * np.pi * np.arange(n) / n
    if kind == "random":
        sites = rng.uniform(ring.min(axis=0), ring.max(axis=0), (40 * n, 2))
    elif kind == "clustered":
        sites = rng.normal(middle, 10.0 ** rng.integers(-4, 0), (n, 2))
    elif kind == "near the border":
        on = shapely.line_interpolate_point(area.exterior, rng.uniform(0, 1, n), normalized=True)
        inwards = 1 - rng.choice([1e-9, 1e-7, 1e-5, 1e-3])
        sites = middle + (shapely.get_coordinates(on) - middle) * inwards
    elif kind == "corners":
        sites = middle + (rng.permutation(ring)[:n] - middle) * rng.choice([0.5, 0.9, 0.999999])
    else:
        sites = middle + radius * np.stack([np.cos(turn), np.sin(turn)], -1)
    if kind == "nearly cocircular":
        off = 10.0 ** rng.uniform(-9, -3)
        stretched = rng.integers(2) == 0
        sites = sites * [1 + off, 1] if stretched else sites + rng.normal(0, off, sites.shape)
    return sites[shapely.intersects(area, shapely.points(sites))][:n]


def nearest_pair(sites: np.ndarray) -> float:
    apart = np.hypot(*(sites[:, None] - sites).transpose(2, 0, 1))
    return float(apart[np.triu_indices(len(sites), 1)].min())


@settings(max_examples=400)
@given(AREAS, st.sampled_from(KINDS), st.integers(2, 60), st.integers(0, 2**32))
@example(regular(186), "cocircular", 48, 0)
@example(regular(64), "nearly cocircular", 59, 3)
def test_sites_that_are_apart_have_cells_wherever_they_lie(area, kind, n, seed):
    sites = sites_in(area, kind, n, seed)
    assume(len(sites) >= 2)
    apart = (
        nearest_pair(sites) / 2.0**-27
    )  # a step may be twice that where the area is a hair wider
    assume(not APART <= apart <= 2 * APART + 1)
    if apart < APART:
        with pytest.raises(GridError, match="are the same or nearer than"):
            Partition.voronoi(sites, area)
        return
    partition = Partition.voronoi(sites, area)
    partition.complex.check()
    assert partition.is_convex and partition.complex.is_sealed
    assert partition.n_faces == len(sites)
    places = sites_in(area, "random", 60, seed + 1)
    away = np.hypot(*(places[:, None] - sites).transpose(2, 0, 1))
    two = np.sort(away, axis=1)[:, :2]
    faces = np.asarray(partition.to_geodataframe().geometry.array)
    holds = shapely.intersects(faces[np.argmin(away, axis=1)], shapely.points(places))
    assert holds[two[:, 1] - two[:, 0] > 1e-5].all()


@pytest.mark.parametrize("n", range(40, 60))
def test_a_cell_whose_highest_corners_differ_by_rounding_alone_is_not_taken_for_clockwise(n):
    """GEOS says so of cells below the centre of a circle of sites; they ran the wrong way round."""
    turn = 2 * np.pi * np.arange(n) / n
    for radius in (0.2, 1.2, 2.0, 3.6):
        sites = 4 + radius * np.stack([np.cos(turn), np.sin(turn)], -1)
        partition = Partition.voronoi(sites, regular(135))
        assert (partition.n_edges, partition.n_vertices) == (n, 1)


def almost_cocircular(n: int, off: float, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    turn = np.sort(rng.uniform(0, 2 * np.pi, n))
    sites = 2 * np.stack([np.cos(turn), np.sin(turn)], -1)
    return 4 + sites + rng.normal(0, off, sites.shape)


@pytest.mark.parametrize("off", [1e-9, 1e-8, 1e-7, 1e-6])
@pytest.mark.parametrize("n", [30, 120, 500])
def test_corners_a_few_steps_apart_about_a_common_centre_make_cells_that_tile(n, off):
    sites = almost_cocircular(n, off, seed=n)
    sites = sites[np.append(True, np.hypot(*np.diff(sites, axis=0).T) > 1e-4)]
    partition = Partition.voronoi(sites, regular(100))
    partition.complex.check()
    assert partition.n_faces == len(sites)


def test_rounded_borders_make_the_same_diagram_where_corners_are_far_apart():
    sites = np.random.default_rng(0).uniform(0, 2**30, (60, 2))
    whole = shapely.box(-64, -64, 2**30 + 64, 2**30 + 64)
    usual, rounded = voronoi._cells_at_once(sites, whole), voronoi._rounded_cells(sites, whole)
    assert shapely.hausdorff_distance(usual, rounded).max() < voronoi.PIXEL
    assert (shapely.get_coordinates(rounded) % voronoi.PIXEL == 0).all()


def test_a_diagram_that_no_way_can_draw_is_refused_by_what_is_wrong_with_its_sites(monkeypatch):
    def fails(*_, **__):
        raise GridError("cells overlap")

    monkeypatch.setattr(voronoi, "tiled", fails)
    with pytest.raises(GridError, match="almost on one circle"):
        Partition.voronoi([(1, 1), (6, 2), (3, 6)], (0, 0, 8, 8))


def test_more_sites_than_cells_are_counted_are_refused_as_such(monkeypatch):
    monkeypatch.setattr(tilings, "MOST_FACES", 2)
    with pytest.raises(GridError, match="3 cells are more than the 2 that are counted"):
        Partition.voronoi([(1, 1), (6, 2), (3, 6)], (0, 0, 8, 8))
