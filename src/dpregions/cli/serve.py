"""`dpregions serve`: releases as a page and an API on this machine.

Reads release files once, at start, and nothing else later; what it says on the terminal is public.
"""

from __future__ import annotations

import logging
import re
import secrets
import socket
import sys
import webbrowser
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from dpregions.cli.options import say
from dpregions.errors import InputError, MissingExtraError


def serve(
    releases: Annotated[
        list[Path],
        typer.Argument(help="Release files.", exists=True, dir_okay=False, metavar="RELEASE..."),
    ],
    host: Annotated[
        str,
        typer.Option(help="The address to listen on: 0.0.0.0 answers other machines, too."),
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(help="The port; 0 for any that is free.", min=0, max=65535)
    ] = 8000,
    open_page: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the page in a browser, on a terminal.")
    ] = True,
    token: Annotated[
        str | None,
        typer.Option(
            envvar="DPREGIONS_TOKEN",
            help="Answer only who brings this token, of 16 characters or more; 'new' makes one.",
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A name under which others ask this server."),
    ] = None,
    cors: Annotated[
        list[str] | None,
        typer.Option(metavar="ORIGIN", help="A site whose scripts may ask; * for all."),
    ] = None,
    embed: Annotated[
        list[str] | None,
        typer.Option(metavar="ORIGIN", help="A site that may show the page in a frame."),
    ] = None,
    overlay: Annotated[
        Path | None,
        typer.Option(help="Areas to draw on the map: GeoJSON, GeoPackage, ...", dir_okay=False),
    ] = None,
    basemap: Annotated[
        Path | None, typer.Option(help="A map to draw below: a PMTiles file.", dir_okay=False)
    ] = None,
    log: Annotated[
        bool,
        typer.Option("--log/--no-log", help="A line for each request: never what was asked."),
    ] = True,
) -> None:
    """Serve releases as a map that answers, and as an API (needs the extra web).

    The page and the API answer from the release files alone: looking costs
    nothing in privacy. Only this machine is answered, unless --host says
    otherwise. Ctrl+C ends it.

    Example: dpregions serve city.parquet

    Example: dpregions serve may.parquet june.parquet --overlay districts.geojson
    """
    try:
        import fastapi  # noqa: F401
        import uvicorn
    except ImportError:
        raise MissingExtraError("fastapi and uvicorn", "web") from None

    from dpregions.web.app import make_app
    from dpregions.web.settings import Settings

    settings = Settings(
        host=host,
        names=tuple(name.lower() for name in allow_host or ()),
        token=_token(token),
        cors=tuple(_origin(text, "--cors") for text in cors or ()),
        embed=tuple(_origin(text, "--embed") for text in embed or ()),
        overlay=overlay,
        basemap=basemap,
    )
    application = make_app(releases, settings=settings)
    shelf = application.state.serving.shelf
    for shown in shelf.values():
        if not shown.release.private:
            say(f"{shown.name}: NOT PRIVATE, a study's file: do not publish")
    config = uvicorn.Config(
        application,
        access_log=False,  # it has what was asked
        log_config=None,
        server_header=False,
        timeout_graceful_shutdown=10,
        limit_concurrency=1000,
    )
    with _listening(host, port) as listening:
        url = _url(host, listening.getsockname()[1], settings.token)
        typer.echo(f"Serving {len(shelf)} release{'s' * (len(shelf) > 1)} at {url}")
        _log_to_stderr(log)
        if open_page and sys.stdout.isatty():
            webbrowser.open(url)  # it waits until the server takes the connection
        with suppress(KeyboardInterrupt):
            uvicorn.Server(config).run([listening])


def _token(text: str | None) -> str | None:
    """Return the token of --token; a new one where that is wanted."""
    if text is None:
        return None
    if text == "new":
        return secrets.token_urlsafe(24)
    if not re.fullmatch(r"[A-Za-z0-9._~-]{16,200}", text):
        raise InputError(
            "--token takes 'new', or 16 to 200 letters, digits and . _ ~ - which nobody guesses"
        )
    return text


def _origin(text: str, option: str) -> str:
    """Return an origin as browsers name it; refuse what would change a header."""
    if text == "*" and option == "--cors":
        return text
    if not re.fullmatch(
        r"https?://[A-Za-z0-9.\-]+(:\d{1,5})?|https?://\[[0-9a-fA-F:]+\](:\d{1,5})?", text
    ):
        raise InputError(f"{option} {text!r} is no origin: give one such as https://example.org")
    return text.lower()


def _listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens: who connects waits until the server runs."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # By name: asyncio sends small answers without delay on sockets that say they are of TCP.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(256)
        return listening
    except OSError as error:
        listening.close()
        raise InputError(
            f"--host {host} --port {port} cannot be listened on: {error.strerror}; "
            f"--port 0 takes any port that is free"
        ) from None


def _url(host: str, port: int, token: str | None) -> str:
    """Return the address to type; the token is in the part that browsers do not send."""
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
    return f"http://{shown}:{port}/" + ("" if token is None else f"#token={token}")


def _log_to_stderr(wanted: bool) -> None:
    """Have requests logged, and nothing that other libraries say: it may quote what was asked."""
    logging.getLogger("uvicorn").addHandler(logging.NullHandler())
    logging.getLogger("uvicorn").propagate = False
    ours = logging.getLogger("dpregions.web")
    ours.setLevel(logging.INFO if wanted else logging.ERROR)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s", "%Y-%m-%d %H:%M:%S"))
    ours.addHandler(handler)
