"""Parquet and CSV tables of fixes, in chunks of Arrow columns; each value is read by itself.

Rows of wrong fields are skipped and counted, what is no number or time becomes NaN, bytes that
are no text become escapes in an id: a table is refused for its declared columns or its broken
framing, never for one of its rows, and no message quotes one. Whole columns are cast only where
that gives the same as value by value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpregions.errors import Argument, InputError, InputTypeError
from dpregions.intake.arrow import (
    Kinds,
    arrow_errors,
    attempt,
    in_our_words,
    plain_column,
    plain_type,
)
from dpregions.intake.columns import (
    decoded,
    microseconds_of,
    microseconds_of_arrow,
    numbers_of_text,
)
from dpregions.intake.ids import one_column, plain_text, refuse_kind
from dpregions.intake.sources import csv_blocks
from dpregions.intake.sources.csv_blocks import CSV_BLOCK
from dpregions.intake.sources.parquet_files import batches_of, open_parquet

if TYPE_CHECKING:
    import pandas as pd

CHUNK_ROWS = 1 << 18
"""Rows of a Parquet file read at once."""

PARQUET = (".parquet", ".pq")


def names_of(path: Path) -> list[str]:
    """Return the names of a table's columns."""
    return list(_schema(path).names)


def column_types(path: Path, columns: dict[str, str]) -> dict[str, Any]:
    """Return the Arrow types of the columns that are there, by our names, or refuse the table.

    Parameters
    ----------
    path : Path
        A Parquet or CSV file. All of a CSV file's columns are text.
    columns : dict
        The table's names of our columns `user_id`, `lon`, `lat`, `t`. It may do without `t`.
    """
    import pyarrow as pa

    schema = _schema(path)
    # A Parquet file declares its names; what a CSV file has in their place may be a record.
    why = None
    if path.suffix not in PARQUET:
        known = csv_blocks.names_in_words(schema.names)
        why = known or "its first line does not name it: is there a header?"
    there = {name: to for name, to in columns.items() if name != "t" or to in schema.names}
    types = declared_types(schema, there, of=f" of {path}", why=why)
    return {name: pa.large_string() if _is_text(t) else t for name, t in types.items()}


def declared_types(
    schema: Any, columns: dict[str, str], *, of: str = "", why: str | None = None
) -> dict[str, Any]:
    """Return the Arrow types of columns by our names; refuse those that do not fit or are missing.

    Parameters
    ----------
    schema : pyarrow.Schema
    columns : dict
        The table's names of our columns.
    of, why
        As `ids.one_column` takes them.
    """
    types: dict[str, Any] = {}
    for name, column in columns.items():
        argument = "time" if name == "t" else name
        one_column(column, schema.names, argument, of=of, why=why, each_row=False)
        types[name] = plain_type(schema.field(column).type)
        if not _can_be(name, types[name]):
            raise InputTypeError(
                Argument(argument, repr(column)),
                f"{of} holds {types[name]}, which is no {_MEANINGS[name]}",
            )
    return types


_MEANINGS = {
    "user_id": "user's id: make it whole numbers or text",
    "lon": "longitude: make it numbers of degrees",
    "lat": "latitude: make it numbers of degrees",
    "t": "time: make it timestamps, text or Unix seconds",
}


def _can_be(name: str, kind: Any) -> bool:
    """Say whether values of an Arrow type can be our column."""
    from pyarrow import types

    if name == "user_id":
        try:
            refuse_kind(name, kind)
        except InputTypeError:
            return False
        return True
    number = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
    timely = name == "t" and (types.is_timestamp(kind) or types.is_date(kind))
    return bool(number or timely or _is_text(kind) or types.is_null(kind))


def id_type(kinds: dict[Path, Any]) -> Any:
    """Return the one Arrow type to which the ids of all files go without loss, or refuse them."""
    import pyarrow as pa

    found = {str(kind): (kind, path) for path, kind in kinds.items() if not pa.types.is_null(kind)}
    distinct = [kind for kind, _ in found.values()]
    if not distinct:
        return pa.large_string()
    if len(distinct) == 1:
        return distinct[0]
    if all(pa.types.is_unsigned_integer(kind) for kind in distinct):
        return pa.uint64()
    if all(pa.types.is_integer(kind) and kind != pa.uint64() for kind in distinct):
        return pa.int64()
    where = " and ".join(f"{name} in {path}" for name, (_, path) in sorted(found.items()))
    raise InputError(
        Argument("user_id"),
        f" is {where}: one user would pass for two. Give all files one type, or read them one by "
        f"one",
    )


def stream(
    path: Path, columns: Iterable[str], *, rows: int = CHUNK_ROWS, block: int = CSV_BLOCK
) -> Iterator[tuple[Any, int]]:
    """Yield a table in chunks of some of its columns, and the rows left out of each.

    A chunk is at most so many rows of Parquet, or about a block of bytes of CSV, whose columns are
    bytes. It may have no rows.
    """
    wanted = sorted(set(columns) & set(_schema(path).names))
    if path.suffix not in PARQUET:
        yield from csv_blocks.blocks(path, wanted, block)
        return
    with _parquet(path) as file:
        batches = batches_of(path, file, rows, wanted)
        for batch in in_our_words(batches, _parquet_errors(), _damaged(path)):
            yield batch, 0


def _parquet(path: Path) -> Any:
    return attempt(lambda: open_parquet(path), _parquet_errors(), _damaged(path))


def _schema(path: Path) -> Any:
    """Return the names and Arrow types of a table's columns, as they are declared."""
    import pyarrow as pa

    if path.suffix not in PARQUET:
        names = csv_blocks.column_names(path)
        return pa.schema([pa.field(name, pa.string()) for name in names])
    with _parquet(path) as file:
        return attempt(lambda: file.schema_arrow, _parquet_errors(), _damaged(path))


def _parquet_errors() -> Kinds:
    """Return what a damaged Parquet file may end in: its names need be no UTF-8, for instance."""
    return (*arrow_errors(), ValueError)


def _damaged(path: Path) -> InputError:
    return InputError(f"{path} is empty or cannot be read as {path.suffix}")


def standard(chunk: Any, columns: dict[str, str], ids: Any, decimal: str = ".") -> pd.DataFrame:
    """Return a table's chunk under our names and types, without the rows that have no user.

    Parameters
    ----------
    chunk : pyarrow.RecordBatch
        Some of a table's rows.
    columns : dict
        The table's names of our columns. Those of `lon`, `lat`, `t` that it lacks are left out.
    ids : pyarrow.DataType
        The type of all files' ids, from `id_type`.
    decimal : str
        What stands before the decimals of numbers in text.
    """
    import pandas as pd
    import pyarrow as pa

    rows: dict[str, Any] = {}
    try:
        users, known = users_of(chunk[columns["user_id"]], ids)
        rows["user_id"] = users.to_pandas()
        for name, column in columns.items():
            if name != "user_id" and column in chunk.schema.names:
                values = chunk[column].filter(known)
                rows[name] = times(values) if name == "t" else numbers(values, decimal)
    except pa.ArrowNotImplementedError:
        kinds = ", ".join(f"{name} {chunk.schema.field(name).type}" for name in chunk.schema.names)
        raise InputTypeError(f"columns of these types cannot be read: {kinds}") from None
    return pd.DataFrame(rows)


def users_of(column: Any, ids: Any) -> tuple[Any, Any]:
    """Return the ids there are as Arrow values that Python holds exactly, and which rows have one.

    Text is itself, with escapes for bytes that are none; dates become timestamps, and other
    times the whole numbers that they are stored as, since Python has no room for all of them.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    column = plain_column(column)
    if _is_text(ids) or pa.types.is_binary(ids) or pa.types.is_large_binary(ids):
        raw = column.cast(pa.large_binary())
        known = pc.fill_null(pc.greater(pc.binary_length(raw), 0), False)
        raw = raw.filter(known)
        return (_texts(raw) if _is_text(ids) else raw), known
    users = column.cast(ids)
    known = users.is_valid()
    if pa.types.is_temporal(ids):
        users = users.cast(pa.timestamp("s")) if pa.types.is_date32(ids) else users
        users = users.view(pa.int32() if pa.types.is_time32(ids) else pa.int64())
        timely = pa.types.is_timestamp(ids) or pa.types.is_date(ids)
        if timely:  # the least number is no time
            known = pc.and_(known, pc.fill_null(pc.greater(users, -(2**63)), False))
            unit = getattr(ids, "unit", "s" if pa.types.is_date32(ids) else "ms")
            users = users.view(pa.timestamp(unit))
    return users.filter(known), known


def texts_of(column: Any) -> Any:
    """Return a column of bytes as text, different for different bytes; null where it is empty."""
    import pyarrow as pa
    import pyarrow.compute as pc

    raw = column.cast(pa.large_binary())
    return _texts(pc.if_else(pc.greater(pc.binary_length(raw), 0), raw, None))


def _texts(raw: Any) -> Any:
    """Return bytes as text by `plain_text`, at once where all are UTF-8 and none is escaped."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        text = raw.cast(pa.large_string())
        if not pc.any(pc.match_substring(text, "\\x")).as_py():
            return text
    except pa.ArrowInvalid:
        pass
    found = raw.dictionary_encode()
    named = [plain_text(value) for value in found.dictionary.to_pylist()]
    return pa.array(named, pa.large_string()).take(found.indices)


def _is_text(kind: Any) -> bool:
    return str(kind) in ("string", "large_string", "string_view")


def decimal_mark(path: Path) -> str:
    """Return what stands before the decimals of a table's numbers in text."""
    is_text = path.suffix not in PARQUET
    return "," if is_text and csv_blocks.delimiter_of(path) == ";" else "."


def numbers(column: Any, decimal: str = ".") -> Any:
    """Return a column as floats, NaN where it is none.

    Where numbers in text have a decimal comma, they may have a point as well.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    column = plain_column(column)
    if _is_text(column.type) or pa.types.is_binary(column.type):
        text = decoded(column)
        return numbers_of_text(pc.replace_substring(text, decimal, ".") if decimal != "." else text)
    return column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)


def times(column: Any) -> Any:
    """Return times as datetime64; numbers, in text too, are Unix seconds."""
    import pyarrow as pa

    column = plain_column(column)
    if _is_text(column.type) or pa.types.is_binary(column.type):
        column = decoded(column)
        for kind in (pa.timestamp("us"), pa.float64()):
            # No text is both, so a column that can be cast whole is read as each value by itself.
            try:
                column = column.cast(kind)
                break
            except pa.ArrowInvalid:
                continue
    timely = pa.types.is_timestamp(column.type) or pa.types.is_date(column.type)
    micro = microseconds_of_arrow(column) if timely else microseconds_of(column.to_pandas())
    return micro.view("M8[us]")
