"""Queries as drawn: the published bodies that touch a shape, whatever its form."""

from __future__ import annotations

import warnings

import geopandas
import numpy as np
import pandas as pd
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

import dpregions as dpr
from dpregions.errors import (
    ApproximateCountWarning,
    OutsideAreaWarning,
    PrivacyError,
    QueryError,
)
from support.footprint_releases import BLOCKS, PLAIN, SHAPES, study
from support.small_releases import paper_study

GRID = dpr.Grid(1000.0, -300.0, 10.0, n_rows=6, n_cols=7)
STRATEGIES = {"sizes": PLAIN, "blocks": BLOCKS, "patterns": SHAPES}
RELEASES = {
    name: study(grid=GRID, max_diameter=20, strategy=strategy)
    for name, strategy in STRATEGIES.items()
}
RELEASE = RELEASES["sizes"]
BODIES = RELEASE.to_regions().geometry.to_numpy()

DISC = shapely.Point(1032.2, -271.7).buffer(13.1)
DRAWN = {
    "point": shapely.Point(1031.4, -268.8),
    "line": shapely.LineString([(1001, -299), (1044, -251), (1062, -263)]),
    "disc": DISC,
    "hole": DISC.difference(shapely.Point(1031, -270).buffer(8)),
    "parts": shapely.MultiPolygon([shapely.box(1003, -294, 1009, -281), DISC]),
    "collection": shapely.GeometryCollection([DISC, shapely.Point(1003, -297)]),
    "bow tie": shapely.Polygon([(1011, -291), (1043, -262), (1043, -291), (1011, -262)]),
    "beyond": shapely.Point(1000, -300).buffer(25),
}


def touching(shape: shapely.Geometry) -> int:
    return int(shapely.intersects(BODIES, shapely.make_valid(shape)).sum())


@pytest.mark.parametrize("name", DRAWN)
def test_a_count_is_that_of_the_synthetic_regions_that_touch_the_shape(name):
    shape = DRAWN[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert RELEASE.count(shape) == RELEASE.count(shape, within="shape") == touching(shape)
        low, high = RELEASE.interval(shape)
        assert low <= RELEASE.count(shape) <= high
        assert np.isfinite(RELEASE.estimate(shape))
        assert RELEASE.expected_error(shape).total > 0


corners = st.lists(
    st.tuples(st.floats(990, 1080), st.floats(-310, -230)), min_size=3, max_size=9, unique=True
)


@settings(max_examples=60)
@given(corners, st.integers(1, 8))
def test_counts_equal_shapelys_and_smaller_shapes_never_answer_more(points, kept):
    whole = shapely.MultiPoint(points).convex_hull
    part = shapely.MultiPoint(points[:kept]).convex_hull  # of some of the same points: inside
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutsideAreaWarning)
        larger, smaller = RELEASE.count(np.array([whole, part]))
        assert (larger, smaller) == (touching(whole), touching(part))
    assert smaller <= larger


cells = st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 6), st.integers(0, 6))


@settings(max_examples=60)
@given(cells, st.floats(0.0, 0.49), st.sampled_from(list(RELEASES)))
def test_on_the_grids_lines_both_rules_answer_alike_and_nest_with_what_lies_off_them(
    ends, inset, name
):
    release = RELEASES[name]
    row0, row1 = sorted(ends[:2])
    col0, col1 = sorted(ends[2:])
    bounds = GRID.cell_bounds(row0, row1, col0, col1)
    count = release.count(*bounds)
    assert release.count(*bounds, within="shape") == release.count(*bounds, within="cells") == count
    estimates = [release.estimate(*bounds, within=rule) for rule in ("cells", "shape")]
    assert estimates[0] == pytest.approx(estimates[1], abs=1e-6)
    intervals = [release.interval(*bounds, within=rule) for rule in (None, "cells", "shape")]
    assert intervals[0] == intervals[1] == intervals[2]
    off = inset * GRID.cell_size
    inner = release.count(bounds[0] + off, bounds[1] + off, bounds[2] - off, bounds[3] - off)
    assert inner <= count


def test_by_default_shapes_and_rectangles_off_the_lines_are_as_drawn():
    off = (1003.5, -288, 1026, -267.25)
    assert RELEASE.count(*off) == RELEASE.count(*off, within="shape") == touching(shapely.box(*off))
    assert RELEASE.count(*off, within="cells") == RELEASE.count(1000, -290, 1030, -260)
    assert RELEASE.count(*off) < RELEASE.count(*off, within="cells")
    arrays = [np.array([a, b]) for a, b in zip(off, (1000, -290, 1030, -260), strict=True)]
    assert RELEASE.count(*arrays).tolist() == [
        RELEASE.count(*off),
        RELEASE.count(*off, within="cells"),
    ]
    with pytest.warns(ApproximateCountWarning):
        by_cells = RELEASE.count(DISC, within="cells")
    assert by_cells > RELEASE.count(DISC)


def test_rectangles_without_width_or_height_are_lines_and_points():
    for bounds in ((1031.4, -268.8, 1031.4, -268.8), (1004, -271, 1047, -271)):
        shape = shapely.LineString(np.reshape(bounds, (2, 2)))
        assert RELEASE.count(*bounds) == touching(
            shape if shape.length else shapely.Point(*bounds[:2])
        )


def test_what_lies_outside_is_ignored_and_wholly_outside_is_warned_of():
    assert RELEASE.count(-1e300, -1e300, 1e300, 1e300) == len(BODIES)
    assert RELEASE.count(-1e300, -1e300, 1e300, -271.5) == touching(
        shapely.box(1000, -300, 1070, -271.5)
    )
    beside = (shapely.Point(0, 0).buffer(50), shapely.Point(1070, -250), shapely.Polygon())
    for shape in beside:
        with pytest.warns(OutsideAreaWarning):
            assert RELEASE.count(shape) == 0
    around = shapely.box(900, -400, 1200, -100).difference(shapely.box(999, -301, 1071, -239))
    with pytest.warns(OutsideAreaWarning):
        assert np.isnan(RELEASE.interval(around)).all()


def test_frames_and_arrays_of_shapes_come_back_in_their_form():
    shapes = [DRAWN[name] for name in ("disc", "point", "line")]
    wanted = [touching(shape) for shape in shapes]
    frame = geopandas.GeoDataFrame({"geometry": shapes}, index=list("abc"))
    assert RELEASE.count(frame).to_dict() == dict(zip("abc", wanted, strict=True))
    assert RELEASE.count(np.array([shapes])).tolist() == [wanted]
    intervals = RELEASE.interval(frame)
    assert isinstance(intervals, pd.DataFrame)
    for shape, (low, high) in zip(shapes, intervals.to_numpy(), strict=True):
        assert (low, high) == RELEASE.interval(shape)


def test_a_saved_release_answers_shapes_as_before(tmp_path):
    for release in RELEASES.values():
        release.save(tmp_path / "town.parquet")
        again = dpr.load(tmp_path / "town.parquet")
        for shape in DRAWN.values():
            assert again.count(shape) == release.count(shape)
            assert again.interval(shape) == release.interval(shape)


def test_a_covert_release_counts_within_shapes_but_has_no_intervals():
    covert = study(grid=GRID, max_diameter=20, strategy=PLAIN, covert=True)
    assert covert.count(DISC) == int(shapely.intersects(covert.to_regions().geometry, DISC).sum())
    with pytest.raises(PrivacyError, match="covert"):
        covert.interval(DISC)


def test_the_papers_method_has_no_bodies_to_lay_on_a_shape():
    release = paper_study()
    triangle = shapely.Polygon([(0.2, 0.1), (3.7, 0.4), (1.1, 2.8)])
    for ask in (release.count, release.estimate, release.interval, release.expected_error):
        with pytest.raises(QueryError, match="method='footprint'") as caught:
            ask(triangle, within="shape")
        assert caught.value.argument == "within"
    with pytest.warns(ApproximateCountWarning):
        assert release.count(triangle) == release.count(triangle, within="cells")
    assert release.count(0.3, 0.3, 1.7, 1.7) == release.count(0, 0, 2, 2)


def test_an_unknown_rule_is_refused_with_those_there_are():
    with pytest.raises(QueryError, match="within must be 'cells' or 'shape', got 'polygon'"):
        RELEASE.count(DISC, within="polygon")


def test_answers_say_which_rule_gave_them():
    bounds = [np.array(ends) for ends in ((1000, 1003), (-290, -290), (1010, 1010), (-280, -280))]
    answers = RELEASE.answers(RELEASE.select(tuple(bounds), within=None, crs=None))
    assert answers["within"].tolist() == ["cells", "shape"]
    assert answers["exact"].tolist() == [True, True]


def test_answers_say_what_lies_outside_what_is_cut_and_what_is_enlarged():
    xmin, ymin, xmax, ymax = RELEASE.grid.bounds
    side = RELEASE.grid.cell_size
    bounds = np.array(
        [
            (xmin, ymin, xmin + side, ymin + side),
            (xmax + 1, ymin, xmax + 2, ymax),
            (xmin - side, ymin, xmin + side, ymin + side),
            (xmin + side / 4, ymin, xmin + side, ymin + side),
        ]
    ).T
    with pytest.warns(OutsideAreaWarning):
        answers = RELEASE.answers(RELEASE.select(tuple(bounds), within="cells", crs=None))
    assert answers["outside"].tolist() == [False, True, False, False]
    assert answers["cut"].tolist() == [False, False, True, False]
    assert answers["enlarged"].tolist() == [False, False, False, True]
    drawn = RELEASE.answers(RELEASE.select(tuple(bounds[:, 2:]), within="shape", crs=None))
    assert not drawn["enlarged"].any()
