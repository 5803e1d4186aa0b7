"""Releasing: whom it counts, with which sensitivity, what it refuses or warns of."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, product

import geopandas
import numpy as np
import pyarrow as pa
import pytest
import shapely

import dpregions as dpr
from dpregions.errors import (
    CRSError,
    InputError,
    InputTypeError,
    PrivacyError,
    SettingWarning,
)
from dpregions.mechanisms.known import MECHANISMS as METHODS
from dpregions.privacy.ledger import Ledger
from support.small_releases import (
    GRID,
    HARDLY_ANY_NOISE,
    paper_study,
    scale_of,
    study,
    town,
)
from support.watched_noise import Spy, Untouched

# Whom it counts


def counted(regions, **changes) -> int:
    """How many regions a release counts on the whole area, seen through no noise."""
    counts = set()
    for method in METHODS:
        release = study(regions, epsilon=HARDLY_ANY_NOISE, method=method, **changes)
        counts.add(release.count(*release.grid.bounds))
    (count,) = counts
    return count


def points(**columns) -> geopandas.GeoDataFrame:
    n = len(next(iter(columns.values())))
    places = shapely.points(0.5 + np.arange(n) % 5, 0.5 + np.arange(n) // 5)
    return geopandas.GeoDataFrame(columns, geometry=places)


def test_a_user_counts_once_and_the_unit_is_the_user():
    regions = points(user_id=["a", "b", "a", "a", "c"])
    assert counted(regions) == 3
    assert study(regions).unit == "user"
    driver = regions.rename(columns={"user_id": "driver"})
    assert counted(driver, user_id="driver") == 3
    assert counted(regions.geometry, user_id=["a", "b", "a", "a", "c"]) == 3
    assert study(regions.geometry, user_id=np.arange(5)).unit == "user"


def test_without_users_each_row_counts_and_the_unit_is_the_record():
    regions = points(user_id=["a", "b", "a", "a", "c"])
    assert counted(regions, user_id=None) == 5
    assert study(regions, user_id=None).unit == "record"
    assert "unit = record" in study(regions, user_id=None).describe()
    assert "protected less" in study(regions, user_id=None).describe()


def trajectories() -> geopandas.GeoDataFrame:
    """Two users with trajectories 0 and 1 each, numbered within the user; one of them twice."""
    regions = points(user_id=["a", "a", "b", "b", "b"], trajectory=[0, 1, 0, 1, 1])
    regions.attrs["dpregions_unit"] = "trajectory"
    return regions


def test_a_users_trajectory_counts_once_and_the_unit_is_the_trajectory():
    assert counted(trajectories(), unit="trajectory") == 4
    release = study(trajectories(), unit="trajectory")
    assert release.unit == "trajectory"
    assert "unit = trajectory" in release.describe()
    assert "one region a trajectory" in release.describe()


@pytest.mark.parametrize("user_id", ["user_id", "trajectory", ["a", "a", "b", "b", "b"]])
@pytest.mark.parametrize("unit", [None, "user"])
def test_regions_marked_as_trajectories_are_never_taken_for_users(user_id, unit):
    with pytest.raises(PrivacyError, match="unit='trajectory'"):
        study(trajectories(), user_id=user_id, unit=unit, noise=Untouched())


def test_the_mark_of_a_schema_counts_too():
    table = pa.table(trajectories().to_arrow()).replace_schema_metadata(
        {"dpregions_unit": "trajectory"}
    )
    with pytest.raises(PrivacyError, match="unit='trajectory'"):
        study(table, noise=Untouched())
    assert study(table, unit="trajectory").unit == "trajectory"


def test_the_mark_of_a_bare_stream_counts_too():
    class Bare:
        """What has nothing but the protocol of Arrow."""

        def __init__(self, table):
            self._table = table

        def __arrow_c_stream__(self, requested_schema=None):
            return self._table.__arrow_c_stream__(requested_schema)

    table = pa.table(trajectories().to_arrow()).replace_schema_metadata(
        {"dpregions_unit": "trajectory"}
    )
    with pytest.raises(PrivacyError, match="unit='trajectory'"):
        study(Bare(table), noise=Untouched())
    assert study(Bare(table), unit="trajectory").unit == "trajectory"


def test_regions_without_a_mark_are_trajectories_where_the_caller_says_so():
    regions = trajectories()
    regions.attrs.clear()
    assert counted(regions, unit="trajectory") == 4
    assert counted(regions) == 2
    with pytest.raises(InputError, match="'trajectory' is no column"):
        study(regions.drop(columns="trajectory"), unit="trajectory", noise=Untouched())


def test_trajectory_numbers_count_within_their_user_only():
    with pytest.raises(PrivacyError, match="counts within its user"):
        study(trajectories(), user_id="trajectory", unit="trajectory", noise=Untouched())


@pytest.mark.parametrize(
    ("user_id", "unit", "words"),
    [
        (None, "user", "needs ids"),
        (None, "trajectory", "needs ids"),
        ("user_id", "record", "user_id=None"),
        ("user_id", "person", "'user' or 'record' or 'trajectory'"),
    ],
)
def test_a_unit_that_the_ids_do_not_give_is_refused(user_id, unit, words):
    with pytest.raises(PrivacyError, match=words):
        study(points(user_id=[1, 2]), user_id=user_id, unit=unit, noise=Untouched())


def test_a_trajectory_without_a_user_counts_nowhere():
    regions = trajectories()
    regions["user_id"] = [None, "a", "b", "b", None]
    assert counted(regions, unit="trajectory") == 3


def test_trajectories_released_by_row_say_so():
    assert counted(trajectories(), user_id=None) == 5
    assert study(trajectories(), user_id=None).unit == "record"
    with pytest.raises(InputError, match="have no columns"):
        study(trajectories().geometry, unit="trajectory", noise=Untouched())


def test_long_regions_are_shrunk_or_left_out():
    line = shapely.LineString([(0.1, 0.5), (3.9, 0.5)])  # its middle lies on a grid line
    long = geopandas.GeoDataFrame({"user_id": [1]}, geometry=[line])
    shrunk = study(long, epsilon=HARDLY_ANY_NOISE, max_diameter=1)
    assert shrunk.counts[0].tolist() == [0, 0, 1, 1, 1, 0, 0, 0, 0]
    assert counted(long, max_diameter=1, oversize="drop") == 0
    assert counted(long, max_diameter=4, oversize="drop") == 1


# Sensitivity of the paper's histogram


def test_a_small_grid_cuts_the_sensitivity_and_replace_one_doubles_it():
    for shape, max_diameter, wanted in (
        ((1, 1), 10, 1),
        ((1, 4), 10, 7),
        ((2, 2), 5, 9),
        ((2, 9), 2, 15),
        ((9, 9), 2, 25),
        ((9, 9), 2.5, 49),
    ):
        grid = dpr.Grid(0, 0, 1, *shape)
        assert paper_study(grid=grid, max_diameter=max_diameter).sensitivity == wanted
        double = paper_study(grid=grid, max_diameter=max_diameter, neighbours="replace-one")
        assert double.sensitivity == 2 * wanted
        assert scale_of(double) == 2 * wanted
        assert double.neighbours == "replace-one"


def test_the_noise_is_calibrated_to_the_sensitivity_the_release_states():
    for neighbours in ("add-remove", "replace-one"):
        spy = Spy(1)
        release = paper_study(noise=spy, epsilon=0.5, neighbours=neighbours)
        ((_, epsilon, sensitivity, _),) = spy.asked
        assert (float(epsilon), sensitivity) == (0.5, release.sensitivity)


def bodies_on(grid: dpr.Grid) -> list[shapely.Geometry]:
    """Points, segments and boxes with corners on lines and a tenth before them, long ones too."""
    x, y = (np.add.outer(np.arange(n), [0, 0.9]).ravel() for n in (grid.n_cols, grid.n_rows))
    columns = [(a, b) for a in x for b in x if a <= b]
    rows = [(a, b) for a in y for b in y if a <= b]
    return [shapely.box(a, c, b, d) for (a, b), (c, d) in product(columns, rows)]


@pytest.mark.parametrize(
    ("shape", "max_diameter"), [((2, 3), 1), ((2, 3), 2), ((1, 4), 2), ((4, 4), 2), ((4, 4), 3)]
)
def test_the_sensitivity_is_the_most_that_any_body_adds(shape, max_diameter):
    grid = dpr.Grid(0, 0, 1, *shape)
    added = [
        dpr.EulerHistogram.from_regions([body], grid, max_diameter=max_diameter).counts.sum()
        for body in bodies_on(grid)
    ]
    assert max(added) == paper_study(grid=grid, max_diameter=max_diameter).sensitivity


def test_the_sensitivity_under_replace_one_is_the_most_that_any_two_bodies_differ():
    grid = dpr.Grid(0, 0, 1, 2, 4)
    seen = {
        dpr.EulerHistogram.from_regions([body], grid, max_diameter=1).counts.tobytes()
        for body in bodies_on(grid)
    }
    histograms = [np.frombuffer(counts, dtype=np.int64) for counts in seen]
    furthest = max(int(np.abs(a - b).sum()) for a, b in combinations(histograms, 2))
    assert (
        furthest
        == paper_study(grid=grid, max_diameter=1, neighbours="replace-one").sensitivity
        == 18
    )


# What it refuses, before it noises


N_RECORDS = 7919
REFUSED = [
    ({"epsilon": None}, PrivacyError, "epsilon is missing"),
    ({"epsilon": 0}, PrivacyError, "epsilon must be greater than 0"),
    ({"epsilon": -1}, PrivacyError, "epsilon must be greater than 0"),
    ({"epsilon": math.nan}, PrivacyError, "epsilon must be finite"),
    ({"epsilon": math.inf}, PrivacyError, "epsilon must be finite"),
    ({"epsilon": "1"}, PrivacyError, "epsilon must be a number"),
    ({"epsilon": 1e-13}, PrivacyError, "larger epsilon"),
    ({"max_diameter": None}, PrivacyError, "max_diameter is missing"),
    ({"max_diameter": 0}, InputError, "max_diameter must be greater than 0"),
    ({"max_diameter": -2}, InputError, "max_diameter must be greater than 0"),
    ({"max_diameter": math.nan}, InputError, "max_diameter must be a finite number"),
    ({"max_diameter": math.inf}, InputError, "max_diameter must be a finite number"),
    ({"max_diameter": "2km"}, CRSError, "without a CRS"),
    ({"max_diameter": [2]}, InputTypeError, "max_diameter"),
    ({"neighbours": "swap-one"}, PrivacyError, "'add-remove' or 'replace-one'"),
    ({"neighbours": None}, PrivacyError, "'add-remove' or 'replace-one'"),
    ({"method": "laplace"}, PrivacyError, "method='laplace' is unknown"),
    ({"oversize": "keep"}, InputError, "'shrink' or 'drop'"),
    ({"user_id": "driver"}, InputError, "user_id='driver' is no column"),
    ({"user_id": 5}, InputTypeError, "user_id must be a column name"),
    ({"user_id": ["a"]}, InputError, "one id a region"),
    ({"crs": "EPSG:32632"}, CRSError, "the grid has no CRS"),
    ({"crs": "nonsense"}, CRSError, "no CRS that pyproj reads"),
]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("changed", "error", "words"), REFUSED)
def test_what_cannot_be_released_is_refused_before_noise_and_names_no_number_of_records(
    method, changed, error, words
):
    with pytest.raises(error, match=words) as refused:
        study(points(user_id=range(N_RECORDS)), noise=Untouched(), **({"method": method} | changed))
    assert str(N_RECORDS) not in str(refused.value)
    arguments = {"epsilon": 1, "max_diameter": 2, "method": method} | changed
    with pytest.raises(error, match=words):
        dpr.release(town(), GRID, **arguments)


@pytest.mark.parametrize("name", ["epsilon", "max_diameter"])
def test_epsilon_and_the_bound_have_no_default(name):
    arguments = {"epsilon": 1, "max_diameter": 2}
    del arguments[name]
    with pytest.raises(TypeError, match=name):
        dpr.release(town(), GRID, **arguments)


@pytest.mark.parametrize(
    ("regions_crs", "grid_crs", "crs", "words"),
    [
        (None, "EPSG:32632", None, "carry no CRS"),
        ("EPSG:32632", None, None, "the grid has no CRS"),
        ("EPSG:4326", None, None, "the grid has no CRS"),
        ("EPSG:32632", "EPSG:32632", "EPSG:32633", "regions carry EPSG:32632"),
    ],
)
def test_a_crs_that_does_not_fit_is_an_error_before_noise(regions_crs, grid_crs, crs, words):
    grid = dpr.Grid(0, 0, 1, 4, 5, crs=grid_crs)
    regions = town().set_crs(regions_crs) if regions_crs else town()
    with pytest.raises(CRSError, match=words):
        study(regions, grid, noise=Untouched(), crs=crs)


def test_regions_without_columns_need_ids_or_an_explicit_none():
    boxes = list(town().geometry)
    with pytest.raises(InputError, match="have no columns"):
        study(boxes, noise=Untouched())
    assert study(boxes, user_id=None).unit == "record"


def test_records_that_are_no_place_count_nowhere_and_nothing_is_said(recwarn, capfd):
    regions = points(user_id=range(6))
    places = [None, shapely.Point(), shapely.Point(math.nan, 1), shapely.Point(1e300, 1)]
    regions["geometry"] = geopandas.GeoSeries(
        [*places, shapely.Point(900, 900), shapely.Point(1, 1)]
    )
    assert counted(regions) == 1
    dpr.release(regions, GRID, epsilon=1, max_diameter=2)
    assert not recwarn.list
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"epsilon": Fraction(201, 10), "allow_epsilon": True},
            r"epsilon 20\.1 protects next to nothing: .* 485 million",
        ),
        (
            {"max_diameter": 6.41},
            r"max_diameter=6\.41 is longer than the diagonal .* 6\.40312",
        ),
        ({"max_diameter": 0.04}, r"max_diameter=0\.04 is 0\.04 of a cell: every region is shrunk"),
    ],
)
def test_a_setting_that_does_nothing_is_warned_of_and_allowed(changes, words):
    arguments = {"epsilon": 1, "max_diameter": 2, "method": "paper"} | changes
    with pytest.warns(SettingWarning, match=words) as caught:
        assert dpr.release(town(), GRID, **arguments).private
    assert [one.filename for one in caught] == [__file__]  # it points at the caller


def test_the_largest_sensible_settings_pass_without_a_word():
    dpr.release(town(), GRID, epsilon=20, max_diameter=6.403, method="paper")


def test_an_odd_setting_is_warned_of_before_the_ledger_pays(tmp_path):
    book = Ledger(tmp_path / "people.ledger")
    book.create("rows", 100, allow_epsilon=True)
    paid = {"max_diameter": 2, "ledger": book, "dataset": "rows"}
    with pytest.raises(SettingWarning):  # tests make errors of warnings
        dpr.release(town(), GRID, epsilon=50, allow_epsilon=True, **paid)
    assert book.account("rows").spent == 0


@pytest.mark.parametrize("allowed", [False, None, "yes", 1])
def test_an_epsilon_that_promises_next_to_nothing_is_refused_unless_it_is_meant(tmp_path, allowed):
    book = Ledger(tmp_path / "people.ledger")
    book.create("rows", 20)
    paid = {"max_diameter": 2, "ledger": book, "dataset": "rows", "allow_epsilon": allowed}
    words = r"epsilon=20\.1 protects next to nothing: above 20, .*gives allow_epsilon=True"
    with pytest.raises(PrivacyError, match=words):
        dpr.release(town(), GRID, epsilon=20.1, **paid)
    assert book.account("rows").spent == 0


@pytest.mark.parametrize("covert", ["yes", "", None, 1, 0.0])
def test_covert_is_true_or_false_before_the_debit(covert, ledger):
    ledger.create("city", 1)
    with pytest.raises(InputTypeError, match="covert must be True or False") as caught:
        dpr.release(
            town(), GRID, epsilon=1, max_diameter=2, covert=covert, ledger=ledger, dataset="city"
        )
    assert caught.value.argument == "covert"
    assert ledger.account("city").spent == 0


def test_numpys_truth_is_a_truth(tmp_path):
    made = dpr.release(town(), GRID, epsilon=1, max_diameter=2, covert=np.True_)
    made.save(tmp_path / "city.parquet")
    assert dpr.load(tmp_path / "city.parquet").covert is True
