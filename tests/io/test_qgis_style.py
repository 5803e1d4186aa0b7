"""The style in a GeoPackage: where QGIS looks for it, well formed, with classes that hold all."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from itertools import pairwise
from xml.etree import ElementTree as ET

import numpy as np
import pyogrio
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpregions as dpr
from dpregions.io.exports import export
from dpregions.io.qgis_style import class_bounds
from support.handmade import published
from support.releases_on_cells import study_on, voronoi

UTM = dpr.Grid(490_000, 5_361_875, 1000, n_rows=3, n_cols=5, crs=32632)
SE, OGC = "{http://www.opengis.net/se}", "{http://www.opengis.net/ogc}"


def rows_of(path, query) -> list[dict]:
    with closing(sqlite3.connect(path)) as database:
        database.row_factory = sqlite3.Row
        return [dict(row) for row in database.execute(query)]


def style_in(path) -> dict:
    (style,) = rows_of(path, "SELECT * FROM layer_styles")
    return style


@pytest.fixture
def styled(tmp_path):
    path = tmp_path / "out.gpkg"
    export(published(UTM), path)
    return path


def test_the_style_is_the_default_one_of_the_faces(styled):
    style = style_in(styled)
    assert (style["f_table_catalog"], style["f_table_schema"]) == ("", "")
    assert (style["f_table_name"], style["f_geometry_column"]) == ("faces", "geom")
    assert style["useAsDefault"] == 1
    assert 0 < len(style["styleName"]) <= 30  # as wide as the column
    assert "Hatched: may be empty" in style["description"]


def test_the_table_has_the_columns_that_qgis_gives_it(styled):
    found = {row["name"]: row["type"] for row in rows_of(styled, "PRAGMA table_info(layer_styles)")}
    assert found == {
        "id": "INTEGER",
        **dict.fromkeys(("f_table_catalog", "f_table_schema"), "TEXT(256)"),
        **dict.fromkeys(("f_table_name", "f_geometry_column"), "TEXT(256)"),
        "styleName": "TEXT(30)",
        **dict.fromkeys(("styleQML", "styleSLD"), "TEXT"),
        "useAsDefault": "BOOLEAN",
        "description": "TEXT",
        **dict.fromkeys(("owner", "ui"), "TEXT(30)"),
        "update_time": "DATETIME",
    }


def test_gdal_sees_the_table_without_complaint(styled):
    """QGIS reads it through GDAL, which finds it among the contents alone."""
    (content,) = rows_of(styled, "SELECT * FROM gpkg_contents WHERE table_name = 'layer_styles'")
    assert (content["data_type"], content["srs_id"]) == ("attributes", 0)
    table = pyogrio.read_dataframe(styled, layer="layer_styles", read_geometry=False)
    assert table["useAsDefault"].tolist() == [True]
    assert table["update_time"].notna().all()


def test_the_qml_has_a_symbol_for_each_range_and_hatches_what_may_be_empty(styled):
    text = style_in(styled)["styleQML"]
    assert text.startswith("<!DOCTYPE qgis")
    renderer = ET.fromstring(text).find("renderer-v2")
    assert (renderer.get("type"), renderer.get("attr")) == ("graduatedSymbol", "count")
    ranges, symbols = renderer.findall("ranges/range"), renderer.findall("symbols/symbol")
    assert [r.get("symbol") for r in ranges] == [s.get("name") for s in symbols]
    for symbol in symbols:
        fill, hatch = symbol.findall("layer")
        assert (fill.get("class"), hatch.get("class")) == ("SimpleFill", "LinePatternFill")
        where = hatch.find("data_defined_properties//Option[@name='enabled']")
        assert where.find("Option[@name='expression']").get("value") == '"may_be_empty"'
        assert where.find("Option[@name='active']").get("value") == "true"
        assert hatch.find("symbol").get("type") == "line"
    colours = [s.find(".//Option[@name='color']").get("value") for s in symbols]
    assert len(set(colours)) == len(colours)


def test_the_sld_says_the_same(styled):
    style = style_in(styled)
    ranges = ET.fromstring(style["styleQML"]).findall("renderer-v2/ranges/range")
    rules = list(ET.fromstring(style["styleSLD"].encode()).iter(f"{SE}Rule"))
    assert [rule.find(f"{SE}Name").text for rule in rules] == [
        *(r.get("label") for r in ranges),
        "may be empty",
    ]
    for one, rule in zip(ranges, rules, strict=False):
        bounds = [literal.text for literal in rule.iter(f"{OGC}Literal")]
        assert bounds == [one.get("lower"), one.get("upper")]


def test_every_exported_face_is_in_exactly_one_range(styled):
    ranges = ET.fromstring(style_in(styled)["styleQML"]).findall("renderer-v2/ranges/range")
    counts = pyogrio.read_dataframe(styled, layer="faces")["count"].to_numpy()
    held = [(counts >= int(r.get("lower"))) & (counts <= int(r.get("upper"))) for r in ranges]
    assert (np.sum(held, axis=0) == 1).all()


@given(st.lists(st.integers(0, 2**50), max_size=20))
def test_classes_hold_every_count_once_and_ascend(counts):
    classes = class_bounds(np.array(counts, np.int64))
    assert classes[0][0] == 0 and classes[-1][1] >= max(counts, default=0)
    assert all(low <= high for low, high in classes)
    assert all(after[0] == before[1] + 1 for before, after in pairwise(classes))
    assert len(classes) <= 7


def test_classes_begin_at_numbers_of_two_digits():
    assert class_bounds(np.array([0, 760])) == [
        (0, 14), (15, 61), (62, 129), (130, 239), (240, 379), (380, 549), (550, 760)
    ]  # fmt: skip


def test_a_covert_release_has_colours_alone(tmp_path):
    path = tmp_path / "out.gpkg"
    export(published(UTM, covert=True), path)
    style = style_in(path)
    assert "may_be_empty" not in style["styleQML"] + style["styleSLD"]
    assert style["description"] == "Colour: count."


@pytest.mark.parametrize("what", ["edges", "vertices"])
def test_other_layers_have_no_style(tmp_path, what):
    path = tmp_path / "out.gpkg"
    export(published(UTM), path, what)
    assert not rows_of(path, "SELECT name FROM sqlite_master WHERE name = 'layer_styles'")


def test_blocks_and_cells_of_any_shape_have_the_style_too(tmp_path):
    export(published(UTM), tmp_path / "blocks.gpkg", block=2)
    assert style_in(tmp_path / "blocks.gpkg")["f_table_name"] == "blocks"
    export(study_on(voronoi(), method="paper"), tmp_path / "cells.gpkg")
    assert style_in(tmp_path / "cells.gpkg")["f_table_name"] == "faces"
