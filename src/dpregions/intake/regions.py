"""Intake of regions: any geometry input -> one bounded convex region per user, as outlines.

`read_outlines` is the function that others call. Owns what a record becomes. Each record maps to
a valid contribution or to none, looking at that record (or that user's rows) alone; nothing about
a record is ever raised, logged or printed, and no message holds the number of records. What is
refused is about the call: its types, its columns, its CRS, its bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from dpregions.crs import match_crs, one_crs, read_crs, reproject
from dpregions.errors import Argument, InputError, InputTypeError
from dpregions.geometry.outlines import Outlines
from dpregions.intake.arrow import (
    GEOMETRY_NAMES,
    RegionStream,
    arrow_batches,
    arrow_reader,
    geometry_field,
    is_arrow,
    plain_column,
    with_schema,
)
from dpregions.intake.geometries import coordinates, decoded, object_array
from dpregions.intake.ids import IdColumns, refuse_kind, user_numbers
from dpregions.intake.units import mark_of, protected
from dpregions.unforeseen import READING, foreseen, foreseen_items

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pyproj import CRS

    from dpregions.choices import Unit
    from dpregions.geometry.domain import Domain
    from dpregions.geometry.outlines import Bound

BATCH = 1 << 15
"""Regions read at once: what a worker holds beside its tally. Threads wait for each other between
batches, so that many small ones take longer."""


class RegionTable:
    """Rows of geometries that can be read in batches, again and again.

    `column` holds shapely geometries (an object array) or WKB (an Arrow column), which whoever
    makes outlines reads, a batch at a time.
    """

    def __init__(self, column: Any) -> None:
        self._column = column
        self._chunks = getattr(column, "chunks", [column])
        self._starts = np.cumsum([0, *map(len, self._chunks)])

    def __len__(self) -> int:
        return len(self._column)

    def take(self, rows: slice | NDArray[np.int64]) -> Any:
        """Return the geometries of some rows, given in order, as they are held."""
        import pyarrow as pa

        if isinstance(self._column, np.ndarray) or isinstance(rows, slice):
            return self._column[rows]
        return pa.chunked_array(self._parts(rows), self._column.type)

    def _parts(self, rows: NDArray[np.int64]) -> Iterator[Any]:
        """Yield the WKB of rows, which are sorted, from one chunk after the other.

        Arrow's own take from several chunks copies the whole column each time, and fails where
        that is more than 2 GiB.
        """
        ends = np.searchsorted(rows, self._starts)
        for chunk in np.flatnonzero(np.diff(ends)):
            inside = rows[ends[chunk] : ends[chunk + 1]] - self._starts[chunk]
            yield self._chunks[chunk].take(inside)


@dataclass(frozen=True, repr=False)
class RegionSource:
    """Any accepted input in its one normalised form: tables of geometries, users, a CRS.

    `ids` are numbers of users, -1 for a row without one.
    """

    tables: Iterable[RegionTable]
    ids: NDArray[np.int64] | None
    crs: CRS | None


def read_unit(regions: Any, user_id: Any, unit: Unit | None) -> tuple[Any, Any, Unit]:
    """Return regions that show their schema, the ids that count once each, and what each id is.

    No row is read. A mark of the regions refuses another unit than theirs.
    """
    regions = with_schema(regions)
    return regions, *protected(user_id, unit, marked=mark_of(regions))


def read_outlines(
    regions: Any,
    grid: Domain,
    bound: Bound | None,
    *,
    user_id: Any = None,
    crs: Any = None,
    batch: int | None = None,
) -> Iterator[Callable[[], Outlines]]:
    """Read any input: for each batch of the regions that count, yield what makes its outlines.

    Whoever counts pulls one batch after the other, and makes their outlines wherever it likes,
    in threads for instance. What is wrong with the call is refused at once. What nobody foresaw,
    here or in making outlines, is reported by its type alone.

    Parameters
    ----------
    regions
        Anything that `release` takes.
    grid : Grid
        Regions in another CRS are reprojected to the grid's.
    bound : Bound or None
        The largest diameter of a region; None: no bound.
    user_id : str, array or None
        The column of user ids, or the ids: one region per user counts, chosen by a fixed
        rule that does not depend on row order. None: each row is its own user.
    crs : optional
        The CRS of regions that carry none.
    batch : int, optional
        The most regions of a batch, by default `BATCH`.
    """
    source = foreseen(lambda: read_regions(regions, user_id=user_id, crs=crs), READING)
    match_crs(source.crs, grid, "regions")
    batches = foreseen_items(geometry_batches(source, grid, bound, batch), READING)
    return (
        partial(foreseen, partial(outlines_of, geometries, source.crs, grid, bound), READING)
        for geometries in batches
    )


def geometry_batches(
    source: RegionSource, grid: Domain, bound: Bound | None, batch: int | None = None
) -> Iterator[Any]:
    """Yield the geometries that count, at most `batch` at a time, one per user."""
    size = batch or BATCH
    for table in source.tables:
        ids, crs = source.ids, source.crs
        rows = None if ids is None else _one_row_a_user(table, ids, crs, grid, bound, size)
        n = len(table) if rows is None else len(rows)
        for start in range(0, n, size):
            part = slice(start, start + size)
            yield table.take(part if rows is None else rows[part])


def outlines_of(geometries: Any, crs: CRS | None, grid: Domain, bound: Bound | None) -> Outlines:
    """Return the bounded integer outlines of geometries, empty where there is no contribution."""
    coords, starts = coordinates(geometries)
    if crs is not None and grid.crs is not None:
        coords = reproject(coords, crs, grid.crs)
    return grid.outlines(coords, starts, bound)


def _one_row_a_user(
    table: RegionTable,
    user: NDArray[np.int64],
    crs: CRS | None,
    grid: Domain,
    bound: Bound | None,
    batch: int,
) -> NDArray[np.int64]:
    """Return the row that counts for each user.

    Of a user's rows that have an outline, the one with the smallest key: a function of the
    outline alone, so the choice is the same in every order and engine. Rows without a user
    do not count: they cannot be told apart from another row of somebody.
    """
    if len(user) != len(table):
        raise InputError(Argument("user_id"), " and regions differ in length: give one id a region")
    rows = np.flatnonzero(user >= 0)
    several = np.bincount(user[rows], minlength=1)[user[rows]] > 1
    shared = rows[several]
    if not shared.size:
        return rows
    keys = np.empty((len(shared), 2), np.uint64)
    empty = np.empty(len(shared), np.bool_)
    for start in range(0, len(shared), batch):
        part = slice(start, start + batch)
        outlines = outlines_of(table.take(shared[part]), crs, grid, bound)
        keys[part] = outlines.keys()
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
        ids = user_numbers(user_id, names, lambda name: regions[name].array)
        return RegionSource([column], ids, one_crs(regions.crs, stated, "the regions"))
    if isinstance(regions, pd.DataFrame):
        # Not by way of Arrow, which would infer one type for all the ids of a column.
        names = list(regions.columns)
        place = next((name for name in GEOMETRY_NAMES if names.count(name) == 1), None)
        if place is None:
            raise InputTypeError(
                f"a DataFrame has its regions in a column named {' or '.join(GEOMETRY_NAMES)}, as "
                f"geometries or WKB: rename it, or make a GeoDataFrame"
            )
        ids = user_numbers(user_id, names, lambda name: regions[name].array)
        return RegionSource([RegionTable(_geometry_array(regions[place]))], ids, stated)
    if is_arrow(regions) and not isinstance(regions, pd.Series | pd.Index):
        return _read_arrow(regions, user_id, stated)
    return RegionSource(
        [RegionTable(_geometry_array(regions))], user_numbers(user_id, None, None), stated
    )


def _geometry_array(regions: Any) -> NDArray[np.object_]:
    """Return a sequence of geometries and WKB as an object array of geometries.

    Anything else among them is no region, by itself. A declared type of text is refused.
    """
    import pandas as pd
    import shapely

    if isinstance(regions, str | bytes | shapely.Geometry) or not isinstance(regions, Iterable):
        raise InputTypeError(
            f"regions must be a GeoDataFrame, a GeoSeries, a sequence of geometries or of WKB, or "
            f"an Arrow stream, got {type(regions).__name__}"
        )
    kind = getattr(regions, "dtype", None)
    if isinstance(kind, pd.StringDtype) or (isinstance(kind, np.dtype) and kind.kind not in "OSV"):
        raise InputTypeError(f"regions hold {kind}: geometries or WKB are needed")
    if isinstance(regions, pd.Series | pd.Index):
        regions = np.asarray(regions, dtype=object)
    if isinstance(regions, np.ndarray) and regions.dtype.kind == "S":
        # Reading an item would strip its trailing zero bytes; WKB has its own length.
        regions = [regions[i : i + 1].tobytes() for i in range(len(regions))]
    array = object_array(regions)
    other = np.flatnonzero(~shapely.is_geometry(array))
    if other.size:
        array = array.copy()
    for i in other:
        value = array[i]
        array[i] = bytes(value) if isinstance(value, bytes | bytearray | memoryview) else None
    if other.size:
        array[other] = decoded(array[other])
    return array


def _read_arrow(regions: Any, user_id: Any, stated: CRS | None) -> RegionSource:
    import pyarrow as pa

    reader = regions if isinstance(regions, RegionStream) else arrow_reader(regions)
    name, carried = geometry_field(reader.schema)
    crs = one_crs(carried, stated, "the regions")
    batches = arrow_batches(reader)
    named = user_id if isinstance(user_id, IdColumns) else [user_id]
    for column in set(reader.schema.names).intersection(c for c in named if isinstance(c, str)):
        refuse_kind(column, reader.schema.field(column).type)  # before a row is read
    if user_id is None:
        tables = (RegionTable(plain_column(batch.column(name))) for batch in batches)
        return RegionSource(tables, None, crs)
    # One region a user needs all of a user's rows: the table is held, as WKB.
    table = pa.Table.from_batches(batches, reader.schema)
    ids = user_numbers(user_id, table.column_names, table.column)
    return RegionSource([RegionTable(plain_column(table.column(name)))], ids, crs)
