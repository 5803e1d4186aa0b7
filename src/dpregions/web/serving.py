"""What all routes share: the shelf, the settings, the workshop, and bytes to keep."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from dpregions.geometry.grid import Grid
from dpregions.web.files import Exports, check_basemap
from dpregions.web.overlay import read_overlay
from dpregions.web.problems import Problem
from dpregions.web.settings import Settings
from dpregions.web.shelf import Shelf, Shown
from dpregions.web.work import Workshop


@dataclass(frozen=True)
class Serving:
    """A server's parts."""

    shelf: Shelf
    settings: Settings
    workshop: Workshop
    exports: Exports
    overlay: bytes | None
    """Areas to draw over the map, as GeoJSON."""

    @classmethod
    def of(cls, shelf: Shelf, settings: Settings) -> Serving:
        """Return the parts of a server, once its overlay and its basemap can be read."""
        if settings.basemap is not None:
            check_basemap(settings.basemap)
        overlay = None if settings.overlay is None else read_overlay(settings.overlay)
        limits = settings.limits
        return cls(shelf, settings, Workshop(limits), Exports(limits), overlay)

    def close(self) -> None:
        """End what was begun for requests."""
        self.workshop.close()
        self.exports.close()

    def shown(self, request: Request) -> Shown:
        """Return the release that a request's path names."""
        return self.by_id(request.path_params["id"])

    def by_id(self, id: str, parameter: str | None = None) -> Shown:
        """Return a release; refuse an unknown id."""
        found = self.shelf.get(id)
        if found is None:
            raise Problem(
                "not-found",
                404,
                f"there is no release {id[:60]!r} here: /api/v1/releases lists them",
                parameter=parameter,
            )
        return found

    def refuse_cold(self, *releases: Shown) -> None:
        """Refuse releases that are still being prepared: intervals would take long."""
        for shown in releases:
            if not shown.is_ready:
                seconds = shown.seconds_to_wait
                raise Problem(
                    "warming",
                    503,
                    f"intervals of this release are ready in about {seconds} s",
                    headers={"Retry-After": str(seconds)},
                )

    def gridded(self, shown: Shown, what: str) -> Grid:
        """Return the grid of a release; refuse a partition, which has no rows and columns."""
        if not isinstance(shown.release.grid, Grid):
            raise Problem(
                "not-found",
                404,
                f"{what} is of rows and columns, which this release's cells do not form: "
                f"/api/v1/releases/{shown.id}/export.geojson has them with their counts",
            )
        return shown.release.grid

    async def kept(
        self,
        request: Request,
        shown: Shown,
        name: str,
        make: Callable[[], bytes],
        media_type: str = "application/octet-stream",
    ) -> Response:
        """Return bytes that never change: made and packed once, kept here and by who asks."""
        headers = self.for_ever(shown, name)
        if is_known(request, headers):
            return Response(status_code=304, headers=headers)
        packed = await self.workshop.do(lambda _: shown.packed(name, make), bounded=False)
        if "gzip" in request.headers.get("accept-encoding", ""):
            return Response(packed, 200, headers | {"Content-Encoding": "gzip"}, media_type)
        return Response(gzip.decompress(packed), 200, headers, media_type)

    def for_ever(self, shown: Shown, name: str) -> dict[str, str]:
        """Return headers of what an id with a checksum stands for: it never changes."""
        who = "public" if self.settings.token is None else "private"
        return {
            "ETag": f'"{shown.digest[:32]}-{name}"',
            "Cache-Control": f"{who}, max-age=31536000, immutable",
            "Vary": "Accept-Encoding",
        }


def is_known(request: Request, headers: dict[str, str]) -> bool:
    """Whether who asks has these bytes already."""
    return headers["ETag"] in request.headers.get("if-none-match", "")


def attached(name: str) -> dict[str, str]:
    """Return the header that has a browser save a response as a file."""
    return {"Content-Disposition": f'attachment; filename="{name}"'}
