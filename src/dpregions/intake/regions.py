"""Intake of regions: any geometry input -> bounded convex regions, as outlines, and their users.

`read_outlines` is the function that others call. Owns what a record becomes. Each record maps to
a valid contribution or to none, looking at that record alone; nothing about a record is ever
raised, logged or printed, and no message holds the number of records. What is refused is about the
call: its types, its columns, its CRS, its bound. Which of a user's records counts is for `engines`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from dpregions.crs import match_crs, one_crs, read_crs
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
from dpregions.intake.elsewhere import Elsewhere
from dpregions.intake.geometries import decoded, object_array, outlines_of
from dpregions.intake.groups import GroupedOutlines, group_numbers, refuse_column
from dpregions.intake.ids import IdColumns, id_names, refuse_kind, user_numbers
from dpregions.intake.sources.spark_files import SparkRegions, is_spark, schema_of
from dpregions.intake.units import mark_of, protected, stated_unit
from dpregions.intake.users import Users, UserWords
from dpregions.place_names import place_columns
from dpregions.unforeseen import READING, foreseen, foreseen_items

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pyproj import CRS

    from dpregions.arrays import Ints
    from dpregions.choices import Unit
    from dpregions.geometry.domain import Domain
    from dpregions.geometry.outlines import Bound
    from dpregions.privacy.groups import Groups

BATCH = 1 << 15
"""Regions read at once: what a worker holds beside its tally. Threads wait for each other between
batches, so that many small ones take longer."""


class Batch(NamedTuple):
    """Some rows as outlines, and whose they are; None: each is its own user. Secret."""

    outlines: Outlines
    users: Users | None


class Rows(NamedTuple):
    """Some rows as they are held: shapely geometries or Arrow WKB; how to tell users and groups."""

    geometries: Any
    users: Callable[[], Users] | None
    groups: Callable[[], Ints] | None = None


@dataclass(frozen=True, repr=False)
class RegionSource:
    """Any accepted input in its one normalised form: rows, a CRS, and whether it lasts.

    `rows` gives the rows in parts of at most so many; it can be called again where the source
    `is_lasting`.
    """

    rows: Callable[[int], Iterator[Rows]]
    crs: CRS | None
    has_users: bool
    is_lasting: bool = True


@dataclass(frozen=True, repr=False)
class Reading:
    """Regions on their way to be counted: batch after batch, and once more where that can be.

    Iterating gives, for each batch, what makes it: whoever counts pulls one after the other, and
    makes them wherever it likes, in threads for instance. What nobody foresaw, here or in making a
    batch, is reported by its type alone.
    """

    source: RegionSource
    grid: Domain
    bound: Bound | None
    batch: int

    frame: ClassVar[None] = None
    """No other engine holds it."""

    @property
    def has_users(self) -> bool:
        """Whether several rows may be of one user, of which one counts."""
        return self.source.has_users

    @property
    def can_repeat(self) -> bool:
        """Whether it can be read again."""
        return self.source.is_lasting

    def __iter__(self) -> Iterator[Callable[[], Batch]]:
        for rows in foreseen_items(self.source.rows(self.batch), READING):
            yield partial(foreseen, partial(self._made, rows), READING)

    def _made(self, rows: Rows) -> Batch:
        outlines = outlines_of(rows.geometries, self.source.crs, self.grid, self.bound)
        if rows.groups is not None:
            outlines = GroupedOutlines.grouped(outlines, rows.groups())
        return Batch(outlines, None if rows.users is None else rows.users())


def read_unit(regions: Any, user_id: Any, unit: Unit | None) -> tuple[Any, Any, Unit]:
    """Return regions that show their schema, the ids that count once each, and what each id is.

    No row is read. A mark of the regions refuses another unit than theirs.
    """
    regions = with_schema(regions)
    held = stated_unit(schema_of(regions).metadata) if is_spark(regions) else mark_of(regions)
    return regions, *protected(user_id, unit, marked=held)


def read_outlines(
    regions: Any,
    grid: Domain,
    bound: Bound | None,
    *,
    user_id: Any = None,
    crs: Any = None,
    groups: Groups | None = None,
    batch: int | None = None,
) -> Reading | Elsewhere:
    """Return any input as batches of outlines. What is wrong with the call is refused at once.

    Of what Spark holds nothing is read here: `Elsewhere` tells its workers how to.

    Parameters
    ----------
    regions
        Anything that `release` takes.
    grid : Grid
        Regions in another CRS are reprojected to the grid's.
    bound : Bound or None
        The largest diameter of a region; None: no bound.
    user_id : str, array or None
        The column of user ids, or the ids: of a user's rows one counts (`engines`). None: each
        row is its own user.
    crs : optional
        The CRS of regions that carry none.
    groups : Groups, optional
        The groups that rows are in: outlines are then `GroupedOutlines`.
    batch : int, optional
        The most regions of a batch, by default `BATCH`.
    """
    if isinstance(regions, SparkRegions):
        regions, crs = regions.frame, regions.crs if crs is None else crs
    if is_spark(regions):
        schema = schema_of(regions)
        return Elsewhere.of(
            schema, grid, bound, user_id=user_id, crs=crs, groups=groups, frame=regions
        )
    source = foreseen(
        lambda: read_regions(regions, user_id=user_id, crs=crs, groups=groups), READING
    )
    match_crs(source.crs, grid, "regions")
    return Reading(source, grid, bound, batch or BATCH)


def read_regions(
    regions: Any, *, user_id: Any = None, crs: Any = None, groups: Groups | None = None
) -> RegionSource:
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
    groups : Groups, optional
        The groups that rows are in, by a column of the regions.
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
        names = list(regions.columns) if frame else None
        ids = user_numbers(user_id, names, lambda name: regions[name].array)
        crs = one_crs(regions.crs, stated, "the regions")
        numbers = _numbers(regions, groups, names)
        return _held(np.asarray(regions.geometry.array), ids, crs, numbers)
    if isinstance(regions, pd.DataFrame):
        # Not by way of Arrow, which would infer one type for all the ids of a column.
        names = list(regions.columns)
        place = next((name for name in GEOMETRY_NAMES if names.count(name) == 1), None)
        if place is None:
            raise InputTypeError(
                f"a DataFrame has its regions in a column named {' or '.join(GEOMETRY_NAMES)}, as "
                f"geometries or WKB: rename it, or make a GeoDataFrame{_of_fixes(names)}"
            )
        ids = user_numbers(user_id, names, lambda name: regions[name].array)
        numbers = _numbers(regions, groups, names)
        return _held(_geometry_array(regions[place]), ids, stated, numbers)
    if is_arrow(regions) and not isinstance(regions, pd.Series | pd.Index):
        return _read_arrow(regions, user_id, stated, groups)
    if groups is not None:
        refuse_column(groups, None)
    return _held(_geometry_array(regions), user_numbers(user_id, None, None), stated)


def _of_fixes(names: list[Any]) -> str:
    """Return what to do with a table that has places and no regions."""
    places = place_columns(names)
    if places is None:
        return ""
    return (
        f". Its columns {' and '.join(places)} are places, as fixes have: make regions of fixes "
        f"first, by regions_from_fixes"
    )


def _numbers(frame: Any, groups: Groups | None, names: list[Any] | None) -> Ints | None:
    """Return the numbers of the groups that a frame's rows are in."""
    if groups is None:
        return None
    refuse_column(groups, names)
    return group_numbers(frame[groups.by].array, groups)


def _held(
    geometries: NDArray[np.object_], ids: Ints | None, crs: CRS | None, groups: Ints | None = None
) -> RegionSource:
    """Return geometries in memory as a source; users and groups are numbers, -1 for none."""
    if ids is not None and len(ids) != len(geometries):
        raise _other_length()

    def rows(size: int) -> Iterator[Rows]:
        for start in range(0, len(geometries), size):
            part = slice(start, start + size)
            users = None if ids is None else partial(Users.numbered, ids[part])
            own = None if groups is None else partial(groups.__getitem__, part)
            yield Rows(geometries[part], users, own)

    return RegionSource(rows, crs, has_users=ids is not None)


def _other_length() -> InputError:
    return InputError(Argument("user_id"), " and regions differ in length: give one id a region")


def _geometry_array(regions: Any) -> NDArray[np.object_]:
    """Return a sequence of geometries and WKB as an object array of geometries.

    Anything else among them is no region, by itself. A declared type of text is refused.
    """
    import pandas as pd
    import shapely

    if isinstance(regions, str | PathLike):
        raise InputTypeError(
            "regions are text, as the name of a file or of a source: open it by open_regions, and "
            "give what that returns"
        )
    if isinstance(regions, bytes | shapely.Geometry) or not isinstance(regions, Iterable):
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


def _read_arrow(
    regions: Any, user_id: Any, stated: CRS | None, groups: Groups | None
) -> RegionSource:
    """Return Arrow data as a source: nothing of it is held, and ids are compared by their words."""
    reader = regions if isinstance(regions, RegionStream) else arrow_reader(regions)
    name, carried = geometry_field(reader.schema)
    names: list[str] = []
    codes = None
    if isinstance(user_id, str | IdColumns):
        names = id_names(user_id, reader.schema.names)
        for column in names:
            refuse_kind(column, reader.schema.field(column).type)  # before a row is read
    else:
        codes = user_numbers(user_id, reader.schema.names, None)
    spelled = isinstance(regions, RegionStream) and regions.spells_values
    if groups is not None:
        refuse_column(groups, reader.schema.names)
    words, once = UserWords(), [reader]

    def rows(size: int) -> Iterator[Rows]:
        done = 0
        for batch in arrow_batches(once.pop() if once else _again(regions)):
            for start in range(0, batch.num_rows, size):
                part = batch.slice(start, size)
                users = None
                if names:
                    users = partial(words.of, [part.column(column) for column in names])
                elif codes is not None:
                    own = codes[done : done + part.num_rows]
                    if len(own) < part.num_rows:
                        raise _other_length()
                    users = partial(Users.numbered, own)
                done += part.num_rows
                numbers = None
                if groups is not None:
                    column = part.column(groups.by)
                    numbers = partial(group_numbers, column, groups, spelled=spelled)
                yield Rows(plain_column(part.column(name)), users, numbers)
        if codes is not None and done < len(codes):
            raise _other_length()

    lasting = regions.reopen is not None if isinstance(regions, RegionStream) else _lasts(regions)
    crs = one_crs(carried, stated, "the regions")
    return RegionSource(rows, crs, has_users=user_id is not None, is_lasting=lasting)


def _lasts(regions: Any) -> bool:
    """Whether Arrow data can be read again: what has a length is held somewhere."""
    return hasattr(regions, "__len__")


def _again(regions: Any) -> Any:
    """Return a reader of Arrow data that was read before."""
    if isinstance(regions, RegionStream) and regions.reopen is not None:
        return regions.reopen()
    return arrow_reader(regions)
