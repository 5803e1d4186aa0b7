"""Features of GeoJSON: ids and geometries by their text, and one feature never another's."""

from __future__ import annotations

import inspect
import json
import random
import sys
import warnings
from collections import Counter
from functools import cache

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

import dpregions as dpr
from dpregions.errors import DPRegionsError, InputError
from dpregions.intake.ids import NumberToken, id_text, number_text
from dpregions.intake.sources import geojson
from dpregions.intake.sources.geojson_features import COLLECTIONS, DEEPEST, row, wkb
from support.geojson_texts import (
    HERE,
    POINT,
    SHAPES,
    as_bytes,
    collection,
    feature,
    opened,
    read,
    sequence,
)

NAMES = st.text('[{"\\', max_size=3)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text('{}[],:"\\ \né', max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=12,
)


def ids(*features):
    return [user for user, _ in read(collection(*features))]


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
