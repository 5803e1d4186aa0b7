"""Tables of FlatBuffers, as FlatGeobuf uses them: fields by their number, vectors and text.

Every offset is checked against the bytes there are; whatever does not fit is a `BrokenTable`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, Self

_U16, _U32, _I32 = struct.Struct("<H"), struct.Struct("<I"), struct.Struct("<i")


class BrokenTable(ValueError):
    """Bytes that are not the table they should be."""


class Table:
    """One table within bytes; fields that are not there have their default."""

    __slots__ = ("_buffer", "_place", "_size", "_slots")

    def __init__(self, buffer: bytes, place: int) -> None:
        self._buffer, self._place = buffer, place
        self._slots = place - self._read(_I32, place)
        self._size = self._read(_U16, self._slots)

    @classmethod
    def root(cls, buffer: bytes) -> Self:
        """Return the table that bytes begin with."""
        return cls(buffer, cls._read_of(buffer, _U32, 0))

    def scalar(self, number: int, form: struct.Struct, default: Any) -> Any:
        """Return a number."""
        place = self._field(number)
        return self._read(form, place) if place else default

    def table(self, number: int) -> Table | None:
        """Return a table within this one, None where it is not there."""
        place = self._field(number)
        return Table(self._buffer, place + self._read(_U32, place)) if place else None

    def vector(self, number: int, width: int = 1) -> bytes:
        """Return the bytes of a vector whose elements have a width, or of a text."""
        start, count = self._vector(number, width)
        return self._buffer[start : start + count * width]

    def tables(self, number: int) -> Iterator[Table]:
        """Yield the tables of a vector; several places of it may hold the same."""
        start, count = self._vector(number, _U32.size)
        for place in range(start, start + count * _U32.size, _U32.size):
            yield Table(self._buffer, place + self._read(_U32, place))

    def text(self, number: int) -> str:
        """Return a text, empty where it is not there."""
        return self.vector(number).decode("utf-8", "replace")

    def _field(self, number: int) -> int:
        """Return the place of a field, 0 where it is not there."""
        slot = 4 + 2 * number
        if slot + 2 > self._size:
            return 0
        offset: int = self._read(_U16, self._slots + slot)
        return self._place + offset if offset else 0

    def _vector(self, number: int, width: int) -> tuple[int, int]:
        """Return where the elements of a vector begin, and how many they are."""
        place = self._field(number)
        if not place:
            return 0, 0
        place += self._read(_U32, place)
        count = self._read(_U32, place)
        if place + _U32.size + count * width > len(self._buffer):
            raise BrokenTable
        return place + _U32.size, count

    def _read(self, form: struct.Struct, place: int) -> Any:
        return self._read_of(self._buffer, form, place)

    @staticmethod
    def _read_of(buffer: bytes, form: struct.Struct, place: int) -> Any:
        if place < 0 or place + form.size > len(buffer):
            raise BrokenTable
        return form.unpack_from(buffer, place)[0]
