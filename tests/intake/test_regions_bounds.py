"""Regions that are trouble or too large: bounded or left out, each by itself."""

from __future__ import annotations

import itertools
import math
import struct
import warnings

import geopandas
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
import shapely
from hypothesis import assume, given
from hypothesis import strategies as st
from shapely import LineString, Point, Polygon, box

from dpregions import Grid
from dpregions.errors import (
    InputError,
)
from dpregions.geometry.outlines import Bound
from dpregions.intake.regions import outlines_of
from support import strategies
from support.region_forms import SHAPES, UTM, histogram


def near(value):
    return [value, math.nextafter(value, math.inf), math.nextafter(value, -math.inf)]


def curve(kind, *points):
    """Return the WKB of a curve, which GEOS reads and shapely does not."""
    body = b"".join(struct.pack("<dd", *p) for p in points)
    return struct.pack("<BII", 1, kind, len(points)) + body


def line_to(x, y):
    with np.errstate(invalid="ignore"):  # GEOS compares; numpy sees the flag
        return LineString([(0, 0), (x, y)])


ARC = curve(8, (0, 0), (1, 1), (2, 0))


TROUBLE = {
    "null": None,
    "NaN": math.nan,
    "pandas' NA": pd.NA,
    "an empty point": Point(),
    "an empty polygon": Polygon(),
    "an empty collection": shapely.GeometryCollection(),
    "a collection of an empty point": shapely.GeometryCollection([Point()]),
    "a NaN point": Point(math.nan, 1),
    "a half NaN line": line_to(1, math.nan),
    "an infinite point": Point(math.inf, -math.inf),
    "a line to infinity": line_to(math.inf, 1),
    "the largest float": Point(1.7e308, 1.7e308),
    "a line across all floats": LineString([(-1.7e308, -1.7e308), (1.7e308, 1.7e308)]),
    "1e300": box(-1e300, -1e300, 1e300, 1e300),
    "far away": Point(1e7, 1e7),
    "further than 2**28 cells": LineString([(0, 0), (3e8, 3e8)]),
    "bytes that are no WKB": b"junk",
    "no bytes": b"",
    "WKB cut short": Point(1, 1).wkb[:-3],
    "WKB of a ring that is not closed": struct.pack("<BIII6d", 1, 3, 1, 3, 0, 0, 1, 1, 2, 0),
    "WKB that says it is endless": struct.pack("<BII", 1, 2, 2**31 - 1),
    "WKB of an arc": ARC,
    "WKB of a collection of an arc": struct.pack("<BII", 1, 7, 1) + ARC,
    "WKB of a curved polygon": struct.pack("<BII", 1, 10, 1)
    + curve(8, (0, 0), (1, 1), (2, 0), (1, -1), (0, 0)),
}


class TestRecordsThatAreTrouble:
    """Each maps to no contribution: nothing raised, warned or printed, the others unharmed."""

    @pytest.mark.parametrize("name", TROUBLE)
    @pytest.mark.parametrize("options", [{}, {"max_diameter": 1.5}])
    def test_in_a_list(self, name, options, capfd, recwarn):
        good = [Point(1, 1), box(0.5, 0.5, 1.5, 1.5)]
        expected = histogram(good, **options)
        assert histogram([good[0], TROUBLE[name], good[1]], **options) == expected
        ids = histogram([TROUBLE[name], *good], user_id=[0, 1, 2], **options)
        assert ids == expected
        assert capfd.readouterr() == ("", "")
        assert not recwarn.list

    @pytest.mark.parametrize("name", TROUBLE)
    def test_in_arrow(self, name, capfd, recwarn):
        value = TROUBLE[name]
        if isinstance(value, shapely.Geometry):
            value = value.wkb
        elif not isinstance(value, bytes):
            value = None
        good = [Point(1, 1), box(0.5, 0.5, 1.5, 1.5)]
        table = pa.table({"u": [1, 2, 2], "geometry": [good[0].wkb, value, good[1].wkb]})
        assert histogram(table) == histogram(good)
        assert histogram(table, user_id="u") == histogram(good)
        assert capfd.readouterr() == ("", "")
        assert not recwarn.list

    @pytest.mark.parametrize("name", [n for n, v in TROUBLE.items() if not isinstance(v, bytes)])
    def test_in_a_frame_that_is_reprojected(self, name, capfd, recwarn):
        value = TROUBLE[name] if isinstance(TROUBLE[name], shapely.Geometry) else None
        frame = geopandas.GeoSeries([Point(116.39, 39.915), value], crs=4326)
        assert histogram(frame, UTM).counts.sum() == 1
        assert capfd.readouterr() == ("", "")
        assert not recwarn.list

    def test_all_of_them_and_nothing_else(self):
        assert not histogram(list(TROUBLE.values())).counts.any()
        assert not histogram(list(TROUBLE.values()), user_id=[1] * len(TROUBLE)).counts.any()

    def test_invalid_geometries_become_their_hull(self):
        bow_tie = Polygon([(0.5, 0.5), (1.5, 1.5), (1.5, 0.5), (0.5, 1.5)])
        assert histogram([bow_tie]) == histogram([box(0.5, 0.5, 1.5, 1.5)])

    def test_height_is_ignored(self):
        assert histogram([Point(1, 1, math.nan), Point(1, 1, 5)]).faces[1, 1] == 2

    @given(strategies.rough_worlds(), st.randoms(use_true_random=False))
    def test_trouble_changes_nothing_for_the_others(self, world, random):
        grid, bodies = world
        shapes = strategies.geometries(bodies)
        wild = [v for v in TROUBLE.values() if not isinstance(v, shapely.Geometry)]
        mixed = shapes + random.sample(wild, 3)
        random.shuffle(mixed)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert histogram(mixed, grid) == histogram(shapes, grid)


class TestOversize:
    def test_a_long_region_is_shrunk_about_its_centroid(self):
        hist = histogram([box(0, 1.6, 5, 1.8)], max_diameter=0.5)
        assert hist.faces.tolist() == [[0] * 5, [0, 0, 1, 0, 0], [0] * 5, [0] * 5]

    def test_or_left_out(self):
        shapes = [box(0, 1.6, 5, 1.8), Point(0.5, 0.5)]
        hist = histogram(shapes, max_diameter=0.5, oversize="drop")
        assert hist == histogram([Point(0.5, 0.5)])

    def test_a_region_within_the_bound_is_kept_in_both_ways(self):
        shapes = [box(0.25, 0.25, 1.25, 1.25), LineString([(1, 1), (3, 1)])]
        for oversize in ("shrink", "drop"):
            assert histogram(shapes, max_diameter=2, oversize=oversize) == histogram(shapes)

    def test_a_bound_may_be_text(self):
        frame = geopandas.GeoSeries([box(447_050, 4_418_050, 448_950, 4_418_060)], crs=32650)
        short = histogram(frame, UTM, max_diameter="0.1km")
        assert short == histogram(frame, UTM, max_diameter=100)
        assert short.faces.sum() <= 2

    def test_a_region_shrunk_out_of_the_area_counts_nowhere(self):
        shape = Polygon([(1, 1), (100, 1), (100, 2)])
        assert histogram([shape]).counts.any()
        assert not histogram([shape], max_diameter=2).counts.any()

    @pytest.mark.parametrize("bound", [0, -1, math.nan, math.inf, "0m", "x"])
    def test_a_bound_that_is_not_positive_is_refused(self, bound):
        with pytest.raises(InputError, match="max_diameter"):
            histogram([], max_diameter=bound)

    @pytest.mark.parametrize("oversize", ["clip", None, ""])
    @pytest.mark.parametrize("bound", [2, None])
    def test_another_way_is_refused(self, oversize, bound):
        with pytest.raises(InputError, match=r"oversize=.*use 'shrink' or 'drop'"):
            histogram([], max_diameter=bound, oversize=oversize)


SIDES = [0.1, 2 / 3, 0.16, 1.0, 0.7, 1 / 3, 1000.0, 1e-6]


def sizes_of(shapes, grid, max_diameter, oversize="shrink"):
    """Return how many components each region touches after intake, one region at a time."""
    return [
        int(histogram([s], grid, max_diameter=max_diameter, oversize=oversize).counts.sum())
        for s in shapes
    ]


class TestSensitivity:
    """No region, however adversarial its floats, touches more than (2k+1)**2 components."""

    @pytest.mark.parametrize("side", SIDES)
    @pytest.mark.parametrize("k", [1, 2, 3])
    def test_widths_of_exactly_the_bound_with_ends_on_or_one_ulp_from_lines(self, side, k):
        corner = 0.3 * side
        grid = Grid(corner, -7.1 * side, side, k + 6, k + 6)
        for max_diameter in {float(f"{k * side:.12g}"), k * side, math.nextafter(k * side, 0)}:
            spanned = grid.cells_spanned(max_diameter)
            assert spanned in (k, k + 1)  # 3 * (1/3) in decimals is above 1
            starts = [v for i in (1, 2) for v in near(grid.xmin + i * side)]
            ends = [v for x in starts for v in near(x + max_diameter)]
            ends += [v for i in range(k, k + 3) for v in near(grid.xmin + i * side)]
            shapes = []
            for x0, x1 in itertools.product(starts, ends):
                y0, y1 = x0 - grid.xmin + grid.ymin, x1 - grid.xmin + grid.ymin
                shapes += [box(x0, y0, x1, y1), LineString([(x0, y0), (x1, y0)])]
                shapes += [LineString([(x0, y0), (x0, y1)])]
            assert_within_bound(shapes, grid, max_diameter)
            sample = shapes[:: len(shapes) // 60]
            assert max(sizes_of(sample, grid, max_diameter)) <= (2 * spanned + 1) ** 2

    @given(
        st.data(), st.sampled_from(SIDES), st.integers(1, 4), st.sampled_from(["shrink", "drop"])
    )
    def test_any_floats(self, data, side, k, oversize):
        corner = data.draw(st.sampled_from([0.0, 0.1, -3 * side, 12345.678 * side]))
        grid = Grid(corner, corner, side, 7, 7)
        axis = strategies.axis_floats(corner, side, 7)
        corners = st.lists(st.tuples(axis, axis), min_size=1, max_size=5)
        shapes = [
            strategies.geometry(points) for points in data.draw(st.lists(corners, min_size=1))
        ]
        max_diameter = data.draw(
            st.sampled_from([k * side, float(f"{k * side:.12g}"), (k - 0.5) * side])
        )
        assert_within_bound(shapes, grid, max_diameter, oversize)
        spanned = grid.cells_spanned(max_diameter)
        assert max(sizes_of(shapes, grid, max_diameter, oversize)) <= (2 * spanned + 1) ** 2

    @pytest.mark.parametrize("k", [1, 2, 3])
    def test_the_bound_is_reached(self, k):
        """A box a little larger than k - 1 cells: its diagonal is below k up to k = 3."""
        grid = Grid(0, 0, 1, 9, 9)
        shape = box(3 - 2**-9, 3 - 2**-9, 2 + k + 2**-9, 2 + k + 2**-9)
        assert sizes_of([shape], grid, k) == [(2 * k + 1) ** 2]

    @given(st.data(), st.integers(1, 3))
    def test_a_user_of_many_rows_touches_no_more_than_one_region_may(self, data, k):
        grid = Grid(0, 0, 1, 7, 7)
        rows = data.draw(st.lists(strategies.float_bodies(grid), min_size=2, max_size=6))
        shapes = strategies.geometries(rows)
        alone = histogram(shapes, grid, user_id=["ann"] * len(rows), max_diameter=k)
        assert alone.counts.max() <= 1
        assert alone.counts.sum() <= (2 * k + 1) ** 2
        others = histogram(SHAPES, grid, user_id=range(len(SHAPES)), max_diameter=k)
        both = histogram(
            [*SHAPES, *shapes],
            grid,
            user_id=[*range(len(SHAPES)), *["ann"] * len(rows)],
            max_diameter=k,
        )
        assert np.array_equal(both.counts, others.counts + alone.counts)

    @pytest.mark.parametrize(
        ("max_diameter", "side", "k", "steps"),
        [
            (2, 1, 2, 2 << 20),
            (0.3, 0.1, 3, 3 << 20),
            (2.1, 0.7, 3, 3 << 20),
            (0.48, 0.16, 3, 3 << 20),
            (2 / 3, 2 / 3, 1, 1 << 20),
            (0.5, 1, 1, 1 << 19),
            (1e-9, 1, 1, 0),
            (1e30, 1, 10**30, 1 << 48),
        ],
    )
    def test_k_and_the_steps_that_enforce_it(self, max_diameter, side, k, steps):
        bound = Bound.of(Grid(0, 0, side, 3, 3), max_diameter, "shrink")
        assert (bound.k, bound.steps) == (k, steps)
        assert bound.steps <= bound.k << 20

    @given(st.floats(1e-6, 1e6), st.floats(1e-6, 1e6))
    def test_the_steps_never_exceed_k_cells(self, max_diameter, side):
        assume(max_diameter / side < 1e6)
        bound = Bound.of(Grid(0, 0, side, 3, 3), max_diameter, "shrink")
        assert (bound.k - 1) << 20 <= bound.steps <= bound.k << 20


def assert_within_bound(shapes, grid, max_diameter, oversize="shrink"):
    """Assert on the integers that intake hands on: diameter, rows and columns of cells."""
    bound = Bound.of(grid, max_diameter, oversize)
    outlines = outlines_of(np.array(shapes, dtype=object), None, grid, bound)
    assert bound.k == grid.cells_spanned(max_diameter)
    for start, stop in itertools.pairwise(outlines.offsets.tolist()):
        points = outlines.xy[start:stop].tolist()
        for (x, y), (u, v) in itertools.combinations(points, 2):
            assert (x - u) ** 2 + (y - v) ** 2 <= bound.steps**2
            assert max(abs((x >> 20) - (u >> 20)), abs((y >> 20) - (v >> 20))) <= bound.k
