"""What a record's geometry becomes: WKB, WKT and shapely objects -> geometries -> coordinates.

Owns the way to GEOS. Each record is read by itself, to the same geometry or to None in any
company, and nothing that a record holds is raised, warned of or printed. From bytes and text
GEOS never sees what it cannot bear: nesting without end, curves, counts beyond the bytes there
are. Objects that a caller made with shapely are taken as they are.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from dpregions.crs import reproject
from dpregions.errors import InputTypeError

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pyproj import CRS

    from dpregions.arrays import Bools, Floats, Ints, Objects
    from dpregions.geometry.domain import Domain
    from dpregions.geometry.outlines import Bound, Outlines

MAX_BYTES = 1 << 24
"""Longest WKB of one geometry that is read, about a million vertices: GEOS takes 40 times that."""

MAX_NESTING = 32
"""Collections within each other (in WKT: brackets) that are read. GEOS recurses for each."""

_CURVES = ("CIRCULAR", "CURVE", "SURFACE", "TRIANGLE", "TIN")


def decoded(wkb: Any) -> Objects:
    """Return the geometries of WKB, None where it is null or cannot be read; in silence.

    Parameters
    ----------
    wkb : pyarrow.Array, pyarrow.ChunkedArray, or sequence of bytes and None
        Bytes in the extended or the ISO form. Curves, surfaces and what nests deeper than
        `MAX_NESTING` cannot be read; bytes after a geometry's end do not matter.
    """
    import pyarrow as pa

    if isinstance(wkb, pa.ChunkedArray):
        parts = [decoded(chunk) for chunk in wkb.chunks]
        return np.concatenate([np.empty(0, dtype=object), *parts])
    if isinstance(wkb, pa.Array):
        column = _bytes_column(wkb)
        values = column.to_numpy(zero_copy_only=False)
    else:
        values = object_array(value if isinstance(value, bytes) else None for value in wkb)
        column = pa.array(values, pa.large_binary())
    values[~_walkable(column)] = None
    return _from_wkb(values)


def _from_wkb(values: Objects) -> Objects:
    """Return the geometries of WKB that GEOS may see, and of None."""
    import shapely

    return read_with(shapely.from_wkb, values)


def decoded_text(wkt: Iterable[str | None]) -> Objects:
    """Return the geometries of WKT, None where it is null or cannot be read; in silence."""
    import shapely

    return read_with(shapely.from_wkt, object_array(map(_plain_wkt, wkt)))


def read_with(read: Callable[..., Any], encoded: Objects) -> Objects:
    """Return what one of shapely's readers makes of each value, None where it makes nothing.

    `decoded` and `decoded_text` leave it nothing to stumble over; should a version of GEOS do
    so all the same, values are read one by one.
    """
    import shapely

    trouble = (shapely.GEOSException, NotImplementedError, ValueError)

    def one(value: Any) -> Any:
        try:
            return read(value, on_invalid="ignore")
        except trouble:
            return None

    with np.errstate(all="ignore"):  # GEOS compares NaN; numpy would warn of it
        try:
            return np.asarray(read(encoded, on_invalid="ignore"))
        except trouble:
            return object_array(map(one, encoded))


def coordinates(geometries: Any) -> tuple[Floats, Ints]:
    """Return all coordinates, none of what cannot be read, and where each geometry's start.

    Geometry i has ``coords[starts[i]:starts[i + 1]]``.

    Parameters
    ----------
    geometries : array of shapely geometries, or pyarrow.Array or ChunkedArray of WKB
        Of WKB, plain records are read without an object for each, and the others as `decoded`
        reads them.
    """
    import pyarrow as pa

    if isinstance(geometries, pa.ChunkedArray):
        parts = [coordinates(chunk) for chunk in geometries.chunks]
        sizes = [np.diff(starts) for _, starts in parts]
        return np.concatenate([np.empty((0, 2)), *(coords for coords, _ in parts)]), _starts(
            np.concatenate([np.empty(0, np.int64), *sizes])
        )
    if isinstance(geometries, pa.Array):
        return _coordinates_in_wkb(_bytes_column(geometries))
    return _coordinates_by_geos(geometries)


def _coordinates_in_wkb(column: Any) -> tuple[Floats, Ints]:
    """Return what `coordinates` does for an Arrow array of bytes."""
    from dpregions.intake import wkb_kernel as _wkb

    octets, offsets = bytes_and_offsets(column)
    found = _wkb.points_in(octets, offsets, nulls_of(column), MAX_BYTES, MAX_NESTING)
    if sys.byteorder != "little":
        found[found >= 0] = _wkb.FOR_GEOS
    others = np.flatnonzero(found == _wkb.FOR_GEOS)
    sizes = np.maximum(found, 0)
    if others.size:
        values = column.take(others).to_numpy(zero_copy_only=False)
        listed, ends = _coordinates_by_geos(_from_wkb(values))
        sizes[others] = np.diff(ends)
    starts = _starts(sizes)
    coords = np.empty((starts[-1], 2))
    _wkb.read_points(octets, offsets, found, starts, coords.view(np.uint8).reshape(-1))
    if others.size:
        coords[np.repeat(found == _wkb.FOR_GEOS, sizes)] = listed
    return coords, starts


def _starts(sizes: NDArray[np.signedinteger]) -> Ints:
    """Return where records of some sizes start, and where the last ends."""
    starts = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=starts[1:])
    return starts


def _coordinates_by_geos(geometries: Objects) -> tuple[Floats, Ints]:
    import shapely

    trouble = (shapely.GEOSException, NotImplementedError)
    # Beside a point: GEOS does not stumble over curves until it lists something, and an empty
    # one has nothing.
    point = shapely.Point(0, 0)

    def listed(geometry: Any) -> Any:
        try:
            shapely.get_coordinates([point, geometry])
        except trouble:
            return None
        return geometry

    try:
        coords = shapely.get_coordinates(geometries)
    except trouble:  # a collection that holds a curve
        geometries = object_array(map(listed, geometries))
        coords = shapely.get_coordinates(geometries)
    return coords, _starts(shapely.get_num_coordinates(geometries))


def outlines_of(geometries: Any, crs: CRS | None, grid: Domain, bound: Bound | None) -> Outlines:
    """Return the bounded integer outlines of geometries, empty where there is no contribution."""
    coords, starts = coordinates(geometries)
    if crs is not None and grid.crs is not None:
        coords = reproject(coords, crs, grid.crs)
    return grid.outlines(coords, starts, bound)


def object_array(values: Iterable[Any]) -> Objects:
    """Return values as a one-dimensional array of objects: themselves, if they are one."""
    if isinstance(values, np.ndarray) and values.dtype == object and values.ndim == 1:
        return values
    return np.fromiter(values, dtype=object)


def _bytes_column(column: Any) -> Any:
    """Return an Arrow array as one of bytes, or refuse its type."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return column
    checks = (pa.types.is_null, pa.types.is_fixed_size_binary, pa.types.is_binary_view)
    if any(check(kind) for check in checks):
        return column.cast(pa.large_binary())
    raise InputTypeError(f"the column of regions holds {kind}, which is not WKB")


def _walkable(column: Any) -> Bools:
    """Say which values of an Arrow array of bytes GEOS may see; of nulls it says nothing."""
    from dpregions.intake import wkb_kernel as _wkb

    octets, offsets = bytes_and_offsets(column)
    fine: Bools = _wkb.walkable(octets, offsets, MAX_NESTING)
    return fine & (np.diff(offsets) <= MAX_BYTES)


def bytes_and_offsets(column: Any) -> tuple[Any, Ints]:
    """Return the bytes of an Arrow array of bytes, and where each value's start in them."""
    import pyarrow as pa

    _, ends, data = column.buffers()
    offsets = np.zeros(1, np.int64)
    if len(column):
        kind = np.int64 if pa.types.is_large_binary(column.type) else np.int32
        rows = slice(column.offset, column.offset + len(column) + 1)
        offsets = np.frombuffer(ends, kind)[rows].astype(np.int64)
    octets = np.frombuffer(b"" if data is None else data, np.uint8)
    octets.flags.writeable = False  # some buffers are, and the walk is compiled once
    return octets, offsets


def nulls_of(column: Any) -> Bools:
    """Say which values of an Arrow array are null."""
    if not column.null_count:
        return np.zeros(len(column), np.bool_)
    return np.asarray(column.is_null().to_numpy(zero_copy_only=False), np.bool_)


def _plain_wkt(text: str | None) -> str | None:
    """Return text that GEOS may see as WKT, None instead of any other."""
    if not isinstance(text, str) or not text.isascii() or "\0" in text:
        return None
    large = text.upper()
    if any(word in large for word in _CURVES):
        return None
    return None if _deepest_bracket(text) > MAX_NESTING else text


def _deepest_bracket(text: str) -> int:
    """Return how deep brackets nest in ASCII text, or more than `MAX_NESTING`."""
    if text.count("(") <= MAX_NESTING:
        return text.count("(")
    octets = np.frombuffer(text.encode("ascii"), np.uint8)
    depth = np.cumsum((octets == ord("(")).astype(np.int64) - (octets == ord(")")))
    return int(depth.max())
