"""GeoPackage, through SQLite itself: each cell as it is stored.

A cell of SQLite has a type of its own, whatever its column declares; readers that make all of one
type turn text in a column of integers into 0, and so many users into one. Here each cell is read
by itself, and only a column that is declared as one of floats is refused. Nothing but the file is
opened: no other database, no extension, no function of the file's that could reach outside.
"""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpregions.errors import InputError
from dpregions.intake.arrow import RegionStream, attempt
from dpregions.intake.ids import id_text, refuse_kind, text_id
from dpregions.intake.sources import records
from dpregions.intake.sources.requests import Request

if TYPE_CHECKING:
    from pyproj import CRS

_KINDS = (sqlite3.Error, OSError, UnicodeError)
_ENVELOPES = (0, 32, 48, 48, 64)
_NO_CRS = (-1, 0)
_WRITE_AHEAD = 2
_UTF_8 = 1


@dataclass(frozen=True)
class _Layer:
    """A table of features; `columns` are its others, with the types that they declare."""

    table: str
    geometry: str
    columns: dict[str, str]
    crs: CRS | None


def open_geopackage(path: Path, request: Request) -> RegionStream:
    """Open a layer of a GeoPackage; several need `layer`."""
    records.refuse_useless(request)
    path = path.resolve()  # what SQLite is still to write lies beside the file itself
    uri = attempt(lambda: _whole_database(path), _KINDS, records.damaged(path))
    layer = attempt(lambda: _read_layer(path, uri, request), _KINDS, records.damaged(path))
    ids = request.id_columns(list(layer.columns))
    for name in ids:
        _refuse_floats(name, layer.columns[name])
    found = _records(uri, layer, ids)
    return records.stream(path, found, _KINDS, ids, request, layer.crs)


def _whole_database(path: Path) -> str:
    """Return how SQLite opens the file for reading; refuse one that is not whole.

    The first bytes say how many pages there are. What another program has yet to write into the
    file lies beside it, and is no part of it.
    """
    for name in (f"{path.name}-wal", f"{path.name}-journal"):
        beside = path.with_name(name)
        if beside.is_file() and beside.stat().st_size:
            raise InputError(
                f"{path} was not closed: {name} beside it holds changes. Close the program that "
                f"writes it, or copy the file in that program"
            )
    with open(path, "rb") as file:
        head = file.read(100)
    if len(head) < 100 or not head.startswith(b"SQLite format 3\0"):
        raise records.damaged(path)
    size, page = path.stat().st_size, struct.unpack_from(">H", head, 16)[0]
    page = 1 << 16 if page == 1 else page
    changes, pages = struct.unpack_from(">II", head, 24)
    if changes != struct.unpack_from(">I", head, 92)[0] or not pages:
        pages = -(-size // max(1, page))  # the number was left behind by an old SQLite
    if page < 512 or size < pages * page:
        raise records.damaged(path)
    if struct.unpack_from(">I", head, 56)[0] != _UTF_8:
        raise InputError(
            f"{path} keeps its text in UTF-16, in which ids may not stay apart: write it in UTF-8"
        )
    # Such a file would be locked by files that SQLite makes beside it, for a reader too.
    still = "&immutable=1" if _WRITE_AHEAD in head[18:20] else ""
    return f"{path.absolute().as_uri()}?mode=ro{still}"


def _connected(uri: str) -> sqlite3.Connection:
    connection = sqlite3.connect(uri, uri=True, check_same_thread=False)
    connection.text_factory = bytes
    connection.execute("PRAGMA trusted_schema = OFF")
    return connection


def _read_layer(path: Path, uri: str, request: Request) -> _Layer:
    with closing(_connected(uri)) as connection:
        rows = connection.execute(
            "SELECT c.table_name, g.column_name, g.srs_id FROM gpkg_contents AS c "
            "JOIN gpkg_geometry_columns AS g ON lower(c.table_name) = lower(g.table_name) "
            "WHERE c.data_type = 'features' ORDER BY c.table_name"
        ).fetchall()
        found = {table.decode(): (column.decode(), srs) for table, column, srs in map(_cells, rows)}
        table = records.one_layer(path, list(found), request.layer)
        marked, srs = found[table]
        columns = _columns(connection, table)
        # SQLite's names are the same in capitals; those of ids must be exact (`id_columns`).
        geometry = next((name for name in columns if name.lower() == marked.lower()), None)
        if geometry is None or len(found) < len(rows):
            raise records.damaged(path)
        del columns[geometry]
        return _Layer(table, geometry, columns, _crs(path, connection, srs))


def _cells(row: tuple[Any, ...]) -> tuple[bytes, bytes, Any]:
    table, column, srs = row
    if not isinstance(table, bytes) or not isinstance(column, bytes):
        raise OSError  # `attempt` says what it means
    return table, column, srs


def _columns(connection: sqlite3.Connection, table: str) -> dict[str, str]:
    """Return the columns of a table or a view, with their declared types."""
    rows = connection.execute(f"PRAGMA table_xinfo({_quoted(table)})")
    hidden = 1  # what a virtual table takes as an argument
    return {row[1].decode(): (row[2] or b"").decode() for row in rows if row[6] != hidden}


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _crs(path: Path, connection: sqlite3.Connection, srs: Any) -> CRS | None:
    if srs in _NO_CRS:
        return None
    there = _columns(connection, "gpkg_spatial_ref_sys")
    # An extension keeps what the older form of WKT cannot say in a column of its own.
    wkt = ["definition_12_063"] if "definition_12_063" in there else []
    for row in connection.execute(
        f"SELECT organization, organization_coordsys_id, {', '.join([*wkt, 'definition'])} "
        f"FROM gpkg_spatial_ref_sys WHERE srs_id = ?",
        (srs,),
    ):
        organization, code, *texts = (
            cell.decode() if isinstance(cell, bytes) else cell for cell in row
        )
        said = [text for text in texts if isinstance(text, str) and text != "undefined"]
        organization = organization if isinstance(organization, str) else None
        code = code if isinstance(code, int | str) else None
        return records.stated_crs(path, said[0] if said else None, organization, code)
    return None


def _refuse_floats(name: str, declared: str) -> None:
    """Refuse a column that SQLite makes one of floats, by its own rule for declared types."""
    import pyarrow as pa

    kind = declared.upper()
    if any(word in kind for word in ("INT", "CHAR", "CLOB", "TEXT", "BLOB")):
        return
    if any(word in kind for word in ("REAL", "FLOA", "DOUB")):
        refuse_kind(name, pa.float64())


def _records(uri: str, layer: _Layer, ids: list[str]) -> Iterator[records.Record]:
    names = [_quoted(name) for name in (*ids, layer.geometry)]
    cells = ", ".join(f"typeof({name}), {name}" for name in names)
    with closing(_connected(uri)) as connection:
        yield from map(_record, connection.execute(f"SELECT {cells} FROM {_quoted(layer.table)}"))


def _record(row: tuple[Any, ...]) -> records.Record:
    *cells, kind, blob = row
    users = [_id(cells[i], cells[i + 1]) for i in range(0, len(cells), 2)]
    return users, _wkb(blob) if kind == b"blob" else None


def _id(kind: bytes, cell: Any) -> str | None:
    return text_id(cell) if kind == b"text" else id_text(cell)


def _wkb(blob: bytes) -> bytes | None:
    """Return what follows the header of a GeoPackage's geometry; None where it is another's.

    The header's own CRS is not looked at: it says what the layer says, or is wrong.
    """
    if len(blob) < 8 or not blob.startswith(b"GP\0"):
        return None
    flags = blob[3]
    envelope, extended = flags >> 1 & 7, flags >> 5 & 1
    if extended or envelope >= len(_ENVELOPES):
        return None
    return blob[8 + _ENVELOPES[envelope] :] or None
