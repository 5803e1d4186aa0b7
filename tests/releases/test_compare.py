"""What one release counts more than another: the union bound, the area, the cost of both."""

from __future__ import annotations

from dataclasses import replace

import geopandas
import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

import dpregions as dpr
from dpregions.errors import (
    ApproximateCountWarning,
    CRSError,
    InputTypeError,
    PrivacyError,
    QueryError,
)
from dpregions.privacy.seeded import StudyNoise
from support.footprint_releases import UNIT_GRID, study, town
from support.releases_on_cells import hexagons, study_on
from support.small_releases import paper_study

MAY = study()
JUNE = study(town(UNIT_GRID, 2, n=400, seed=4), epsilon=3)
FINE = study(grid=dpr.Grid(1, 1, 0.5, n_rows=6, n_cols=6))
LEDGER = "0123456789abcdef"


def paid(release, entry):
    return replace(release, ledger_entry=entry)


@given(
    st.lists(st.floats(0, 5), min_size=2, max_size=2, unique=True).map(sorted),
    st.lists(st.floats(0, 4), min_size=2, max_size=2, unique=True).map(sorted),
    st.sampled_from([0.5, 0.9, 0.95]),
)
def test_the_interval_is_that_of_both_at_half_the_doubt_each(x, y, confidence):
    bounds = (x[0], y[0], x[1], y[1])
    each = 1 - (1 - confidence) / 2
    low, high = MAY.interval(*bounds, confidence=each)
    low_2, high_2 = JUNE.interval(*bounds, confidence=each)
    found = MAY.compare(JUNE).interval(*bounds, confidence=confidence)
    assert found == pytest.approx((low_2 - high, high_2 - low))
    difference = MAY.compare(JUNE).count(*bounds)
    assert difference == JUNE.count(*bounds) - MAY.count(*bounds)
    assert found[0] <= difference <= found[1]


def test_the_difference_turns_round_with_the_releases():
    low, high = MAY.compare(JUNE).interval(1, 1, 3, 2)
    assert JUNE.compare(MAY).interval(1, 1, 3, 2) == pytest.approx((-high, -low))


def test_a_release_beside_itself_differs_by_an_interval_around_0():
    low, high = MAY.compare(MAY).interval(0, 0, 5, 4)
    assert low == pytest.approx(-high) and high > 0


def test_the_interval_holds_the_true_difference_as_often_as_it_says():
    """Of 100 pairs with noise of their own; at 0.6, so that too narrow ones would show."""
    first, second = town(UNIT_GRID, 2, n=120), town(UNIT_GRID, 2, n=150, seed=9)
    truth = [
        dpr.EulerHistogram.from_regions(regions, UNIT_GRID, max_diameter=2, user_id=None)
        for regions in (first, second)
    ]
    held = 0
    for seed in range(100):
        one = study(first, noise=StudyNoise(seed))
        other = study(second, noise=StudyNoise(1000 + seed))
        low, high = one.compare(other).interval(1, 1, 4, 3, confidence=0.6)
        held += low <= truth[1].count(1, 1, 4, 3) - truth[0].count(1, 1, 4, 3) <= high
    assert held >= 60


def test_cells_and_blocks_are_compared_at_once():
    found = MAY.compare(JUNE).cell_arrays(2)
    grid = MAY.grid
    for i, j in np.ndindex(found["difference"].shape):
        row, col = 2 * i, 2 * j
        ends = min(row + 1, grid.n_rows - 1), min(col + 1, grid.n_cols - 1)
        bounds = grid.cell_bounds(row, ends[0], col, ends[1])
        assert found["difference"][i, j] == MAY.compare(JUNE).count(*bounds)
        low, high = MAY.compare(JUNE).interval(*bounds)
        assert (found["low"][i, j], found["high"][i, j]) == pytest.approx((low, high))
        assert found["may_be_equal"][i, j] == (low <= 0 <= high)


def test_frames_come_back_as_frames():
    shapes = [shapely.box(0, 0, 2, 2), shapely.Point(2, 2).buffer(1)]
    frame = geopandas.GeoDataFrame(geometry=shapes, index=["a", "b"])
    comparison = MAY.compare(JUNE)
    assert list(comparison.count(frame).index) == ["a", "b"]
    assert list(comparison.interval(frame).columns) == ["low", "high"]
    wanted = [comparison.count(shape) for shape in shapes]
    assert comparison.count(frame).tolist() == wanted


def test_one_warning_is_enough_for_two_releases():
    corner = shapely.Polygon([(0.2, 0.2), (3.8, 0.2), (0.2, 3.8)])
    with pytest.warns(ApproximateCountWarning) as warned:
        MAY.compare(JUNE).count(corner, within="cells")
    assert len(warned) == 1


def test_on_other_cells_what_is_drawn_in_both_areas_is_compared():
    comparison = MAY.compare(FINE)
    shape = shapely.Point(2.5, 2.5).buffer(1)
    wanted = FINE.count(shape) - MAY.count(shape)
    assert comparison.count(shape) == wanted
    assert comparison.count(1.5, 1.5, 3, 3) == (
        FINE.count(1.5, 1.5, 3, 3, within="shape") - MAY.count(1.5, 1.5, 3, 3, within="shape")
    )
    for beyond in ((0.5, 2, 3, 3), (0.1, 0.1, 0.9, 0.9)):
        with pytest.raises(QueryError, match="beyond what both"):
            comparison.count(*beyond)
    with pytest.raises(QueryError, match="query 1 reaches beyond"):
        comparison.count([2, 0], [2, 0], [3, 1], [3, 1])
    with pytest.raises(QueryError, match="cells of the releases differ"):
        comparison.count(1, 1, 2, 2, within="cells")
    with pytest.raises(QueryError, match="ask about areas"):
        comparison.cell_arrays()


def test_bare_numbers_are_in_the_first_releases_crs():
    one = study(grid=dpr.Grid(500_000, 5_370_000, 1000, 5, 5, crs="EPSG:32632"), max_diameter=2000)
    grid = dpr.Grid.around(9.02, 48.5, "12km", "600m", crs="EPSG:3035")
    other = study(grid=grid, max_diameter=2000)
    shape = shapely.box(501_000, 5_371_000, 503_000, 5_373_000)
    found = one.compare(other).count(shape)
    assert found == other.count(shape, crs="EPSG:32632", within="shape") - one.count(shape)


def test_releases_without_bodies_are_compared_on_the_same_cells():
    one, other = paper_study(), paper_study(epsilon=2)
    assert one.compare(other).count(0.2, 0.2, 3, 3) == (
        other.count(0.2, 0.2, 3, 3) - one.count(0.2, 0.2, 3, 3)
    )
    low, high = one.compare(study(grid=one.grid)).interval(0, 0, 2, 2)
    assert low < high


def test_a_partition_is_compared_by_labels():
    one, other = study_on(hexagons()), study_on(hexagons(), epsilon=2)
    labels = list(hexagons().labels[:2])
    assert one.compare(other).count(cells=labels) == (
        other.count(cells=labels) - one.count(cells=labels)
    )


def test_what_cannot_be_compared_is_refused():
    with pytest.raises(PrivacyError, match="covert"):
        MAY.compare(study(covert=True))
    with pytest.raises(InputTypeError, match="must be a Release"):
        MAY.compare(3)
    with pytest.raises(CRSError, match="the other has none"):
        MAY.compare(study(grid=dpr.Grid(0, 0, 1000, 4, 5, crs="EPSG:32632"), max_diameter=2000))
    with pytest.raises(PrivacyError, match="confidence"):
        MAY.compare(JUNE).interval(0, 0, 1, 1, confidence=1)


def test_releases_of_one_data_set_cost_their_sum_together():
    one, other = paid(MAY, f"{LEDGER}/taxis/1"), paid(JUNE, f"{LEDGER}/taxis/2")
    comparison = one.compare(other)
    assert float(comparison.together) == 4
    assert "together these cost epsilon = 4" in comparison.describe()


def test_one_debit_is_not_counted_twice():
    one = paid(MAY, f"{LEDGER}/taxis/1")
    assert float(one.compare(one).together) == 1
    assert "once" in one.compare(one).describe()


@pytest.mark.parametrize("entry", [None, f"{LEDGER}/buses/2", f"{LEDGER[::-1]}/taxis/2"])
def test_where_no_ledger_says_so_the_cost_is_left_open(entry):
    comparison = paid(MAY, f"{LEDGER}/taxis/1").compare(paid(JUNE, entry))
    assert comparison.together is None
    assert "add up to 4" in comparison.describe()


def test_a_study_and_other_units_are_called_what_they_are():
    said = MAY.compare(replace(JUNE, unit="trajectory")).describe()
    assert said.startswith("NOT PRIVATE") and "count different things" in said
