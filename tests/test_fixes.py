"""Fixes to regions: the promises of `regions_from_fixes`, against scipy and brute force."""

import os
import subprocess
import sys
from datetime import date, datetime
from pathlib import Path

import geopandas
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import pdist
from scipy.stats import gaussian_kde

from dpregions import _density
from dpregions.errors import CRSError, InputError, InputTypeError, PrivacyError
from dpregions.fixes import regions_from_batches, regions_from_fixes
from dpregions.readings import NO_TIME, microseconds_of

UTM = "EPSG:32632"
ORIGIN = np.array([500_000.0, 5_372_000.0])
ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("DPREGIONS_DATA", ROOT.parent / "shared" / "data"))


def in_metres(xy, user=0):
    """Return points in the working CRS itself, so that tests know their coordinates."""
    xy = np.asarray(xy, float).reshape(-1, 2)
    points = shapely.points(xy + ORIGIN)
    return geopandas.GeoDataFrame({"user_id": user}, geometry=points, crs=UTM, index=range(len(xy)))


def region_of(xy, k=163, max_diameter="2km"):
    found = regions_from_fixes(in_metres(xy), k=k, max_diameter=max_diameter, crs=UTM)
    return shapely.transform(found.geometry.iloc[0], lambda c: c - ORIGIN)


def diameter(region):
    corners = shapely.get_coordinates(region)
    return pdist(corners).max() if len(corners) > 1 else 0.0


def table(*users):
    """Return (name, [(lon, lat), ...]) pairs as a table of fixes."""
    rows = [(name, *fix) for name, fixes in users for fix in fixes]
    return pd.DataFrame(rows, columns=["user_id", "lon", "lat"])


# A coarse lattice makes duplicates, collinear fixes and ties; 12 E is where two UTM zones meet.
degrees = st.one_of(
    st.tuples(st.integers(-4, 4), st.integers(-4, 4)).map(lambda p: (p[0] / 512, p[1] / 512)),
    st.tuples(st.floats(-0.02, 0.02), st.floats(-0.02, 0.02)),
)
traces = st.lists(degrees.map(lambda p: (12 + p[0], 48.5 + p[1])), min_size=1, max_size=40)
recipes = st.fixed_dictionaries(
    {"k": st.integers(1, 30), "max_diameter": st.sampled_from([100, "2km", 0.7, "1.3km"])}
)


@given(traces, recipes)
def test_the_diameter_is_never_above_the_bound(trace, recipe):
    found = regions_from_fixes(table((1, trace)), **recipe, crs=UTM)
    bound = {100: 100.0, "2km": 2000.0, 0.7: 0.7, "1.3km": 1300.0}[recipe["max_diameter"]]
    assert diameter(found.geometry.iloc[0]) <= bound


@given(traces, recipes)
def test_the_hull_contains_the_kept_fixes_and_no_others_make_it(trace, recipe):
    found = regions_from_fixes(table((1, trace)), **recipe, crs=UTM).geometry.iloc[0]
    lon, lat = np.array(trace).T
    points = geopandas.GeoSeries.from_xy(lon, lat, crs=4326).to_crs(UTM)
    x, y = points.x.to_numpy(), points.y.to_numpy()
    ux, uy, weight = _density.distinct_sorted(x, y)
    mode = _density.mode_index(*_density.whitened(ux, uy, weight), weight)
    bound = {100: 100.0, "2km": 2000.0, 0.7: 0.7, "1.3km": 1300.0}[recipe["max_diameter"]]
    kept = _density.near_mode(ux, uy, weight, mode, recipe["k"], bound / 2, bound)
    assert shapely.covers(found, shapely.points(ux[kept], uy[kept])).all()
    corners = set(map(tuple, shapely.get_coordinates(found)))
    assert corners <= set(zip(ux[kept], uy[kept], strict=True))


@given(traces, traces, recipes)
def test_one_users_fixes_never_change_anothers_region(mine, theirs, recipe):
    alone = regions_from_fixes(table((1, mine)), **recipe, crs=UTM)
    mixed = table((2, theirs), (1, mine)).sample(frac=1, random_state=len(theirs))
    together = regions_from_fixes(mixed, **recipe, crs=UTM)
    assert together["user_id"].tolist() == [1, 2]
    assert shapely.to_wkb(together.geometry.iloc[0]) == shapely.to_wkb(alone.geometry.iloc[0])


@given(traces, recipes, st.randoms(use_true_random=False))
def test_the_order_of_fixes_does_not_matter(trace, recipe, random):
    shuffled = list(trace)
    random.shuffle(shuffled)
    first, second = (
        regions_from_fixes(table((1, fixes)), **recipe, crs=UTM).geometry.iloc[0]
        for fixes in (trace, shuffled)
    )
    assert shapely.to_wkb(first) == shapely.to_wkb(second)


@given(traces, recipes)
def test_repeating_every_fix_changes_neither_validity_nor_the_bound(trace, recipe):
    found = regions_from_fixes(table((1, trace * 3)), **recipe, crs=UTM).geometry.iloc[0]
    assert found.is_valid
    assert not found.is_empty


def peer_mode(points):
    """Return the fix where scipy's density is greatest, and the kernel's covariance."""
    kde = gaussian_kde(points.T)
    return points[np.argmax(kde(points.T))], kde.covariance


@pytest.mark.parametrize("n", [5, 60, 199, 201, 900, 5000])
@pytest.mark.parametrize("seed", range(4))
def test_the_mode_is_scipys_mode_and_the_region_brute_force(n, seed):
    rng = np.random.default_rng(seed)
    parts = [rng.normal(0, 300, (n, 2)), rng.normal(2500, [900, 200], (n, 2))]
    points = np.where(rng.random((n, 1)) < 0.6, *parts)
    mode, _ = peer_mode(points)
    distance = np.hypot(*(points - mode).T)
    nearest = points[np.argsort(distance)[:50]]
    kept = nearest[np.hypot(*(nearest - mode).T) <= 300]
    region = region_of(points, k=50, max_diameter=600)
    assert region.symmetric_difference(shapely.MultiPoint(kept).convex_hull).area < 1e-6


@pytest.mark.parametrize("shape", ["outliers", "heavy tails", "ring", "tight home", "line"])
def test_the_mode_is_the_densest_fix_in_awkward_shapes(shape):
    rng = np.random.default_rng(3)
    n = 3000
    turn = rng.uniform(0, 2 * np.pi, n)
    points = {
        "outliers": np.r_[rng.normal(0, 5, (n - 2, 2)), [[8e5, 1e5], [-6e5, 4e5]]],
        "heavy tails": np.clip(rng.standard_cauchy((n, 2)) * 30, -1e6, 1e6),
        "ring": np.c_[np.cos(turn), np.sin(turn)] * 1000,
        "tight home": np.r_[rng.normal(0, 0.01, (n // 2, 2)), rng.normal(900, 400, (n // 2, 2))],
        "line": np.c_[rng.normal(0, 500, n), np.zeros(n)],
    }[shape]
    x, y, weight = _density.distinct_sorted(points[:, 0].copy(), points[:, 1].copy())
    zx, zy = _density.whitened(x, y, weight)
    density = _density.all_pairs_density(zx, zy, weight)
    chosen = _density.mode_index(zx, zy, weight)
    assert density[chosen] >= density.max() * (1 - 1e-9)


def test_the_grids_error_is_within_its_bound():
    rng = np.random.default_rng(0)
    z = rng.normal(0, 4, (2, 1500))
    weight = rng.integers(1, 4, 1500).astype(float)
    everyone, found = np.arange(1500), np.empty(1500)
    _density._grid_density(*z, weight, everyone, everyone, found)
    error = np.abs(found - _density.all_pairs_density(*z, weight)).max() / weight.sum()
    assert error < _density.grid_error_bound() < 2e-6


def test_a_hundred_thousand_fixes_in_one_spot_take_no_minutes():
    rng = np.random.default_rng(0)
    home = rng.normal(0, 0.1, (90_000, 2))
    points = np.r_[home, rng.normal(3000, 1000, (10_000, 2))]
    region = region_of(points, k=5000, max_diameter=500)
    assert shapely.distance(region, shapely.Point(home.mean(axis=0))) < 1


@pytest.mark.parametrize(
    ("fixes", "wkt"),
    [
        ([(3, 4)], "POINT (3 4)"),
        ([(3, 4)] * 7, "POINT (3 4)"),
        ([(0, 0), (10, 0)], "LINESTRING (0 0, 10 0)"),
        ([(i, 2 * i) for i in range(9)], "LINESTRING (0 0, 8 16)"),
        ([(0, 0), (0, 8), (8, 0), (8, 8), (4, 4)], "POLYGON ((0 0, 0 8, 8 8, 8 0, 0 0))"),
    ],
    ids=["one fix", "one place", "two fixes", "a line", "a square"],
)
def test_degenerate_fixes_make_the_hull_one_expects(fixes, wkt):
    assert region_of(fixes).equals(shapely.from_wkt(wkt))


def test_fixes_on_a_line_have_the_mode_of_the_density_along_it():
    rng = np.random.default_rng(1)
    along = np.r_[rng.normal(0, 100, 140), rng.normal(700, 30, 160)]
    density = gaussian_kde(along, bw_method=len(along) ** (-1 / 6))(along)
    mode = along[np.argmax(density)]
    assert region_of(np.c_[along, 0.5 * along], k=1).distance(shapely.Point(mode, mode / 2)) < 1e-6


def test_fewer_fixes_than_k_are_all_used():
    assert region_of([(0, 0), (5, 0), (0, 5)], k=1000).area == pytest.approx(12.5)


def test_k_counts_fixes_not_places():
    home, near, far = (0, 0), (1, 0), (2, 0)
    assert region_of([home] * 5 + [near, far], k=6).length == 1
    assert region_of([home] * 5 + [near, far], k=5).geom_type == "Point"


def test_of_equally_far_fixes_the_first_by_x_then_y_is_nearer():
    cross = [(0, 0), (0, 0), (0, 0), (1, 0), (-1, 0), (0, 1), (0, -1)]
    assert region_of(cross, k=4).equals(shapely.from_wkt("LINESTRING (-1 0, 0 0)"))
    assert region_of(cross, k=5).equals(shapely.from_wkt("POLYGON ((-1 0, 0 0, 0 -1, -1 0))"))


def test_a_fix_at_half_the_bound_stays_and_one_beyond_goes():
    home = [(0, 0)] * 9
    assert region_of([*home, (600, 800)], max_diameter=2000).length == pytest.approx(1000)
    assert region_of([*home, (600, 800.001)], max_diameter=2000).geom_type == "Point"


@pytest.mark.parametrize("seed", range(3))
def test_rounding_at_the_rim_never_breaks_the_bound(seed):
    turn = np.random.default_rng(seed).uniform(0, np.pi, 400)
    rim = np.c_[np.cos(turn), np.sin(turn)] * 350
    region = region_of(np.r_[np.zeros((900, 2)), rim, -rim], k=9999, max_diameter=700)
    assert 699 < diameter(region) <= 700 or region.geom_type == "Point"


def test_distances_are_on_the_ground_not_in_degrees():
    # At 60 N a degree of longitude is half as long: 0.012 degrees are 669 m, not 1336 m.
    home = [(9.0, 60.0)] * 9
    east, north = (9.012, 60.0), (9.0, 60.012)
    lengths = [
        regions_from_fixes(table((1, [*home, fix])), k=99, max_diameter=1800, crs=UTM).length[0]
        for fix in (east, north)
    ]
    assert lengths[0] == pytest.approx(669, rel=0.01)
    assert lengths[1] == 0


def test_fixes_across_a_utm_border_make_one_region():
    trace = [(11.999, 48.5), (12.001, 48.5), (12.0, 48.501)]
    found = regions_from_fixes(table((1, trace)), k=9, max_diameter="2km", crs=UTM)
    assert diameter(found.geometry[0]) == pytest.approx(148, rel=0.02)


def test_a_geodataframe_gives_what_its_coordinates_give():
    trace = [(9.0, 48.5), (9.002, 48.5), (9.0, 48.503), (9.001, 48.501)]
    fixes = table((1, trace))
    points = geopandas.GeoDataFrame(
        fixes[["user_id"]], geometry=geopandas.points_from_xy(fixes.lon, fixes.lat), crs=4326
    )
    first = regions_from_fixes(fixes, k=9, max_diameter="2km", crs=UTM)
    second = regions_from_fixes(points, k=9, max_diameter="2km", crs=UTM)
    assert first.geometry[0].equals(second.geometry[0])


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
    fixes = table((1, good), (1, bad), (None, good), (2, bad))
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
    third = table((0.5, [(9.0, 48.5)]))
    empty = table((None, [(9.0, 48.5)]))
    found = regions_from_batches([empty, first, second, third], **RECIPE)
    assert found["user_id"].tolist() == [0.5, 2**60, 2**60 + 1]
    assert regions_from_batches([empty, first, second], **RECIPE)["user_id"].dtype == "int64"
    assert regions_from_batches([empty, empty], **RECIPE).empty


@pytest.mark.parametrize(
    "ids", [[[7], [8]], pd.array([[7], [8]], pd.ArrowDtype(pa.list_(pa.int8())))]
)
def test_ids_that_cannot_be_compared_are_refused_without_a_value(ids):
    fixes = pd.DataFrame({"user_id": ids, "lon": 9.0, "lat": 48.5})
    with pytest.raises(InputTypeError, match="user_id must hold numbers or text") as caught:
        regions_from_fixes(fixes, **RECIPE)
    assert "7" not in str(caught.value)


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
        (GOOD.iloc[:0], {}, InputError, "empty table"),
        (table((1, [(39.9, 116.4)])), {}, InputError, "outside -90..90: are .* swapped"),
        (GOOD, {"unit": "record"}, PrivacyError, "unit='record' is unknown"),
        (GOOD, {"unit": "trajectory"}, InputError, "needs a gap"),
        (GOOD, {"gap": "20min"}, InputError, "no use with unit='user'"),
        (GOOD, {"unit": "trajectory", "gap": "soon"}, InputError, "is not a time"),
        (GOOD, {"unit": "trajectory", "gap": 20}, InputTypeError, "has no unit"),
        (GOOD, {"unit": "trajectory", "gap": "-1min"}, InputError, "longer than 0"),
        (GOOD, {"unit": "trajectory", "gap": "1h"}, InputError, "time='t' is no column"),
        ([1, 2], {}, InputTypeError, "DataFrame"),
        (in_metres([(0, 0)]).set_crs(None, allow_override=True), {}, CRSError, "no CRS"),
        (in_metres([(0, 0)]).buffer(1).to_frame().assign(user_id=1), {}, InputTypeError, "point"),
    ],
)
def test_unusable_input_is_a_clear_error(fixes, change, error, words):
    with pytest.raises(error, match=words):
        regions_from_fixes(fixes, **{**RECIPE, **change})


def test_most_latitudes_off_the_globe_is_swapped_but_a_few_are_not():
    bad, good = (39.9, 116.4), (116.4, 39.9)
    found = regions_from_fixes(table((1, [bad, good, good])), **{**RECIPE, "crs": 32650})
    assert len(found) == 1
    with pytest.raises(InputError, match="swapped"):
        regions_from_fixes(table((1, [bad, bad, good])), **{**RECIPE, "crs": 32650})


def test_a_user_in_two_batches_is_refused():
    with pytest.raises(InputError, match="two batches"):
        regions_from_batches([GOOD, GOOD], **RECIPE)
    with pytest.raises(InputError, match="no fixes"):
        regions_from_batches([], **RECIPE)


def test_importing_the_module_is_light():
    code = "import sys, dpregions.fixes; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"numba", "geopandas", "pyproj", "pandas", "shapely"} & set(done.stdout.split())


@pytest.mark.parametrize(
    ("name", "crs"), [("tdrive", 32650), ("geolife", 32650), ("cabspotting", 32610)]
)
def test_modes_of_real_users_are_scipys_within_a_bandwidth(name, crs):
    path = DATA / f"{name}.parquet"
    if not path.exists():
        pytest.skip(f"{path.name} is not there: set DPREGIONS_DATA to the folder that holds it")
    columns = ["user_id", "lon", "lat"]
    fixes = pd.read_parquet(path, columns=columns)
    counts = fixes["user_id"].value_counts().sort_index()
    users = counts[(counts >= 10) & (counts <= 4000)].sample(25, random_state=1).index
    fixes = fixes[fixes["user_id"].isin(users)]
    found = regions_from_fixes(fixes, k=1, max_diameter=1, crs=crs).set_index("user_id")
    points = geopandas.GeoSeries.from_xy(fixes["lon"], fixes["lat"], crs=4326).to_crs(crs)
    for user in users:
        mine = points[(fixes["user_id"] == user).to_numpy()]
        mode, covariance = peer_mode(np.column_stack([mine.x, mine.y]))
        step = shapely.get_coordinates(found.geometry[user])[0] - mode
        assert step @ np.linalg.solve(covariance, step) <= 1e-6


def test_the_picture_is_drawn():
    matplotlib = pytest.importorskip("matplotlib")
    from dpregions.plots.extraction import example_user, plot_extraction

    figure = plot_extraction(example_user(), k=100, max_diameter="2km", crs=UTM)
    assert isinstance(figure, matplotlib.figure.Figure)
    assert len(figure.axes) == 4
    on_a_line = pd.DataFrame({"lon": [9.0, 9.001, 9.002], "lat": 48.5})
    for few in (on_a_line, on_a_line[:1]):
        assert plot_extraction(few, k=100, max_diameter="2km", crs=UTM).axes


def test_the_picture_needs_matplotlib(monkeypatch):
    from dpregions.errors import MissingExtraError
    from dpregions.plots.extraction import example_user, plot_extraction

    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"dpregions\[plot\]"):
        plot_extraction(example_user(), k=100, max_diameter="2km", crs=UTM)
