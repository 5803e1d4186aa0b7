"""A server of small releases in this process, asked as over HTTP."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

from starlette.testclient import TestClient

import dpregions as dpr
from dpregions.releases.published import Release
from dpregions.web.app import make_app
from dpregions.web.settings import Settings
from support.footprint_releases import study

HERE = "http://127.0.0.1:8000"


@cache
def city() -> Release:
    """A town of 12 x 15 cells of 500 m, two degrees east of its CRS's meridian."""
    grid = dpr.Grid.around(11.0, 48.5, "7500m", "500m", crs="EPSG:32632")
    low = dpr.Grid(grid.xmin, grid.ymin, 500, 12, 15, crs=grid.crs)
    return study(grid=low, max_diameter=1000, epsilon=2)


@cache
def later_city() -> Release:
    """The same town with other people in it."""
    from support.footprint_releases import town

    grid = city().grid
    return study(town(grid, 1000, n=300, seed=7), grid, max_diameter=1000, epsilon=3)


@dataclass(frozen=True)
class Served:
    """A server and the ids of its releases."""

    client: TestClient
    ids: tuple[str, ...]

    def at(self, path: str, release: int = 0) -> str:
        """The path of something below a release."""
        return f"/api/v1/releases/{self.ids[release]}/{path}"

    def json(self, path: str, release: int = 0, **params: Any) -> Any:
        """What a GET answers, which must succeed."""
        response = self.client.get(self.at(path, release), params=params)
        assert response.status_code == 200, response.text
        return response.json()

    def problem(self, path: str, status: int, release: int = 0, **params: Any) -> Any:
        """The problem that a GET ends in."""
        return problem_in(self.client.get(self.at(path, release), params=params), status)

    def post(self, body: Any, *, path: str = "count", release: int = 0, **params: Any) -> Any:
        """What a POST of GeoJSON answers, whatever it is."""
        headers = {"Content-Type": "application/geo+json"}
        at, given = self.at(path, release), {"params": params, "headers": headers}
        if isinstance(body, bytes):
            return self.client.post(at, content=body, **given)
        return self.client.post(at, json=body, **given)


def problem_in(response: Any, status: int) -> Any:
    """The problem in a response: of the one form that all have."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    found = response.json()
    assert found.keys() - {"parameter"} == {"type", "title", "status", "detail", "instance"}
    assert response.headers["cache-control"] == "no-store"
    assert found["status"] == status and found["type"].startswith("/problems/")
    return found


@contextmanager
def serving(releases: Mapping[str, Release], **settings: Any) -> Iterator[Served]:
    """A server that is ready."""
    app = make_app(releases, settings=Settings(**settings))
    ids = tuple(app.state.serving.shelf)
    with TestClient(app, base_url=HERE) as client:
        while not client.get("/healthz").json()["ready"]:
            time.sleep(0.02)
        yield Served(client, ids)


def feature(geometry: dict[str, Any], **properties: Any) -> dict[str, Any]:
    """A GeoJSON Feature."""
    return {"type": "Feature", "properties": properties, "geometry": geometry}


def collection(*features: dict[str, Any]) -> dict[str, Any]:
    """A GeoJSON FeatureCollection."""
    return {"type": "FeatureCollection", "features": list(features)}
