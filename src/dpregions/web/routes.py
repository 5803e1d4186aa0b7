"""The API's questions: a request's parameters -> a question -> its answer, or a problem.

Look-ups are answered at once, all else by the workshop's threads.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from dpregions.geometry.grid import Grid
from dpregions.web.answers import answer, answer_features, is_quick
from dpregions.web.differences import difference
from dpregions.web.guard import COOKIE
from dpregions.web.parameters import ASKS, HOW, PROBLEMS, ROOT, given, route
from dpregions.web.problems import Problem
from dpregions.web.questions import (
    Manner,
    Question,
    confidence_of,
    crs_of,
    features_of,
    question_of,
    snap_of,
)
from dpregions.web.serving import Serving
from dpregions.web.settings import Limits
from dpregions.web.shelf import Shown

COLUMNS = (
    *("name", "release", "count", "estimate", "low", "high", "confidence"),
    *("within", "exact", "snapped", "cut", "outside", "epsilon", "unit", "private"),
)
"""Of answers as CSV."""

_GEOJSON = ("application/json", "application/geo+json")


def questions(serving: Serving) -> APIRouter:
    """Return the routes that tell of releases and answer questions about them."""
    router = APIRouter(prefix=ROOT, responses=PROBLEMS)
    limits = serving.settings.limits

    def question(asked: dict[str, str], shown: Shown) -> tuple[Question, float]:
        confidence = confidence_of(asked.pop("confidence", None), limits)
        labelled = not isinstance(shown.release.grid, Grid)
        return question_of(asked, limits, labelled=labelled), confidence

    async def answered(request: Request) -> dict[str, Any]:
        shown = serving.shown(request)
        serving.refuse_cold(shown)
        asked, confidence = question(given(request), shown)
        if is_quick(shown, asked):
            return answer(shown, asked, confidence, limits)
        return await serving.workshop.do(lambda _: answer(shown, asked, confidence, limits))

    async def answered_features(request: Request) -> dict[str, Any]:
        shown, asked = serving.shown(request), given(request)
        serving.refuse_cold(shown)
        manner = Manner(
            confidence_of(asked.get("confidence"), limits),
            crs_of(asked.get("crs")),
            snap_of(asked.get("snap")),
        )
        _refuse_media(request)
        body = await _body(request, limits)
        return await serving.workshop.do(
            lambda deadline: answer_features(
                shown, features_of(body, limits), manner, limits, deadline
            )
        )

    @router.get(
        "/releases", summary="The releases of this server", **route("application/json", path=())
    )
    async def releases(request: Request) -> JSONResponse:
        given(request)
        return JSONResponse({"releases": [_told(one) for one in serving.shelf.values()]})

    @router.get(
        "/releases/{id}",
        summary="A release and its privacy statement",
        **route("application/json"),
    )
    async def release(request: Request) -> JSONResponse:
        shown = serving.shown(request)
        given(request)
        return JSONResponse(_told(shown) | {"statement": shown.release.describe()})

    @router.get(
        "/releases/{id}/count",
        summary="How many regions touch an area",
        **route("application/json", takes=ASKS),
    )
    async def count(request: Request) -> JSONResponse:
        return JSONResponse(await answered(request))

    @router.get(
        "/releases/{id}/count.csv",
        summary="The same as CSV",
        **route("text/csv", takes=ASKS),
    )
    async def count_csv(request: Request) -> Response:
        found = await answered(request)
        return _csv([found | found["answered"] | found["privacy"]])

    @router.get(
        "/releases/{id}/area",
        summary="How many regions touch a shape, given as WKT",
        **route("application/json", takes=HOW, needs=["coords"]),
    )
    async def area(request: Request) -> JSONResponse:
        return JSONResponse(await answered(request))

    @router.post(
        "/releases/{id}/count",
        summary="The features, counted",
        **route("application/geo+json", takes=HOW, features=True),
    )
    async def count_features(request: Request) -> JSONResponse:
        found = await answered_features(request)
        return JSONResponse(found, media_type="application/geo+json")

    @router.post(
        "/releases/{id}/count.csv",
        summary="The same as CSV",
        **route("text/csv", takes=HOW, features=True),
    )
    async def count_features_csv(request: Request) -> Response:
        found = await answered_features(request)
        said = found["dpregions"] | found["dpregions"]["privacy"]
        features = [found] if found["type"] == "Feature" else found["features"]
        return _csv(
            said | {"name": _name_of(feature)} | feature["properties"]["dpregions"]
            for feature in features
        )

    @router.get(
        "/difference",
        summary="What release b counts more than release a",
        **route("application/json", takes=ASKS, path=(), needs=["a", "b"]),
    )
    async def compared(request: Request) -> JSONResponse:
        asked = given(request)
        first, second = (serving.by_id(asked.pop(name), name) for name in ("a", "b"))
        serving.refuse_cold(first, second)
        wanted, sure = question(asked, first)
        found = await serving.workshop.do(lambda _: difference(first, second, wanted, sure, limits))
        return JSONResponse(found)

    @router.post("/session", summary="Keep the token as a cookie", status_code=204)
    async def session() -> Response:
        """Set the token that came in the header as a cookie that scripts cannot read."""
        response = Response(status_code=204)
        if serving.settings.token is not None:
            response.set_cookie(COOKIE, serving.settings.token, httponly=True, samesite="strict")
        return response

    return router


def _told(shown: Shown) -> dict[str, Any]:
    """Return what a list says of a release."""
    release = shown.release
    grid, at = release.grid, f"{ROOT}/releases/{shown.id}"
    said: dict[str, Any] = {
        "id": shown.id,
        "name": shown.name,
        "checksum": f"sha256:{shown.digest}",
        "method": release.method,
        "covert": release.covert,
        "ready": shown.is_ready,
        "ledger": release.ledger_entry,
        "max_diameter": release.max_diameter,
        "software_version": release.version,
        "form": grid.form,
        "cells": grid.cells_in_words,
        "crs": shown.crs,
        "bounds": [float(side) for side in grid.bounds],
        "page": f"/r/{shown.id}",
        "count": f"{at}/count",
        "file": f"{at}/release.parquet",
    }
    if isinstance(grid, Grid):
        said |= {"rows": grid.n_rows, "columns": grid.n_cols, "cell_size": grid.cell_size}
    return said | shown.privacy


def _refuse_media(request: Request) -> None:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in _GEOJSON:
        raise Problem(
            "media-type",
            415,
            f"the body is {kind[:80]!r}: send GeoJSON with the header 'Content-Type: "
            f"application/geo+json'",
        )


async def _body(request: Request, limits: Limits) -> bytes:
    """Return a body that is within the limit: no more of a longer one is read."""
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > limits.body:
            raise Problem(
                "too-large",
                413,
                f"the body has more than {limits.body:,} bytes: ask in parts",
                headers={"Connection": "close"},
            )
        parts.append(part)
    return b"".join(parts)


def _name_of(feature: dict[str, Any]) -> str:
    """Return what a feature is called: its name, or its id."""
    properties = feature["properties"]
    found = properties.get("name", feature.get("id", ""))
    return str(found) if isinstance(found, str | int | float) else ""


def _csv(rows: Iterable[dict[str, Any]]) -> Response:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, COLUMNS, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _plain(value) for name, value in row.items()} for row in rows)
    return Response(text.getvalue(), media_type="text/csv")


def _plain(value: Any) -> Any:
    """Return a value that no spreadsheet takes for a formula."""
    return f"'{value}" if isinstance(value, str) and value[:1] in "=+-@\t\r" and value else value
