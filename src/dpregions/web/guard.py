"""What every request passes before it reaches a route, and every response on its way out.

Checks the Host header (a page of another site may have this machine's address under its own name),
CORS, the token; sets the headers that keep a browser from loading or framing anything else; writes
one line for the log, with the route's template and never the query: what was asked stays with who
asked. It is the last to catch an error: none reaches a client or the log with its text.
"""

from __future__ import annotations

import hmac
import ipaddress
import logging
import time
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING, Any

from starlette._utils import get_route_path
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware.cors import CORSMiddleware

from dpregions.errors import DPRegionsError
from dpregions.web.problems import Problem
from dpregions.web.settings import ANY_ADDRESS, LOOPBACK

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from dpregions.web.settings import Settings

COOKIE = "dpregions_token"

LOG = logging.getLogger("dpregions.web")

_OPEN = frozenset({"/", "/api", "/healthz", "/openapi.json"})
_OPEN_BELOW = ("/r/", "/static/")
"""What needs no token: the page and its files, which tell of no release. All else does."""
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "geolocation=(), camera=(), microphone=()",
}


def content_policy(settings: Settings) -> str:
    """Return the Content-Security-Policy: all from here, nothing inline, nobody's frame."""
    framed = " ".join(settings.embed) or "'none'"
    return "; ".join(
        [
            "default-src 'none'",
            "script-src 'self'",
            "worker-src 'self'",
            "style-src 'self'",
            "img-src 'self' data: blob:",
            "connect-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            f"frame-ancestors {framed}",
        ]
    )


class Guard:
    """The outermost layer of the server, around routes."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._settings = settings
        self._headers = _HEADERS | {"Content-Security-Policy": content_policy(settings)}
        inner: ASGIApp = self._checked(app)  # inside CORS: scripts may read problems too
        if settings.cors:
            inner = CORSMiddleware(
                inner,
                allow_origins=settings.cors,
                allow_methods=("GET", "POST"),
                allow_headers=("Authorization", "Content-Type"),
                expose_headers=("Retry-After", "ETag"),
            )
        self._inner = inner

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, its response with headers, and a line to the log."""
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        began, status = time.perf_counter(), 0

        async def send_guarded(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in self._headers.items():
                    headers[name] = value
            await send(message)

        try:
            self._check_host(scope)
            await self._inner(scope, receive, send_guarded)
        except Problem as problem:
            await problem.response(scope["path"])(scope, receive, send_guarded)
        finally:
            ms = 1000 * (time.perf_counter() - began)
            LOG.info("%s %s %d %.1f ms", scope["method"], _template(scope), status, ms)

    def _checked(self, app: ASGIApp) -> ASGIApp:
        async def checked(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http":
                await app(scope, receive, send)
                return
            started = False

            async def send_noting(message: Message) -> None:
                nonlocal started
                started = True
                await send(message)

            try:
                self._check_token(scope)
                await app(scope, receive, send_noting)
            except Exception as error:
                problem = _problem_of(error)
                if started:  # nothing can be said any more; what it was is in the log
                    raise ConnectionError("the response broke off") from None
                await problem.response(scope["path"])(scope, receive, send)

        return checked

    def _check_host(self, scope: Scope) -> None:
        name = _host_name(Headers(scope=scope).get("host", ""))
        settings = self._settings
        known = name in LOOPBACK or name in settings.names or name == settings.host
        # An address cannot be made to point elsewhere, as a name can.
        if not known and not (settings.host in ANY_ADDRESS and _is_address(name)):
            raise Problem(
                "host",
                421,
                f"the Host header names {name[:100]!r}, which this server was not started for: "
                f"start it with the host {name[:100]} allowed, if that is its name",
            )

    def _check_token(self, scope: Scope) -> None:
        path = get_route_path(scope)  # as routes see it, below another application too
        token = self._settings.token
        if token is None or path in _OPEN or path.startswith(_OPEN_BELOW):
            return
        if not is_authorised(Headers(scope=scope), token):
            raise Problem(
                "token",
                401,
                "this server asks for a token: send the header 'Authorization: Bearer TOKEN', "
                "with the token that the server printed when it started",
                headers={"WWW-Authenticate": "Bearer"},
            )


def is_authorised(headers: Headers, token: str) -> bool:
    """Whether a request brings the token, in its header or its cookie."""
    scheme, _, given = headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer":
        try:
            morsel = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
        except CookieError:
            morsel = None
        given = "" if morsel is None else morsel.value
    return hmac.compare_digest(given.strip().encode(), token.encode())


def _host_name(host: str) -> str:
    """Return the name in a Host header, without its port."""
    host = host.strip().lower()
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _template(scope: Any) -> str:
    """Return the route's template, such as /releases/{id}/count; never what was asked."""
    path = getattr(scope.get("route"), "path", None)
    if path is None:
        return "/static" if scope["path"].startswith("/static/") else "-"
    return str(path)


def _problem_of(error: Exception) -> Problem:
    if isinstance(error, Problem):
        return error
    if isinstance(error, DPRegionsError):
        return Problem.of(error)
    # Of its text nothing is kept: it may quote what was asked.
    LOG.error("unforeseen %s", type(error).__name__)
    return Problem("unforeseen", 500, "this should not happen: please report it")
