"""What the page needs: itself, its scripts, the counts of a whole release, and files to keep.

All of it is public and never changes while the server runs.
"""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

from fastapi import APIRouter, Request
from starlette.responses import FileResponse, RedirectResponse, Response

from dpregions.geometry.grid import Grid
from dpregions.page import payload
from dpregions.web.files import MEDIA_TYPES, part_of, side_of
from dpregions.web.guard import is_authorised
from dpregions.web.parameters import PROBLEMS, ROOT, given, route
from dpregions.web.problems import Problem
from dpregions.web.serving import Serving, attached, is_known
from dpregions.web.shelf import Shown

STATIC = Path(str(files("dpregions.page"))) / "static"
"""The page's files."""


def page_routes(serving: Serving) -> APIRouter:
    """Return the routes of the page itself."""
    router = APIRouter(include_in_schema=False)
    token = serving.settings.token

    @router.get("/")
    async def front(request: Request) -> Response:
        # Ids are for those who have the token; the page itself asks for it.
        open_to_all = token is None or is_authorised(request.headers, token)
        if open_to_all and len(serving.shelf) == 1:
            (id,) = serving.shelf
            return RedirectResponse(f"/r/{id}", 307)
        return _page("index.html")

    @router.get("/r/{id}")
    async def release_page(id: str) -> Response:
        if token is None:
            serving.by_id(id)
        return _page("index.html")

    @router.get("/api")
    async def api_page() -> Response:
        return _page("api.html")

    return router


def _page(name: str) -> Response:
    return FileResponse(
        STATIC / name, headers={"Cache-Control": "no-cache"}, media_type="text/html"
    )


def payloads(serving: Serving) -> APIRouter:
    """Return the routes of what the page is made of."""
    router = APIRouter(prefix=f"{ROOT}/releases/{{id}}", responses=PROBLEMS)

    @router.get(
        "/page.json",
        summary="What the page says of a release, and where its cells lie",
        **route("application/json"),
    )
    async def described(request: Request) -> Response:
        shown = serving.shown(request)
        given(request)

        def make() -> bytes:
            said = payload.described(shown.release, name=shown.name, checksum=shown.digest)
            return json.dumps(said, allow_nan=False).encode()

        return await serving.kept(request, shown, "page", make, "application/json")

    @router.get(
        "/components.bin",
        summary="The counts of all faces, edges and vertices",
        **route("application/octet-stream"),
    )
    async def components(request: Request) -> Response:
        shown = serving.shown(request)
        given(request)
        serving.gridded(shown, "components.bin")
        return await serving.kept(
            request, shown, "components", lambda: payload.components(shown.release)
        )

    @router.get(
        "/intervals.bin",
        summary="The intervals of all blocks of cells",
        **route("application/octet-stream", takes=["block"]),
    )
    async def intervals(request: Request) -> Response:
        shown = serving.shown(request)
        block = given(request).get("block", "1")
        side = side_of(block, serving.gridded(shown, "intervals.bin"))
        _refuse_covert(shown)
        serving.refuse_cold(shown)
        return await serving.kept(
            request, shown, f"intervals-{side}", lambda: payload.intervals(shown.release, side)
        )

    @router.get(
        "/cells.json",
        summary="The cells of a partition as GeoJSON, with their counts",
        **route("application/geo+json"),
    )
    async def cells(request: Request) -> Response:
        shown = serving.shown(request)
        given(request)
        if isinstance(shown.release.grid, Grid):
            raise Problem("not-found", 404, "this release is on a grid: see components.bin")
        serving.refuse_cold(shown)

        def make() -> bytes:
            return json.dumps(payload.cells(shown.release), allow_nan=False).encode()

        return await serving.kept(request, shown, "cells", make, "application/geo+json")

    return router


def file_routes(serving: Serving) -> APIRouter:
    """Return the routes of files: the release itself, its exports, what the map shows beside it."""
    router = APIRouter(prefix=ROOT, responses=PROBLEMS)
    overlay, basemap = serving.overlay, serving.settings.basemap

    @router.get(
        "/releases/{id}/release.parquet",
        summary="The release file itself",
        **route(MEDIA_TYPES["parquet"]),
    )
    async def release_file(request: Request) -> Response:
        shown = serving.shown(request)
        given(request)
        headers = serving.for_ever(shown, "file") | attached(f"{shown.id}.parquet")
        if is_known(request, headers):
            return Response(status_code=304, headers=headers)
        return Response(shown.file, 200, headers, MEDIA_TYPES["parquet"])

    @router.get(
        "/releases/{id}/export.{suffix}",
        summary="The cells as a file: gpkg, parquet, fgb, geojson, tif, html",
        **route(*MEDIA_TYPES.values(), path=("id", "suffix"), takes=["block"]),
    )
    async def export(request: Request) -> Response:
        shown, block = serving.shown(request), given(request).get("block", "1")
        suffix = request.path_params["suffix"]
        serving.refuse_cold(shown)
        if suffix not in MEDIA_TYPES:
            raise Problem(
                "not-found",
                404,
                f"there are no exports as {suffix[:20]!r}: {', '.join(MEDIA_TYPES)}",
            )
        side = side_of(block, shown.release.grid)
        path = await serving.workshop.do(
            lambda _: serving.exports.file(shown, suffix, side), bounded=False
        )
        headers = serving.for_ever(shown, f"export-{side}-{suffix}") | attached(path.name)
        if is_known(request, headers):
            return Response(status_code=304, headers=headers)
        return FileResponse(path, headers=headers, media_type=MEDIA_TYPES[suffix])

    @router.get(
        "/overlay",
        summary="Areas to draw over the map as GeoJSON, or null",
        **route("application/json", path=()),
    )
    async def overlay_areas(request: Request) -> Response:
        given(request)
        body = b"null" if overlay is None else overlay
        return Response(body, 200, {"Cache-Control": "no-cache"}, "application/json")

    @router.get(
        "/basemap.pmtiles",
        summary="A map to draw below, in ranges of bytes",
        response_class=Response,
        responses={204: {"description": "There is none."}, 206: {"description": "A range."}},
    )
    async def basemap_file(request: Request) -> Response:
        given(request)
        if basemap is None:
            return Response(status_code=204)
        return part_of(basemap, request, "application/vnd.pmtiles")

    return router


def _refuse_covert(shown: Shown) -> None:
    if shown.release.covert:
        raise Problem("covert", 404, "this release has counts only: no estimates, no intervals")
