"""The geometries of a Shapefile (.shp): one record -> WKB, or none if it is broken or a null.

A polygon's rings come in any order, told apart by their sense alone: an outer ring runs clockwise.
"""

from __future__ import annotations

import struct

import numpy as np

from dpregions.intake.sources import wkb

_POINTS, _LINES, _POLYGONS, _MULTIPOINTS = (1, 11, 21), (3, 13, 23), (5, 15, 25), (8, 18, 28)
"""Each kind also with heights (Z) and measures (M), which follow the places."""


def shape_wkb(content: bytes) -> bytes | None:
    """Return the WKB of one record's content."""
    try:
        (kind,) = struct.unpack_from("<i", content)
        if kind in _POINTS:
            return wkb.point(_places(content, 4, 1))
        if kind in _MULTIPOINTS:
            return wkb.multipoint(_places(content, 40, *struct.unpack_from("<i", content, 36)))
        if kind in _LINES:
            lines = [wkb.line(part) for part in _parts(content)]
            return lines[0] if len(lines) == 1 else wkb.multi(wkb.MULTILINE, lines)
        if kind in _POLYGONS:
            return _polygons(_parts(content))
    except (struct.error, ValueError):
        pass
    return None


def _places(content: bytes, start: int, count: int) -> bytes:
    end = start + count * wkb.XY
    if count < 1 or end > len(content):
        raise ValueError
    return content[start:end]


def _parts(content: bytes) -> list[bytes]:
    """Return the lines or rings of a record, of which the numbers of their first places come."""
    n_parts, n_places = struct.unpack_from("<2i", content, 36)
    if n_parts < 1 or 44 + 4 * n_parts > len(content):
        raise ValueError
    starts = struct.unpack_from(f"<{n_parts}i", content, 44)
    xy = _places(content, 44 + 4 * n_parts, n_places)
    ends = (*starts[1:], n_places)
    if starts[0] != 0 or any(a >= b for a, b in zip(starts, ends, strict=True)):
        raise ValueError
    return [xy[a * wkb.XY : b * wkb.XY] for a, b in zip(starts, ends, strict=True)]


def _polygons(rings: list[bytes]) -> bytes:
    """Return a polygon, or several: each begins with an outer ring, and holes follow."""
    polygons: list[list[bytes]] = []
    for ring in rings:
        if not polygons or _is_clockwise(ring):
            polygons.append([])
        polygons[-1].append(ring)
    made = [wkb.polygon(each) for each in polygons]
    return made[0] if len(made) == 1 else wkb.multi(wkb.MULTIPOLYGON, made)


def _is_clockwise(ring: bytes) -> bool:
    x, y = np.frombuffer(ring, "<f8").reshape(-1, 2).T
    with np.errstate(all="ignore"):
        return bool(np.sum((x[1:] - x[0]) * (y[:-1] - y[0]) - (x[:-1] - x[0]) * (y[1:] - y[0])) > 0)
