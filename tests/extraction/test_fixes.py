"""Fixes to regions: the promises of `regions_from_fixes`, against scipy and brute force."""

import os
from pathlib import Path

import geopandas
import numpy as np
import pandas as pd
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import gaussian_kde

from dpregions.extraction import density as _density
from dpregions.extraction.fixes import regions_from_fixes
from support.fresh_interpreter import HEAVY, imported_by
from support.small_fixes import ORIGIN, UTM, diameter, in_metres, table

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("DPREGIONS_DATA", ROOT.parent / "shared" / "data"))


def region_of(xy, k=163, max_diameter="2km"):
    found = regions_from_fixes(in_metres(xy), k=k, max_diameter=max_diameter, crs=UTM)
    return shapely.transform(found.geometry.iloc[0], lambda c: c - ORIGIN)


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


def test_importing_the_module_is_light():
    assert imported_by("import dpregions.extraction.fixes", ("pyproj", *HEAVY)) == []


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
