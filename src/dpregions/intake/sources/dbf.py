"""The table of a Shapefile (.dbf): rows of one width, whose fields declare type and width.

Owns how a field becomes an id. Numbers are read by their digits, so that any length is exact,
text by its bytes, whatever encoding the file claims. A field with decimals is refused from the
header; what a row holds never is.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass

from dpregions.errors import Argument, InputTypeError
from dpregions.intake.ids import id_text, number_text, refuse_kind, text_id

_DESCRIPTOR = 32
_END = b"\r"
_DELETED = b"*"


@dataclass(frozen=True)
class Field:
    """One column; `start` is its place in a row, whose first byte says if it was deleted."""

    name: str
    kind: str
    width: int
    decimals: int
    start: int


@dataclass(frozen=True)
class TableHeader:
    """The rows of a table: how many there are, where they begin, how long each is."""

    fields: list[Field]
    n_rows: int
    start: int
    row: int

    def field(self, name: str) -> Field:
        """Return the column of a name that is there."""
        return next(field for field in self.fields if field.name == name)


def stated_size(head: bytes) -> int:
    """Return how many bytes a table must have, by its first 32."""
    rows, start, row = struct.unpack_from("<IHH", head, 4)
    return int(start + rows * row)


def read_header(start_of_file: bytes) -> TableHeader:
    """Return what the beginning of a file says, up to its first row; ValueError if it is broken."""
    n_rows, start, row = struct.unpack_from("<IHH", start_of_file, 4)
    fields, place = [], 1
    for i in range(_DESCRIPTOR, start - 1, _DESCRIPTOR):
        described = start_of_file[i : i + _DESCRIPTOR]
        if described.startswith(_END):
            break
        if len(described) < _DESCRIPTOR:
            raise ValueError
        name, kind, width, decimals = struct.unpack_from("<11sc4xBB", described)
        fields.append(Field(_name(name), kind.decode("latin-1"), width, decimals, place))
        place += width
    if place > row:
        raise ValueError
    return TableHeader(fields, n_rows, start, row)


def _name(stored: bytes) -> str:
    """Return a column's name: in UTF-8, or else each byte a character."""
    stored = stored.partition(b"\0")[0].rstrip(b" ")
    try:
        return stored.decode()
    except UnicodeDecodeError:
        return stored.decode("latin-1")


def is_deleted(row: bytes) -> bool:
    """Say whether a row was marked as deleted: it is still there, but counts nowhere."""
    return row.startswith(_DELETED)


def id_reader(field: Field) -> Callable[[bytes], str | None]:
    """Return what makes an id of a row; refuse a field whose declared type is none of ids."""
    import pyarrow as pa

    if field.kind in "NF" and field.decimals:
        refuse_kind(field.name, pa.float64())
    read = _READERS.get(field.kind)
    if read is None or (field.kind == "I" and field.width != 4):
        raise InputTypeError(
            Argument("user_id", repr(field.name)),
            " is of a type that a Shapefile has no ids of: make it text or whole numbers",
        )
    place = slice(field.start, field.start + field.width)
    return lambda row: read(row[place])


def _number(cell: bytes) -> str | None:
    """Return the number that digits are; what is none is kept apart, as text."""
    cell = cell.strip(b" \0")
    if not cell.strip(b"*"):
        return None  # blank, or too long for the field when it was written
    return number_text(cell.decode("latin-1")) or text_id(cell)


def _text(cell: bytes) -> str | None:
    return text_id(cell.rstrip(b" \0"))


def _date(cell: bytes) -> str | None:
    return _text(cell) if cell.strip(b" \0" + b"0") else None


def _truth(cell: bytes) -> str | None:
    if cell in (b"?", b" ", b"\0"):
        return None
    said = {b"T": True, b"Y": True, b"F": False, b"N": False}.get(cell.upper())
    return _text(cell) if said is None else id_text(said)


def _integer(cell: bytes) -> str | None:
    return id_text(int.from_bytes(cell, "little", signed=True))


_READERS = {"C": _text, "N": _number, "F": _number, "I": _integer, "D": _date, "L": _truth}
