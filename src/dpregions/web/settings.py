"""How a server is set up: whom it answers, what it shows beside releases, and its limits.

Everything is decided at start and stays as it is. The defaults are safe: this machine alone, no
other site's scripts, nobody's frame.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
"""What this machine calls itself in the Host header."""

ANY_ADDRESS = frozenset({"0.0.0.0", "::"})
"""Hosts to bind that stand for every address of this machine."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The most that one request may ask for, and how many may ask at once."""

    body: int = 1 << 20
    """Bytes of a request's body."""
    features: int = 1_000
    vertices: int = 10_000
    """Of all shapes of a request together."""
    depth: int = 16
    """How deep JSON may nest."""
    cells: int = 1_000_000
    """Cells in the rectangle around one shape."""
    passed: int = 10_000
    """Cells that the sides of one shape pass."""
    repaired: int = 500
    """Vertices of a polygon that crosses itself: finding out how often takes their square."""
    exported: int = 250_000
    """Cells, or blocks of cells, in an export."""
    seconds: float = 5.0
    """Of work for one request."""
    at_work: int = 8
    """Requests that are worked on at the same time."""
    waiting: int = 64
    """Requests that wait for their turn."""
    confidence: tuple[float, float] = (0.5, 0.999)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What a server is started with.

    Attributes
    ----------
    host : str
        The address it is bound to.
    names : tuple of str
        Host names under which it is asked, beside those of this machine and `host`.
    token : str or None
        What a request must bring; None: nothing.
    cors : tuple of str
        Origins whose scripts may ask it; ``*`` for all.
    embed : tuple of str
        Origins that may show the page in a frame.
    overlay, basemap : pathlib.Path or None
        Areas to draw over the map (GeoJSON, GeoPackage) and a map to draw below it (PMTiles).
    """

    host: str = "127.0.0.1"
    names: tuple[str, ...] = ()
    token: str | None = None
    cors: tuple[str, ...] = ()
    embed: tuple[str, ...] = ()
    overlay: Path | None = None
    basemap: Path | None = None
    limits: Limits = Limits()
