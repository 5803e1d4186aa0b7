"""A style for faces that travels in their GeoPackage, by which QGIS draws the layer at once.

Owns the table `layer_styles` as QGIS makes it, and the style's two texts: QML for QGIS, SLD for
others. Colours follow `count`; cells that may be empty are hatched, not faded: a faint colour would
read as a lower count. Looks at published numbers alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import numpy as np

if TYPE_CHECKING:
    import sqlite3

    from numpy.typing import NDArray

    from dpregions.geometry.layers import Layer

TABLE = "layer_styles"
"""Where QGIS looks for styles in a GeoPackage."""

_HATCHED = (
    "count and may_be_empty",
    "Colour: count. Hatched: may be empty, as the interval of the true count begins at 0.",
)
_PLAIN = ("count", "Colour: count.")
"""Name, of 30 characters at most, and description of the style with and without hatches."""

_RAMP = ("ffffd9", "c7e9b4", "7fcdbb", "41b6c4", "1d91c0", "225ea8", "0c2c84")  # YlGnBu of 7
_LINES = "5a5a5a"
_DOCTYPE = "<!DOCTYPE qgis PUBLIC 'http://mrcc.com/qgis.dtd' 'SYSTEM'>"
_SPACES = {
    "xmlns": "http://www.opengis.net/sld",
    "xmlns:se": "http://www.opengis.net/se",
    "xmlns:ogc": "http://www.opengis.net/ogc",
}

# The columns and their widths are those that QGIS gives the table. Without its row among the
# contents, GDAL, and so QGIS, does not see it.
_CREATE = f"""
CREATE TABLE {TABLE} (
    id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
    f_table_catalog TEXT(256), f_table_schema TEXT(256), f_table_name TEXT(256),
    f_geometry_column TEXT(256), styleName TEXT(30), styleQML TEXT, styleSLD TEXT,
    useAsDefault BOOLEAN, description TEXT, owner TEXT(30), ui TEXT(30),
    update_time DATETIME DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ','now'))
)"""
_REGISTER = f"""
INSERT INTO gpkg_contents (table_name, data_type, identifier, description, last_change, srs_id)
SELECT '{TABLE}', 'attributes', '{TABLE}', '', last_change, 0
FROM gpkg_contents WHERE table_name = ?"""
_INSERT = f"""
INSERT INTO {TABLE} (f_table_catalog, f_table_schema, f_table_name, f_geometry_column, styleName,
    styleQML, styleSLD, useAsDefault, description, owner, ui, update_time)
SELECT '', '', c.table_name, g.column_name, ?, ?, ?, 1, ?, '', NULL, c.last_change
FROM gpkg_contents c JOIN gpkg_geometry_columns g USING (table_name) WHERE c.table_name = ?"""


def add_style(database: sqlite3.Connection, layer: str, faces: Layer) -> None:
    """Make the style of a layer of faces the default one, in a GeoPackage that has no styles."""
    classes = class_bounds(np.asarray(faces.columns["count"]))
    hatched = "may_be_empty" in faces.columns
    name, legend = _HATCHED if hatched else _PLAIN
    texts = style_qml(classes, hatched), style_sld(classes, hatched, name, layer)
    with database:
        database.execute(_CREATE)
        database.execute(_REGISTER, (layer,))
        database.execute(_INSERT, (name, *texts, legend, layer))


def class_bounds(counts: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Return the least and the largest count of each class, from 0 to the largest of all.

    Classes widen as squares do: most cells of a city have few regions, and a few have many.
    """
    top = max(int(counts.max(initial=0)), 1)
    rough = (top * (np.arange(1, len(_RAMP)) / len(_RAMP)) ** 2).astype(np.int64)
    starts = sorted({0, *(_rounded(int(start)) for start in rough if start >= 1)})
    ends = [start - 1 for start in starts[1:]] + [top]
    return list(zip(starts, ends, strict=True))


def _rounded(value: int) -> int:
    """Return a number with its first two digits alone, so that a legend reads well."""
    unit: int = 10 ** max(len(str(value)) - 2, 0)
    return value // unit * unit


def _colours(n: int) -> list[str]:
    """Return so many colours of the ramp, its ends among them."""
    return [_RAMP[i] for i in np.rint(np.linspace(0, len(_RAMP) - 1, max(n, 2))).astype(int)][:n]


def _labels(classes: list[tuple[int, int]]) -> list[str]:
    return [f"{low:,}" if low == high else f"{low:,} to {high:,}" for low, high in classes]


# --- QML ------------------------------------------------------------------------------------------


def style_qml(classes: list[tuple[int, int]], hatched: bool) -> str:
    """Return the style as QGIS writes its own, symbology alone."""
    root = ET.Element("qgis", version="3.22.0", styleCategories="Symbology")
    renderer = ET.SubElement(
        root,
        "renderer-v2",
        type="graduatedSymbol",
        attr="count",
        graduatedMethod="GraduatedColor",
        symbollevels="0",
        forceraster="0",
        enableorderby="0",
    )
    ranges, symbols = ET.SubElement(renderer, "ranges"), ET.SubElement(renderer, "symbols")
    looks = zip(classes, _labels(classes), _colours(len(classes)), strict=True)
    for number, ((low, high), label, colour) in enumerate(looks):
        ET.SubElement(
            ranges,
            "range",
            lower=str(low),
            upper=str(high),
            symbol=str(number),
            label=label,
            render="true",
        )
        symbol = _symbol(symbols, "fill", str(number))
        fill = {"color": _rgba(colour), "style": "solid", "outline_style": "no"}
        _symbol_layer(symbol, "SimpleFill", fill)
        if hatched:
            _hatch(symbol, f"@{number}@1")
    return f"{_DOCTYPE}\n{_text(root)}"


def _hatch(symbol: ET.Element, name: str) -> None:
    """Add thin lines across a cell that are drawn where it may be empty."""
    lines = {"angle": "45", "distance": "1.5", "distance_unit": "MM"}
    stroke = {"line_width": "0.15", "line_width_unit": "MM"}
    layer = _symbol_layer(symbol, "LinePatternFill", lines | stroke | {"color": _rgba(_LINES)})
    drawn = {"active": ("bool", "true"), "expression": ("QString", '"may_be_empty"')}
    _drawn_where(layer, drawn | {"type": ("int", "3")})
    line = _symbol(layer, "line", name)
    _symbol_layer(line, "SimpleLine", stroke | {"line_color": _rgba(_LINES), "line_style": "solid"})


def _drawn_where(layer: ET.Element, rule: dict[str, tuple[str, str]]) -> None:
    """Let an expression decide whether a layer of a symbol is drawn; its type, 3, says so."""
    defined = ET.SubElement(layer, "data_defined_properties")
    collection = ET.SubElement(defined, "Option", type="Map")
    ET.SubElement(collection, "Option", name="name", type="QString", value="")
    properties = ET.SubElement(collection, "Option", name="properties", type="Map")
    enabled = ET.SubElement(properties, "Option", name="enabled", type="Map")
    for name, (kind, value) in rule.items():
        ET.SubElement(enabled, "Option", name=name, type=kind, value=value)
    ET.SubElement(collection, "Option", name="type", type="QString", value="collection")


def _symbol(parent: ET.Element, kind: str, name: str) -> ET.Element:
    look = {"type": kind, "name": name, "alpha": "1", "clip_to_extent": "1", "force_rhr": "0"}
    return ET.SubElement(parent, "symbol", look)


def _symbol_layer(symbol: ET.Element, kind: str, options: dict[str, str]) -> ET.Element:
    named = {"class": kind, "enabled": "1", "locked": "0", "pass": "0"}
    layer = ET.SubElement(symbol, "layer", named)
    listed = ET.SubElement(layer, "Option", type="Map")
    for name, value in options.items():
        ET.SubElement(listed, "Option", name=name, type="QString", value=value)
    return layer


def _rgba(colour: str) -> str:
    return ",".join(map(str, (*bytes.fromhex(colour), 255)))


# --- SLD ------------------------------------------------------------------------------------------


def style_sld(classes: list[tuple[int, int]], hatched: bool, name: str, layer: str) -> str:
    """Return the same style as an SLD 1.1: a rule for each class, and one for hatching."""
    root = ET.Element("StyledLayerDescriptor", {"version": "1.1.0", **_SPACES})
    named = ET.SubElement(root, "NamedLayer")
    _se(named, "Name", layer)
    style = ET.SubElement(named, "UserStyle")
    _se(style, "Name", name)
    rules = _se(style, "FeatureTypeStyle")
    looks = zip(classes, _labels(classes), _colours(len(classes)), strict=True)
    for (low, high), label, colour in looks:
        rule = _se(rules, "Rule")
        _se(rule, "Name", label)
        both = ET.SubElement(_filter(rule), "ogc:And")
        _compare(both, "PropertyIsGreaterThanOrEqualTo", "count", str(low))
        _compare(both, "PropertyIsLessThanOrEqualTo", "count", str(high))
        fill = _se(_se(rule, "PolygonSymbolizer"), "Fill")
        _se(fill, "SvgParameter", f"#{colour}").set("name", "fill")
    if hatched:
        rule = _se(rules, "Rule")
        _se(rule, "Name", "may be empty")
        _compare(_filter(rule), "PropertyIsEqualTo", "may_be_empty", "true")
        fill = _se(_se(rule, "PolygonSymbolizer"), "Fill")
        graphic = _se(_se(fill, "GraphicFill"), "Graphic")
        mark = _se(graphic, "Mark")
        _se(mark, "WellKnownName", "slash")
        _se(_se(mark, "Stroke"), "SvgParameter", f"#{_LINES}").set("name", "stroke")
        _se(graphic, "Size", "6")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{_text(root)}'


def _filter(rule: ET.Element) -> ET.Element:
    return ET.SubElement(rule, "ogc:Filter")


def _compare(parent: ET.Element, how: str, column: str, value: str) -> None:
    comparison = ET.SubElement(parent, f"ogc:{how}")
    ET.SubElement(comparison, "ogc:PropertyName").text = column
    ET.SubElement(comparison, "ogc:Literal").text = value


def _se(parent: ET.Element, name: str, text: str | None = None) -> ET.Element:
    made = ET.SubElement(parent, f"se:{name}")
    made.text = text
    return made


def _text(root: ET.Element) -> str:
    ET.indent(root, " ")
    return ET.tostring(root, encoding="unicode")
