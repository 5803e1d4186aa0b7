"""FlatGeobuf: a header with declared columns, then one feature after the other.

Read here and not by GDAL, which ends text at a zero byte, gives unsigned integers as floats, and
opens other files where a header looks like another format's. A feature is framed by its length:
one whose inside is broken is a record without a region, and changes no other.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from dpregions.errors import Argument, InputTypeError
from dpregions.intake.arrow import RegionStream, attempt
from dpregions.intake.ids import id_text, refuse_kind, text_id
from dpregions.intake.sources import records, wkb
from dpregions.intake.sources.flatbuffers import BrokenTable, Table
from dpregions.intake.sources.requests import Request

if TYPE_CHECKING:
    from pyproj import CRS

_KINDS = (struct.error, OSError)
_MAGIC = b"fgb\x03fgb"
_BYTE, _U16, _U32, _U64, _I32 = (struct.Struct(f"<{code}") for code in "BHIQi")
_NUMBERS = dict(enumerate(map(struct.Struct, ("<b", "<B", "<?", "<h", "<H", "<i", "<I", "<q", "<Q",
                                              "<f", "<d"))))  # fmt: skip
_FLOATS = (9, 10)
_TEXT, _JSON, _TIME, _BINARY = 11, 12, 13, 14
_NODE = 40
"""Bytes of one node of the index."""

_NESTING = 64
_HEADER_NAME, _HEADER_KIND, _COLUMNS, _COUNT, _NODE_SIZE, _CRS = 0, 2, 7, 8, 9, 10
_ENDS, _XY, _KIND, _PARTS = 0, 1, 6, 7


@dataclass(frozen=True)
class _Header:
    """What a file says of its features; `start` is where they begin, `count` 0 if unknown."""

    name: str
    kind: int
    columns: list[tuple[str, int]]
    count: int
    start: int
    crs: CRS | None


def open_flatgeobuf(path: Path, request: Request) -> RegionStream:
    """Open a FlatGeobuf file, which has one layer."""
    records.refuse_useless(request)
    header = attempt(lambda: _read_header(path), _KINDS, records.damaged(path))
    records.one_layer(path, [header.name], request.layer)
    names = [name for name, _ in header.columns]
    ids = request.id_columns(names)
    wanted = [names.index(name) for name in ids]
    for name, number in zip(ids, wanted, strict=True):
        _refuse_kind(name, header.columns[number][1])
    found = _records(path, header, wanted)
    return records.stream(path, found, _KINDS, ids, request, header.crs)


def _refuse_kind(name: str, kind: int) -> None:
    """Refuse a column by its declared type: floats, and text that has several spellings."""
    import pyarrow as pa

    if kind in _FLOATS:
        refuse_kind(name, pa.float64())
    if kind not in _NUMBERS and kind not in (_TEXT, _BINARY):
        holds = {_JSON: "JSON", _TIME: "times"}.get(kind, "values of an unknown type")
        raise InputTypeError(
            Argument("user_id", repr(name)),
            f" holds {holds}, which cannot be ids: the same value has several "
            f"spellings. Make them whole numbers or text",
        )


def _read_header(path: Path) -> _Header:
    size = path.stat().st_size
    with open(path, "rb") as file:
        start = file.read(len(_MAGIC) + 1)
        if not start.startswith(_MAGIC):
            raise BrokenTable
        table = Table.root(_framed(file, size))
        count, node = table.scalar(_COUNT, _U64, 0), table.scalar(_NODE_SIZE, _U16, 16)
        columns = [(c.text(0), c.scalar(1, _BYTE, 0)) for c in table.tables(_COLUMNS)]
        start_of_features = file.tell() + _index_size(count, node)
        if start_of_features > size:
            raise BrokenTable
        stated = table.table(_CRS)
        crs = None if stated is None else _crs(path, stated)
        name = table.text(_HEADER_NAME) or path.stem
        kind = table.scalar(_HEADER_KIND, _BYTE, 0)
    return _Header(name, kind, columns, count, start_of_features, crs)


def _framed(file: BinaryIO, size: int) -> bytes:
    """Return the bytes whose length comes first; fail where a file of a size ends before."""
    length = file.read(_U32.size)
    if len(length) < _U32.size or _U32.unpack(length)[0] > size - file.tell():
        raise BrokenTable
    return file.read(_U32.unpack(length)[0])


def _index_size(count: int, node: int) -> int:
    """Return the bytes of the index: a tree over the features, of so many branches a node."""
    if not count or not node:
        return 0
    total = level = count
    while level > 1:
        level = -(-level // max(2, node))
        total += level
    return _NODE * (total if count > 1 else 2)


def _crs(path: Path, table: Table) -> CRS | None:
    code = table.scalar(1, _I32, 0) or table.text(5)
    return records.stated_crs(path, table.text(4), table.text(0) or "EPSG", code)


def _records(path: Path, header: _Header, wanted: list[int]) -> Iterator[records.Record]:
    """Yield the features; fail where they are not as many as the header says."""
    kinds = [kind for _, kind in header.columns]
    size, count = path.stat().st_size, 0
    with open(path, "rb") as file:
        file.seek(header.start)
        while file.tell() < size:
            yield _record(_framed(file, size), header.kind, kinds, wanted)
            count += 1
    if header.count not in (0, count):
        raise BrokenTable


def _record(feature: bytes, kind: int, kinds: list[int], wanted: list[int]) -> records.Record:
    try:
        table = Table.root(feature)
        users = _values(table.vector(1), kinds, wanted) if wanted else []
        geometry = table.table(0)
        return users, None if geometry is None else _Shape(feature).wkb(geometry, kind)
    except struct.error:
        return [None] * len(wanted), None


def _values(properties: bytes, kinds: list[int], wanted: list[int]) -> list[str | None]:
    """Return the ids among a feature's values: each is a column's number, then as many bytes."""
    found: dict[int, str | None] = {}
    place = 0
    while place < len(properties) and len(found) < len(wanted):
        (column,) = _U16.unpack_from(properties, place)
        if column >= len(kinds):
            raise BrokenTable
        kind = kinds[column]
        form = _NUMBERS.get(kind, _U32)
        value: Any = form.unpack_from(properties, place + _U16.size)[0]
        place += _U16.size + form.size
        if kind not in _NUMBERS:
            value, place = properties[place : place + value], place + value
        if place > len(properties):
            raise BrokenTable
        if column in wanted and column not in found:
            found[column] = text_id(value) if kind == _TEXT else id_text(value)
    return [found.get(column) for column in wanted]


class _Shape:
    """The geometry of one feature, on its way to WKB.

    Parts may be shared, so that few bytes make a geometry of any size: what is made of a feature
    is bounded by its length.
    """

    def __init__(self, feature: bytes) -> None:
        self._room = 2 * len(feature) + 64

    def wkb(self, geometry: Table, kind: int, depth: int = 0) -> bytes:
        """Return a geometry, of the file's kind if all are of one; fail for curves."""
        kind = kind or geometry.scalar(_KIND, _BYTE, 0)
        if depth > _NESTING:
            raise BrokenTable
        if kind in (wkb.MULTIPOLYGON, wkb.COLLECTION):
            inner = wkb.POLYGON if kind == wkb.MULTIPOLYGON else 0
            self._take(wkb.XY)
            parts = [self.wkb(part, inner, depth + 1) for part in geometry.tables(_PARTS)]
            return wkb.multi(kind, parts)
        xy = geometry.vector(_XY, 8)
        self._take(len(xy) + wkb.XY)
        if len(xy) % wkb.XY:
            raise BrokenTable
        if kind == wkb.POINT and len(xy) == wkb.XY:
            return wkb.point(xy)
        if kind == wkb.LINE:
            return wkb.line(xy)
        if kind == wkb.MULTIPOINT:
            return wkb.multipoint(xy)
        if kind == wkb.POLYGON:
            return wkb.polygon(self._divided(geometry, xy))
        if kind == wkb.MULTILINE:
            lines = [wkb.line(part) for part in self._divided(geometry, xy)]
            return wkb.multi(wkb.MULTILINE, lines)
        raise BrokenTable

    def _divided(self, geometry: Table, xy: bytes) -> list[bytes]:
        """Return the rings or lines of a geometry: `ends` counts places from its beginning."""
        stored = geometry.vector(_ENDS, _U32.size)
        if not stored:
            return [xy] if xy else []
        self._take(len(stored))
        ends = [end * wkb.XY for (end,) in _U32.iter_unpack(stored)]
        starts = [0, *ends[:-1]]
        if starts != sorted(starts) or not starts[-1] <= ends[-1] == len(xy):
            raise BrokenTable
        return [xy[start:end] for start, end in zip(starts, ends, strict=True)]

    def _take(self, size: int) -> None:
        self._room -= size
        if self._room < 0:
            raise BrokenTable
