"""Pieces of WKB, for readers of formats that store coordinates as WKB does.

That is x, y, x, y, ... as little-endian doubles: bytes are passed on, and no coordinate is read.
"""

from __future__ import annotations

import struct

POINT, LINE, POLYGON, MULTIPOINT, MULTILINE, MULTIPOLYGON, COLLECTION = range(1, 8)

XY = 16
"""Bytes of one place."""

_HEAD = struct.Struct("<BII")
_POINT = struct.pack("<BI", 1, POINT)


def point(xy: bytes) -> bytes:
    """Return a point."""
    return _POINT + xy


def line(xy: bytes) -> bytes:
    """Return a line through places."""
    return _HEAD.pack(1, LINE, len(xy) // XY) + xy


def polygon(rings: list[bytes]) -> bytes:
    """Return a polygon of rings, the outer one first."""
    parts = [_HEAD.pack(1, POLYGON, len(rings))]
    for ring in rings:
        parts += (struct.pack("<I", len(ring) // XY), ring)
    return b"".join(parts)


def multi(kind: int, parts: list[bytes]) -> bytes:
    """Return a collection of a kind."""
    return b"".join([_HEAD.pack(1, kind, len(parts)), *parts])


def multipoint(xy: bytes) -> bytes:
    """Return the points at places."""
    return multi(MULTIPOINT, [point(xy[i : i + XY]) for i in range(0, len(xy), XY)])
