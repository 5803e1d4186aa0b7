"""Exports: read back with other tools, they are the release, at its place, with its statement."""

from __future__ import annotations

import json
import os
import sqlite3
import sys
from contextlib import closing

import geopandas
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pyogrio
import pyproj
import pytest
import rasterio
import shapely

import dpregions as dpr
from dpregions.errors import (
    CRSError,
    DPRegionsError,
    InputError,
    InputTypeError,
    MissingExtraError,
    PrivacyError,
    SettingWarning,
)
from dpregions.io.exports import STATEMENT_KEY, export, written_crs
from support.full_disks import file_size_limit
from support.handmade import published
from support.small_releases import paper_study, study, town

VECTOR = (".gpkg", ".parquet", ".fgb", ".geojson")
IN_THE_GRIDS_CRS = VECTOR[:3]
SUFFIXES = (*VECTOR, ".tif")
KINDS = ("faces", "edges", "vertices")

UTM = dpr.Grid(490_000.5, 5_361_875.25, 1000, n_rows=3, n_cols=5, crs=32632)
NORTHING_FIRST = dpr.Grid(4_000_000, 2_900_000, 250, n_rows=4, n_cols=2, crs=3035)
OWN = dpr.Grid(-70.3, 12.1, 0.7, n_rows=2, n_cols=4, crs="+proj=laea +lat_0=10 +lon_0=20")
FEET = dpr.Grid(980_000, 190_000, 500, n_rows=2, n_cols=3, crs=2263)
PLANE = dpr.Grid(0.1, -3, 0.1, n_rows=5, n_cols=3)
GRIDS = [UTM, NORTHING_FIRST, OWN, FEET, PLANE]
GRID_NAMES = ["utm", "northing-first", "own", "feet", "plane"]
FULL = "File too large|could not be written"
DERIVED = "+proj=ob_tran +o_proj=moll +o_lat_p=45 +o_lon_p=-100"


WIDE = dpr.Grid(0, 0, 1, n_rows=3, n_cols=5)


def moved_town(grid) -> geopandas.GeoDataFrame:
    """Regions on a grid of cells of one metre."""
    regions = town()
    return regions.set_geometry(regions.translate(grid.xmin, grid.ymin)).set_crs(grid.crs)


def read(path, layer=None) -> geopandas.GeoDataFrame:
    if path.suffix == ".parquet":
        return geopandas.read_parquet(path)
    if layer is None:  # the first one: a GeoPackage of faces has a table of styles beside it
        layer = pyogrio.list_layers(path)[0, 0]
    return pyogrio.read_dataframe(path, layer=layer)


def read_components(path) -> geopandas.GeoDataFrame:
    if path.suffix == ".gpkg":
        layers = [read(path, layer) for layer in KINDS]
        return pd.concat(layers, ignore_index=True)
    return read(path)


def statement_in(path, layer) -> str:
    if path.suffix == ".tif":
        with rasterio.open(path) as raster:
            return raster.tags()["TIFFTAG_IMAGEDESCRIPTION"]
    if path.suffix == ".parquet":
        return pq.read_schema(path).metadata[STATEMENT_KEY].decode()
    return pyogrio.read_info(path, layer=layer)["layer_metadata"]["DESCRIPTION"]


@pytest.mark.parametrize("suffix", VECTOR)
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_read_back_is_what_was_published(tmp_path, kind, suffix):
    release, path = published(UTM), tmp_path / f"out{suffix}"
    export(release, path, kind)
    found = read(path)
    intervals = ["low", "high", "may_be_empty"] if kind == "faces" else []
    plain = ["kind", "sign", "row", "col", "count", "estimate"]
    assert list(found.columns) == [*plain, *intervals, "geometry"]
    row, col = found["row"].to_numpy(), found["col"].to_numpy()
    odd = {"faces": 0, "edges": 1, "vertices": 2}[kind]
    expected = {(i, j) for i, j in np.ndindex(UTM.doubled_shape) if i % 2 + j % 2 == odd}
    assert set(zip(row, col, strict=True)) == expected and len(found) == len(expected)
    assert (found["count"] == release.counts[row, col]).all()
    assert (found["estimate"] == release.signed[row, col]).all()
    assert set(found["sign"]) == {-1 if kind == "edges" else 1}
    assert set(found["kind"]) == {{"faces": "face", "edges": "edge", "vertices": "vertex"}[kind]}
    shape = {"faces": "Polygon", "edges": "LineString", "vertices": "Point"}[kind]
    assert set(found.geom_type) == {shape}


@pytest.mark.parametrize("grid", GRIDS, ids=GRID_NAMES)
@pytest.mark.parametrize("suffix", IN_THE_GRIDS_CRS)
def test_each_face_lies_where_the_release_counts_it(tmp_path, suffix, grid):
    release, path = published(grid), tmp_path / f"out{suffix}"
    export(release, path, "faces")
    faces = read(path)
    assert len(faces) == grid.n_rows * grid.n_cols
    # The query is the polygon as the file has it: place, order and CRS all have to be right.
    assert (release.count(faces) == faces["count"]).all()
    assert tuple(faces.total_bounds) == grid.bounds
    assert faces.crs == grid.crs


@pytest.mark.parametrize("grid", GRIDS, ids=GRID_NAMES)
@pytest.mark.parametrize("suffix", IN_THE_GRIDS_CRS)
def test_any_rectangle_can_be_counted_in_the_file_alone(tmp_path, suffix, grid):
    release, path = published(grid), tmp_path / f"out{suffix}"
    export(release, path)
    components = read_components(path)
    x, y = (components.centroid.get_coordinates()[axis].to_numpy() for axis in "xy")
    signed = (components["sign"] * components["count"]).to_numpy()
    margin = 0.01 * grid.cell_size
    rng = np.random.default_rng(1)
    for _ in range(20):
        row0, row1 = np.sort(rng.integers(grid.n_rows, size=2))
        col0, col1 = np.sort(rng.integers(grid.n_cols, size=2))
        x0, y0, x1, y1 = grid.cell_bounds(row0, row1, col0, col1)
        inside = (x > x0 + margin) & (x < x1 - margin) & (y > y0 + margin) & (y < y1 - margin)
        assert signed[inside].sum() == release.count(x0, y0, x1, y1)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_by_default_a_file_holds_all_it_can(tmp_path, suffix):
    path = tmp_path / f"out{suffix}"
    export(published(UTM), path)
    if suffix == ".tif":
        with rasterio.open(path) as raster:
            assert raster.shape == UTM.shape
        return
    kinds = read_components(path)["kind"].value_counts()
    assert kinds.to_dict() == {"face": 15, "edge": 22, "vertex": 8}


def test_a_geopackage_has_a_layer_a_kind(tmp_path):
    path = tmp_path / "out.gpkg"
    export(published(UTM), path)
    layers = dict(pyogrio.list_layers(path))
    assert layers.pop("layer_styles") is None  # without geometry
    assert layers == {"faces": "Polygon", "edges": "LineString", "vertices": "Point"}


@pytest.mark.filterwarnings("ignore:Use `@` matmul:PendingDeprecationWarning")
@pytest.mark.parametrize("grid", GRIDS, ids=GRID_NAMES)
def test_the_raster_has_each_cells_count_at_the_cells_centre(tmp_path, grid):
    release, path = published(grid), tmp_path / "out.tif"
    export(release, path)
    cells = [grid.cell_bounds(r, r, c, c) for r, c in np.ndindex(grid.shape)]
    with rasterio.open(path) as raster:
        centres = [((x0 + x1) / 2, (y0 + y1) / 2) for x0, y0, x1, y1 in cells]
        found = [int(value[0]) for value in raster.sample(centres)]
        assert raster.transform.e < 0 < raster.transform.a  # north up
        assert tuple(raster.bounds) == pytest.approx(grid.bounds, rel=1e-15)
        assert (raster.nodata, set(raster.dtypes)) == (None, {"float64"})
        assert raster.descriptions == ("count", "estimate", "low", "high")
        assert set(raster.units) == {"regions"}
        assert raster.tags(ns="IMAGE_STRUCTURE")["LAYOUT"] == "COG"
        assert raster.profile["tiled"]
        crs = None if raster.crs is None else pyproj.CRS.from_wkt(raster.crs.to_wkt())
    assert found == [release.count(*cell) for cell in cells]
    assert crs == grid.crs
    assert sorted(os.listdir(tmp_path)) == ["out.tif"]


def test_the_bands_of_a_raster_are_the_arrays_of_the_release_north_up(tmp_path):
    release, path = study(grid=WIDE), tmp_path / "out.tif"
    export(release, path, confidence=0.8)
    arrays = release.cell_arrays(confidence=0.8)
    with rasterio.open(path) as raster:
        for number, name in enumerate(("count", "estimate", "low", "high"), start=1):
            np.testing.assert_array_equal(raster.read(number)[::-1], arrays[name])


def test_a_raster_of_blocks_has_a_pixel_for_each_and_cut_ones_as_large(tmp_path):
    release, path = study(grid=WIDE), tmp_path / "out.tif"
    assert export(release, path, block=2) == "faces"
    with rasterio.open(path) as raster:
        assert raster.shape == (2, 3)
        assert tuple(raster.bounds) == (0, 0, 6, 4)  # of an area that is 5 wide and 3 high
        upper_right = raster.read(1)[0, -1]
        said = raster.tags()["TIFFTAG_IMAGEDESCRIPTION"]
    assert upper_right == release.count(4, 2, 5, 3)
    assert "touching the block" in said and "2 x 2 cells" in said


def test_a_covert_raster_has_one_band_of_whole_numbers(tmp_path):
    release, path = published(UTM, covert=True), tmp_path / "out.tif"
    export(release, path)
    with rasterio.open(path) as raster:
        assert (raster.count, raster.descriptions, raster.dtypes) == (1, ("count",), ("int32",))
        assert (raster.read(1)[::-1] == release.counts[::2, ::2]).all()
    export(published(UTM, covert=True, start=2**40), path)
    with rasterio.open(path) as raster:
        assert raster.dtypes == ("int64",)


@pytest.mark.parametrize("suffix", VECTOR)
@pytest.mark.parametrize("method", ["footprint", "paper"])
def test_faces_in_a_file_have_the_intervals_of_the_release(tmp_path, suffix, method):
    grid = dpr.Grid(500_000, 5_000_000, 1, n_rows=3, n_cols=5, crs=32632)
    release, path = (
        study(grid=grid, regions=moved_town(grid), method=method),
        tmp_path / f"o{suffix}",
    )
    export(release, path, confidence=0.9)
    found = read_components(path)
    faces, others = found[found["kind"] == "face"], found[found["kind"] != "face"]
    faces = faces.sort_values(["row", "col"])
    low, high = release.cell_intervals(confidence=0.9)
    # GeoJSON writes seventeen digits at most, which may differ in the last bit.
    np.testing.assert_allclose(faces["low"], low.ravel(), rtol=1e-15)
    np.testing.assert_allclose(faces["high"], high.ravel(), rtol=1e-15)
    assert (faces["may_be_empty"].astype(bool).to_numpy() == (low.ravel() == 0)).all()
    intervals = ["low", "high", "may_be_empty"]
    assert others.reindex(columns=intervals).isna().all(axis=None)


@pytest.mark.parametrize("suffix", VECTOR)
def test_blocks_are_a_layer_of_their_own_with_counts_of_rectangles(tmp_path, suffix):
    release, path = published(UTM), tmp_path / f"out{suffix}"
    assert export(release, path, block=2) == "faces"
    blocks = read(path)
    if suffix == ".gpkg":
        assert pyogrio.list_layers(path)[:, 0].tolist() == ["blocks", "layer_styles"]
    assert "kind" not in blocks.columns and "sign" not in blocks.columns
    blocks = blocks.sort_values(["row", "col"], ignore_index=True)
    assert blocks["count"].tolist() == release.cell_arrays(2)["count"].ravel().tolist()
    assert "touching the block" in statement_in(path, "blocks" if suffix == ".gpkg" else None)


def test_the_statement_says_how_sure_intervals_are(tmp_path):
    path = tmp_path / "out.parquet"
    export(published(UTM), path, "faces", confidence=0.8)
    assert "with confidence 0.8" in statement_in(path, None)
    export(published(UTM), path, "edges", confidence=0.8)
    assert "confidence" not in statement_in(path, None)
    export(published(UTM, covert=True), path, "faces", confidence=0.8)
    assert "confidence" not in statement_in(path, None)


def test_a_rasters_overviews_hold_published_counts_only(tmp_path):
    grid = dpr.Grid(0, 0, 1, n_rows=520, n_cols=700, crs=32632)
    release, path = published(grid), tmp_path / "out.tif"
    export(release, path)
    with rasterio.open(path) as raster:
        assert raster.overviews(1) == [2]
        small = raster.read(1, out_shape=(260, 350))
    assert np.isin(small, release.counts[::2, ::2]).all()


def test_a_raster_holds_counts_beyond_32_bits(tmp_path):
    release, path = published(UTM, start=2**40), tmp_path / "out.tif"
    export(release, path)
    with rasterio.open(path) as raster:
        assert (raster.read(1) == release.counts[::2, ::2][::-1]).all()


def test_geojson_is_in_degrees_at_the_right_place(tmp_path):
    grid = dpr.Grid.around(9.0, 48.5, side="3km", cell_size="1km")
    release, path = published(grid), tmp_path / "out.geojson"
    export(release, path, "faces")
    plain = json.loads(path.read_text())
    assert plain["type"] == "FeatureCollection" and "crs" not in plain
    shapes = [shapely.geometry.shape(feature["geometry"]) for feature in plain["features"]]
    assert all(shape.exterior.is_ccw for shape in shapes)
    middle = [shape.contains(shapely.Point(9.0, 48.5)) for shape in shapes]
    counts = [feature["properties"]["count"] for feature in plain["features"]]
    assert [count for count, here in zip(counts, middle, strict=True) if here] == [
        release.count(*grid.cell_bounds(1, 1, 1, 1))
    ]
    back = read(path).to_crs(grid.crs)
    expected = grid.to_geodataframe("faces")
    assert back.geometry.hausdorff_distance(expected.geometry).max() < 0.02  # 7 decimals


@pytest.fixture(scope="module")
def city_release():
    regions = dpr.synthetic.regions(800)
    return dpr.release(regions, dpr.synthetic.grid(), epsilon=1, max_diameter="2km")


@pytest.mark.parametrize("suffix", VECTOR)
def test_the_regions_of_a_file_have_exactly_the_published_histogram(tmp_path, suffix, city_release):
    path = tmp_path / f"out{suffix}"
    export(city_release, path, "regions")
    found = read(path)
    assert set(found.geom_type) == {"Polygon"}
    assert len(found) == len(city_release.to_regions())
    rebuilt = dpr.EulerHistogram.from_regions(found, city_release.grid, user_id=None)
    assert (rebuilt.counts == city_release.counts).all()


def test_regions_in_degrees_stay_within_half_a_lattice_step_in_cells_of_2_m(tmp_path):
    grid = dpr.Grid.around(9.0, 48.5, side="24m", cell_size="2m")
    x, y = np.random.default_rng(0).uniform(0, 20, (2, 300)) + np.array([[grid.xmin], [grid.ymin]])
    regions = geopandas.GeoSeries(shapely.box(x, y, x + 2, y + 2), crs=grid.crs)
    release = dpr.release(regions, grid, epsilon=1, max_diameter=4, user_id=None)
    path = tmp_path / "out.geojson"
    export(release, path, "regions")
    found = read(path)
    moved = found.to_crs(grid.crs).hausdorff_distance(release.to_regions())
    assert moved.max() < grid.cell_size / 2**21
    rebuilt = dpr.EulerHistogram.from_regions(found, grid, user_id=None)
    assert (rebuilt.counts == release.counts).all()


@pytest.mark.parametrize("suffix", VECTOR)
def test_no_regions_are_an_empty_layer_of_polygons(tmp_path, suffix):
    nobody = geopandas.GeoDataFrame({"user_id": [1]}, geometry=[None], crs=UTM.crs)
    path = tmp_path / f"out{suffix}"
    with pytest.warns(SettingWarning):  # no noise at all, so that nobody is counted
        empty = dpr.release(nobody, UTM, epsilon=10**9, max_diameter=2000, allow_epsilon=True)
    export(empty, path, "regions")
    assert len(read(path)) == 0


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_grid_of_one_cell_has_no_edges_to_export(tmp_path, suffix):
    grid = dpr.Grid(500_000, 5_000_000, 1000, n_rows=1, n_cols=1, crs=32632)
    path = tmp_path / f"out{suffix}"
    export(published(grid), path)
    if suffix != ".tif":
        assert read_components(path)["kind"].tolist() == ["face"]


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("private", [True, False])
def test_every_file_carries_the_privacy_statement(tmp_path, suffix, private):
    release, path = published(UTM, private=private), tmp_path / f"out{suffix}"
    export(release, path, "faces")
    said = statement_in(path, "faces")
    assert said.startswith(release.describe())
    assert "do not add up" in said
    assert ("NOT PRIVATE" in said) != private


def test_every_layer_of_a_geopackage_carries_the_statement_for_tools_without_gdal(tmp_path):
    release, path = published(UTM), tmp_path / "out.gpkg"
    export(release, path)
    connection = sqlite3.connect(path)
    try:
        rows = connection.execute("select table_name, description from gpkg_contents").fetchall()
    finally:
        connection.close()
    said = dict(rows)
    assert said.keys() == {*KINDS, "layer_styles"}
    assert all(said[kind].startswith(release.describe()) for kind in KINDS)


@pytest.mark.parametrize("suffix", VECTOR)
def test_a_covert_release_has_no_estimates_in_any_file(tmp_path, suffix):
    path = tmp_path / f"out{suffix}"
    export(published(UTM, covert=True), path)
    hidden = {"estimate", "low", "high", "may_be_empty"}
    assert not hidden & set(read_components(path).columns)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_what_is_exact_is_refused_and_nothing_is_written(tmp_path, suffix):
    exact = dpr.EulerHistogram(UTM, published(UTM).counts)
    for secret in (exact, exact.counts, UTM.to_geodataframe()):
        with pytest.raises(InputTypeError, match="only a Release can be exported"):
            export(secret, tmp_path / f"out{suffix}")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("suffix", [".gpkg", ".tif"])
def test_a_failed_write_keeps_the_old_file_and_leaves_nothing(tmp_path, full_disk, suffix):
    path = tmp_path / f"out{suffix}"
    path.write_text("old")
    with pytest.raises(OSError, match="No space left on device"):
        export(published(UTM), path)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == [path.name]


def test_a_writer_that_fails_half_way_leaves_no_side_files(tmp_path, monkeypatch):
    """Drivers of GDAL leave journals when they fail; patched, for a full disk leaves none."""
    path = tmp_path / "out.gpkg"
    export(published(UTM), path)
    before = path.read_bytes()
    write = pyogrio.write_arrow

    def write_and_fail(table, part, **options):
        write(table, part, **options)
        part.with_name(f"{part.name}-journal").write_text("half")
        raise pyogrio.errors.DataSourceError("disk full")

    monkeypatch.setattr(pyogrio, "write_arrow", write_and_fail)
    with pytest.raises(OSError, match="could not be written as GPKG: is the disk full"):
        export(published(UTM, start=7), path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_disk_that_fills_up_is_an_error_at_every_byte(tmp_path, suffix):
    """GDAL itself says nothing where the last bytes of a file find no room."""
    path = tmp_path / f"out{suffix}"
    export(published(UTM), path)
    size = path.stat().st_size
    for missing in (1, 100, size // 10, size // 2, size - 1):
        path.write_text("old")
        with file_size_limit(size - missing), pytest.raises(OSError, match=FULL):
            export(published(UTM), path)
        assert path.read_text() == "old"
        assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_an_old_file_is_replaced_not_added_to(tmp_path, suffix):
    path = tmp_path / f"out{suffix}"
    export(published(NORTHING_FIRST), path)
    export(published(UTM), path, "faces")
    if suffix == ".tif":
        with rasterio.open(path) as raster:
            assert raster.shape == UTM.shape
    else:
        if suffix == ".gpkg":
            assert pyogrio.list_layers(path)[:, 0].tolist() == ["faces", "layer_styles"]
        assert len(read(path)) == 15
    assert path.stat().st_mode & 0o444 == 0o444 & ~current_umask()


@pytest.mark.parametrize("mode", ["wal", "delete"])
def test_a_geopackage_that_is_open_elsewhere_is_not_replaced(tmp_path, mode):
    path = tmp_path / "out.gpkg"
    export(published(UTM), path)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute(f"PRAGMA journal_mode = {mode}")
        other.execute("BEGIN")
        other.execute("CREATE TABLE notes (note TEXT)")
        before = path.read_bytes()
        with pytest.raises(InputError, match="open in another program: close it"):
            export(published(UTM), path, "faces")
        assert path.read_bytes() == before


def current_umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


@pytest.mark.parametrize(
    ("name", "what", "words"),
    [
        ("out.shp", None, "the suffix '.shp' tells no format; use .gpkg"),
        ("out", None, "the suffix '' tells no format"),
        ("nowhere/out.gpkg", None, "there is no folder"),
        (".", None, "is a folder"),
        ("out.gpkg", "cells", "what='cells' is unknown"),
        ("out.tif", "edges", "cannot hold edges"),
        ("out.tif", "regions", "cannot hold regions"),
    ],
)
def test_wrong_arguments_are_refused_with_the_remedy(tmp_path, name, what, words):
    with pytest.raises(InputError, match=words):
        export(published(UTM), tmp_path / name, what)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("options", "argument", "words"),
    [
        ({"block": 0}, "block", "block must be from 1 to 5"),
        ({"block": 6}, "block", "block must be from 1 to 5"),
        ({"block": 2.0}, "block", "whole number of cells, got 2.0"),
        ({"block": 2, "what": "edges"}, "block", "block is of faces, got what='edges'"),
        ({"block": 2, "what": "regions"}, "block", "leave one of them out"),
        ({"confidence": 95}, "confidence", "strictly between 0 and 1, got 95"),
        ({"confidence": 95, "what": "edges"}, "confidence", "strictly between 0 and 1"),
    ],
)
@pytest.mark.parametrize("covert", [False, True])
def test_wrong_blocks_and_confidences_are_refused(tmp_path, options, argument, words, covert):
    with pytest.raises(DPRegionsError, match=words) as caught:
        export(published(UTM, covert=covert), tmp_path / "out.gpkg", **options)
    assert caught.value.argument == argument
    assert os.listdir(tmp_path) == []


def test_the_suffix_may_be_in_capitals(tmp_path):
    export(published(UTM), tmp_path / "OUT.GPKG", "faces")
    assert len(read(tmp_path / "OUT.GPKG")) == 15


def test_the_papers_method_has_no_regions_to_export(tmp_path):
    with pytest.raises(PrivacyError, match="histogram of no set of"):
        export(paper_study(), tmp_path / "out.gpkg", "regions")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("crs", [None, 'LOCAL_CS["plan",UNIT["metre",1]]'])
def test_geojson_without_a_place_on_earth_is_refused(tmp_path, crs):
    grid = dpr.Grid(0, 0, 1, n_rows=2, n_cols=2, crs=crs)
    with pytest.raises(CRSError, match=r"WGS 84 .* export to \.gpkg"):
        export(published(grid), tmp_path / "out.geojson")
    assert os.listdir(tmp_path) == []


def test_a_crs_that_a_geotiff_cannot_hold_is_refused(tmp_path):
    grid = dpr.Grid(0, 0, 1000, n_rows=2, n_cols=2, crs=DERIVED)
    with pytest.raises(CRSError, match="no words for the CRS"):
        export(published(grid), tmp_path / "out.tif")
    assert os.listdir(tmp_path) == []
    export(published(grid), tmp_path / "out.gpkg")
    assert read(tmp_path / "out.gpkg", "faces").crs == grid.crs


def test_without_rasterio_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "rasterio", None)
    with pytest.raises(MissingExtraError, match=r"dpregions\[raster\]"):
        export(published(UTM), tmp_path / "out.tif")
    assert os.listdir(tmp_path) == []


def test_the_crs_of_a_file_can_be_told_beforehand(tmp_path):
    assert written_crs(UTM, tmp_path / "out.gpkg") == "EPSG:32632"
    assert written_crs(UTM, tmp_path / "out.geojson") == "EPSG:4326"
    assert written_crs(PLANE, tmp_path / "out.tif") == "none"
