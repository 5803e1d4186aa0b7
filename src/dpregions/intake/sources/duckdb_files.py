"""DuckDB files, and DuckDB's SQL over other files, through its Arrow stream.

A database is opened read-only, and a view in it reaches nothing outside of it: SQL over Parquet
files is for ``duckdb://``, where the caller names them. No extension is installed or loaded: a
geometry is of the core type GEOMETRY, or WKB in a BLOB. DuckDB's messages are never passed on:
they may quote SQL and records.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dpregions import extras
from dpregions.errors import Argument, InputError, InputTypeError, SourceError
from dpregions.intake.arrow import (
    Kinds,
    RegionStream,
    arrow_errors,
    attempt,
    geometry_field,
    in_our_words,
)
from dpregions.intake.sources.requests import Request
from dpregions.intake.sources.sql import chosen_geometry, query_of
from dpregions.readable_files import refuse_unreadable

IN_MEMORY = ("", ":memory:")
_MAGIC = b"DUCK"
_INFERRED = re.compile(r"READ_(?:CSV|JSON|NDJSON)|SNIFF_CSV")


def open_duckdb(place: str | Path, request: Request) -> RegionStream:
    """Open a query on a DuckDB file, or on none (``duckdb://``) for SQL that reads files."""
    with extras.named():
        import duckdb
    request.refuse_useless("DuckDB", "sql")
    sql = query_of(request, "DuckDB")
    errors: Kinds = (duckdb.Error, *arrow_errors())
    connection = _connect(duckdb, str(place))
    try:
        return _opened(connection, sql, errors, request)
    except BaseException:
        connection.close()
        raise


def _opened(connection: Any, sql: str, errors: Kinds, request: Request) -> RegionStream:
    refused = InputError(
        "DuckDB refused the SQL: try it in DuckDB itself. It must be one SELECT, without "
        "functions of an extension: the geometry as GEOMETRY or WKB. In a database file it reads "
        "nothing outside of it: SQL over Parquet files is for duckdb://"
    )
    table = attempt(lambda: connection.sql(f"SELECT * FROM ({sql}\n) AS regions"), errors, refused)
    if table is None:
        raise refused
    # Of text that carries no types DuckDB infers them from all rows, so one would decide for all.
    if _INFERRED.search(attempt(table.explain, errors, refused)):
        raise InputError(
            "the SQL reads CSV or JSON, whose types DuckDB infers from all rows, so that one would "
            "change how the others are read: open the CSV or GeoJSON file itself"
        )
    names, types = list(table.columns), [kind.id for kind in table.types]
    ids = request.id_columns(names)
    for name in ids:
        if types[names.index(name)] == "time with time zone":  # Arrow has no such type
            raise InputTypeError(
                Argument("user_id", repr(name)), " is a time of day with an offset: cast it to text"
            )
    found = [n for n, kind in zip(names, types, strict=True) if kind in ("geometry", "blob")]
    if request.geometry in names and request.geometry not in found:
        kind = types[names.index(request.geometry)]
        raise InputTypeError(
            Argument("geometry", repr(request.geometry)),
            f" is of type {kind.upper()}: return a GEOMETRY, for "
            f"example {request.geometry}::GEOMETRY of WKT, or WKB in a BLOB",
        )
    marked = [n for n, kind in zip(names, types, strict=True) if kind == "geometry"]
    geometry = chosen_geometry(request.geometry, names, marked, found)
    quoted = ", ".join('"{}"'.format(name.replace('"', '""')) for name in [*ids, geometry])
    failed = SourceError("DuckDB failed while it read the regions: nothing was released")
    batches = in_our_words(_batches(connection, table.project(quoted), request), errors, failed)
    schema = next(batches)
    _, carried = geometry_field(schema, geometry)
    return request.stream(batches, schema, ids, geometry, carried)


def _connect(duckdb: Any, place: str) -> Any:
    nothing_loaded = {"autoinstall_known_extensions": False, "autoload_known_extensions": False}
    if place in IN_MEMORY:
        return duckdb.connect(config=nothing_loaded)
    refuse_unreadable(place)
    refused = InputError(
        f"{place} cannot be opened as a DuckDB file: it is damaged, of another format, or "
        f"open elsewhere. A connection of your own can be used: open_regions(connection.sql(..."
        f"))"
    )
    with open(place, "rb") as file:
        if file.read(12)[8:] != _MAGIC:  # DuckDB opens files of SQLite and others too
            raise refused
    shut = {**nothing_loaded, "enable_external_access": False}
    return attempt(
        lambda: duckdb.connect(place, read_only=True, config=shut), (duckdb.Error,), refused
    )


def _batches(connection: Any, table: Any, request: Request) -> Iterator[Any]:
    """Yield the schema, then the batches; how much is still to come is not known."""
    import pyarrow as pa

    with connection:
        reader = pa.RecordBatchReader.from_stream(table)
        yield reader.schema
        yield from reader
    request.show(1.0)
