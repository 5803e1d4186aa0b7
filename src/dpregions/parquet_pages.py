"""What the pages of a Parquet file claim to hold, read before Arrow unpacks one of them.

A page of a few bytes may claim two thousand million values, and Arrow makes room for what a page
claims, whatever the footer says. So the headers of all pages are read here first, with nothing but
their own bytes: they are structs of Thrift's compact protocol. It decides nothing about releases.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from dpregions.errors import ReleaseFileError

_I32, _BINARY, _STRUCT = 5, 8, 12
_DATA, _DICTIONARY = 0, 2
_PLAIN = {0, 2, 8}
"""Encodings whose values take room once each: plain, and by the number of a dictionary's entry."""
_DEEPEST = 8
_WRITER = "parquet-cpp-arrow"


class Claims(NamedTuple):
    """What the pages of all columns claim."""

    values: dict[str, int]
    """By column, those of lists with each empty list as one."""
    dictionary: int
    """Entries of the largest dictionary."""
    unpacked: int
    """Bytes of all pages once they are unpacked."""


def claims_of(metadata: Any, data: bytes, stop: int) -> Claims:
    """Return what the pages before byte `stop` of a file claim, by Arrow's reading of its footer."""
    # Of files by others, Arrow works round old faults, by reading past the end of columns.
    if not str(metadata.created_by).startswith(_WRITER):
        raise ReleaseFileError("another program wrote it")
    values: dict[str, int] = {}
    dictionary = unpacked = 0
    for group in range(metadata.num_row_groups):
        for column in range(metadata.num_columns):
            chunk = metadata.row_group(group).column(column)
            start, end = _extent(chunk, stop)
            name = chunk.path_in_schema
            while start < end:
                kind, n, size, start = _page(data, start, end)
                unpacked += size
                if kind == _DICTIONARY:
                    dictionary = max(dictionary, n)
                else:
                    values[name] = values.get(name, 0) + n
    return Claims(values, dictionary, unpacked)


def _extent(chunk: Any, stop: int) -> tuple[int, int]:
    """Return where the pages of a column begin and end."""
    start = chunk.data_page_offset
    if chunk.has_dictionary_page and 0 < chunk.dictionary_page_offset < start:
        start = chunk.dictionary_page_offset
    end = start + chunk.total_compressed_size
    if chunk.file_path or not 4 <= start <= end <= stop:
        raise ReleaseFileError("its columns lie elsewhere than in it")
    return start, end


def _page(data: bytes, start: int, end: int) -> tuple[int, int, int, int]:
    """Return a page's kind, how many values and bytes it claims, and where the next one begins."""
    header, at = _struct(data, start, end, 0)
    kind, size, packed = (header.get((i, _I32), -1) for i in (1, 2, 3))
    inner = header.get(({_DATA: 5, _DICTIONARY: 7}.get(kind, 0), _STRUCT), {})
    n, encoding = (inner.get((i, _I32), -1) for i in (1, 2))
    if min(size, packed, n) < 0 or packed > end - at or encoding not in _PLAIN:
        raise ReleaseFileError("it has pages that a release has not")
    return kind, n, size, at + packed


def _struct(data: bytes, at: int, end: int, depth: int) -> tuple[dict[tuple[int, int], Any], int]:
    """Return the fields of a struct by number and type, and where it ends.

    Typed, as Thrift's readers leave out a field whose type is not the one they expect; and in
    their order, so that none is there twice.
    """
    fields: dict[tuple[int, int], Any] = {}
    number = 0
    while True:
        head, at = _byte(data, at, end)
        if head == 0:
            return fields, at
        kind, step = head & 15, head >> 4
        if step == 0:
            step, at = _whole(data, at, end)
            step -= number
        if step < 1:
            raise ReleaseFileError("it has pages whose headers are out of order")
        number += step
        fields[number, kind], at = _value(data, at, end, kind, depth + 1)


def _value(data: bytes, at: int, end: int, kind: int, depth: int) -> tuple[Any, int]:
    if kind in (1, 2):
        return kind == 1, at
    if kind == 3:
        return _byte(data, at, end)
    if kind in (4, 5, 6):
        return _whole(data, at, end)
    if kind == _STRUCT and depth < _DEEPEST:
        return _struct(data, at, end, depth)
    if kind == _BINARY:
        length, at = _varint(data, at, end)
        if length <= end - at:
            return None, at + length
    # No header of a page has lists, maps or floats.
    raise ReleaseFileError("it has pages whose headers are none")


def _byte(data: bytes, at: int, end: int) -> tuple[int, int]:
    if at >= end:
        raise ReleaseFileError("it has pages that are cut short")
    return data[at], at + 1


def _varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 64:
        byte, at = _byte(data, at, end)
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at
    raise ReleaseFileError("it has pages whose headers are none")


def _whole(data: bytes, at: int, end: int) -> tuple[int, int]:
    """Return a whole number, written in zigzag."""
    value, at = _varint(data, at, end)
    return (value >> 1) ^ -(value & 1), at
