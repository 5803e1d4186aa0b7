"""The server's application: routes behind the guard, errors in one form, a warm-up at start.

`make_app` is all that others need: the command `serve` runs it by uvicorn, tests and other servers
take it as any ASGI application.
"""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response
from starlette.staticfiles import StaticFiles

from dpregions._version import __version__
from dpregions.releases.published import Release
from dpregions.web.guard import Guard
from dpregions.web.page_routes import STATIC, file_routes, page_routes, payloads
from dpregions.web.parameters import PROBLEMS
from dpregions.web.problems import Problem
from dpregions.web.routes import questions
from dpregions.web.serving import Serving
from dpregions.web.settings import Settings
from dpregions.web.shelf import Shelf

_ABOUT = """Counts of a differentially private release: how many users' regions touch an area, each
once, with an interval for the true count. Looking costs nothing more in privacy."""


def make_app(
    releases: Mapping[str, Release] | Iterable[Path | str],
    *,
    settings: Settings | None = None,
) -> FastAPI:
    """Return an application that serves releases, and nothing but releases.

    Parameters
    ----------
    releases : mapping of Release, or paths
        Releases by their names, or release files. What is served is settled here: later changes
        of the files change nothing.
    settings : Settings, optional
    """
    shelf = Shelf.of(releases)
    settings = Settings() if settings is None else settings
    serving = Serving.of(shelf, settings)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        threading.Thread(target=shelf.warm, name="dpregions-warm", daemon=True).start()
        yield
        serving.close()

    app = FastAPI(
        title="dpregions",
        description=_ABOUT,
        version=__version__,
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.serving = serving
    app.add_middleware(Guard, settings=settings)
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)

    @app.get("/healthz", summary="Whether the server is there", responses=PROBLEMS)
    async def healthz() -> JSONResponse:
        ready = all(shown.is_ready for shown in shelf.values())
        return JSONResponse({"status": "ok", "ready": ready})

    app.include_router(questions(serving))
    app.include_router(payloads(serving))
    app.include_router(file_routes(serving))
    app.include_router(page_routes(serving))
    app.mount("/static", _PageFiles(directory=STATIC), name="static")
    return app


class _PageFiles(StaticFiles):
    """The page's files, which a browser asks after each time: an upgrade brings others."""

    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        response = super().file_response(*args, **kwargs)
        response.headers["Cache-Control"] = "no-cache"
        return response


async def _refused(request: Request, error: Exception) -> Response:
    """Return what Starlette refuses, in the form of all other problems."""
    assert isinstance(error, HTTPException)
    path = request.url.path
    if error.status_code == 405:
        problem = Problem(
            "method", 405, f"{path[:200]} has no {request.method}", headers=error.headers
        )
    elif error.status_code == 404:
        problem = Problem("not-found", 404, f"there is nothing at {path[:200]}: see /api")
    else:
        problem = Problem("input", error.status_code, str(error.detail))
    return problem.response(path)


async def _invalid(request: Request, error: Exception) -> Response:
    """Return what FastAPI finds wrong with parameters, in the form of all other problems."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    name = str(first["loc"][-1])
    return Problem("parameter", 422, f"{name}: {first['msg']}", parameter=name).response(
        request.url.path
    )
