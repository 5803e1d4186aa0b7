"""Tables of FlatBuffers, as FlatGeobuf uses them: fields by their number, vectors and text.

No offset leads out of the bytes there are: one that does is a `struct.error`, as is whatever
else does not fit.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, Self

_U16, _U32, _I32 = struct.Struct("<H"), struct.Struct("<I"), struct.Struct("<i")


class BrokenTable(struct.error):
    """Bytes that are not the table they should be."""


class Table:
    """One table within bytes; fields that are not there have their default."""

    __slots__ = ("_buffer", "_place", "_size", "_slots")

    def __init__(self, buffer: bytes, place: int) -> None:
        slots = place - _I32.unpack_from(buffer, place)[0]
        if slots < 0:
            raise BrokenTable  # Python would count such a place from the end
        self._buffer, self._place, self._slots = buffer, place, slots
        self._size = _U16.unpack_from(buffer, slots)[0]

    @classmethod
    def root(cls, buffer: bytes) -> Self:
        """Return the table that bytes begin with."""
        return cls(buffer, _U32.unpack_from(buffer, 0)[0])

    def scalar(self, number: int, form: struct.Struct, default: Any) -> Any:
        """Return a number."""
        place = self._field(number)
        return form.unpack_from(self._buffer, place)[0] if place else default

    def table(self, number: int) -> Table | None:
        """Return a table within this one, None where it is not there."""
        place = self._field(number)
        return self._table_by(place) if place else None

    def tables(self, number: int) -> Iterator[Table]:
        """Yield the tables of a vector; several places of it may hold the same."""
        start, end = self._vector(number, _U32.size)
        for place in range(start, end, _U32.size):
            yield self._table_by(place)

    def vector(self, number: int, width: int = 1) -> bytes:
        """Return the bytes of a vector whose elements have a width, or of a text."""
        start, end = self._vector(number, width)
        return self._buffer[start:end]

    def text(self, number: int) -> str:
        """Return a text, empty where it is not there."""
        return self.vector(number).decode("utf-8", "replace")

    def _field(self, number: int) -> int:
        """Return the place of a field, 0 where it is not there."""
        slot = 4 + 2 * number
        if slot + 2 > self._size:
            return 0
        offset: int = _U16.unpack_from(self._buffer, self._slots + slot)[0]
        return self._place + offset if offset else 0

    def _table_by(self, place: int) -> Table:
        return Table(self._buffer, place + _U32.unpack_from(self._buffer, place)[0])

    def _vector(self, number: int, width: int) -> tuple[int, int]:
        """Return where the elements of a vector begin and end."""
        place = self._field(number)
        if not place:
            return 0, 0
        place += _U32.unpack_from(self._buffer, place)[0]
        start = place + _U32.size
        end = start + width * _U32.unpack_from(self._buffer, place)[0]
        if end > len(self._buffer):
            raise BrokenTable
        return start, end
