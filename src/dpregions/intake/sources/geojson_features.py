"""One feature of GeoJSON, as text -> its ids and its region as WKB; by itself, without an error.

Owns what a feature becomes. Text that is not JSON, members of a wrong kind, positions that are
not numbers: such a feature has no id or no region, and counts nowhere. Numbers that are ids keep
their digits; bytes that are not UTF-8 stay apart from every text (`ids.py`). Of several members
of one name the last counts. Nothing here may look at a second feature.
"""

from __future__ import annotations

import json
import math
import struct
import sys
from array import array
from collections.abc import Callable
from functools import partial
from itertools import chain
from typing import Any

from dpregions.intake.ids import NumberToken, both_ways, id_text, marked_text
from dpregions.intake.sources import wkb as _wkb

COLLECTIONS = 32
"""How deep collections of geometries may be within each other."""

DEEPEST = 2 * COLLECTIONS + 16
"""Brackets within each other that are read: collections, their members, their coordinates."""

_FLOATS = json.JSONDecoder(parse_int=NumberToken)
_DIGITS = json.JSONDecoder(parse_int=NumberToken, parse_float=NumberToken)


def row(text: bytes, names: list[str]) -> tuple[str | bytes | None, ...]:
    """Return a feature's ids and, after them, its region as WKB; None where it lacks one.

    Parameters
    ----------
    text : bytes
        An object of JSON, or what claims to be one; nested at most `DEEPEST` deep.
    names : list of str
        The properties that are ids.

    Examples
    --------
    >>> row(b'{"type": "Feature", "properties": {"user_id": 7.0}, "geometry": null}', ["user_id"])
    ('7', None)
    """
    try:
        texts = [text.decode()]
    except UnicodeDecodeError:
        texts = [*both_ways(text)]
    feature = _parsed(_FLOATS, texts[0])
    if feature.get("type") != "Feature":
        return *(None for _ in names), wkb(feature)
    return *(_id(feature, texts, name) for name in names), wkb(feature.get("geometry"))


def _parsed(decoder: json.JSONDecoder, text: str) -> dict[str, Any]:
    """Return an object of JSON; an empty one where the text is not one."""
    try:
        value, end = decoder.raw_decode(text)
    except ValueError:
        return {}
    return value if type(value) is dict and end == len(text) else {}


def _id(feature: dict[str, Any], texts: list[str], name: str) -> str | None:
    value = _member(feature, name)
    if type(value) is NumberToken and len(value) < 19 and value.isdigit():
        return str(value)  # what `id_text` gives, faster
    if type(value) is float:
        value = _member(_parsed(_DIGITS, texts[0]), name)
    if type(value) is str and len(texts) > 1:
        return marked_text(value, _member(_parsed(_DIGITS, texts[1]), name))
    return id_text(value)


def _member(feature: dict[str, Any], name: str) -> Any:
    """Return a property; the feature's own id is one too, unless a property has that name."""
    properties = feature.get("properties")
    if type(properties) is dict and name in properties:
        return properties[name]
    return feature.get("id") if name == "id" else None


# Geometries: each writer returns WKB, or raises _NoGeometry.


class _NoGeometry(Exception):
    """What was found is not a geometry."""


_NOWHERE = struct.pack("<2d", math.nan, math.nan)


def wkb(geometry: Any) -> bytes | None:
    """Return a geometry of GeoJSON as WKB, x and y alone; None where it is not one.

    Examples
    --------
    >>> wkb({"type": "Point", "coordinates": [9.0, 48.5, 300.0]}).hex()[:10]
    '0101000000'
    """
    try:
        return _geometry(geometry, COLLECTIONS)
    except _NoGeometry:
        return None


def _geometry(geometry: Any, collections: int) -> bytes:
    kind = geometry.get("type") if type(geometry) is dict else None
    if type(kind) is not str:
        raise _NoGeometry
    if kind == "GeometryCollection" and collections:
        members = _listed(geometry.get("geometries"))
        parts = [_geometry(member, collections - 1) for member in members]
        return _wkb.multi(_wkb.COLLECTION, parts)
    if kind not in _WRITERS:
        raise _NoGeometry
    return _WRITERS[kind](_listed(geometry.get("coordinates")))


def _listed(value: Any) -> list[Any]:
    if type(value) is not list:
        raise _NoGeometry
    return value


def _positions(positions: list[Any]) -> bytes:
    """Return positions as x and y, one after the other, in the order of bytes of `wkb.py`."""
    if not positions:
        return b""
    if set(map(type, positions)) != {list}:
        raise _NoGeometry
    lengths = set(map(len, positions))
    if min(lengths) < 2:
        raise _NoGeometry
    values = list(chain.from_iterable(positions))
    kinds = set(map(type, values))
    if not kinds <= {float, NumberToken}:
        raise _NoGeometry
    if lengths != {2}:
        values = list(chain.from_iterable(position[:2] for position in positions))
    places = array("d", values if kinds == {float} else map(float, values))
    if sys.byteorder == "big":
        places.byteswap()
    return places.tobytes()


def _place(position: list[Any]) -> bytes:
    return _wkb.point(_positions([position]))


def _line(positions: list[Any]) -> bytes:
    return _wkb.line(_positions(positions))


def _polygon(rings: list[Any]) -> bytes:
    return _wkb.polygon([_positions(_listed(ring)) for ring in rings])


def _several(kind: int, write: Callable[[list[Any]], bytes], members: list[Any]) -> bytes:
    return _wkb.multi(kind, [write(_listed(member)) for member in members])


_WRITERS: dict[str, Callable[[list[Any]], bytes]] = {
    "Point": lambda position: _place(position) if position else _wkb.point(_NOWHERE),
    "LineString": _line,
    "Polygon": _polygon,
    "MultiPoint": partial(_several, _wkb.MULTIPOINT, _place),
    "MultiLineString": partial(_several, _wkb.MULTILINE, _line),
    "MultiPolygon": partial(_several, _wkb.MULTIPOLYGON, _polygon),
}
