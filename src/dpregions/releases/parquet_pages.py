"""What a Parquet file claims to hold, read from its own bytes before Arrow sees them.

A page of a few bytes may claim two thousand million values, and Arrow makes room for what is
claimed; of some damage to a footer it ends the process. So footer and page headers are read here
first: they are structs of Thrift's compact protocol. What Arrow would read in another way than this
module is refused. It knows nothing of releases.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from dpregions.errors import ReleaseFileError

Fields = dict[tuple[int, int], Any]
"""Fields of a struct, by number and type: Thrift's readers leave out a field of another type."""

_I32, _I64, _BINARY, _LIST, _STRUCT = 5, 6, 8, 9, 12
_DATA, _DICTIONARY = 0, 2
_PLAIN = {0, 2, 8}
"""Encodings whose values take room once each: plain, and by the number of a dictionary's entry."""
_DEEPEST = 8
_MOST_COLUMNS = 16
_ROWS_A_GROUP = 1 << 16
"""Fewest rows of a group but the last; Arrow writes 2**20."""
_WRITER = b"parquet-cpp-arrow"

# Lists, by the numbers of the fields that lead to them: Arrow's readers do not look at the type
# that a list says its elements have, they know it.
_LISTS = {
    (2,): _STRUCT,  # schema
    (4,): _STRUCT,  # groups of rows
    (5,): _STRUCT,  # keys and values
    (7,): _STRUCT,  # orders of columns
    (4, 1): _STRUCT,  # columns of a group
    (4, 4): _STRUCT,
    (4, 1, 3, 2): _I32,  # encodings
    (4, 1, 3, 3): _BINARY,  # path of a column
    (4, 1, 3, 8): _STRUCT,
    (4, 1, 3, 13): _STRUCT,
    (4, 1, 3, 16, 2): _I64,
    (4, 1, 3, 16, 3): _I64,
}


class Claims(NamedTuple):
    """What a file claims, as Arrow will believe it."""

    rows: int
    values: dict[str, int]
    """By column; in lists each empty one counts as a value."""
    dictionary: int
    """Entries of the largest dictionary."""
    unpacked: int
    """Bytes of all pages once they are unpacked."""


def claims_of(data: bytes, stop: int, footer: int) -> Claims:
    """Return what a file claims whose pages end at byte `stop`, and whose footer begins at another.

    Refuse claims that no file written by Arrow makes.
    """
    about = _Bytes(data, footer, len(data) - 8).struct(())
    rows, groups = about.get((3, _I64), -1), about.get((4, _LIST), [])
    # Arrow works round old faults of other programs, by reading past the end of columns.
    if not about.get((6, _BINARY), b"").startswith(_WRITER):
        raise ReleaseFileError("another program wrote it")
    if len(groups) > 1 + rows // _ROWS_A_GROUP:
        raise ReleaseFileError("it has too many groups of rows")
    if sum(group.get((3, _I64), -1) for group in groups) != rows:
        raise ReleaseFileError("its groups of rows do not add up")
    values: dict[str, int] = {}
    dictionary = unpacked = 0
    for group in groups:
        columns = group.get((1, _LIST), [])
        if len(columns) > _MOST_COLUMNS:
            raise ReleaseFileError("it has too many columns")
        for column in columns:
            name, pages = _column(column, data, stop)
            while not pages.done:
                kind, n, size = _page(pages)
                unpacked += size
                if kind == _DICTIONARY:
                    dictionary = max(dictionary, n)
                else:
                    values[name] = values.get(name, 0) + n
    return Claims(rows, values, dictionary, unpacked)


def _column(column: Fields, data: bytes, stop: int) -> tuple[str, _Bytes]:
    """Return a column's name and the bytes of its pages in one group of rows."""
    about = column.get((3, _STRUCT), {})
    name = b".".join(about.get((3, _LIST), [])).decode("ascii", "replace")
    start, length = about.get((9, _I64), -1), about.get((7, _I64), -1)
    if 0 < about.get((11, _I64), 0) < start:
        start = about[11, _I64]
    if column.get((1, _BINARY)) or length < 0 or not 4 <= start <= start + length <= stop:
        raise ReleaseFileError("it has columns that lie elsewhere")
    return name, _Bytes(data, start, start + length)


def _page(pages: _Bytes) -> tuple[int, int, int]:
    """Return the kind of the next page, and how many values and unpacked bytes it claims."""
    header = pages.struct(None)
    kind, size, packed = (header.get((i, _I32), -1) for i in (1, 2, 3))
    inner = header.get(({_DATA: 5, _DICTIONARY: 7}.get(kind, 0), _STRUCT), {})
    n, encoding = (inner.get((i, _I32), -1) for i in (1, 2))
    if min(size, packed, n) < 0 or encoding not in _PLAIN:
        raise ReleaseFileError("it has pages that Arrow does not write")
    pages.skip(packed)
    return kind, n, size


class _Bytes:
    """Bytes of a file that are read one after another, and none beyond their end."""

    def __init__(self, data: bytes, start: int, end: int) -> None:
        self._data, self._at, self._end = data, start, end

    @property
    def done(self) -> bool:
        return self._at >= self._end

    def skip(self, n: int) -> None:
        if n > self._end - self._at:
            raise ReleaseFileError("its footer or pages are cut short")
        self._at += n

    def _take(self, n: int) -> bytes:
        self.skip(n)
        return self._data[self._at - n : self._at]

    def struct(self, path: tuple[int, ...] | None, depth: int = 0) -> Fields:
        """Return the next struct; `path` leads to it in a footer, None where it has no lists."""
        if depth > _DEEPEST:
            raise ReleaseFileError("its footer or pages are nested too deeply")
        fields: Fields = {}
        number = 0
        while head := self._byte():
            kind, step = head & 15, head >> 4
            if not step:
                step = self._whole() - number
            if step < 1:  # so that none is there twice
                raise ReleaseFileError("its footer or pages have fields out of order")
            number += step
            below = None if path is None else (*path, number)
            fields[number, kind] = self._value(kind, below, depth)
        return fields

    def _value(self, kind: int, path: tuple[int, ...] | None, depth: int) -> Any:
        if kind in (1, 2):
            return kind == 1
        if kind == 3:
            return self._byte()
        if kind in (4, _I32, _I64):
            return self._whole()
        if kind == _BINARY:
            return self._take(self._varint())
        if kind == _LIST and path is not None:
            return self._list(path, depth)
        if kind == _STRUCT:
            return self.struct(path, depth + 1)
        raise ReleaseFileError("its footer or pages have fields that Arrow does not write")

    def _list(self, path: tuple[int, ...], depth: int) -> list[Any]:
        head = self._byte()
        n = head >> 4 if head >> 4 < 15 else self._varint()
        kind = head & 15
        # A list of another name is a later Arrow's: passed over, as long as it can be there.
        if _LISTS.get(path, kind) != kind or n > len(self._data) - self._at:
            raise ReleaseFileError("its footer has lists that Arrow does not write")
        return [
            self._byte() if kind in (1, 2) else self._value(kind, path, depth) for _ in range(n)
        ]

    def _byte(self) -> int:
        self.skip(1)
        return self._data[self._at - 1]

    def _varint(self) -> int:
        value = shift = 0
        while shift < 64:
            byte = self._byte()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
        raise ReleaseFileError("its footer or pages have numbers that are none")

    def _whole(self) -> int:
        """Return a whole number, written in zigzag."""
        value = self._varint()
        return (value >> 1) ^ -(value & 1)
