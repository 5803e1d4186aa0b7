"""What the page needs: itself, its scripts, the counts of a whole release, and files to keep.

All of it is public and never changes while the server runs.
"""

from __future__ import annotations

import json
from pathlib import Path

from fastapi import APIRouter, Request
from starlette.responses import FileResponse, RedirectResponse, Response

import dpregions.page
from dpregions.page import payload
from dpregions.web.guard import is_authorised
from dpregions.web.parameters import PROBLEMS, ROOT, Block, Id, given
from dpregions.web.problems import Problem
from dpregions.web.serving import Serving, attached, is_known

STATIC = Path(dpregions.page.__file__).parent / "static"
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
            serving.shown(id)
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

    @router.get("/card.json", summary="What the page says of a release, and where its cells lie")
    async def card(request: Request, id: Id) -> Response:
        shown = serving.shown(id)
        given(request)

        def make() -> bytes:
            said = payload.described(shown.release, name=shown.name, checksum=shown.digest)
            return json.dumps(said, allow_nan=False).encode()

        return await serving.kept(request, shown, "card", make, "application/json")

    @router.get("/components.bin", summary="The counts of all faces, edges and vertices")
    async def components(request: Request, id: Id) -> Response:
        shown = serving.shown(id)
        given(request)
        serving.gridded(shown, "components.bin")
        return await serving.kept(
            request, shown, "components", lambda: payload.components(shown.release)
        )

    @router.get("/intervals.bin", summary="The intervals of all blocks of cells")
    async def intervals(request: Request, id: Id, block: Block = "1") -> Response:
        shown = serving.shown(id)
        given(request)
        grid = serving.gridded(shown, "intervals.bin")
        side = _side(block, max(grid.shape))
        if shown.release.covert:
            raise Problem("covert", 404, "this release has counts only: no estimates, no intervals")
        serving.warm(id)
        return await serving.kept(
            request, shown, f"intervals-{side}", lambda: payload.intervals(shown.release, side)
        )

    @router.get("/release.parquet", summary="The release file itself")
    async def release_file(request: Request, id: Id) -> Response:
        shown = serving.shown(id)
        given(request)
        headers = serving.for_ever(shown, "file") | attached(f"{shown.id}.parquet")
        if is_known(request, headers):
            return Response(status_code=304, headers=headers)
        return Response(shown.file, 200, headers, "application/vnd.apache.parquet")

    return router


def _side(text: str, longest: int) -> int:
    """Return the side of a block: a power of 2, so that few are ever made."""
    side = int(text) if text.isdecimal() and len(text) < 8 else 0
    if side < 1 or side & (side - 1) or side > longest:
        raise Problem(
            "parameter",
            422,
            f"block must be 1, 2, 4, 8, ... up to {longest}, got {text!r}",
            parameter="block",
        )
    return side
