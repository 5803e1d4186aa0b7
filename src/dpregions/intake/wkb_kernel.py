"""A walk over WKB (numba): the points of plain records, and which of the others GEOS may see.

Points, polygons and multipolygons as nearly everybody writes them are read here, without an object
for each. GEOS follows whatever bytes say: it recurses as deep as they nest, makes room for as many
parts as they announce, and reads curves that it cannot list. So every other record is walked first,
by itself, without recursion and without a copy. Nothing here knows one record from another: a
record that is refused counts for nothing, and the others are as ever.
"""

from __future__ import annotations

import numpy as np
from numba import njit

_POINT, _LINE, _POLYGON, _MULTIPOINT, _COLLECTION = 1, 2, 3, 4, 7
_Z, _M, _SRID = 0x80000000, 0x40000000, 0x20000000
_MULTIPOLYGON = 6
_HEAD = 5  # bytes of the byte order and the type: no geometry is shorter
_XY = 16  # bytes of x and y

REFUSED, FOR_GEOS = -2, -1
"""What `points_in` says of a record that is not read, and of one that GEOS is to read."""


@njit(cache=True, nogil=True)
def points_in(data, offsets, null, longest, deepest):
    """Return how many points each record has: `REFUSED` or `FOR_GEOS` where they are not read here.

    Read here are points, polygons and multipolygons with the lowest byte first, extended or ISO,
    with or without Z and M, whose rings have four points or more and end where they start, byte for
    byte. What GEOS makes of these is the same places, or none where a number is NaN.

    Parameters
    ----------
    data, offsets, deepest
        As in `walkable`.
    null : bool (records,)
        Records without a value.
    longest : int
        Bytes of the longest record that is read.
    """
    n = offsets.size - 1
    found = np.empty(n, np.int64)
    left, wanted = np.empty(deepest + 2, np.int64), np.empty(deepest + 2, np.int64)
    for i in range(n):
        start, stop = offsets[i], offsets[i + 1]
        found[i] = REFUSED
        if null[i] or not 0 <= start <= stop <= data.size or stop - start > longest:
            continue
        found[i] = _plain_points(data, start, stop)
        if found[i] < 0 and not _walk(data, start, stop, left, wanted):
            found[i] = REFUSED
    return found


@njit(cache=True, nogil=True)
def _plain_points(data, at, stop):
    """Return how many points a plain record has, `FOR_GEOS` if it is any other."""
    if stop - at < _HEAD or data[at] != 1:
        return FOR_GEOS
    code = _word(data, at + 1, False)
    kind, width = _kind(code), _width(code)
    at += _HEAD + (4 if code & _SRID else 0)
    if kind == _POINT:
        return 1 if at + width <= stop else FOR_GEOS
    if kind == _POLYGON:
        return _plain_rings(data, at, stop, width)[0]
    if kind != _MULTIPOLYGON or stop - at < 4:
        return FOR_GEOS
    parts, found = _word(data, at, False), 0
    at += 4
    for _ in range(parts):
        if stop - at < _HEAD or data[at] != 1:
            return FOR_GEOS
        part = _word(data, at + 1, False)
        if _kind(part) != _POLYGON or _width(part) != width:
            return FOR_GEOS
        n, at = _plain_rings(data, at + _HEAD + (4 if part & _SRID else 0), stop, width)
        if n < 0:
            return FOR_GEOS
        found += n
    return found


@njit(cache=True, nogil=True)
def _plain_rings(data, at, stop, width):
    """Return how many points the rings of a polygon have, or `FOR_GEOS`, and where it ends."""
    if stop - at < 4:
        return FOR_GEOS, at
    rings, found = _word(data, at, False), 0
    at += 4
    for _ in range(rings):
        if stop - at < 4:
            return FOR_GEOS, at
        n = _word(data, at, False)
        at += 4
        last = at + (n - 1) * width
        if n < 4 or last + width > stop:
            return FOR_GEOS, at
        for j in range(_XY):
            if data[at + j] != data[last + j]:
                return FOR_GEOS, at
        found += n
        at = last + width
    return found, at


@njit(cache=True, nogil=True)
def read_points(data, offsets, found, starts, octets):
    """Write the points of plain records, x and y as they are stored.

    Parameters
    ----------
    data, offsets, found
        Records, and what `points_in` says of them.
    starts : int64 (records + 1,)
        Record i has points ``starts[i]:starts[i + 1]``.
    octets : uint8
        The bytes of all points, 16 each.
    """
    for i in range(offsets.size - 1):
        if found[i] <= 0:
            continue
        at, to = offsets[i], starts[i] * _XY
        code = _word(data, at + 1, False)
        kind, width = _kind(code), _width(code)
        at += _HEAD + (4 if code & _SRID else 0)
        if kind == _POINT:
            _copy_points(data, at, 1, width, octets, to)
            continue
        parts = 1
        if kind == _MULTIPOLYGON:
            parts = _word(data, at, False)
            at += 4
        for _ in range(parts):
            if kind == _MULTIPOLYGON:
                at += _HEAD + (4 if _word(data, at + 1, False) & _SRID else 0)
            rings = _word(data, at, False)
            at += 4
            for _ in range(rings):
                n = _word(data, at, False)
                _copy_points(data, at + 4, n, width, octets, to)
                at += 4 + n * width
                to += n * _XY


@njit(cache=True, nogil=True)
def _copy_points(data, at, n, width, octets, to):
    """Copy x and y of points that are `width` bytes apart."""
    if width == _XY:
        octets[to : to + n * _XY] = data[at : at + n * _XY]
        return
    for j in range(n):
        for k in range(_XY):
            octets[to + j * _XY + k] = data[at + j * width + k]


@njit(cache=True, nogil=True)
def walkable(data, offsets, deepest):
    """Say which records are WKB of points, lines, polygons and collections of these.

    The extended and the ISO form, both byte orders, Z and M are fine. Bytes after a geometry's
    end are ignored, as GEOS does. What is within (a ring that is open, a line of one point, a
    number that is NaN) is not looked at: GEOS tells.

    Parameters
    ----------
    data : uint8 (n,)
        The bytes of all records; record i is ``data[offsets[i]:offsets[i + 1]]``.
    offsets : int64 (records + 1,)
    deepest : int
        How deep collections may nest.
    """
    fine = np.zeros(offsets.size - 1, np.bool_)
    # One level for the record, one for each collection, one for the parts of a multi-geometry.
    left, wanted = np.empty(deepest + 2, np.int64), np.empty(deepest + 2, np.int64)
    for i in range(offsets.size - 1):
        start, stop = offsets[i], offsets[i + 1]
        if 0 <= start <= stop <= data.size:
            fine[i] = _walk(data, start, stop, left, wanted)
    return fine


@njit(cache=True, nogil=True)
def _walk(data, at, stop, left, wanted):
    """Walk one record; `left` parts of type `wanted` (0: of any) are to come on each level."""
    level = 0
    left[0], wanted[0] = 1, 0
    while level >= 0:
        if left[level] == 0:
            level -= 1
            continue
        left[level] -= 1
        if stop - at < _HEAD or data[at] > 1:
            return False
        big = data[at] == 0
        code = _word(data, at + 1, big)
        at += _HEAD + (4 if code & _SRID else 0)
        kind, width = _kind(code), _width(code)
        if kind == 0 or (wanted[level] != 0 and kind != wanted[level]):
            return False
        if kind == _POINT:
            at += width
        elif kind == _LINE:
            at = _after_points(data, at, stop, big, width)
        elif kind == _POLYGON:
            at = _after_rings(data, at, stop, big, width)
        else:
            if stop - at < 4 or (kind == _COLLECTION and level == left.size - 2):
                return False
            level += 1
            # Each part is walked: no count can announce more than there is.
            left[level] = _word(data, at, big)
            wanted[level] = 0 if kind == _COLLECTION else kind - _MULTIPOINT + _POINT
            at += 4
        if at > stop:
            return False
    return True


@njit(cache=True, nogil=True)
def _word(data, at, big):
    """Return four bytes as a number without a sign."""
    a, b, c, d = data[at], data[at + 1], data[at + 2], data[at + 3]
    if big:
        a, b, c, d = d, c, b, a
    return np.int64(a) | np.int64(b) << 8 | np.int64(c) << 16 | np.int64(d) << 24


@njit(cache=True, nogil=True)
def _kind(code):
    """Return a geometry's type from 1 (point) to 7 (collection), 0 if it is none of these."""
    plain = code & ~(_Z | _M | _SRID)
    kind = plain % 1000
    return kind if plain < 4000 and kind <= _COLLECTION else 0


@njit(cache=True, nogil=True)
def _width(code):
    """Return the bytes of one point: x, y, and z and m where the extended or ISO form says so."""
    thousands = (code & ~(_Z | _M | _SRID)) // 1000
    z = code & _Z != 0 or thousands == 1 or thousands == 3
    m = code & _M != 0 or thousands == 2 or thousands == 3
    return 16 + 8 * z + 8 * m


@njit(cache=True, nogil=True)
def _after_points(data, at, stop, big, width):
    """Return where a line or a ring ends, beyond `stop` where it does not fit."""
    if stop - at < 4:
        return stop + 1
    return at + 4 + _word(data, at, big) * width


@njit(cache=True, nogil=True)
def _after_rings(data, at, stop, big, width):
    """Return where a polygon ends, beyond `stop` where it does not fit."""
    if stop - at < 4:
        return stop + 1
    rings = _word(data, at, big)
    at += 4
    for _ in range(rings):
        at = _after_points(data, at, stop, big, width)
        if at > stop:
            return at
    return at
