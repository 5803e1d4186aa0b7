"""GeoJSON: what a file is, what a feature becomes, and that no feature changes another."""

from __future__ import annotations

import inspect
import json
import random
import sys
import tempfile
import warnings
from collections import Counter
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import geopandas
import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

import dpregions as dpr
from dpregions.crs import read_crs
from dpregions.errors import CRSError, DPRegionsError, InputError
from dpregions.intake.ids import NumberToken, id_text, number_text
from dpregions.intake.sources import geojson
from dpregions.intake.sources.geojson import open_geojson
from dpregions.intake.sources.geojson_features import COLLECTIONS, DEEPEST, row, wkb
from dpregions.intake.sources.requests import Request

POINT = '{"type": "Point", "coordinates": [9, 48.5]}'
HERE = shapely.Point(9, 48.5)


def feature(user="7", geometry=POINT):
    """Return a feature's text; its parts are texts too, so that they can be wrong."""
    return f'{{"type": "Feature", "properties": {{"user_id": {user}}}, "geometry": {geometry}}}'


def as_bytes(text):
    return text if isinstance(text, bytes) else text.encode()


def collection(*features, before="", after=""):
    listed = b",\n".join(map(as_bytes, features))
    head = f'{{{before} "type": "FeatureCollection", "features": ['.encode()
    return head + listed + f"]{after}}}\n".encode()


def sequence(*features):
    return b"".join(as_bytes(text) + b"\n" for text in features)


@contextmanager
def opened(content, block=geojson.BLOCK_BYTES, **asked):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x.geojson")
        path.write_bytes(as_bytes(content))
        yield open_geojson(path, Request(**asked), block)


def read(content, block=geojson.BLOCK_BYTES, user_id="user_id"):
    """Return the rows of a file: id and WKB, or WKB alone."""
    with opened(content, block, user_id=user_id) as regions:
        return [tuple(row.values()) for batch in regions for row in batch.to_pylist()]


def crs_of(content, **asked):
    with opened(content, **asked) as regions:
        return regions.crs


def refused(content, block=geojson.BLOCK_BYTES, kind=InputError):
    with pytest.raises(kind) as caught:
        read(content, block)
    assert caught.value.__context__ is None
    return str(caught.value)


def ids(*features):
    return [user for user, _ in read(collection(*features))]


SHAPES = [
    shapely.Point(9, 48.5),
    shapely.Point(9, 48.5, 300),
    shapely.LineString([(9, 48), (9.5, 48.25), (10, 48)]),
    shapely.box(9, 48, 10, 49),
    shapely.box(9, 48, 10, 49).difference(shapely.box(9.25, 48.25, 9.5, 48.5)),
    shapely.MultiPoint([(9, 48), (10, 49)]),
    shapely.MultiLineString([[(9, 48), (10, 49)], [(9, 49), (10, 48)]]),
    shapely.MultiPolygon([shapely.box(9, 48, 9.5, 48.5), shapely.box(10, 48, 10.5, 48.5)]),
    shapely.GeometryCollection([shapely.Point(9, 48), shapely.box(9, 48, 10, 49)]),
    shapely.GeometryCollection([]),
    shapely.from_wkt("POLYGON Z ((9 48 1, 10 48 2, 10 49 3, 9 48 1))"),
    None,
]
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


class TestIds:
    def test_numbers_are_exact_in_any_company(self):
        wide = [str(2**62 + i) for i in range(50)]
        assert ids(*map(feature, wide)) == wide
        assert ids(*map(feature, [*wide, "1.5", '"x"', "1e999", str(2**63)])) == [
            *wide, "15e-1", '"x"', "1e999", str(2**63)]  # fmt: skip

    def test_numbers_are_one_where_they_are_equal_and_never_text(self):
        assert ids(*map(feature, ["1", "1.0", "1e0", "10E-1", '"1"'])) == ["1"] * 4 + ['"1"']
        assert ids(*map(feature, ["-0", "0", "-0.0", "100", "1e2"])) == ["0"] * 3 + ["100"] * 2

    def test_dates_are_text(self):
        assert ids(feature('"2020-01-01"'), feature('"2020/01/01"')) == [
            '"2020-01-01"', '"2020/01/01"']  # fmt: skip

    @pytest.mark.parametrize("user", ["null", '""', "[]", "{}", "[7]", "NaN", '{"user_id": 7}'])
    def test_what_is_not_an_id(self, user):
        assert ids(feature(user)) == [None]

    def test_digits_beyond_what_python_reads(self):
        digits = "9" * 10_000
        assert ids(feature(digits), feature(f"0.{digits}")) == [f"{digits}e0", f"{digits}e-10000"]

    @given(st.integers() | st.integers(-(10**19), 10**19))
    def test_whole_numbers_are_what_ids_make_of_them(self, number):
        assert row(feature(str(number)).encode(), ["user_id"])[0] == number_text(str(number))
        assert id_text(NumberToken(number)) == id_text(number)

    def test_text_of_any_kind(self):
        assert ids(feature('"\\ud800"'), feature('"\u00e9"'), feature('"\\u00e9"')) == [
            '"\\ud800"', '"\\u00e9"', '"\\u00e9"']  # fmt: skip

    def test_bytes_that_are_not_text_are_told_apart_from_all_text(self):
        users = [b'"Jos\xe9"', b'"Jos\xe8"', b'"Jos\\udce9"', b'"Jos\\\\xe9"', b'"Jos\xc3\xa9"',
                 b'"Jos\\udbe9"', b'"Jos\xed\xb3\xa9"', b'"\\ud800\xe9"']  # fmt: skip
        found = ids(*(feature("@").encode().replace(b"@", user) for user in users))
        assert len(set(found)) == len(users)
        assert found[0] == '"Jos\\xe9"'
        assert all(text.isascii() for text in found)

    def test_numbers_and_names_beside_bytes_that_are_not_text(self):
        odd = feature("1.50").encode().replace(b'"user_id"', b'"user\xffid": 3, "user_id"')
        assert ids(odd) == ["15e-1"]

    def test_a_name_is_exact(self):
        text = feature().replace('"user_id"', '"USER_ID": 1, "user_id"')
        assert ids(text, feature("8")) == ["7", "8"]
        assert ids(text.replace('"user_id"', '"User_Id"')) == [None]

    def test_a_property_that_no_feature_has_is_not_refused(self):
        rows = read(collection(feature(), feature()), user_id="driver")
        assert rows == [(None, HERE.wkb)] * 2
        assert "count nowhere" in str(geojson.UNDECLARED)

    def test_a_features_own_id_is_found_by_its_name_alone(self):
        own = feature()[:-1] + ', "id": "a"}'
        assert read(collection(own), user_id="id") == [('"a"', HERE.wkb)]
        both = own.replace('"user_id"', '"id": null, "user_id"')
        assert read(collection(both), user_id="id") == [(None, HERE.wkb)]
        assert read(collection(own), user_id="type") == [(None, HERE.wkb)]

    def test_the_last_of_several_counts(self):
        assert ids(feature('7, "user_id": 8')) == ["8"]


def nested(depth):
    """Return collections of geometries within each other."""
    geometry = POINT
    for _ in range(depth):
        geometry = f'{{"type": "GeometryCollection", "geometries": [{geometry}]}}'
    return geometry


class TestGeometries:
    @pytest.mark.parametrize(
        "geometry",
        [
            '{"type": "Point", "coordinates": [9]}',
            '{"type": "Point", "coordinates": ["9", "48"]}',
            '{"type": "Point", "coordinates": [9, true]}',
            '{"type": "Point", "coordinates": [9, null]}',
            '{"type": "Point", "coordinates": [[9, 48]]}',
            '{"type": "Point", "coordinates": {"0": 9, "1": 48}}',
            '{"type": "Point", "coordinates": "91"}',
            '{"type": "Point", "coordinates": null}',
            '{"type": "Point"}',
            '{"type": "Point", "geometries": [9, 48]}',
            '{"type": "point", "coordinates": [9, 48]}',
            '{"type": ["Point"], "coordinates": [9, 48]}',
            '{"type": "LineString", "coordinates": [9, 48]}',
            '{"type": "LineString", "coordinates": [[9, 48], [9]]}',
            '{"type": "LineString", "coordinates": [[9, 48], [9, 48, 1], [9]]}',
            '{"type": "LineString", "coordinates": [[9, 48], []]}',
            '{"type": "LineString", "coordinates": [[9, 48], "ab"]}',
            '{"type": "MultiPoint", "coordinates": [[]]}',
            '{"type": "MultiPoint", "coordinates": [9]}',
            '{"type": "Polygon", "coordinates": [[9, 48], [10, 48], [9, 49], [9, 48]]}',
            '{"type": "Polygon", "coordinates": [null]}',
            '{"type": "MultiPolygon", "coordinates": [[[9, 48], [10, 48], [9, 49], [9, 48]]]}',
            '{"type": "GeometryCollection"}',
            '{"type": "GeometryCollection", "geometries": [null]}',
            '{"type": "CircularString", "coordinates": [[9, 48], [10, 48], [9, 49]]}',
            '{"type": "Feature", "geometry": ' + POINT + "}",
            nested(COLLECTIONS + 1),
            "null", "7", '"POINT (9 48)"', "[9, 48]", "true",
        ],
    )  # fmt: skip
    def test_what_is_not_a_geometry_is_null(self, geometry):
        assert read(collection(feature(geometry=geometry), feature("8"))) == [
            ("7", None), ("8", HERE.wkb)]  # fmt: skip

    @pytest.mark.parametrize("kind", ["Point", "LineString", "Polygon", "MultiPoint",
                                      "MultiLineString", "MultiPolygon"])  # fmt: skip
    def test_empty_ones(self, kind):
        shape = shapely.from_wkb(wkb({"type": kind, "coordinates": []}))
        assert shape.is_empty
        assert shape.geom_type == kind

    def test_wkb_is_that_of_shapely(self):
        for shape in SHAPES[:-1]:
            text = json.dumps(shapely.geometry.mapping(shape))
            [(_, ours)] = read(collection(feature(geometry=text)))
            assert ours == shapely.to_wkb(shapely.force_2d(shape))

    def test_lists_of_many_positions(self):
        xy = np.random.default_rng(1).normal(size=(3000, 2)).tolist()
        [(_, ours)] = read(feature(geometry=json.dumps({"type": "LineString", "coordinates": xy})))
        assert ours == shapely.LineString(xy).wkb

    @pytest.mark.parametrize("numbers", ["9, 48.5", "9.0, 48.5, 1", "9, 48.5, 1, 2", "90e-1, 48.5"])
    def test_x_and_y_are_kept(self, numbers):
        text = feature(geometry=f'{{"type": "Point", "coordinates": [{numbers}]}}')
        assert read(text) == [("7", HERE.wkb)]

    def test_positions_of_several_lengths(self):
        text = '{"type": "LineString", "coordinates": [[9, 48], [9, 49, 1], [10, 49, 1, 2]]}'
        [(_, ours)] = read(feature(geometry=text))
        assert ours == shapely.LineString([(9, 48), (9, 49), (10, 49)]).wkb

    @pytest.mark.parametrize("number", ["1e999", "Infinity", "9" * 5000, "9" * 400 + ".0"])
    def test_numbers_beyond_floats_are_infinite(self, number):
        [(_, ours)] = read(feature(geometry=f'{{"type": "Point", "coordinates": [1, {number}]}}'))
        assert shapely.from_wkb(ours).y == np.inf

    def test_collections_within_collections(self):
        [(_, ours)] = read(feature(geometry=nested(COLLECTIONS)))
        assert shapely.get_coordinates(shapely.from_wkb(ours)).tolist() == [[9, 48.5]]


OBJECT = '{"a":'
DEEP = "[" * 100_000 + "]" * 100_000
ODD = [
    '{"type": "CircularString"}',
    '{"type": "Feature", "featureType": "secret 471", "geometry": null, "properties": {}}',
    '{"conformsTo": ["http://www.opengis.net/spec/json-fg-1/0.1/conf/core"]}',
    feature("8").replace('"user_id"', '"user_id"nonsense'),
    feature("8").replace(":", "="),
    feature("8", DEEP),
    feature("8")[:-1] + f', "deep": {DEEP}}}',
    feature("8", OBJECT * 5000 + "1" + "}" * 5000),
    feature("8").encode().replace(b'"user_id"', b'"\xff\xfe"'),
    feature('"a\nb"'),
    feature('"\x1e"'),
    feature("8\x1e"),
    feature("8\x00"),
    feature("tru"),
    feature("0x10"),
    feature("08"),
    feature("1."),
    feature('8,'),
    feature('"\\x"'),
    '{"type": "Feature", "properties": 7, "geometry": 7}',
    '{"type": {}, "properties": [], "geometry": []}',
    "{}",
]  # fmt: skip


class TestOneFeature:
    @pytest.mark.parametrize("odd", range(len(ODD)))
    @pytest.mark.parametrize("form", [collection, sequence])
    def test_an_odd_one_changes_no_other(self, form, odd, recwarn, capfd):
        others = [feature(str(i)) for i in range(3)]
        alone = read(form(*others))
        for place in range(4):
            among = [*others[:place], ODD[odd], *others[place:]]
            rows = read(form(*among))
            assert rows[:place] + rows[place + 1 :] == alone
            assert None in rows[place]
        assert not recwarn
        assert capfd.readouterr() == ("", "")

    @pytest.mark.parametrize("element", ["null", "1", '"a, ]"', "nonsense", "[]", "[[{}]]"])
    def test_what_is_not_an_object_is_not_a_feature(self, element):
        rows = read(collection(feature(), element, feature("8")))
        assert [row for row in rows if row != (None, None)] == [("7", HERE.wkb), ("8", HERE.wkb)]

    def test_one_that_is_too_long_counts_nowhere(self):
        long = feature("8")[:-1] + f', "a": "{"x" * geojson.FEATURE_BYTES}"}}'
        just = feature("9")[:-1] + ', "a": ""}'
        just = just[:-2] + "x" * (geojson.FEATURE_BYTES - len(just)) + '"}'
        rows = read(collection(feature(), long, just, feature("1")))
        assert rows == [("7", HERE.wkb), (None, None), ("9", HERE.wkb), ("1", HERE.wkb)]

    def test_how_deep_it_may_be_is_the_same_from_any_place(self):
        inner = DEEPEST - 1
        deep = [feature(str(n))[:-1] + f', "a": {"[" * n + "]" * n}}}' for n in (inner, inner + 1)]
        for block in (13, geojson.BLOCK_BYTES):
            assert read(collection(*deep), block) == [(str(inner), HERE.wkb), (None, None)]

    @pytest.mark.parametrize("opened_there", [True, False])
    def test_a_call_from_too_deep_is_refused_whatever_the_file_holds(self, opened_there):
        n = DEEPEST - 1
        objects = feature()[:-1] + f', "a": {OBJECT * n}1{"}" * n}}}'
        lists = feature()[:-1] + f', "a": {"[" * n}{"]" * n}}}'
        deep = [objects, lists, feature(geometry=nested(COLLECTIONS))]
        contents = [form(*texts) for form in (collection, sequence)
                    for texts in ([feature()] * 3, deep)]  # fmt: skip
        outcomes = []
        room = sys.getrecursionlimit() - len(inspect.stack())
        assert [read(content) for content in contents]  # everything is imported
        for left in range(80, 260, 4):
            found = {outcome_from(room - left, content, opened_there) for content in contents}
            assert len(found) == 1
            outcomes += found
        assert outcomes[-1] == 3
        assert all(found == 3 or "recursion limit" in found for found in outcomes)


def called_from(depth, call):
    """Return what a call does within others."""
    return called_from(depth - 1, call) if depth else call()


def outcome_from(depth, content, opened_there):
    """Return how many rows are read, or the error, within calls; or opened before them."""
    try:
        if opened_there:
            return called_from(depth, lambda: len(read(content)))
        with opened(content) as regions:
            return called_from(depth, lambda: sum(batch.num_rows for batch in regions))
    except InputError as error:
        return str(error)


def quoted(raw):
    return b'"' + raw.replace(b"\\", b"").replace(b'"', b"") + b'"'


USERS = st.one_of(
    st.sampled_from([
        *(b"null", b'""', b"[]", b"{}", b"true", b"NaN", b"-Infinity", b"1e999", b"-0", b"1.50"),
        *(b'"1"', b"1", b"1.0", b'"x"', b'"\\ud800"', b'"\\udce9"', b'"\xe9"', b'"\xe8"'),
        *(b"9223372036854775808", b"9007199254740993.0", b"9" * 5000, b'"2020-01-01"', b"wrong"),
        *(b'1, "USER_ID": 2', b'1, "user\xff_id": 2', b'1, "user_id": "y"'),
    ]),
    st.integers().map(lambda i: str(i).encode()),
    st.text(max_size=3).map(lambda text: quoted(text.encode("utf-8", "replace"))),
    st.binary(max_size=3).map(quoted),
)  # fmt: skip
GEOMETRIES = st.sampled_from([
    *(json.dumps(shapely.geometry.mapping(shape)).encode() for shape in SHAPES[:-1]),
    *(b"null", b"7", b'{"type": "CircularString"}', b'{"type": "Polygon", "coordinates": []}'),
    b'{"type": "Point", "coordinates": [1e999, NaN]}',
    b'{"type": "Point", "coordinates": ["1", 2]}',
    nested(COLLECTIONS + 1).encode(),
    b"[" * 90 + b"]" * 90,
])  # fmt: skip


def made(user, geometry):
    return feature("@", "#").encode().replace(b"#", geometry).replace(b"@", user)


FEATURES = st.one_of(
    st.builds(made, USERS, GEOMETRIES),
    st.sampled_from([as_bytes(text) for text in ODD if len(text) < 1000]),
)


def counting(rows):
    """Return the rows that may count."""
    return Counter(row for row in rows if None not in row)


FIRST = feature('"first"')


@cache
def contribution(text, form):
    """Return what a feature adds to a file that has another one."""
    return counting(read(form(FIRST, text))) - counting(read(form(FIRST, "{}")))


@given(st.lists(FEATURES, max_size=6), st.sampled_from([collection, sequence]), st.integers(1, 99))
def test_a_file_is_the_sum_of_its_features_read_alone(texts, form, block):
    whole = counting(read(form(FIRST, "{}", *texts), block))
    alone = sum((contribution(text, form) for text in texts), counting(read(form(FIRST, "{}"))))
    assert whole == alone
    for i, text in enumerate(texts):
        rest = counting(read(form(FIRST, "{}", *texts[:i], *texts[i + 1 :])))
        assert whole - rest == contribution(text, form)
        assert not rest - whole


NAMES = st.text('[{"\\', max_size=3)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text('{}[],:"\\ \né', max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=12,
)


@given(
    st.lists(st.dictionaries(NAMES, JSON, max_size=3), max_size=5),
    st.dictionaries(st.sampled_from(["a", "[", "z"]), JSON),
    st.integers(1, 64),
    st.sampled_from([None, 1]),
)
def test_features_are_found_whatever_stands_around_and_within(features, others, block, indent):
    features = [{**feature, "type": "Feature", "id": i} for i, feature in enumerate(features)]
    whole = {**others, "features": features, "type": "FeatureCollection"}
    expected = [str(i) for i in range(len(features))]
    text = json.dumps(whole, indent=indent)
    assert [user for user, _ in read(text, block, user_id="id")] == expected
    if features:
        lines = "\n".join(json.dumps(feature, indent=indent) for feature in features)
        assert [user for user, _ in read(lines, block, user_id="id")] == expected


CANARY = "canary471"


def mutated(content, chance):
    """Return content with some bytes left out, put in or copied."""
    pieces = [*(bytes([c]) for c in b'"{}[],0\\\x1e\xff\n'), b"9" * 5000, b"null"]
    content = bytearray(content)
    for _ in range(chance.randint(1, 3)):
        at, other = chance.randrange(len(content)), chance.randrange(len(content))
        put = [chance.choice(pieces), b"", content[other : other + 20]]
        content[at : at + chance.choice([0, 1, 1, 5, 50])] = chance.choice(put)
    return bytes(content)


def error_of(content, block):
    """Return how a file is refused, None if it is read."""
    try:
        read(content, block)
    except DPRegionsError as error:
        return error
    return None


def test_mutated_files_are_read_or_refused_in_our_words(capfd):
    chance = random.Random(471)
    shapes = [json.dumps(shapely.geometry.mapping(shape)) for shape in SHAPES[:-1]]
    features = [feature(f'"{CANARY}{i}"', shape) for i, shape in enumerate(shapes)]
    sound = [form(*features[i : i + 4]) for form in (collection, sequence) for i in (0, 4, 7)]
    sound.append(collection(features[0], before=f'"crs": null, "name": "{CANARY}",'))
    outcomes = Counter()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        for _ in range(1000):
            content = mutated(chance.choice(sound), chance)
            error = error_of(content, chance.choice([3, 50, 1 << 16]))
            assert CANARY not in str(error)
            assert error is None or error.__context__ is None
            outcomes[type(error)] += 1
    assert outcomes[type(None)] > 100 and outcomes[InputError] > 100
    assert not warned
    assert capfd.readouterr() == ("", "")


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


def test_no_other_file_is_opened(tmp_path):
    """A VRT of GDAL's is text, and text is not GeoJSON."""
    feature_file = tmp_path / "other.geojson"
    feature_file.write_bytes(collection(feature()))
    vrt = (
        f"<OGRVRTDataSource><OGRVRTLayer name='other'><SrcDataSource>{feature_file}</SrcDataSource>"
    )
    (tmp_path / "x.geojson").write_text(vrt + "</OGRVRTLayer></OGRVRTDataSource>")
    with pytest.raises(InputError, match="not GeoJSON"):
        dpr.open_regions(tmp_path / "x.geojson")
