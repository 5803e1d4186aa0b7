"""What a request asks: text and GeoJSON -> rectangles of cells, labels, shapes, within limits.

Owns every refusal of a malformed question, each with the value and the remedy. It counts before it
builds: nothing is made of a body before its depth, its features and its vertices are known to be
within the limits.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from dpregions.web.problems import Problem

if TYPE_CHECKING:
    from dpregions.web.settings import Limits

Snap = Literal["drawn", "touched", "enclosing"]
"""A shape as drawn, the cells that it touches, or the smallest rectangle of cells around it."""

BOUNDS = ("west", "south", "east", "north")
WGS84 = "EPSG:4326"
OWN = "none"
"""As a CRS: the coordinates are those of the release."""
_GEOMETRIES = (
    "Point",
    "LineString",
    "Polygon",
    "MultiPoint",
    "MultiLineString",
    "MultiPolygon",
    "GeometryCollection",
)
_CODE = re.compile(r"[A-Za-z]{1,20}:[A-Za-z0-9_]{1,20}")
_RING = re.compile("LINEARRING", re.IGNORECASE)
_SIDES = 32
"""Into how many parts a rectangle's sides in another CRS are cut: straight there, bent here."""


@dataclass(frozen=True)
class Manner:
    """How the features of a body are to be answered."""

    confidence: float
    crs: str | None
    snap: Snap | None


@dataclass(frozen=True, kw_only=True)
class Question:
    """One question, as it was asked.

    Attributes
    ----------
    echo : dict
        What was asked, for the answer.
    cells : tuple of int, optional
        ``row0, row1, col0, col1``, ends included.
    labels : tuple of str, optional
        Of a partition's cells.
    shape : shapely.Geometry, optional
    radius : float, optional
        Of the circle around `shape`, in units of the release's CRS.
    crs : str, optional
        That of `shape`; None: the release's.
    snap : Snap, optional
        None: the default of what was asked.
    is_bbox : bool
    """

    echo: dict[str, Any]
    cells: tuple[int, int, int, int] | None = None
    labels: tuple[str, ...] | None = None
    shape: Any = None
    radius: float | None = None
    crs: str | None = None
    snap: Snap | None = None
    is_bbox: bool = False


def question_of(given: dict[str, str], limits: Limits, *, labelled: bool) -> Question:
    """Return the question of a request's parameters; `labelled`: cells are named by labels."""
    ways = [name for name in ("cells", "bbox", "point", "coords") if name in given]
    if len(ways) != 1:
        got = " and ".join(ways) or "none"
        raise Problem("parameter", 400, f"give one of cells, bbox, point and coords; got {got}")
    (way,) = ways
    if way == "cells":
        return _cells_question(given, labelled)
    snap, crs = snap_of(given.get("snap")), crs_of(given.get("crs"))
    crs = None if crs == OWN else crs
    if "radius" in given and way != "point":
        raise Problem("parameter", 400, "radius goes with point", parameter="radius")
    if way == "bbox":
        found = _bbox_question(given["bbox"], crs)
    elif way == "point":
        found = _point_question(given["point"], given.get("radius"), crs)
    else:
        found = _wkt_question(given["coords"], crs, limits)
    return replace(found, snap=snap)


def _cells_question(given: dict[str, str], labelled: bool) -> Question:
    for name in ("crs", "snap", "radius"):
        if name in given:
            raise Problem("parameter", 400, f"{name} does not go with cells", parameter=name)
    text = given["cells"]
    if labelled:
        labels = tuple(part.strip() for part in text.split(","))
        return Question(echo={"cells": list(labels)}, labels=labels)
    parts = text.split(",")
    if len(parts) != 4 or not all(part.strip().isdecimal() and len(part) < 16 for part in parts):
        raise Problem(
            "parameter",
            422,
            f"cells are first row, last row, first column, last column, four whole numbers of 0 "
            f"or more; got {_short(text)}",
            parameter="cells",
        )
    row0, row1, col0, col1 = map(int, parts)
    if row0 > row1 or col0 > col1:
        raise Problem(
            "reversed",
            422,
            f"cells {text} have a first row or column beyond the last: give the lower first",
            parameter="cells",
        )
    return Question(echo={"cells": [row0, row1, col0, col1]}, cells=(row0, row1, col0, col1))


def _bbox_question(text: str, crs: str | None) -> Question:
    import shapely

    west, south, east, north = _numbers(text, 4, "bbox", "west,south,east,north")
    for low, high, names in ((west, east, ("west", "east")), (south, north, ("south", "north"))):
        if low > high:
            raise Problem(
                "reversed",
                422,
                f"bbox has {names[0]} {low:g} > {names[1]} {high:g}; give west,south,east,north. "
                f"A window across the antimeridian: as two.",
                parameter="bbox",
            )
    shape: Any = shapely.box(west, south, east, north)
    if crs is not None:
        longest = max(east - west, north - south)
        if longest > 0:
            shape = shapely.segmentize(shape, longest / _SIDES)
    return Question(
        echo={"bbox": [west, south, east, north]} | _named(crs), shape=shape, crs=crs, is_bbox=True
    )


def _point_question(text: str, radius: str | None, crs: str | None) -> Question:
    import shapely

    point = _numbers(text, 2, "point", "x,y")
    echo: dict[str, Any] = {"point": point}
    size = None
    if radius is not None:
        (size,) = _numbers(radius, 1, "radius", "a number of the release's units")
        if size <= 0:
            raise Problem(
                "parameter", 422, f"radius must be above 0, got {size:g}", parameter="radius"
            )
        echo["radius"] = size
    return Question(echo=echo | _named(crs), shape=shapely.Point(point), radius=size, crs=crs)


def _wkt_question(text: str, crs: str | None, limits: Limits) -> Question:
    import shapely

    if _deepest(text, "(", ")") > limits.depth:
        raise Problem("query", 422, f"coords nest deeper than {limits.depth}", parameter="coords")
    if text.count(",") > limits.vertices + limits.features:
        raise _too_many_vertices(limits, "coords")
    try:
        # A ring is a line here, also within a collection: GEOS repairs no rings that cross.
        shape = shapely.from_wkt(_RING.sub("LINESTRING", text))
    except (shapely.errors.GEOSException, NotImplementedError):  # the latter: of curves
        shape = None
    if shape is None or shape.geom_type not in _GEOMETRIES:
        raise Problem(
            "query",
            422,
            f"coords are no WKT that is read here: give a POINT, LINESTRING, POLYGON, MULTI... or "
            f"GEOMETRYCOLLECTION; got {_short(text)}",
            parameter="coords",
        )
    xy = shapely.get_coordinates(shape)
    if len(xy) > limits.vertices:
        raise _too_many_vertices(limits, "coords")
    if not np.isfinite(xy).all():
        raise Problem(
            "not-finite", 422, "coords have a number that is not finite", parameter="coords"
        )
    return Question(echo={"coords": text} | _named(crs), shape=shape, crs=crs)


def crs_of(text: str | None) -> str | None:
    """Return the name of a CRS: a code alone, as other texts of PROJ may name files."""
    if text is None or text == OWN or _CODE.fullmatch(text):
        return text
    raise Problem(
        "unknown-crs",
        422,
        f"crs is an authority and a code, such as EPSG:4326 or ESRI:54009; got {_short(text)}",
        parameter="crs",
    )


def snap_of(text: str | None) -> Snap | None:
    """Return how a shape is to be answered; None: as is best."""
    if text is None or text in get_args(Snap):
        return text  # type: ignore[return-value]
    raise Problem(
        "parameter",
        422,
        f"snap is one of {', '.join(get_args(Snap))}; got {_short(text)}",
        parameter="snap",
    )


def confidence_of(text: str | None, limits: Limits) -> float:
    """Return the confidence of intervals, 0.95 by default."""
    if text is None:
        return 0.95
    (value,) = _numbers(text, 1, "confidence", "a number such as 0.95")
    low, high = limits.confidence
    if not low <= value <= high:
        raise Problem(
            "confidence",
            422,
            f"confidence must be from {low} to {high}, got {value:g}",
            parameter="confidence",
        )
    return value


def _numbers(text: str, n: int, name: str, words: str) -> list[float]:
    """Return n finite numbers of a text, with commas between them."""
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        values = []
    if len(values) != n:
        raise Problem(
            "parameter", 422, f"{name} must be {words}, got {_short(text)}", parameter=name
        )
    if not all(map(math.isfinite, values)):
        raise Problem(
            "not-finite",
            422,
            f"{name} has a number that is not finite: {_short(text)}",
            parameter=name,
        )
    return values


def _named(crs: str | None) -> dict[str, str]:
    return {} if crs is None else {"crs": crs}


def _short(text: str) -> str:
    return repr(text if len(text) <= 80 else f"{text[:77]}...")


def _deepest(text: str, opening: str, closing: str) -> int:
    depth = deepest = 0
    for letter in text:
        depth += (letter == opening) - (letter == closing)
        deepest = max(deepest, depth)
    return deepest


def _too_many_vertices(limits: Limits, parameter: str | None = None) -> Problem:
    return Problem(
        "too-large",
        413 if parameter is None else 422,
        f"a request may have {limits.vertices:,} vertices: simplify the shapes, or ask in parts",
        parameter=parameter,
    )


# -- GeoJSON --------------------------------------------------------------------------------------


def features_of(body: bytes, limits: Limits) -> dict[str, Any]:
    """Return a Feature or FeatureCollection whose geometries can be read, within the limits."""
    found = _parsed(body, limits)
    kind = found.get("type") if isinstance(found, dict) else None
    if kind not in ("Feature", "FeatureCollection"):
        raise Problem(
            "body",
            422,
            "send a GeoJSON Feature or FeatureCollection; a geometry alone goes into "
            '{"type": "Feature", "properties": {}, "geometry": ...}',
        )
    features = [found] if kind == "Feature" else found.get("features")
    if not isinstance(features, list):
        raise Problem("body", 422, "the FeatureCollection has no list of features")
    if len(features) > limits.features:
        raise Problem(
            "too-large",
            413,
            f"a request may have {limits.features:,} features, got {len(features):,}: ask in parts",
        )
    vertices = 0
    for i, feature in enumerate(features):
        if not isinstance(feature, dict) or feature.get("type") != "Feature":
            raise Problem("body", 422, f"features[{i}] is no GeoJSON Feature")
        if not isinstance(feature.get("properties"), dict | None):
            raise Problem("body", 422, f"features[{i}] has properties that are no object")
        vertices += _n_vertices(feature.get("geometry"), f"features[{i}]")
        if vertices > limits.vertices:
            raise _too_many_vertices(limits)
    return found


def _parsed(body: bytes, limits: Limits) -> Any:
    try:
        found = json.loads(body, parse_constant=_refuse_constant, parse_float=_finite)
    except RecursionError:
        raise Problem("body", 422, f"the JSON nests deeper than {limits.depth}") from None
    except ValueError:
        raise Problem("body", 400, "the body is no JSON, in UTF-8") from None
    level: list[Any] = [found]
    for _ in range(limits.depth):
        level = [
            inner
            for value in level
            if isinstance(value, dict | list)
            for inner in (value.values() if isinstance(value, dict) else value)
        ]
        if not level:
            _refuse_half_letters(found)
            return found
    raise Problem("body", 422, f"the JSON nests deeper than {limits.depth}")


def _refuse_constant(name: str) -> None:
    raise Problem("not-finite", 422, f"the body has {name}, which is no number of JSON")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise Problem(
            "not-finite", 422, f"the body has a number that is not finite: {_short(text)}"
        )
    return value


def _refuse_half_letters(found: Any) -> None:
    """Refuse text that no answer could repeat: half of a surrogate pair is not a letter."""
    try:
        json.dumps(found, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        half = ascii(error.object[error.start])[1:-1]
        raise Problem(
            "body",
            422,
            f"the body has {half} alone, half of a pair that makes one letter: send text in UTF-8",
        ) from None


def _n_vertices(geometry: Any, where: str) -> int:
    """Return how many vertices a geometry has, once all its coordinates are finite numbers."""
    if not isinstance(geometry, dict) or geometry.get("type") not in _GEOMETRIES:
        raise Problem(
            "body", 422, f"{where} has no geometry that is read here: {', '.join(_GEOMETRIES)}"
        )
    if geometry["type"] == "GeometryCollection":
        parts = geometry.get("geometries")
        if not isinstance(parts, list):
            raise Problem("body", 422, f"{where} has a GeometryCollection without geometries")
        return sum(_n_vertices(part, where) for part in parts)
    return sum(1 for _ in _positions(geometry.get("coordinates"), where))


def _positions(found: Any, where: str) -> Iterator[Any]:
    if not isinstance(found, list):
        raise Problem("body", 422, f"{where} has coordinates that are no lists of numbers")
    if found and not isinstance(found[0], list):
        for value in found:
            if not isinstance(value, int | float) or isinstance(value, bool):
                raise Problem("body", 422, f"{where} has coordinates that are no numbers")
            if abs(value) > 1e300:  # also what is too long for a float, or infinite
                raise Problem("not-finite", 422, f"{where} has a coordinate that is not finite")
        if len(found) < 2:
            raise Problem("body", 422, f"{where} has a position without two numbers")
        yield found
        return
    for part in found:
        yield from _positions(part, where)


def shape_of(geometry: dict[str, Any], where: str) -> Any:
    """Return a GeoJSON geometry that `features_of` let pass as a shape."""
    import shapely

    try:
        return shapely.from_geojson(json.dumps(geometry))
    except shapely.errors.GEOSException:
        raise Problem(
            "body",
            422,
            f"{where} is no GeoJSON {geometry['type']}: rings need four positions and end where "
            f"they begin, lines need two",
        ) from None
