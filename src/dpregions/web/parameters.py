"""The API's parameters and what it answers with, as its OpenAPI document says them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fastapi import Request
from starlette.responses import Response

from dpregions.web.problems import MEDIA_TYPE, Problem

ROOT = "/api/v1"

_TEXT = 65_536
"""Characters of a parameter: more than a server takes in a line of a request."""

_PARAMETERS: dict[str, tuple[str, dict[str, Any]]] = {
    "cells": (
        "A rectangle of cells: first row, last row, first column, last column, ends included, row "
        "0 in the south. Of a release on other cells than squares: their labels.",
        {"maxLength": _TEXT, "examples": ["7,12,7,12"]},
    ),
    "bbox": ("west,south,east,north", {"maxLength": 200, "examples": ["8.9,48.4,9.1,48.6"]}),
    "point": ("x,y: a place, or the centre of a circle.", {"maxLength": 100}),
    "radius": ("Of the circle, in units of the release's CRS.", {"maxLength": 50}),
    "coords": ("A shape as WKT.", {"maxLength": _TEXT}),
    "crs": (
        "Of the coordinates, such as EPSG:4326 (longitude first); by default the release's own, "
        "and EPSG:4326 for GeoJSON; none: the release's own.",
        {"maxLength": 100},
    ),
    "snap": (
        "What is answered: the shape as drawn, the cells it touched, or the smallest rectangle of "
        "cells enclosing it. By default drawn; enclosing for a bbox in another CRS.",
        {"enum": ["drawn", "touched", "enclosing"]},
    ),
    "confidence": ("Of the interval, from 0.5 to 0.999.", {"maxLength": 30}),
    "block": ("Cells in width and height of a block: 1, 2, 4, 8, ...", {"maxLength": 10}),
    "id": ("Of a release, from /api/v1/releases.", {"maxLength": 60}),
    "suffix": ("gpkg, parquet, fgb, geojson, tif or html", {"maxLength": 10}),
    "a": ("The id of the first release.", {"maxLength": 60}),
    "b": ("The id of the second release.", {"maxLength": 60}),
}
"""What each parameter means and may be. All are text, which `questions.py` reads: FastAPI's own
reading of them takes longer than an answer."""

HOW = ("crs", "snap", "confidence")
ASKS = ("cells", "bbox", "point", "radius", "coords", *HOW)
"""The parameters of a question."""

_A_PROBLEM = {
    "description": "What went wrong, in a sentence.",
    "content": {
        MEDIA_TYPE: {
            "schema": {
                "type": "object",
                "required": ["type", "title", "status", "detail", "instance"],
                "properties": {
                    "type": {"type": "string"},
                    "title": {"type": "string"},
                    "status": {"type": "integer"},
                    "detail": {"type": "string"},
                    "instance": {"type": "string"},
                    "parameter": {"type": "string"},
                },
            }
        }
    },
}
PROBLEMS: dict[int | str, dict[str, Any]] = dict.fromkeys(
    (400, 401, 404, 413, 415, 421, 422, 429, 503), _A_PROBLEM
)

_FEATURES: dict[str, Any] = {
    "required": True,
    "description": "A GeoJSON Feature or FeatureCollection.",
    "content": {
        "application/geo+json": {
            "schema": {
                "type": "object",
                "required": ["type"],
                "properties": {"type": {"enum": ["Feature", "FeatureCollection"]}},
            },
        },
    },
}


def route(
    *kinds: str,
    path: Iterable[str] = ("id",),
    takes: Iterable[str] = (),
    needs: Iterable[str] = (),
    features: bool = False,
) -> dict[str, Any]:
    """Return what a route is declared with: the kinds it sends, the parameters it takes.

    Parameters
    ----------
    *kinds : str
        Media types of what it sends.
    path, takes, needs : iterable of str
        Its parameters: in its path, in its query, and there those it cannot do without.
    features : bool
        Whether its body is GeoJSON.
    """
    parameters = [
        *(_parameter(name, "path", needed=True) for name in path),
        *(_parameter(name, "query", needed=True) for name in needs),
        *(_parameter(name, "query", needed=False) for name in takes),
    ]
    extra: dict[str, Any] = {"parameters": parameters} if parameters else {}
    if features:
        extra["requestBody"] = _FEATURES
    said = {"description": "Done.", "content": {kind: {} for kind in kinds}}
    return {"response_class": Response, "responses": {200: said}, "openapi_extra": extra}


def _parameter(name: str, place: str, *, needed: bool) -> dict[str, Any]:
    words, schema = _PARAMETERS[name]
    said = {"name": name, "in": place, "required": needed, "description": words}
    return said | {"schema": {"type": "string", **schema}}


def given(request: Request) -> dict[str, str]:
    """Return the parameters of a request; refuse unknown ones, and any that comes twice.

    A misspelt parameter would be another question, answered without a word.
    """
    declared = (request.scope["route"].openapi_extra or {}).get("parameters", ())
    known = {part["name"]: part["required"] for part in declared if part["in"] == "query"}
    found: dict[str, str] = {}
    for name, value in request.query_params.multi_items():
        if name not in known:
            some = ", ".join(sorted(known)) or "none"
            raise Problem("parameter", 400, f"there is no parameter {name[:50]!r} here: {some}")
        if name in found:
            raise Problem("parameter", 400, f"{name} is given twice", parameter=name)
        found[name] = value
    if missing := [name for name, needed in known.items() if needed and name not in found]:
        raise Problem("parameter", 400, f"{missing[0]} is missing", parameter=missing[0])
    return found
