"""Which group each row is in, by a public list; and outlines that know their group. Secret.

Owns how a value becomes a group: by itself, whatever else the column holds. A row whose value is
not on the list, or missing, is in no group: its outline is empty, so it contributes nothing, and
nothing is said of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dpregions.geometry.outlines import Outlines
from dpregions.intake.ids import id_text, one_column, stored, text_id

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dpregions.arrays import Ints
    from dpregions.privacy.groups import Groups

_GROUP_BITS = np.uint64(16)
"""Bits of a key that tell groups apart: more than there are groups."""


@dataclass(frozen=True, repr=False)
class GroupedOutlines(Outlines):
    """Outlines of rows, each with the number of its group. Secret."""

    groups: Ints

    @classmethod
    def grouped(cls, outlines: Outlines, groups: Ints) -> GroupedOutlines:
        """Return outlines with their groups; those in none (-1) become empty."""
        sizes = np.diff(outlines.offsets)
        listed = groups >= 0
        kept = np.where(listed, sizes, 0)
        offsets = np.concatenate([[0], np.cumsum(kept)])
        return cls(outlines.xy[np.repeat(listed, sizes)], offsets, groups)

    def keys(self) -> NDArray[np.uint64]:
        """Return keys that order a user's rows as outlines alone do, and equal ones by group."""
        keys = super().keys()
        keys[:, 1] = keys[:, 1] >> _GROUP_BITS << _GROUP_BITS | self.groups.astype(
            np.uint64
        ) & np.uint64(0xFFFF)
        return keys

    def taken(self, rows: Ints) -> GroupedOutlines:
        """Return the outlines of some rows, given in order."""
        plain = super().taken(rows)
        return GroupedOutlines(plain.xy, plain.offsets, self.groups[rows])

    def of_group(self, number: int) -> Outlines:
        """Return the outlines of one group."""
        rows = np.flatnonzero(self.groups == number)
        return super().taken(rows)

    def marked(self) -> Outlines:
        """Return outlines whose first vertex tells the group, so that it travels with them."""
        groups = np.column_stack([self.groups, np.zeros_like(self.groups)])
        xy = np.insert(self.xy, self.offsets[:-1], groups, axis=0)
        return Outlines(xy, self.offsets + np.arange(len(self.offsets)))

    @classmethod
    def of_marked(cls, outlines: Outlines) -> GroupedOutlines:
        """Return what `marked` was made of."""
        starts = outlines.offsets[:-1]
        xy = np.delete(outlines.xy, starts, axis=0)
        offsets = outlines.offsets - np.arange(len(outlines.offsets))
        return cls(xy, offsets, outlines.xy[starts, 0])


def refuse_column(groups: Groups, columns: list[Any] | None) -> None:
    """Refuse a column of groups that is not there, or is there twice."""
    if columns is None:
        from dpregions.errors import Argument, InputError

        raise InputError(
            Argument("by", repr(groups.by)),
            " names a column, but these regions have no columns: give a GeoDataFrame",
        )
    one_column(groups.by, columns, "by")


def group_numbers(column: Any, groups: Groups, *, spelled: bool = False) -> Ints:
    """Return the number of each row's group, -1 for none.

    Parameters
    ----------
    column : pyarrow array or pandas array
        The values.
    groups : Groups
        The public list.
    spelled : bool
        Whether the values are texts that `ids.id_text` wrote, as readers without types give them.
    """
    import pyarrow as pa

    table = groups.spellings()
    if isinstance(column, pa.ChunkedArray):
        parts = [group_numbers(chunk, groups, spelled=spelled) for chunk in column.chunks]
        return np.concatenate([np.zeros(0, np.int64), *parts])
    if isinstance(column, pa.Array):
        return _of_arrow(column, table, spelled)
    stated = getattr(column, "__arrow_array__", None)
    kind = getattr(column, "dtype", None)
    if stated is not None and getattr(kind, "storage", "pyarrow") == "pyarrow" and _is_arrow(kind):
        return group_numbers(pa.chunked_array(stated()), groups)
    found = [table.get(_text(value) or "", -1) for value in _values(column)]
    return np.array(found, np.int64)


def _is_arrow(kind: Any) -> bool:
    import pandas as pd

    return isinstance(kind, pd.ArrowDtype) or getattr(kind, "storage", "") == "pyarrow"


def _of_arrow(column: Any, table: dict[str, int], spelled: bool) -> Ints:
    """Return the groups of an Arrow array, distinct value by distinct value."""
    found = stored(column).dictionary_encode()
    if not len(found.dictionary):
        return np.full(len(column), -1)
    values = found.dictionary.to_pylist()
    of_value = np.array([table.get(_spelling(value, spelled) or "", -1) for value in values])
    numbers = np.asarray(found.indices.fill_null(-1), np.int64)
    return np.append(of_value, -1)[numbers]


def _spelling(value: Any, spelled: bool) -> str | None:
    """Return what `id_text` writes of a value, which may have been written already."""
    if isinstance(value, bytes):
        return value.decode("ascii", "replace") if spelled else text_id(value)
    return _text(value)


def _values(column: Any) -> list[Any]:
    """Return the values of an array of pandas or numpy, as Python's where it has them."""
    return list(column.tolist()) if hasattr(column, "tolist") else list(column)


def _text(value: Any) -> str | None:
    """Return what `id_text` writes of one value; what cannot be looked at is none."""
    try:
        return id_text(value.item() if isinstance(value, np.generic) else value)
    except Exception:
        return None
