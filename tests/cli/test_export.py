"""The command `export`: what it writes, says and refuses."""

import json
from functools import partial

import geopandas
import pyogrio
import pytest
import rasterio

import dpregions as dpr
from dpregions.privacy.seeded import StudyNoise
from dpregions.releases.make import release_with
from support import command_line
from support.full_disks import file_size_limit

run = partial(command_line.run, "export")


@pytest.fixture(scope="module")
def city():
    return dpr.release(
        dpr.synthetic.regions(300), dpr.synthetic.grid(), epsilon=1, max_diameter="2km"
    )


@pytest.fixture
def saved(city, tmp_path):
    path = tmp_path / "city.release.parquet"
    city.save(path)
    return path


def test_a_saved_release_becomes_layers_with_its_counts(city, saved, tmp_path):
    out = tmp_path / "city.gpkg"
    result = run(saved, out)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == f"Wrote {out}: components, CRS EPSG:32632.\n"
    faces = pyogrio.read_dataframe(out, layer="faces")
    assert (city.count(faces) == faces["count"]).all()
    layers = pyogrio.list_layers(out)[:, 0].tolist()
    assert layers == ["faces", "edges", "vertices", "layer_styles"]


def test_what_is_exported_can_be_chosen(city, saved, tmp_path):
    assert run(saved, tmp_path / "regions.fgb", "--what", "regions").exit_code == 0
    regions = pyogrio.read_dataframe(tmp_path / "regions.fgb")
    rebuilt = dpr.EulerHistogram.from_regions(regions, city.grid, user_id=None)
    assert (rebuilt.counts == city.counts).all()
    assert run(saved, tmp_path / "edges.gpkg", "--what", "edges").exit_code == 0
    assert pyogrio.list_layers(tmp_path / "edges.gpkg").tolist() == [["edges", "LineString"]]


def test_the_result_as_json(city, saved, tmp_path):
    out = tmp_path / "city.tif"
    facts = json.loads(run(saved, out, "--json").stdout)
    assert facts == {"output": str(out), "what": "faces", "crs": "EPSG:32632", "private": True}
    with rasterio.open(out) as raster:
        assert (raster.read(1)[::-1] == city.counts[::2, ::2]).all()
    told = json.loads(run(saved, tmp_path / "city.geojson", "--json").stdout)
    assert told["crs"] == "EPSG:4326"


def test_blocks_and_the_confidence_can_be_chosen(city, saved, tmp_path):
    out = tmp_path / "city.parquet"
    result = run(saved, out, "--block", "4", "--confidence", "0.8")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == f"Wrote {out}: faces, CRS EPSG:32632.\n"
    low, high = city.cell_intervals(4, 0.8)
    found = geopandas.read_parquet(out)
    assert found["low"].tolist() == low.ravel().tolist()
    assert found["high"].tolist() == high.ravel().tolist()


def test_an_existing_file_is_replaced_only_when_told(saved, tmp_path):
    out = tmp_path / "city.gpkg"
    out.write_text("mine")
    result = run(saved, out)
    assert result.exit_code == 2
    assert "give --overwrite" in result.stderr
    assert out.read_text() == "mine"
    assert run(saved, out, "--overwrite").exit_code == 0
    layers = pyogrio.list_layers(out)[:, 0].tolist()
    assert layers == ["faces", "edges", "vertices", "layer_styles"]


def test_the_release_itself_is_never_overwritten(saved):
    before = saved.read_bytes()
    result = run(saved, saved, "--overwrite")
    assert result.exit_code == 2
    assert "is one of the inputs" in result.stderr
    assert saved.read_bytes() == before


def test_a_release_that_is_not_private_is_called_so(tmp_path):
    arguments = {"epsilon": 1, "max_diameter": "2km"}
    city = dpr.synthetic.regions(50)
    study = release_with(StudyNoise(1), city, dpr.synthetic.grid(), **arguments)
    study.save(tmp_path / "study.parquet")
    assert "NOT PRIVATE" in run(tmp_path / "study.parquet", tmp_path / "study.gpkg").stdout


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("city.shp", (), "the suffix '.shp' tells no format"),
        ("city.tif", ("--what", "edges"), "cannot hold edges"),
        ("nowhere/city.gpkg", (), "give a file in a folder that exists"),
        ("city.gpkg", ("--block", "0"), "--block must be from 1 to 20"),
        ("city.tif", ("--block", "21"), "--block must be from 1 to 20"),
        ("city.gpkg", ("--block", "2", "--what", "edges"), "--block is of faces"),
        ("city.gpkg", ("--confidence", "95"), "--confidence must lie strictly between 0 and 1"),
        (".", (), "give a file in a folder that exists"),
        (".", ("--overwrite",), "give a file in a folder that exists"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(saved, tmp_path, name, options, words):
    result = run(saved, tmp_path / name, *options)
    assert result.exit_code == 2
    assert result.stderr.startswith("dpregions: error: ")
    assert words in result.stderr
    assert result.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == [saved]


def test_what_is_no_release_file_is_refused(saved, tmp_path):
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(saved.read_bytes()[:-100])
    result = run(broken, tmp_path / "city.gpkg")
    assert result.exit_code == 2
    assert result.stderr.startswith("dpregions: error: ")
    assert not (tmp_path / "city.gpkg").exists()


def test_wrong_usage_is_exit_code_2(saved, tmp_path):
    assert run(saved).exit_code == 2
    assert run(tmp_path / "none.parquet", tmp_path / "city.gpkg").exit_code == 2
    assert run(saved, tmp_path / "city.gpkg", "--what", "cells").exit_code == 2


def test_a_full_disk_is_one_line_and_exit_code_1(saved, tmp_path):
    with file_size_limit(10_000):
        result = run(saved, tmp_path / "city.gpkg")
    assert result.exit_code == 1
    assert result.stderr.startswith("dpregions: failed: faces could not be written as GPKG: is the")
    assert result.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == [saved]


def test_there_is_help_with_an_example():
    assert "dpregions export release.parquet" in run("--help").stdout
