"""A walk over WKB (numba): which records GEOS may see.

GEOS follows whatever bytes say: it recurses as deep as they nest, makes room for as many parts
as they announce, and reads curves that it cannot list. So every record is walked first, by
itself, without recursion and without a copy. Nothing here makes a geometry or knows one
record from another: a record that is refused counts for nothing, and the others are as ever.
"""

from __future__ import annotations

import numpy as np
from numba import njit

_POINT, _LINE, _POLYGON, _MULTIPOINT, _COLLECTION = 1, 2, 3, 4, 7
_Z, _M, _SRID = 0x80000000, 0x40000000, 0x20000000
_HEAD = 5  # bytes of the byte order and the type: no geometry is shorter


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
