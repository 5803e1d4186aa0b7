"""A release as arrays and tables of all its cells: as `interval` and `count` say of each."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import geopandas
import numpy as np
import pyarrow as pa
import pytest
import shapely

import dpregions as dpr
from dpregions.errors import DPRegionsError, InputError, MissingExtraError, PrivacyError
from dpregions.releases import tables
from support.fresh_interpreter import imported_by
from support.handmade import published
from support.releases_on_cells import PARTITIONS, study_on, voronoi
from support.small_releases import GRID, paper_study, study

METHODS = ("footprint", "paper")
UTM = dpr.Grid(490_000, 5_361_875, 1000, n_rows=3, n_cols=5, crs=32632)
COLUMNS = ["count", "estimate", "low", "high", "may_be_empty"]


@pytest.fixture(scope="module")
def made():
    """A release on 4 x 5 cells by each method."""
    return {"footprint": study(), "paper": paper_study()}


def rectangles(grid, block):
    """Rows of the bounds of all blocks, one by one, and the shape of their table."""
    rows, cols = range(0, grid.n_rows, block), range(0, grid.n_cols, block)
    bounds = [
        grid.cell_bounds(
            row, min(row + block, grid.n_rows) - 1, col, min(col + block, grid.n_cols) - 1
        )
        for row in rows
        for col in cols
    ]
    return bounds, (len(rows), len(cols))


# --- arrays ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("block", [1, 2, 3, 4, 5])
def test_each_block_has_the_interval_of_its_rectangle(made, method, block):
    release = made[method]
    bounds, shape = rectangles(GRID, block)
    low, high = release.cell_intervals(block, 0.9)
    assert low.shape == high.shape == shape
    alone = [release.interval(*rectangle, confidence=0.9) for rectangle in bounds]
    np.testing.assert_allclose(low.ravel(), [ends[0] for ends in alone], rtol=1e-12)
    np.testing.assert_allclose(high.ravel(), [ends[1] for ends in alone], rtol=1e-12)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("block", [1, 2, 3])
def test_each_block_has_the_count_and_estimate_of_its_rectangle(made, method, block):
    release = made[method]
    bounds, _ = rectangles(GRID, block)
    arrays = release.cell_arrays(block)
    assert list(arrays) == COLUMNS
    assert arrays["count"].ravel().tolist() == [release.count(*each) for each in bounds]
    estimates = [release.estimate(*each) for each in bounds]
    np.testing.assert_allclose(arrays["estimate"].ravel(), estimates, rtol=1e-12, atol=1e-9)
    assert (arrays["may_be_empty"] == (arrays["low"] == 0)).all()
    assert arrays["may_be_empty"].dtype == bool


def test_the_count_of_a_block_is_not_the_sum_of_its_cells(made):
    cells, blocks = (made["footprint"].cell_arrays(block)["count"] for block in (1, 2))
    assert blocks[0, 0] < cells[:2, :2].sum()


def test_a_block_as_large_as_the_grid_is_the_whole_area(made):
    low, high = made["footprint"].cell_intervals(max(GRID.shape))
    assert (low[0, 0], high[0, 0]) == made["footprint"].interval(*GRID.bounds)


def test_blocks_in_several_chunks_are_those_in_one(made, monkeypatch):
    whole = made["footprint"].cell_arrays()
    monkeypatch.setattr(tables, "_AT_ONCE", 7)
    for name, values in made["footprint"].cell_arrays().items():
        np.testing.assert_allclose(values, whole[name], rtol=1e-12)


@pytest.mark.parametrize("name", PARTITIONS)
@pytest.mark.parametrize("method", METHODS)
def test_each_cell_of_a_partition_has_its_interval(name, method):
    cells = PARTITIONS[name]()
    release = study_on(cells, method=method)
    low, high = release.cell_intervals()
    alone = release.interval(cells=[[label] for label in cells.labels])
    np.testing.assert_array_equal((low, high), alone)
    frame = release.to_geodataframe()
    assert frame["low"].tolist() == low.tolist() and frame["high"].tolist() == high.tolist()


def test_a_partition_has_no_blocks_of_several_cells():
    release = study_on(voronoi(), method="paper")
    for ask in (release.cell_intervals, release.cell_arrays):
        with pytest.raises(InputError, match=r"block must be 1 on a partition.*got 2") as caught:
            ask(2)
        assert caught.value.argument == "block"
    with pytest.raises(InputError, match="block must be 1 on a partition"):
        release.to_geodataframe(block=2)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"block": 0}, "block must be from 1 to 5, the cells along.*got 0"),
        ({"block": -2}, "got -2"),
        ({"block": 6}, "got 6"),
        ({"block": 2.0}, "block must be a whole number of cells, got 2.0"),
        ({"block": True}, "got True"),
        ({"block": "2"}, "got '2'"),
        ({"confidence": 0}, "confidence must lie strictly between 0 and 1, got 0"),
        ({"confidence": 95}, "write 0.95 for 95 percent"),
        ({"confidence": float("nan")}, "got nan"),
        ({"confidence": "0.95"}, "got '0.95'"),
    ],
)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("ask", ["cell_intervals", "cell_arrays", "to_geodataframe", "to_xarray"])
def test_wrong_blocks_and_confidences_are_refused(made, method, ask, arguments, words):
    with pytest.raises(DPRegionsError, match=words) as caught:
        getattr(made[method], ask)(**arguments)
    assert caught.value.argument == next(iter(arguments))


def test_numpy_numbers_are_numbers(made):
    given = made["paper"].cell_intervals(np.int16(2), np.float32(0.5))
    np.testing.assert_array_equal(given, made["paper"].cell_intervals(2, 0.5))


def test_a_covert_release_has_counts_and_no_intervals():
    release = published(UTM, covert=True)
    with pytest.raises(PrivacyError, match="so it has no intervals: release with covert=False"):
        release.cell_intervals()
    assert list(release.cell_arrays()) == ["count"]
    assert list(release.to_xarray(2).data_vars) == ["count"]
    assert pa.table(release).column_names == ["row", "col", "count", "geometry"]


# --- frames ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_faces_have_the_interval_that_the_release_says_of_them(made, method):
    release = made[method]
    faces = release.to_geodataframe(confidence=0.8)
    alone = release.interval(faces, confidence=0.8)
    np.testing.assert_allclose(faces[["low", "high"]], alone, rtol=1e-12)
    assert (faces["may_be_empty"] == (faces["low"] == 0)).all()


def test_blocks_are_rectangles_cut_at_the_area_at_their_place(made):
    frame = made["footprint"].to_geodataframe(block=2)
    assert list(frame.columns) == ["row", "col", *COLUMNS, "geometry"]
    bounds, _ = rectangles(GRID, 2)
    assert frame.geometry.geom_equals(geopandas.GeoSeries([shapely.box(*b) for b in bounds])).all()
    assert (made["footprint"].count(frame) == frame["count"]).all()
    assert frame["row"].tolist() == [0, 0, 0, 4, 4, 4]
    assert frame["col"].tolist() == [0, 4, 8, 0, 4, 8]


def test_edges_come_in_no_blocks(made):
    with pytest.raises(InputError, match="block is for faces, got 2 for edges") as caught:
        made["paper"].to_geodataframe("edges", block=2)
    assert caught.value.argument == "block"


# --- xarray ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("block", [1, 2])
def test_a_dataset_has_the_arrays_at_the_centres_of_cells(block):
    release = published(UTM)
    dataset = release.to_xarray(block, 0.8)
    arrays = release.cell_arrays(block, 0.8)
    assert list(dataset.data_vars) == COLUMNS
    for name, values in arrays.items():
        np.testing.assert_array_equal(dataset[name], values)
        assert dataset[name].dims == ("y", "x")
    side = block * 1000
    assert dataset["x"].to_numpy()[:2].tolist() == [490_000 + side / 2, 490_000 + 3 * side / 2]
    assert (np.diff(dataset["y"]) == side).all() and dataset["y"][0] == 5_361_875 + side / 2
    first = dataset["count"].sel(x=490_001, y=5_361_876, method="nearest")
    assert first == release.count(490_000, 5_361_875, 490_000 + side, 5_361_875 + side)


def test_a_dataset_carries_the_promise_and_the_crs():
    release = published(UTM)
    dataset = release.to_xarray(2, 0.9)
    assert {name: value for name, value in dataset.attrs.items() if name != "statement"} == {
        "privacy": "private",
        "epsilon": 0.35,
        "neighbours": "add-remove",
        "unit": "user",
        "method": "footprint",
        "max_diameter": 2000.0,
        "block": 2,
        "confidence": 0.9,
    }
    assert dataset.attrs["statement"] == release.describe()
    said = dataset["spatial_ref"].attrs
    assert said["spatial_ref"] == said["crs_wkt"] == UTM.crs.to_wkt()
    assert said["grid_mapping_name"] == "transverse_mercator"
    assert said["GeoTransform"] == "490000.0 2000.0 0.0 5361875.0 0.0 2000.0"
    assert {dataset[name].encoding["grid_mapping"] for name in COLUMNS} == {"spatial_ref"}
    assert "confidence 0.9" in dataset["low"].attrs["long_name"]
    assert "block of 2 x 2 cells" in dataset["count"].attrs["long_name"]


def test_a_dataset_that_is_not_private_says_so():
    dataset = published(UTM, private=False).to_xarray()
    assert dataset.attrs["privacy"] == "NOT PRIVATE: do not publish"
    assert "NOT PRIVATE" in dataset.attrs["statement"]


def test_a_plane_without_crs_has_no_spatial_ref():
    dataset = published(dpr.Grid(0, 0, 1, 2, 3)).to_xarray()
    assert "spatial_ref" not in dataset.coords
    assert "grid_mapping" not in dataset["count"].encoding


def test_a_dataset_becomes_netcdf_and_comes_back(tmp_path):
    import xarray as xr

    dataset = published(UTM).to_xarray()
    dataset.to_netcdf(tmp_path / "out.nc", engine="scipy")
    with xr.open_dataset(tmp_path / "out.nc", engine="scipy", decode_coords="all") as found:
        xr.testing.assert_equal(found.load(), dataset)
        assert found.attrs["epsilon"] == 0.35
        assert found["spatial_ref"].attrs["crs_wkt"] == UTM.crs.to_wkt()


def test_a_dataset_of_a_partition_is_refused():
    with pytest.raises(InputError, match=r"needs a grid.*use to_geodataframe"):
        study_on(voronoi(), method="paper").to_xarray()


def test_without_xarray_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "xarray", None)
    with pytest.raises(MissingExtraError, match=r"dpregions\[raster\]"):
        published(UTM).to_xarray()


# --- Arrow ----------------------------------------------------------------------------------------


def test_a_release_is_an_arrow_table_of_its_faces():
    release = published(UTM)
    table = pa.table(release)
    assert table.column_names == ["row", "col", *COLUMNS, "geometry"]
    faces = release.to_geodataframe()
    for name in ("row", "col", *COLUMNS):
        assert table[name].to_pylist() == faces[name].tolist()
    shapes = shapely.from_wkb(table["geometry"].to_pylist())
    assert shapely.equals(shapes, faces.geometry.to_numpy()).all()
    said = table.schema.metadata[b"dpregions_statement"].decode()
    assert said == release.describe()


def test_the_geometry_of_a_stream_is_geoarrow_with_the_crs():
    metadata = pa.table(published(UTM)).schema.field("geometry").metadata
    assert metadata[b"ARROW:extension:name"] == b"geoarrow.wkb"
    assert json.loads(metadata[b"ARROW:extension:metadata"])["crs"] == UTM.crs.to_json_dict()
    plane = pa.table(published(dpr.Grid(0, 0, 1, 2, 3))).schema.field("geometry").metadata
    assert not json.loads(plane.get(b"ARROW:extension:metadata", b"{}")).get("crs")


def test_a_stream_that_is_not_private_says_so():
    said = pa.table(published(UTM, private=False)).schema.metadata[b"dpregions_statement"]
    assert b"NOT PRIVATE" in said


def test_geopandas_takes_a_release():
    release = published(UTM)
    frame = geopandas.GeoDataFrame.from_arrow(release)
    assert frame.crs == UTM.crs
    assert (release.count(frame) == frame["count"]).all()


def test_a_stream_in_another_schema_is_cast_where_asked():
    release = published(UTM)
    schema = pa.table(release).schema
    wanted = schema.set(2, pa.field("count", pa.int32()))
    assert pa.table(release, schema=wanted).schema.field("count").type == pa.int32()


def test_duckdb_and_polars_take_a_release(made):
    duckdb, polars = pytest.importorskip("duckdb"), pytest.importorskip("polars")
    release = made["footprint"]
    total = int(release.cell_arrays()["count"].sum())
    assert duckdb.sql("SELECT sum(count)::BIGINT FROM release").fetchall() == [(total,)]
    assert polars.DataFrame(release)["count"].sum() == total


def test_the_cells_of_a_partition_stream_with_their_labels():
    release = study_on(voronoi(), method="paper")
    table = pa.table(release)
    assert table.column_names == ["component", "label", *COLUMNS, "geometry"]
    assert table["label"].to_pylist() == list(voronoi().labels)


def test_arrays_need_nothing_heavy():
    code = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parents[1])!r})\n"
        "import dpregions as dpr\n"
        "from support.handmade import published\n"
        "assert published(dpr.Grid(0, 0, 1, 2, 2)).cell_arrays(2)['count'].shape == (1, 1)"
    )
    assert imported_by(code, ("matplotlib", "geopandas", "pandas", "numba", "xarray")) == []
