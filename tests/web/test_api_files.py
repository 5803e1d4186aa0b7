"""Files that the server hands out: the release itself, exports, an overlay, a basemap."""

from __future__ import annotations

import gzip
import json

import geopandas
import numpy as np
import pytest
import shapely

from dpregions.errors import InputError, ReleaseFileError
from dpregions.io.exports import export
from dpregions.page import payload
from dpregions.web.app import make_app
from dpregions.web.settings import Limits, Settings
from dpregions.web.shelf import Shelf
from support.releases_on_cells import hexagons, study_on
from support.served import Served, city, collection, feature, problem_in, serving


@pytest.fixture(scope="module")
def served() -> Served:
    with serving({"city": city()}) as found:
        yield found


def test_the_release_file_is_the_one_that_is_served_byte_for_byte(tmp_path):
    path = tmp_path / "A city, 2026.parquet"
    city().save(path)
    app = make_app([path])
    (shown,) = app.state.serving.shelf.values()
    assert shown.id == f"a-city-2026-{shown.digest[:7]}"
    assert shown.file == path.read_bytes()
    path.unlink()  # what is served was settled at the start
    with serving({"A city, 2026": city()}) as served:
        assert served.ids == (shown.id,), "the same release has the same id"
        response = served.client.get(served.at("release.parquet"))
        assert response.content == shown.file
        assert f'filename="{shown.id}.parquet"' in response.headers["content-disposition"]


def test_what_is_no_release_is_not_served(tmp_path):
    path = tmp_path / "x.parquet"
    path.write_bytes(b"PAR1")
    for wrong in (path, tmp_path / "nothing.parquet"):
        with pytest.raises(ReleaseFileError):
            make_app([wrong])
    with pytest.raises(InputError, match="at least one"):
        make_app([])


def test_ids_that_clash_are_refused_and_the_same_file_twice_is_one():
    class Other:
        id, digest = "city-0000000", "1"

    class One(Other):
        digest = "2"

    assert len(Shelf([Other(), Other()])) == 1
    with pytest.raises(InputError, match="rename one"):
        Shelf([Other(), One()])


def test_the_page_gets_what_the_page_package_makes(served):
    get = served.client.get
    assert get(served.at("components.bin")).content == payload.components(city())
    assert get(served.at("intervals.bin?block=4")).content == payload.intervals(city(), 4)
    said = get(served.at("page.json")).json()
    assert said["name"] == "city" and len(said["checksum"]) == 64
    packed = get(served.at("components.bin"), headers={"Accept-Encoding": "gzip"})
    assert packed.headers["content-encoding"] == "gzip"


@pytest.mark.parametrize("suffix", ["gpkg", "fgb", "geojson", "parquet"])
def test_an_export_has_the_cells_with_their_intervals(served, suffix, tmp_path):
    response = served.client.get(served.at(f"export.{suffix}"), params={"block": 2})
    path = tmp_path / f"cells.{suffix}"
    path.write_bytes(response.content)
    if suffix == "parquet":
        found = geopandas.read_parquet(path)
    else:  # a GeoPackage has a table of styles, too
        found = geopandas.read_file(path, layer="blocks" if suffix == "gpkg" else 0)
    wanted = city().cell_arrays(2)
    assert sorted(found["count"]) == sorted(wanted["count"].ravel())
    np.testing.assert_allclose(sorted(found["low"]), sorted(wanted["low"].ravel()))


def test_an_export_is_made_once(served):
    get = served.client.get
    first, again = (get(served.at("export.gpkg")).content for _ in range(2))
    assert first == again, "a GeoPackage made anew would have another time in it"
    etag = get(served.at("export.gpkg")).headers["etag"]
    assert get(served.at("export.gpkg"), headers={"If-None-Match": etag}).status_code == 304


def test_a_large_export_is_refused_with_the_way_to_make_it(tmp_path):
    with serving({"city": city()}, limits=Limits(exported=50)) as served:
        problem = problem_in(served.client.get(served.at("export.gpkg")), 413)
        assert "dpregions export" in problem["detail"]
        assert served.client.get(served.at("export.gpkg"), params={"block": 2}).status_code == 200
    export(city(), tmp_path / "city.gpkg")


def test_the_single_page_is_an_export_too(served):
    response = served.client.get(served.at("export.html"))
    assert response.headers["content-disposition"].startswith("attachment")
    assert response.text.startswith("<!doctype html>")


def test_a_partition_has_its_cells_as_geojson():
    release = study_on(hexagons())
    with serving({"cells": release}) as served:
        found = served.client.get(served.at("cells.json")).json()
        counts = [feature["properties"]["count"] for feature in found["features"]]
        assert counts == release.cell_arrays()["count"].tolist()
        assert problem_in(served.client.get(served.at("intervals.bin")), 404)
        assert served.client.get(served.at("export.geojson")).status_code == 200


def test_an_overlay_is_read_once_and_sent_in_degrees(tmp_path):
    districts = collection(feature(shapely.geometry.mapping(shapely.box(11, 48, 12, 49)), name="A"))
    plain, converted = tmp_path / "districts.geojson", tmp_path / "districts.gpkg"
    plain.write_text(json.dumps(districts))
    geopandas.read_file(plain).to_crs("EPSG:32632").to_file(converted)
    for path in (plain, converted):
        with serving({"city": city()}, overlay=path) as served:
            (found,) = served.client.get("/api/v1/overlay").json()["features"]
            assert found["properties"]["name"] == "A"
            shape = shapely.geometry.shape(found["geometry"])
            assert shape.bounds == pytest.approx((11, 48, 12, 49), abs=1e-6)


def test_without_overlay_and_basemap_the_page_hears_that_there_are_none(served):
    assert served.client.get("/api/v1/overlay").json() is None
    assert served.client.get("/api/v1/basemap.pmtiles").status_code == 204


def test_an_overlay_that_cannot_be_read_is_refused_at_the_start(tmp_path):
    (tmp_path / "no.geojson").write_text("{}")
    for name, said in (("no.geojson", "FeatureCollection"), ("nothing.geojson", "No such file")):
        with pytest.raises(InputError, match=said):
            make_app({"city": city()}, settings=Settings(overlay=tmp_path / name))


def test_a_basemap_is_sent_in_ranges(tmp_path):
    path = tmp_path / "map.pmtiles"
    path.write_bytes(b"PMTiles\x03" + bytes(range(256)) * 10)
    with serving({"city": city()}, basemap=path) as served:
        get = served.client.get
        part = get("/api/v1/basemap.pmtiles", headers={"Range": "bytes=0-7"})
        assert (part.status_code, part.content) == (206, b"PMTiles\x03")
        assert part.headers["content-range"] == f"bytes 0-7/{path.stat().st_size}"
        long = "9" * 5000
        wrong = ("bytes=9-3", "lines=1-2", f"bytes={long}-", f"bytes=0-{long}")
        for asked, status in (*((text, 400) for text in wrong), ("bytes=99999-", 416)):
            assert problem_in(get("/api/v1/basemap.pmtiles", headers={"Range": asked}), status)


def test_a_basemap_that_is_no_pmtiles_is_refused_at_the_start(tmp_path):
    path = tmp_path / "map.pmtiles"
    path.write_bytes(gzip.compress(b"x"))
    with pytest.raises(InputError, match="not a PMTiles"):
        make_app({"city": city()}, settings=Settings(basemap=path))
