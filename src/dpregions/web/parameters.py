"""The API's parameters and what it answers with, as its OpenAPI document says them."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path, Query, Request
from starlette.responses import Response

from dpregions.web.problems import MEDIA_TYPE, Problem

ROOT = "/api/v1"

_TEXT = 65_536
"""Characters of a parameter: more than a server takes in a line of a request."""

Id = Annotated[str, Path(description="Of a release, from /api/v1/releases.", max_length=60)]
Cells = Annotated[
    str | None,
    Query(
        description="A rectangle of cells: first row, last row, first column, last column, ends "
        "included, row 0 in the south. Of a release on other cells than squares: their labels.",
        examples=["7,12,7,12"],
        max_length=_TEXT,
    ),
]
Bbox = Annotated[
    str | None,
    Query(description="west,south,east,north", examples=["8.9,48.4,9.1,48.6"], max_length=200),
]
Point = Annotated[
    str | None, Query(description="x,y: a place, or the centre of a circle.", max_length=100)
]
Radius = Annotated[
    str | None, Query(description="Of the circle, in units of the release's CRS.", max_length=50)
]
Coords = Annotated[str | None, Query(description="A shape as WKT.", max_length=_TEXT)]
NeededCoords = Annotated[str, Query(description="A shape as WKT.", max_length=_TEXT)]
Crs = Annotated[
    str | None,
    Query(
        description="Of the coordinates, such as EPSG:4326 (longitude first); by default the "
        "release's own, and EPSG:4326 for GeoJSON; none: the release's own.",
        max_length=100,
    ),
]
SnapTo = Annotated[
    str | None,
    Query(
        description="What is answered: the shape as drawn, the cells it touched, or the smallest "
        "rectangle of cells enclosing it. By default drawn; enclosing for a bbox in another CRS.",
        json_schema_extra={"enum": ["drawn", "touched", "enclosing"]},
    ),
]
Confidence = Annotated[
    str | None, Query(description="Of the interval, from 0.5 to 0.999.", max_length=30)
]
Block = Annotated[
    str,
    Query(description="Cells in width and height of a block: 1, 2, 4, 8, ...", max_length=10),
]
Suffix = Annotated[str, Path(description="gpkg, parquet, fgb, geojson, tif or html", max_length=10)]
ReleaseA = Annotated[str, Query(description="The id of the first release.", max_length=60)]
ReleaseB = Annotated[str, Query(description="The id of the second release.", max_length=60)]

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

FEATURES: dict[str, Any] = {
    "requestBody": {
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
}
"""The body of what is asked about features."""


def sends(*kinds: str) -> dict[str, Any]:
    """Return what a route is told, so that its document names the kinds of what it sends."""
    said = {"description": "Done.", "content": {kind: {} for kind in kinds}}
    return {"response_class": Response, "responses": {200: said}}


def given(request: Request) -> dict[str, str]:
    """Return the parameters of a request; refuse unknown ones, and any that comes twice.

    A misspelt parameter would be another question, answered without a word.
    """
    known = {parameter.alias for parameter in request.scope["route"].dependant.query_params}
    found: dict[str, str] = {}
    for name, value in request.query_params.multi_items():
        if name not in known:
            some = ", ".join(sorted(known)) or "none"
            raise Problem("parameter", 400, f"there is no parameter {name[:50]!r} here: {some}")
        if name in found:
            raise Problem("parameter", 400, f"{name} is given twice", parameter=name)
        found[name] = value
    return found
