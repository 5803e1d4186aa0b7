"""Chances of buckets to touch a shape are the shares of witnesses that shapely says touch it."""

from __future__ import annotations

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from dpregions.geometry.grid import Grid
from dpregions.geometry.outlines import Bound
from dpregions.mechanisms.footprint.bodies import Bodies
from dpregions.mechanisms.footprint.buckets import Buckets
from dpregions.mechanisms.footprint.catalogue import catalogue
from dpregions.mechanisms.footprint.chances import WitnessSample
from support.border_oracle import chances

GRID = Grid(100.0, -50.0, 10.0, n_rows=4, n_cols=5)
KNOWN = catalogue(3, Bound.of(GRID, 20, "shrink").steps)
SAMPLES = {name: WitnessSample.of(Buckets.of(KNOWN, name, 4, 5)) for name in ("sizes", "patterns")}

lengths = st.floats(0.5, 60, allow_nan=False)
places = st.tuples(st.floats(90, 160), st.floats(-60, 0))


def dense(alphabet: str, shape: shapely.Geometry) -> tuple[np.ndarray, np.ndarray]:
    sample = SAMPLES[alphabet]
    found = sample.chances(shape, GRID)
    chance, least = np.zeros((2, len(sample.buckets)))
    chance[found.which], least[found.which] = found.chance, found.least
    return chance, least


def by_shapely(alphabet: str, shape: shapely.Geometry) -> np.ndarray:
    """Each witness of the sample at each place, as a polygon of its own."""
    sample, buckets = SAMPLES[alphabet], SAMPLES[alphabet].buckets
    row, col = buckets.places
    corner = np.array([GRID.xmin, GRID.ymin])
    witnesses = [
        shapely.polygons(shapely.linearrings(sample.xy[a:b] * GRID.cell_size + corner))
        for a, b in zip(sample.offsets, sample.offsets[1:], strict=False)
    ]
    chance = np.zeros(len(buckets))
    for number, letter in enumerate(buckets.letters):
        move = -GRID.cell_size * np.array([col[number], row[number]])
        there = shapely.transform(shape, lambda xy, move=move: xy + move)
        shapely.prepare(there)
        for p in range(*sample.letters[letter, 2:]):
            some = witnesses[sample.begin[p] : sample.end[p]]
            chance[number] += sample.weights[p] * shapely.intersects(there, some).mean()
    return chance


L = shapely.Polygon([(104, -47), (133, -41), (132, -36), (116, -37), (118, -14), (105, -13)])
SHAPES = {
    "point": shapely.Point(118.3, -27.1),
    "points": shapely.MultiPoint([(103, -44), (141.5, -13.2)]),
    "line": shapely.LineString([(101, -49), (128.7, -22.3), (149, -21)]),
    "disc": shapely.Point(121.7, -31.2).buffer(11.3),
    "small disc": shapely.Point(124.9, -25.2).buffer(0.9),
    "L": L,
    "hole": shapely.Point(125, -30).buffer(18).difference(shapely.Point(124, -31).buffer(12)),
    "parts": shapely.MultiPolygon(
        [shapely.box(101, -49, 107.3, -41.1), shapely.box(131.2, -20.7, 170, 40)]
    ),
    "collection": shapely.GeometryCollection(
        [shapely.box(103, -48, 116, -33), shapely.box(109, -41, 123, -26), shapely.Point(147, -12)]
    ),
    "around": shapely.box(0, -200, 300, 200),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("alphabet", SAMPLES)
def test_a_chance_is_the_share_of_witnesses_that_touch_the_shape(alphabet, shape):
    chance, least = dense(alphabet, SHAPES[shape])
    np.testing.assert_allclose(chance, by_shapely(alphabet, SHAPES[shape]), atol=1e-12)
    assert (least <= chance + 1e-12).all() and (least >= 0).all()


@settings(max_examples=25)
@given(places, lengths, lengths, st.floats(0, 3))
def test_turned_rectangles_have_the_chances_that_shapely_finds(place, width, height, turn):
    box = shapely.box(place[0], place[1], place[0] + width, place[1] + height)
    shape = shapely.affinity.rotate(box, turn, use_radians=True)
    if not shapely.box(100.1, -49.9, 149.9, -10.1).intersects(shape):
        return
    np.testing.assert_allclose(dense("sizes", shape)[0], by_shapely("sizes", shape), atol=1e-12)


@pytest.mark.parametrize("alphabet", SAMPLES)
def test_on_the_grids_lines_chances_are_those_of_cells_and_the_least_are_the_same(alphabet):
    buckets = SAMPLES[alphabet].buckets
    for cells in ((0, 0, 0, 0), (1, 2, 1, 3), (0, 3, 0, 4), (2, 3, 4, 4)):
        shape = shapely.box(*GRID.cell_bounds(*cells))
        chance, least = dense(alphabet, shape)
        (by_cells,) = chances(buckets, np.array(cells)[:, None])
        np.testing.assert_allclose(chance, by_cells, atol=1e-12)
        np.testing.assert_array_equal(least, chance)


def test_small_bodies_within_a_cell_touch_less_of_a_small_query():
    chance, least = dense("sizes", SHAPES["small disc"])
    one_cell = SAMPLES["sizes"].buckets.letters == 0
    assert chance[one_cell].sum() > 0 and least[one_cell].sum() < 0.3 * chance[one_cell].sum()


def test_witnesses_are_dealt_evenly_and_no_count_of_cells_moves():
    rng = np.random.default_rng(0)
    pattern = rng.integers(0, len(KNOWN), 60)
    row, col = rng.integers(0, 2, (2, 60))
    before = Bodies.of_patterns(KNOWN, pattern, row, col, rng.integers(1, 200, 60)).tallied()
    after = before.dealt()
    np.testing.assert_array_equal(after.counts_on(4, 5), before.counts_on(4, 5))
    for p in np.unique(pattern):
        n = KNOWN.starts[p + 1] - KNOWN.starts[p]
        dealt = np.bincount(after.witness[after.pattern == p], after.times[after.pattern == p], n)
        total = before.times[before.pattern == p].sum()
        assert dealt.sum() == total
        # One after the other: no witness is more than a few ahead of its share.
        assert np.abs(dealt - total / n).max() <= 3
    key = np.stack([after.row, after.col, after.pattern, after.witness])
    assert len(np.unique(key, axis=1).T) == len(after.times)
