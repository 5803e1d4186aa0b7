"""GeoJSON: what a file is, what a feature becomes, and that no feature changes another."""

from __future__ import annotations

import json

import geopandas
import numpy as np
import pytest
import shapely

import dpregions as dpr
from dpregions.crs import read_crs
from dpregions.errors import CRSError, InputError
from dpregions.intake.ids import id_text
from dpregions.intake.sources import geojson
from dpregions.intake.sources.geojson import open_geojson
from dpregions.intake.sources.requests import Request
from support.geojson_texts import (
    HERE,
    POINT,
    SHAPES,
    as_bytes,
    collection,
    feature,
    opened,
    read,
    refused,
    sequence,
)


def crs_of(content, **asked):
    with opened(content, **asked) as regions:
        return regions.crs


FRAME = geopandas.GeoDataFrame(
    {"user_id": np.arange(len(SHAPES)) + 2**53, "note": "x"}, geometry=SHAPES, crs=4326
)


def same_as_geopandas(path, block):
    """Say whether our reading of a file is that of geopandas."""
    theirs = geopandas.read_file(path)
    regions = open_geojson(path, Request(), block)
    rows = [row for batch in regions for row in batch.to_pylist()]
    assert [row["user_id"] for row in rows] == [id_text(int(i)) for i in theirs["user_id"]]
    ours = shapely.from_wkb([row["geometry"] for row in rows])
    expected = shapely.force_2d(theirs.geometry.to_numpy())
    assert not shapely.has_z(ours).any()
    same = shapely.equals_exact(shapely.normalize(ours), shapely.normalize(expected))
    assert (same | (shapely.is_missing(ours) & shapely.is_missing(expected))).all()
    assert ours[-1] is None
    assert regions.crs.equals(theirs.crs, ignore_axis_order=True)


@pytest.mark.parametrize("block", [1, 2, 7, 100, geojson.BLOCK_BYTES])
class TestOrdinaryFiles:
    @pytest.mark.parametrize("options", [{}, {"RFC7946": "YES"}, {"RS": "YES"}, {"seq": "YES"}])
    def test_are_read_as_geopandas_reads_them(self, options, block, tmp_path):
        path = tmp_path / "x.geojson"
        in_lines = "RS" in options or "seq" in options
        options = {k: v for k, v in options.items() if k != "seq"}
        FRAME.to_file(path, driver="GeoJSONSeq" if in_lines else "GeoJSON", **options)
        same_as_geopandas(path, block)

    def test_with_a_crs_too(self, block, tmp_path):
        FRAME.to_crs(25832).to_file(tmp_path / "x.geojson", driver="GeoJSON")
        same_as_geopandas(tmp_path / "x.geojson", block)

    def test_indented_with_members_of_their_own(self, block, tmp_path):
        whole = json.loads(FRAME.to_json())
        whole = {"bbox": [1, 2, 3, 4], 'a \\" [': {"b]": [["{"]]}, **whole, "z": [{}, "]"]}
        (tmp_path / "x.geojson").write_text("\ufeff" + json.dumps(whole, indent=3))
        same_as_geopandas(tmp_path / "x.geojson", block)


class TestWhatAFileIs:
    def test_a_collection(self):
        assert read(collection(feature())) == [("7", HERE.wkb)]

    def test_a_collection_of_nothing(self):
        assert read(collection()) == []

    def test_one_feature_and_one_geometry(self):
        assert read(feature()) == [("7", HERE.wkb)]
        assert read(POINT) == [(None, HERE.wkb)]
        assert read(POINT, user_id=None) == [(HERE.wkb,)]

    @pytest.mark.parametrize("between", ["\n", "\r\n", "\n\n", "\n\x1e", " "])
    def test_a_sequence(self, between):
        assert read(between.join([feature(), POINT, feature("8")])) == [
            ("7", HERE.wkb), (None, HERE.wkb), ("8", HERE.wkb)]  # fmt: skip

    def test_its_members_may_be_named_by_escapes(self):
        text = collection(feature()).replace(b'"features"', b'"\\u0066eatures"')
        assert read(text.replace(b'"type"', b'"t\\u0079pe"')) == [("7", HERE.wkb)]

    def test_other_lists_are_not_its_features(self):
        other = f'"Features": [{feature("1")}], "bbox": [1, 2], "x": {{"features": [{feature()}]}},'
        assert read(collection(feature("8"), before=other)) == [("8", HERE.wkb)]

    def test_a_feature_with_a_list_of_features_is_a_feature(self):
        text = feature()[:-1] + f', "features": [{feature("8")}]}}'
        assert read(text) == [("7", HERE.wkb)]
        assert read(sequence(text, feature("9"))) == [("7", HERE.wkb), ("9", HERE.wkb)]

    @pytest.mark.parametrize(
        "text",
        [
            '{"type": "Topology", "objects": {}, "arcs": []}',
            '{"geometryType": "esriGeometryPoint", "features": []}',
        ],
    )
    def test_json_of_another_format_is_refused_with_a_remedy(self, text):
        words = refused(text)
        assert "is TopoJSON or Esri JSON, not GeoJSON" in words
        assert "by ogr2ogr" in words
        assert "471" not in words

    @pytest.mark.parametrize("features", ["null", "{}", '"x"', "7"])
    def test_a_collection_without_a_list_of_features(self, features):
        text = f'{{"type": "FeatureCollection", "features": {features}}}'
        assert "without a list of them" in refused(text)
        assert "without a list of them" in refused('{"type": "FeatureCollection"}')

    def test_two_collections_in_one_file(self):
        assert "goes on after its collection" in refused(collection(feature()) * 2)
        assert "goes on after its collection" in refused(sequence(collection(), feature()))

    def test_a_collection_among_features_counts_nowhere(self):
        rows = read(sequence(feature(), collection(feature("8")), feature("9")))
        assert rows == [("7", HERE.wkb), (None, None), ("9", HERE.wkb)]

    def test_too_much_beside_the_features(self):
        long = f'"note": "{"secret" * (geojson.OUTER_BYTES // 6)}",'
        words = refused(collection(feature(), before=long))
        assert "more than 16 MiB beside" in words
        assert "secret" not in words

    def test_options_without_a_use(self):
        for asked in ({"layer": "x"}, {"geometry": "geom"}, {"sql": "SELECT 1"}):
            with pytest.raises(InputError, match="has no use for GeoJSON"):
                crs_of(collection(), **asked)
        with pytest.raises(InputError, match="UTF-8"):
            crs_of(collection(), user_id="\udc80")
        with pytest.raises(InputError, match="is the column of regions"):
            crs_of(collection(), user_id="geometry")


SOUND = collection(feature(), feature('"a"')).decode()


BROKEN = {
    "cut in a feature": SOUND[:100],
    "cut before its end": SOUND.rstrip()[:-1],
    "cut in a string": SOUND[: SOUND.index("Collection")],
    "a brace for a bracket": SOUND.replace("]}\n", "}]\n"),
    "a brace too few within": collection(feature()[:-1]),
    "a brace too many within": collection(feature() + "}"),
    "a bracket closed as a brace": collection(feature().replace("]", "}")),
    "a quote too many": collection(feature('7"')),
    "a comma too many": collection(feature(), "", feature()),
    "a comma at the end": collection(feature(), ""),
    "no comma": collection(feature() + feature()),
    "no comma after a number": collection("1 2"),
    "text after the end": SOUND + "secret 471",
    "a comma after the end": SOUND + ",",
    "text before the start": "secret 471" + SOUND,
    "two lists of features": collection(feature(), after=', "features": []'),
    "two types": collection(feature(), after=', "type": "FeatureCollection"'),
    "two CRS": collection(feature(), before='"crs": null,', after=', "crs": null'),
    "no colon": SOUND.replace('"features":', '"features"'),
    "a word that is not JSON": collection(feature(), after=', "x": secret471'),
    "a sequence that is cut": sequence(feature(), feature())[:-9],
    "a sequence with commas": f"{feature()},\n{feature()}",
    "a list": f"[{feature()}]",
    "text": '"secret 471"',
    "UTF-16": SOUND.encode("utf-16"),
    "a VRT": "<OGRVRTDataSource><OGRVRTLayer name='secret 471'/></OGRVRTDataSource>",
    "zeros": b"\0" * 100,
}


@pytest.mark.parametrize("block", [1, 5, geojson.BLOCK_BYTES])
@pytest.mark.parametrize("what", BROKEN)
def test_broken_framing_is_refused_without_position_or_text(what, block):
    words = refused(BROKEN[what], block)
    assert words.endswith("x.geojson is cut short, damaged or not GeoJSON")


class TestCRS:
    @pytest.mark.parametrize(
        ("name", "crs"),
        [
            ("EPSG:25832", "EPSG:25832"),
            ("urn:ogc:def:crs:EPSG::25832", "EPSG:25832"),
            ("urn:ogc:def:crs:EPSG:9.9:4326", "EPSG:4326"),
            ("urn:ogc:def:crs:OGC:1.3:CRS84", "OGC:CRS84"),
            ("http://www.opengis.net/def/crs/EPSG/0/32632", "EPSG:32632"),
            ("ESRI:102100", "ESRI:102100"),
        ],
    )
    def test_it_is_the_collections_wherever_it_stands(self, name, crs):
        member = f'"crs": {{"type": "name", "properties": {{"name": "{name}"}}}}'
        assert crs_of(collection(feature(), before=f"{member},")) == crs
        assert crs_of(collection(feature(), after=f", {member}")) == crs

    def test_none_is_said_by_null_and_degrees_by_nothing(self):
        assert crs_of(collection(before='"crs": null,')) is None
        assert crs_of(collection()) == "OGC:CRS84"
        assert crs_of(sequence(feature(), feature())) == "OGC:CRS84"

    def test_a_stated_one_counts_where_the_file_names_none(self):
        for text in (collection(feature()), sequence(feature(), feature()), feature()):
            assert crs_of(text, crs=read_crs(25832)) == "EPSG:25832"
        named = '"crs": {"type": "name", "properties": {"name": "EPSG:4326"}},'
        with pytest.raises(CRSError, match="regions carry EPSG:4326"):
            crs_of(collection(before=named), crs=read_crs(25832))

    def test_a_features_own_is_ignored(self):
        own = feature()[:-1] + ', "crs": {"type": "name", "properties": {"name": "EPSG:25832"}}}'
        assert crs_of(collection(own)) == "OGC:CRS84"
        assert crs_of(sequence(own, own)) == "OGC:CRS84"
        assert crs_of(own) == "OGC:CRS84"  # alone as in company

    @pytest.mark.parametrize(
        "odd",
        ['{"secret": 471}', "{}", '{"type": ["FeatureCollection"]}', '{"type": "x", "crs": 471}'],
    )
    def test_an_object_that_is_no_feature_counts_nowhere_alone_as_in_company(self, odd):
        assert read(odd) == [(None, None)]
        assert read(sequence(odd, feature())) == [(None, None), ("7", HERE.wkb)]

    @pytest.mark.parametrize(
        "crs",
        [
            '{"type": "link", "properties": {"href": "http://secret/471"}}',
            '{"type": "name", "properties": {"name": "secret 471"}}',
            '{"type": "name", "properties": {"name": "EPSG:999471"}}',
            '{"type": "name", "properties": {"name": "+proj=utm +zone=32"}}',
            '{"type": "name", "properties": null}',
            '"EPSG:4326"',
            "[]",
            "471",
        ],
    )
    def test_one_that_cannot_be_read_is_refused(self, crs):
        words = refused(collection(feature(), before=f'"crs": {crs},'), kind=CRSError)
        assert "its member crs cannot be read" in words
        assert "471" not in words

    def test_degrees_may_be_stated(self):
        assert crs_of(collection(feature()), crs=read_crs(4326)) == "EPSG:4326"


def counted(path, content, **options):
    """Return how many users' regions a file has, read by the public way."""
    path.write_bytes(as_bytes(content))
    grid = dpr.Grid.around(9, 48.5, side="50km", cell_size="1km")
    regions = dpr.open_regions(path, **options)
    hist = dpr.EulerHistogram.from_regions(regions, grid, user_id="user_id")
    return hist.count(*grid.bounds)


class TestByThePublicWay:
    @pytest.mark.parametrize("form", [collection, sequence])
    def test_one_fraction_among_long_ids_merges_nobody(self, form, tmp_path):
        users = [feature(str(10**18 + i)) for i in range(100)]
        assert counted(tmp_path / "x.geojson", form(*users)) == 100
        assert counted(tmp_path / "x.geojson", form(*users, feature("1.5"))) == 101

    @pytest.mark.parametrize("odd", ['"x"', "1e999", str(2**63), "[1]", '1, "USER_ID": 2'])
    def test_one_odd_id_changes_no_other(self, odd, tmp_path):
        users = [feature(user) for user in ["1", "1.0", '"2020-01-01"', '"2020/01/01"']]
        alone = counted(tmp_path / "x.geojson", collection(*users))
        assert alone == 3
        both = counted(tmp_path / "x.geojson", collection(*users, feature(odd)))
        assert both == alone + (odd in ('"x"', "1e999", str(2**63)))

    def test_one_curve_does_not_change_the_crs_of_all(self, tmp_path):
        place = '{"type": "Point", "coordinates": [500000, 5372000]}'
        crs = '"crs": {"type": "name", "properties": {"name": "EPSG:25832"}},'
        users = [feature(str(i), place) for i in range(9)]
        curve = '{"type": "CircularString"}'
        for features in (users, [curve, *users]):
            assert counted(tmp_path / "x.geojson", collection(*features, before=crs)) == 9
