"""Regions that another engine holds: what its workers need to read them, settled beforehand.

Owns the columns of ids and WKB, the CRS and the types of ids, all from a declared schema; refuses
what does not fit before a row is read. It is public, and is shipped to workers as it is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from dpregions.crs import match_crs, one_crs, read_crs
from dpregions.errors import Argument, InputTypeError
from dpregions.intake.arrow import geometry_field, plain_column
from dpregions.intake.geometries import outlines_of
from dpregions.intake.groups import GroupedOutlines, group_numbers, refuse_column
from dpregions.intake.ids import IdColumns, id_names, refuse_kind
from dpregions.intake.users import exact_ids

if TYPE_CHECKING:
    import pyarrow
    from pyproj import CRS

    from dpregions.arrays import Bools
    from dpregions.geometry.domain import Domain
    from dpregions.geometry.outlines import Bound, Outlines
    from dpregions.privacy.groups import Groups


@dataclass(frozen=True, repr=False)
class Elsewhere:
    """How rows that another engine holds become outlines and ids.

    `kinds` are the types of ids as they are compared, "long" or "binary".
    """

    grid: Domain
    bound: Bound | None
    crs: CRS | None
    geometry: str
    ids: tuple[str, ...]
    kinds: tuple[str, ...]
    frame: Any = field(default=None, compare=False)
    """What the engine holds; not for workers."""
    groups: Groups | None = None
    """The groups that rows are in."""

    @classmethod
    def of(
        cls,
        schema: pyarrow.Schema,
        grid: Domain,
        bound: Bound | None,
        *,
        user_id: Any = None,
        crs: Any = None,
        groups: Groups | None = None,
        frame: Any = None,
    ) -> Elsewhere:
        """Return how rows of an Arrow schema are read; see `regions.read_outlines`."""
        import pyarrow as pa

        geometry, carried = geometry_field(schema)
        if user_id is not None and not isinstance(user_id, str | IdColumns):
            raise InputTypeError(
                Argument("user_id"), " must name a column of a Spark DataFrame, or be None"
            )
        names = [] if user_id is None else id_names(user_id, schema.names)
        kinds = []
        for name in names:
            kind = schema.field(name).type
            refuse_kind(name, kind)
            compared = exact_ids(pa.array([], kind))[0].type
            kinds.append("long" if compared == pa.int64() else "binary")
        if groups is not None:
            refuse_column(groups, schema.names)
        source = one_crs(carried, None if crs is None else read_crs(crs), "the regions")
        match_crs(source, grid, "regions")
        return cls(grid, bound, source, geometry, tuple(names), tuple(kinds), frame, groups)

    @property
    def columns(self) -> list[str]:
        """The columns that workers read: each once, in any order but that of ids."""
        by = [] if self.groups is None else [self.groups.by]
        return list(dict.fromkeys([*self.ids, self.geometry, *by]))

    def outlines(self, batch: Any) -> Outlines:
        """Return the outlines of a batch of rows."""
        column = plain_column(batch.column(self.geometry))
        outlines = outlines_of(column, self.crs, self.grid, self.bound)
        if self.groups is None:
            return outlines
        numbers = group_numbers(batch.column(self.groups.by), self.groups)
        return GroupedOutlines.grouped(outlines, numbers)

    def marked(self, outlines: Outlines) -> Outlines:
        """Return outlines that tell their group, if any, by their vertices alone."""
        return outlines.marked() if isinstance(outlines, GroupedOutlines) else outlines

    def unmarked(self, outlines: Outlines) -> Outlines:
        """Return what `marked` was given."""
        return outlines if self.groups is None else GroupedOutlines.of_marked(outlines)

    def users(self, batch: Any) -> tuple[list[Any], Bools]:
        """Return the ids of a batch as Arrow columns, and which rows have all of them."""
        found = [exact_ids(batch.column(name)) for name in self.ids]
        there = np.ones(batch.num_rows, np.bool_)
        for _, good in found:
            there &= good
        return [column for column, _ in found], there
