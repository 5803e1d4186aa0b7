"""Intake of regions: any geometry input -> one bounded convex region a user, as outlines.

Owns what a record becomes. Each record maps to a valid contribution or to none, looking at
that record (or that user's rows) alone; nothing about a record is ever raised, logged or
printed, and no message holds the number of records. What is refused is about the call: its
types, its columns, its CRS, its bound.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from dpregions.crs import crs_label, read_crs, reproject
from dpregions.errors import CRSError, InputError, InputTypeError
from dpregions.grid import REACH, STEPS, Grid

if TYPE_CHECKING:
    import pyarrow
    from numpy.typing import NDArray
    from pyproj import CRS

BATCH = 1 << 12
"""Regions read at once: what a worker holds beside its histogram, and what a cache holds."""

Oversize = Literal["shrink", "drop"]


@dataclass(frozen=True)
class Bound:
    """The largest diameter of a region, as the integers that enforce it.

    `k` is ceil(B / d): no region within `steps` lattice steps touches more than 2k+1 doubled
    rows and 2k+1 doubled columns.
    """

    k: int
    steps: int
    drop: bool

    @classmethod
    def of(cls, grid: Grid, max_diameter: float | str, oversize: Oversize) -> Bound:
        """Return the bound that `max_diameter` sets on a grid."""
        check_oversize(oversize)
        cells = grid.in_cells(max_diameter, "max_diameter")
        steps = math.floor(min(cells, Fraction(REACH)) * STEPS)
        return cls(grid.cells_spanned(max_diameter), steps, oversize == "drop")


def check_oversize(oversize: object) -> None:
    """Refuse an unknown way with regions that are too long."""
    if oversize not in ("shrink", "drop"):
        raise InputError(f"oversize={oversize!r} is unknown: use 'shrink' or 'drop'")


@dataclass(frozen=True, repr=False)
class Outlines:
    """Convex bodies as ragged integer outlines, in lattice steps from the grid's corner."""

    xy: NDArray[np.int64]
    offsets: NDArray[np.int64]


class RegionTable:
    """Rows of geometries that can be read in batches, in any order, again and again.

    `column` holds shapely geometries (an object array) or WKB (an Arrow column), which is
    decoded a batch at a time.
    """

    def __init__(self, column: Any) -> None:
        self._column = column

    def __len__(self) -> int:
        return len(self._column)

    def take(self, rows: slice | NDArray[np.int64]) -> NDArray[np.object_]:
        """Return the geometries of some rows; null and unreadable ones are None."""
        if isinstance(self._column, np.ndarray):
            return self._column[rows]
        part = self._column[rows] if isinstance(rows, slice) else self._column.take(rows)
        return _decoded(part.to_numpy(zero_copy_only=False))


@dataclass(frozen=True, repr=False)
class RegionSource:
    """Any accepted input in its one normalised form: tables of geometries, users, a CRS.

    `ids` are numbers of users, -1 for a row without one.
    """

    tables: Iterable[RegionTable]
    ids: NDArray[np.int64] | None
    crs: CRS | None


def geometry_batches(
    source: RegionSource, grid: Grid, bound: Bound | None
) -> Iterator[NDArray[np.object_]]:
    """Yield the geometries that count, at most `BATCH` at a time, one a user."""
    for table in source.tables:
        ids, crs = source.ids, source.crs
        rows = None if ids is None else _one_row_a_user(table, ids, crs, grid, bound)
        n = len(table) if rows is None else len(rows)
        for start in range(0, n, BATCH):
            part = slice(start, start + BATCH)
            yield table.take(part if rows is None else rows[part])


def outlines_of(
    geometries: NDArray[np.object_], crs: CRS | None, grid: Grid, bound: Bound | None
) -> Outlines:
    """Return the bounded integer outlines of geometries, empty where there is no contribution."""
    from dpregions import _kernel

    coords, owner = _coordinates(geometries)
    starts = np.zeros(len(geometries) + 1, np.int64)
    np.cumsum(np.bincount(owner, minlength=len(geometries)), out=starts[1:])
    if crs is not None and grid.crs is not None:
        coords = reproject(coords, crs, grid.crs)
    steps, drop = (-1, False) if bound is None else (bound.steps, bound.drop)
    xy, offsets = _kernel.outlines(
        coords, starts, grid.xmin, grid.ymin, grid.cell_size, *grid.shape, steps, drop
    )
    return Outlines(xy, offsets)


def _coordinates(
    geometries: NDArray[np.object_],
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return all coordinates and which geometry each is of; none of what GEOS cannot list."""
    import shapely

    def listed(geometry: Any) -> Any:
        try:
            shapely.get_coordinates(geometry)
        except (shapely.GEOSException, NotImplementedError):
            return None
        return geometry

    try:
        coords, owner = shapely.get_coordinates(geometries, return_index=True)
    except (shapely.GEOSException, NotImplementedError):  # a collection that holds a curve
        readable = _object_array(map(listed, geometries))
        coords, owner = shapely.get_coordinates(readable, return_index=True)
    return coords, owner


def _decoded(wkb: NDArray[np.object_]) -> NDArray[np.object_]:
    """Return the geometries of WKB, None where it is null or cannot be read; in silence."""
    import shapely

    def one(value: Any) -> Any:
        try:
            return shapely.from_wkb(value, on_invalid="ignore")
        except NotImplementedError:
            return None

    with np.errstate(all="ignore"):  # GEOS compares NaN; numpy would warn of it
        try:
            return np.asarray(shapely.from_wkb(wkb, on_invalid="ignore"))
        except NotImplementedError:  # a curve is among them, which shapely refuses
            return _object_array(map(one, wkb))


def match_crs(crs: CRS | None, grid: Grid, what: str, remedy: str) -> None:
    """Refuse a CRS on one side only: coordinates would be compared that do not fit."""
    if (crs is None) == (grid.crs is None):
        return
    if crs is None and grid.crs is not None:
        raise CRSError(f"{what} carry no CRS, but the grid is in {crs_label(grid.crs)}: {remedy}")
    assert crs is not None
    raise CRSError(
        f"{what} are in {crs_label(crs)}, but the grid has no CRS: "
        f"give the grid one, Grid(..., crs=...)"
    )


def _one_row_a_user(
    table: RegionTable, user: NDArray[np.int64], crs: CRS | None, grid: Grid, bound: Bound | None
) -> NDArray[np.int64]:
    """Return the row that counts for each user.

    Of a user's rows that have an outline, the one with the smallest key: a function of the
    outline alone, so the choice is the same in every order and engine. Rows without a user
    do not count: they cannot be told apart from another row of somebody.
    """
    from dpregions import _kernel

    if len(user) != len(table):
        raise InputError("user_id and regions differ in length: give one id a region")
    rows = np.flatnonzero(user >= 0)
    several = np.bincount(user[rows], minlength=1)[user[rows]] > 1
    shared = rows[several]
    if not shared.size:
        return rows
    keys = np.empty((len(shared), 2), np.uint64)
    empty = np.empty(len(shared), np.bool_)
    for start in range(0, len(shared), BATCH):
        part = slice(start, start + BATCH)
        outlines = outlines_of(table.take(shared[part]), crs, grid, bound)
        keys[part] = _kernel.outline_keys(outlines.xy, outlines.offsets)
        empty[part] = np.diff(outlines.offsets) == 0
    order = np.lexsort((keys[:, 1], keys[:, 0], empty, user[shared]))
    first = np.ones(len(order), np.bool_)
    first[1:] = np.diff(user[shared][order]) != 0
    return np.sort(np.concatenate([rows[~several], shared[order[first]]]))


def read_regions(regions: Any, *, user_id: Any = None, crs: Any = None) -> RegionSource:
    """Return any accepted input in its normalised form.

    Parameters
    ----------
    regions
        GeoDataFrame, GeoSeries, a sequence or array of shapely geometries or of WKB, or
        anything with an Arrow stream of WKB (``__arrow_c_stream__``).
    user_id : str, array or None
        The column of user ids, or the ids themselves; None: each row is its own user.
    crs : optional
        The CRS of regions that carry none.
    """
    import geopandas
    import pandas as pd

    stated = None if crs is None else read_crs(crs)
    if isinstance(regions, geopandas.array.GeometryArray):
        regions = geopandas.GeoSeries(regions)
    if isinstance(regions, geopandas.GeoDataFrame | geopandas.GeoSeries):
        frame = isinstance(regions, geopandas.GeoDataFrame)
        if frame and regions.active_geometry_name is None:
            raise InputTypeError(
                "regions are a GeoDataFrame without a geometry column: name it, set_geometry(...)"
            )
        column = RegionTable(np.asarray(regions.geometry.array))
        names = list(regions.columns) if frame else None
        ids = _ids(user_id, names, lambda name: regions[name].array)
        return RegionSource([column], ids, _one_crs(regions.crs, stated))
    if isinstance(regions, pd.Series | pd.Index):
        regions = np.asarray(regions, dtype=object)
    if hasattr(regions, "__arrow_c_stream__") or hasattr(regions, "__arrow_c_array__"):
        return _read_arrow(regions, user_id, stated)
    return RegionSource([RegionTable(_geometry_array(regions))], _ids(user_id, None, None), stated)


def _one_crs(carried: CRS | None, stated: CRS | None) -> CRS | None:
    if carried is not None and stated is not None and carried != stated:
        raise CRSError(
            f"regions carry {crs_label(carried)}, but crs={crs_label(stated)} was given: "
            f"leave crs out, and they are reprojected to the grid's"
        )
    return stated if carried is None else carried


def _ids(user_id: Any, columns: list[Any] | None, column: Any) -> NDArray[np.int64] | None:
    if user_id is None:
        return None
    if not isinstance(user_id, str):
        if not hasattr(user_id, "__len__"):
            raise InputTypeError(
                f"user_id must be a column name, an array of ids or None, "
                f"got {type(user_id).__name__}"
            )
        ids = user_id if hasattr(user_id, "dtype") else np.asarray(user_id, dtype=object)
        if ids.ndim != 1:
            raise InputTypeError(
                f"user_id must be one column of ids, got {type(user_id).__name__} of "
                f"{ids.ndim} dimensions"
            )
        return _codes(ids)
    if columns is None:
        raise InputError(
            f"user_id={user_id!r} names a column, but these regions have no columns: pass an "
            f"array of ids, or user_id=None if each row is its own user"
        )
    if user_id not in columns:
        raise InputError(
            f"user_id={user_id!r} is no column: there are {', '.join(map(str, columns))}. "
            f"Use user_id=None if each row is its own user"
        )
    if columns.count(user_id) > 1:
        raise InputError(f"user_id={user_id!r} names several columns: rename all but one")
    return _codes(column(user_id))


def _codes(ids: Any) -> NDArray[np.int64]:
    """Return ids as numbers, equal for equal ids, -1 for a missing one.

    Never by way of floats: a null among whole numbers would merge those beyond 2**53.
    """
    import pandas as pd
    import pyarrow as pa

    if isinstance(ids, pa.ChunkedArray):
        if pa.types.is_dictionary(ids.type):
            ids = ids.cast(ids.type.value_type)
        ids = pd.Series(ids.combine_chunks(), dtype=pd.ArrowDtype(ids.type)).array
    try:
        codes, _ = pd.factorize(ids, use_na_sentinel=True)
    except (TypeError, pa.ArrowException):
        raise InputTypeError("user_id holds values that cannot be compared as ids") from None
    return codes


def _geometry_array(regions: Any) -> NDArray[np.object_]:
    """Return a sequence of geometries and WKB as an object array of geometries."""
    import pandas as pd
    import shapely

    if isinstance(regions, str | bytes | shapely.Geometry) or not isinstance(regions, Iterable):
        raise InputTypeError(
            f"regions must be a GeoDataFrame, a GeoSeries, a sequence of geometries or of WKB, or "
            f"an Arrow stream, got {type(regions).__name__}"
        )
    if isinstance(regions, np.ndarray) and regions.dtype.kind == "S":
        # Reading an item would strip its trailing zero bytes; WKB has its own length.
        regions = [regions[i : i + 1].tobytes() for i in range(len(regions))]
    array = _object_array(regions)
    other = np.flatnonzero(~shapely.is_geometry(array))
    if other.size:
        array = array.copy()
    for i in other:
        value = array[i]
        if isinstance(value, bytes | bytearray | memoryview):
            array[i] = bytes(value)
        elif value is None or (pd.api.types.is_scalar(value) and pd.isna(value)):
            array[i] = None
        else:
            raise InputTypeError(
                f"regions hold a value of type {type(value).__name__}: geometries or WKB needed"
            )
    if other.size:
        array[other] = _decoded(array[other])
    return array


def _object_array(values: Iterable[Any]) -> NDArray[np.object_]:
    if isinstance(values, np.ndarray) and values.dtype == object and values.ndim == 1:
        return values
    items = list(values)
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array


def _read_arrow(regions: Any, user_id: Any, stated: CRS | None) -> RegionSource:
    reader = _table_reader(regions)
    name, carried = _geometry_field(reader.schema)
    crs = _one_crs(carried, stated)
    if user_id is None:
        return RegionSource(_batch_tables(reader, name), None, crs)
    # One region a user needs all of a user's rows: the table is held, as WKB.
    table = reader.read_all()
    ids = _ids(user_id, table.column_names, table.column)
    return RegionSource([RegionTable(_wkb(table.column(name)))], ids, crs)


class _FieldOf:
    """An Arrow array's type with its metadata: the CRS is there, and `pa.array` drops it."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def __arrow_c_schema__(self) -> Any:
        return self._array.__arrow_c_array__()[0]


def _table_reader(regions: Any) -> pyarrow.RecordBatchReader:
    """Return a reader of Arrow data; data without columns becomes the column 'geometry'."""
    import pyarrow as pa

    try:
        if not hasattr(regions, "__arrow_c_stream__"):
            field = pa.field(_FieldOf(regions)).with_name("geometry")
            return pa.table([pa.array(regions)], schema=pa.schema([field])).to_reader()
        try:
            return pa.RecordBatchReader.from_stream(regions)
        except pa.ArrowInvalid:  # a stream without columns
            return pa.table({"geometry": pa.chunked_array(regions)}).to_reader()
    except (pa.ArrowException, TypeError):
        # Not Arrow's own message: it may quote a record.
        raise InputTypeError(
            f"regions of type {type(regions).__name__} cannot be read as Arrow data: give WKB in "
            f"a column, or a GeoDataFrame (geopandas.GeoDataFrame(..., geometry=...))"
        ) from None


def _batch_tables(reader: pyarrow.RecordBatchReader, name: str) -> Iterator[RegionTable]:
    for batch in reader:
        yield RegionTable(_wkb(batch.column(name)))


def _wkb(column: Any) -> Any:
    """Return the storage of a WKB column, extension type or not."""
    import pyarrow as pa

    if isinstance(column.type, pa.BaseExtensionType):
        column = column.cast(column.type.storage_type)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return column


def _geometry_field(schema: pyarrow.Schema) -> tuple[str, CRS | None]:
    """Return the WKB column of an Arrow schema and its CRS."""
    for field in schema:
        meta = field.metadata or {}
        extension = meta.get(b"ARROW:extension:name", b"").decode()
        extension = extension or getattr(field.type, "extension_name", "")
        if extension in ("geoarrow.wkb", "ogc.wkb"):
            described = meta.get(b"ARROW:extension:metadata", b"")
            crs = json.loads(described).get("crs") if described else None
            return field.name, None if crs is None else read_crs(crs)
        if extension.startswith("geoarrow."):
            raise InputTypeError(
                f"column {field.name!r} is {extension}: give WKB (geoarrow.wkb) instead"
            )
    if (schema.metadata or {}).get(b"geo"):
        return _geoparquet_field(json.loads(schema.metadata[b"geo"]), schema.names)
    binary = [f.name for f in schema if _is_binary(f.type)]
    named = [name for name in ("geometry", "geom", "wkb") if name in binary]
    if len(binary) == 1 or named:
        return (named or binary)[0], None
    raise InputTypeError(
        f"no WKB column among {', '.join(schema.names)}: one binary column is needed, or one "
        f"named 'geometry'"
    )


def _geoparquet_field(geo: dict[str, Any], names: list[str]) -> tuple[str, CRS | None]:
    name = geo["primary_column"]
    if name not in names:
        raise InputTypeError(f"the geometry column {name!r} is not among {', '.join(names)}")
    column = geo["columns"][name]
    if column.get("encoding") != "WKB":
        raise InputTypeError(
            f"column {name!r} is encoded as {column.get('encoding')}: give WKB instead"
        )
    crs = column.get("crs", "OGC:CRS84")  # the format's default where the key is absent
    return name, None if crs is None else read_crs(crs)


def _is_binary(kind: Any) -> bool:
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    checks = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view)
    return any(check(kind) for check in checks)
