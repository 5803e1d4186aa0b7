"""Tables of fixes to regions: rows, times, users and batches, and what is refused."""

from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from uuid import UUID

import geopandas
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from dpregions.errors import CRSError, InputError, InputTypeError, PrivacyError
from dpregions.extraction.fixes import regions_from_batches, regions_from_fixes
from dpregions.intake.columns import NO_TIME, microseconds_of
from support.small_fixes import UTM, diameter, in_metres, table


def test_the_result_is_sorted_and_carries_crs_and_unit():
    fixes = table(("b", [(9, 48)]), ("a", [(9, 48)]), ("b", [(9, 48)]))
    fixes = fixes.rename(columns={"user_id": "who"})
    found = regions_from_fixes(fixes, k=1, max_diameter=1, crs=UTM, user_id="who")
    assert list(found.columns) == ["user_id", "geometry"]
    assert found["user_id"].tolist() == ["a", "b"]
    assert found.crs == UTM
    assert found.attrs == {"dpregions_unit": "user"}


def test_users_of_mixed_kinds_and_categories_are_sorted_too():
    fixes = table((3, [(9, 48)]), ("x", [(9, 48)]), ((1, 2), [(9, 48)]))
    assert len(regions_from_fixes(fixes, k=1, max_diameter=1, crs=UTM)) == 3
    fixes = table(("b", [(9, 48)]), ("a", [(9, 48)])).astype({"user_id": "category"})
    found = regions_from_fixes(fixes, k=1, max_diameter=1, crs=UTM)
    assert found["user_id"].tolist() == ["a", "b"]


def test_bad_rows_are_skipped_in_silence(recwarn, capfd):
    good = [(9.0, 48.5), (9.001, 48.5)]
    bad = [(np.nan, 48.5), (9.0, np.inf), (9.0, 400.0), (999.0, 48.5), (9.0, -91.0)]
    fixes = table((1, good), (1, bad), (pd.NA, good), (2, bad)).astype({"user_id": "Int64"})
    found = regions_from_fixes(fixes, k=9, max_diameter="2km", crs=UTM)
    assert found["user_id"].tolist() == [1]
    clean = regions_from_fixes(table((1, good)), k=9, max_diameter="2km", crs=UTM)
    assert found.geometry[0].equals(clean.geometry[0])
    assert not recwarn.list
    assert capfd.readouterr() == ("", "")


def test_a_table_of_bad_rows_makes_no_region():
    found = regions_from_fixes(table((1, [(np.nan, 1.0)])), k=9, max_diameter=1, crs=UTM)
    assert found.empty
    assert found.crs == UTM
    assert list(found.columns) == ["user_id", "geometry"]


def test_a_column_of_text_is_read_where_it_holds_numbers():
    fixes = pd.DataFrame({"user_id": [1, 1], "lon": ["9.0", "no fix"], "lat": ["48.5", "48.5"]})
    assert len(regions_from_fixes(fixes, k=9, max_diameter=1, crs=UTM)) == 1


def timed(minutes, user=1):
    n = len(minutes)
    t = pd.Timestamp("2008-05-01") + pd.to_timedelta(minutes, unit="min")
    return pd.DataFrame({"user_id": user, "t": t, "lon": 9 + np.arange(n) / 1000, "lat": 48.5})


def test_a_longer_gap_starts_a_trajectory():
    fixes = pd.concat([timed([0, 5, 25, 46, 50]), timed([0, 90], user=2)])
    recipe = {"k": 9, "max_diameter": "2km", "crs": UTM, "unit": "trajectory", "gap": "20min"}
    found = regions_from_fixes(fixes, **recipe)
    assert found["user_id"].tolist() == [1, 1, 2, 2]
    assert found["trajectory"].tolist() == [0, 1, 0, 1]
    assert found.attrs == {"dpregions_unit": "trajectory"}
    assert [round(diameter(region), -1) for region in found.geometry] == [150, 70, 0, 0]
    shuffled = regions_from_fixes(fixes.sample(frac=1, random_state=1), **recipe)
    assert shuffled.geometry.geom_equals(found.geometry).all()


@pytest.mark.parametrize("kind", ["text", "seconds", "zoned"])
def test_times_are_read_in_every_usual_form(kind):
    fixes = timed([0, 5, 90])
    fixes["t"] = {
        "text": fixes["t"].astype(str),
        "seconds": fixes["t"].astype("int64") // 10**6,
        "zoned": fixes["t"].dt.tz_localize("Asia/Shanghai"),
    }[kind]
    found = regions_from_fixes(
        fixes, k=9, max_diameter="2km", crs=UTM, unit="trajectory", gap=pd.Timedelta("20min")
    )
    assert found["trajectory"].tolist() == [0, 1]


times = st.one_of(
    st.sampled_from(["oops", "20080202", "2008-02-30", "now", "", "nan", "1e400", " 7 ", "\u00b2"]),
    st.sampled_from(["1600-01-01", "2008-02-02 13:33:52.123456789", "2008-02-02T13:33:52+08:00"]),
    st.sampled_from([None, np.nan, pd.NaT, pd.NA, True, 10**400, b"7", np.timedelta64(1, "s")]),
    st.sampled_from([date(2008, 2, 2), datetime(1600, 2, 2), np.datetime64("2008-02-02", "ns")]),
    st.datetimes().map(str),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
)


@given(st.lists(times, min_size=1, max_size=8))
def test_what_one_time_is_never_changes_how_another_is_read(values):
    together = microseconds_of(pd.Series(values, dtype=object))
    alone = [microseconds_of(pd.Series([value], dtype=object))[0] for value in values]
    assert together.tolist() == alone


def test_times_are_numbers_then_iso_text_and_else_none():
    values = ["20080202", "1700000000.5", "2008-02-02", 5, "2008-02-02T08:00+08:00", "now", [1]]
    day = 1_201_910_400_000_000
    expected = [20_080_202_000_000, 1_700_000_000_500_000, day, 5_000_000, day, NO_TIME, NO_TIME]
    assert microseconds_of(pd.Series(values, dtype=object)).tolist() == expected
    assert microseconds_of(pd.Series(["x", "7", None], dtype="category")).tolist() == [
        NO_TIME,
        7_000_000,
        NO_TIME,
    ]


@pytest.mark.parametrize(
    "kind", [pa.date32(), pa.date64(), pa.timestamp("s"), pa.timestamp("ns", "Asia/Shanghai")]
)
def test_times_may_be_arrows(kind):
    column = pd.Series([date(2008, 2, 2), None], dtype=pd.ArrowDtype(pa.date32()))
    column = column.astype(pd.ArrowDtype(kind))
    assert microseconds_of(column).tolist() == [pd.Timestamp(column[0]).value // 1000, NO_TIME]
    far = pd.Series(np.array([2**60, 1], "M8[s]"))
    assert microseconds_of(far).tolist() == [NO_TIME, 1_000_000]


def test_one_unreadable_time_loses_no_other_users_trajectory():
    fixes = pd.concat([timed([0, 5, 90]), timed([0, 90], user=2)], ignore_index=True)
    fixes["t"] = (fixes["t"].astype("int64") // 10**6).astype(object)
    recipe = {"k": 9, "max_diameter": "2km", "crs": UTM, "unit": "trajectory", "gap": "20min"}
    expected = regions_from_fixes(fixes, **recipe)
    bad = pd.concat([timed([0], user=3).assign(t="oops"), fixes], ignore_index=True)
    found = regions_from_fixes(bad, **recipe)
    assert found["user_id"].tolist() == [1, 1, 2, 2]
    assert found.geometry.geom_equals(expected.geometry).all()


@pytest.mark.parametrize("kind", ["Int64", "int64[pyarrow]", "category", "Int64 category", object])
def test_large_ids_stay_apart_beside_a_missing_one(kind):
    fixes = pd.DataFrame({"lon": 9 + np.arange(5) / 100, "lat": 48.5})
    ids = [2**60 + 2, 2**60 + 1, None, 2**60, 2**60 + 1]
    if "category" in str(kind):
        whole = pd.Index(sorted({i for i in ids if i}), dtype="Int64" if "I" in kind else "int64")
        fixes["user_id"] = pd.Categorical(ids, categories=whole)
    else:
        fixes["user_id"] = pd.Series(ids, dtype=kind)
    found = regions_from_fixes(fixes, k=9, max_diameter="2km", crs=UTM)
    assert found["user_id"].tolist() == [2**60, 2**60 + 1, 2**60 + 2]
    clean = fixes[fixes["user_id"].notna()].astype({"user_id": "int64"})
    expected = regions_from_fixes(clean, k=9, max_diameter="2km", crs=UTM)
    assert found.geometry.geom_equals(expected.geometry).all()


def test_batches_of_other_types_keep_large_ids_apart():
    first, second = table((2**60, [(9.0, 48.5)])), table((2**60 + 1, [(9.0, 48.5)]))
    third = table((Decimal("0.5"), [(9.0, 48.5)]))
    empty = table((None, [(9.0, 48.5)]))
    found = regions_from_batches([empty, first, second, third], **RECIPE)
    assert found["user_id"].tolist() == [Decimal("0.5"), 2**60, 2**60 + 1]
    assert regions_from_batches([empty, first, second], **RECIPE)["user_id"].dtype == "int64"
    assert regions_from_batches([empty, empty], **RECIPE).empty


def with_ids(ids):
    return pd.DataFrame({"user_id": ids, "lon": 9.0, "lat": 48.5})


@pytest.mark.parametrize(
    "ids",
    [
        pd.Series([1.0, 2.0]),
        pd.Series([1, None]),
        pd.Series([], dtype="float64"),
        pd.Series([1.0], dtype="Float64"),
        pd.Series([1.0], dtype="double[pyarrow]"),
        pd.Series([0.5], dtype="category"),
        pd.Series([1 + 0j]),
        pd.Series(pd.array([[777]], pd.ArrowDtype(pa.list_(pa.int16())))),
    ],
)
def test_columns_of_floats_and_nested_ones_are_no_ids_whatever_they_hold(ids):
    with pytest.raises(InputTypeError, match="cannot be ids") as caught:
        regions_from_fixes(with_ids(ids), **RECIPE)
    assert "777" not in str(caught.value)


odd_ids = st.one_of(
    st.sampled_from([1, 1.0, True, False, "1", b"1", Decimal(1), Fraction(1), np.int8(1)]),
    st.sampled_from(["\udc80", "\ud800x", "", b"", "a", "A", "\x00", "José", "Jose\u0301"]),
    st.sampled_from([None, pd.NA, pd.NaT, np.nan, Decimal("NaN"), Decimal("sNaN"), [7], {}]),
    st.sampled_from([Decimal("1e999"), Decimal("Infinity"), 10**400, np.inf, 2**60, 2.0**60]),
    st.sampled_from([date(2008, 2, 2), datetime(2008, 2, 2), UUID(int=7), (1, "a"), (), 1j]),
    st.integers(),
)


@given(st.lists(odd_ids, max_size=8), odd_ids)
def test_one_users_id_never_changes_anothers_region(ids, one):
    def found(values):
        regions = regions_from_fixes(with_ids(pd.Series(values, dtype=object)), **RECIPE)
        return [(type(user), user) for user in regions["user_id"].tolist()]

    alone, together, without = found([one]), found([*ids, one]), found(ids)
    assert len(alone) <= 1
    assert len(together) - len(without) in ((0, 1) if alone else (0,))
    assert [user for user in together if user in without] == without


def test_truth_is_no_number_and_equal_numbers_are_one_user():
    ids = np.array([True, 1, Decimal("1.0"), "1", Fraction(1, 2)], object)
    found = regions_from_fixes(with_ids(ids), **RECIPE)["user_id"].tolist()
    assert [str(user) for user in found] == ["1/2", "1", "1", "True"]


def test_arrow_text_that_is_no_utf_8_is_an_id_and_no_number_or_time():
    raw = pa.array([b"Jos\xe9", b"Jos\xe8", b"ann"], pa.binary())
    text = pa.Array.from_buffers(pa.string(), 3, raw.buffers())
    column = pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([text])))
    fixes = pd.DataFrame({"user_id": column, "lon": 9.0, "lat": 48.5, "t": column})
    assert len(regions_from_fixes(fixes, **RECIPE)) == 3
    trips = {**RECIPE, "unit": "trajectory", "gap": "1h"}
    assert regions_from_fixes(fixes, **trips).empty
    assert regions_from_fixes(fixes.assign(lat=column), **RECIPE).empty


def test_column_names_that_are_no_text_are_not_listed():
    record = table((1, [(9.0, 48.5)])).rename(columns={"lat": 48.4931})
    with pytest.raises(InputError, match="lat='lat' is no column") as caught:
        regions_from_fixes(record, **RECIPE)
    assert "48" not in str(caught.value)


def test_empty_and_missing_points_are_bad_rows():
    fixes = in_metres([(0, 0), (5, 0), (0, 5)])
    expected = regions_from_fixes(fixes, **RECIPE).geometry[0]
    odd = [shapely.Point(), None, shapely.LineString([(0, 0), (1, 1)])]
    more = geopandas.GeoDataFrame({"user_id": 0}, geometry=odd, crs=UTM, index=range(3))
    found = regions_from_fixes(pd.concat([more, fixes]), **RECIPE)
    assert found.geometry[0].equals(expected)


@pytest.mark.parametrize(
    "crs", [3857, 3395, "+proj=merc", "+proj=webmerc +datum=WGS84", "EPSG:3857+5773"]
)
def test_mercators_of_the_world_are_refused(crs):
    with pytest.raises(CRSError, match=r"not metres on the ground; .*Grid\.around"):
        regions_from_fixes(GOOD, **{**RECIPE, "crs": crs})


@pytest.mark.parametrize("crs", [32632, 2056, 3001, "+proj=utm +zone=32 +towgs84=1,2,3"])
def test_other_projected_crs_are_taken(crs):
    assert regions_from_fixes(GOOD, **{**RECIPE, "crs": crs}).crs == crs


def test_batches_make_the_regions_of_the_whole_table():
    rng = np.random.default_rng(0)
    fixes = pd.DataFrame(
        {
            "user_id": rng.integers(0, 20, 900),
            "t": pd.Timestamp("2008-05-01") + pd.to_timedelta(rng.integers(0, 900, 900), "min"),
            "lon": rng.normal(9, 0.02, 900),
            "lat": rng.normal(48.5, 0.02, 900),
        }
    )
    for more in ({}, {"unit": "trajectory", "gap": "20min"}):
        recipe = {"k": 30, "max_diameter": "2km", "crs": UTM, **more}
        whole = regions_from_fixes(fixes, **recipe)
        parts = [fixes[fixes.user_id % 3 == r] for r in (2, 0, 1)]
        batched = regions_from_batches(parts, **recipe)
        assert batched.drop(columns="geometry").equals(whole.drop(columns="geometry"))
        assert batched.geometry.geom_equals(whole.geometry).all()
        assert batched.attrs == whole.attrs
        assert batched.crs == whole.crs


GOOD = table((1, [(9.0, 48.5)]))
RECIPE = {"k": 9, "max_diameter": "2km", "crs": UTM}


@pytest.mark.parametrize(
    ("fixes", "change", "error", "words"),
    [
        (GOOD, {"k": 0}, InputError, "k must be at least 1, got 0"),
        (GOOD, {"k": 2.5}, InputTypeError, "whole number"),
        (GOOD, {"max_diameter": 0}, InputError, "max_diameter must be greater than 0"),
        (GOOD, {"max_diameter": "2 leagues"}, InputError, "is not a length"),
        (GOOD, {"crs": None}, CRSError, "crs is missing"),
        (GOOD, {"crs": 4326}, CRSError, r"EPSG:4326 .* geographic.*Grid\.around"),
        (GOOD, {"crs": "EPSG:4978"}, CRSError, "not a projected CRS"),
        (GOOD, {"crs": "nonsense"}, CRSError, "nonsense"),
        (GOOD, {"user_id": "who"}, InputError, "user_id='who' is no column: there are user_id"),
        (GOOD, {"lon": "x"}, InputError, "lon='x' is no column"),
        (GOOD, {"user_id": None}, InputTypeError, "must name a column"),
        (GOOD, {"unit": "record"}, PrivacyError, "unit='record' is unknown"),
        (GOOD, {"unit": "trajectory"}, InputError, "needs a gap"),
        (GOOD, {"gap": "20min"}, InputError, "no use with unit='user'"),
        (GOOD, {"unit": "trajectory", "gap": "soon"}, InputError, "is not a time"),
        (GOOD, {"unit": "trajectory", "gap": 20}, InputTypeError, "has no unit"),
        (GOOD, {"unit": "trajectory", "gap": "-1min"}, InputError, "longer than 0"),
        (GOOD, {"unit": "trajectory", "gap": "1h"}, InputError, "time='t' is no column"),
        ([1, 2], {}, InputTypeError, "DataFrame"),
        (in_metres([(0, 0)]).set_crs(None, allow_override=True), {}, CRSError, "no CRS"),
    ],
)
def test_unusable_input_is_a_clear_error(fixes, change, error, words):
    with pytest.raises(error, match=words):
        regions_from_fixes(fixes, **{**RECIPE, **change})


@pytest.mark.parametrize(
    "fixes",
    [
        GOOD.iloc[:0],
        table((1, [(39.9, 116.4)])),
        in_metres([(0, 0)]).iloc[:0],
        in_metres([(0, 0)]).buffer(1).to_frame().assign(user_id=1).set_geometry(0),
    ],
    ids=["no rows", "swapped", "no points", "polygons"],
)
def test_a_table_without_a_fix_makes_no_region_as_one_row_may_be_all_there_is(fixes):
    found = regions_from_fixes(fixes, **RECIPE)
    assert found.empty
    assert list(found.columns) == ["user_id", "geometry"]
    assert found.crs == UTM
    assert found.attrs == {"dpregions_unit": "user"}


def test_most_latitudes_off_the_globe_change_nothing_for_the_others():
    bad, good = (39.9, 116.4), (116.4, 39.9)
    for fixes in ([bad, good, good], [bad, bad, good]):
        found = regions_from_fixes(table((1, fixes)), **{**RECIPE, "crs": 32650})
        assert len(found) == 1


def test_a_user_in_two_batches_is_refused():
    with pytest.raises(InputError, match="two batches"):
        regions_from_batches([GOOD, GOOD], **RECIPE)
    assert regions_from_batches([], **RECIPE).empty
