"""Parquet and CSV tables, in chunks of Arrow columns, read leniently.

Rows of wrong fields are skipped and counted, what is no number or time becomes null, bytes that
are no text are replaced: a table is never refused for one of its rows, and no message quotes one.
Each value is read by itself: whole columns are cast only where that gives the same.
"""

from __future__ import annotations

import codecs
import gzip
import io
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpregions.errors import InputError, InputTypeError
from dpregions.readings import microseconds_of, microseconds_of_arrow, number_each

if TYPE_CHECKING:
    import pandas as pd

CHUNK_ROWS = 1 << 18
"""Rows of a Parquet file read at once."""

CSV_BLOCK = 1 << 23
"""Bytes of a CSV file read at once."""

PARQUET = (".parquet", ".pq")


class Skipped:
    """Tells the CSV parser to skip rows of wrong fields, and counts them."""

    count = 0

    def __call__(self, _: object) -> str:
        """Count one more, and say skip."""
        self.count += 1
        return "skip"


class _CleanText(io.RawIOBase):
    """A file's bytes as valid UTF-8: where they are not, Arrow would give up on the file."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._rest = b""
        self._quotes, self._last = 0, b""

    @property
    def ends_in_quotes(self) -> bool:
        """Whether what was read ends within quotes and within a line: the rest is missing."""
        return self._quotes % 2 == 1 and self._last not in (b"\n", b"\r")

    def read(self, size: int = -1) -> bytes:
        """Return up to `size` bytes, none at the end; all that are left where it is negative."""
        while size < 0 or len(self._rest) < size:
            more = self._file.read(size)
            self._rest += self._decode(more, final=not more).encode()
            if not more:
                break
            self._quotes, self._last = self._quotes + more.count(b'"'), more[-1:]
        size = len(self._rest) if size < 0 else size
        head, self._rest = self._rest[:size], self._rest[size:]
        return head

    def readable(self) -> bool:
        """Say yes."""
        return True


@contextmanager
def opened(path: Path, columns: list[str] | None = None) -> Iterator[tuple[Any, Skipped]]:
    """Open a Parquet file, or a CSV file whose columns (all, by default) are read as text."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyarrow import csv

    skipped = Skipped()
    try:
        if path.suffix in PARQUET:
            with pq.ParquetFile(path, pre_buffer=False) as file:
                yield file, skipped
            return
        kinds = dict.fromkeys(columns or [], pa.string())
        options = (
            csv.ReadOptions(block_size=CSV_BLOCK),
            csv.ParseOptions(invalid_row_handler=skipped),
            csv.ConvertOptions(column_types=kinds, include_columns=columns),
        )
        openly = gzip.open if path.suffix.lower() == ".gz" else open
        with openly(path, "rb") as file:
            text = _CleanText(file)
            with csv.open_csv(text, *options) as reader:
                yield reader, skipped
            if not file.read(1) and text.ends_in_quotes:
                raise InputError(f"{path} is cut short: it ends within quotes")
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise InputError(f"{path} is cut short or damaged: its compression ends wrongly") from None
    except (pa.ArrowMemoryError, pa.ArrowCancelled):
        raise
    except pa.ArrowException:
        # Arrow's own message may quote a row.
        raise InputError(f"{path} is empty or cannot be read as {path.suffix}") from None


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

    parquet = path.suffix in PARQUET
    with opened(path) as (file, _):
        schema = file.schema_arrow if parquet else file.schema
    # A Parquet file declares its names; what a CSV file has in their place may be a record.
    remedy = (
        f"there are {', '.join(schema.names)}"
        if parquet
        else "its first line does not name it: is there a header?"
    )
    types: dict[str, Any] = {}
    for name, column in columns.items():
        argument = "time" if name == "t" else name
        times = schema.names.count(column)
        if times > 1:
            raise InputError(f"{argument}={column!r} names several columns of {path}")
        if times == 0 and name != "t":
            raise InputError(f"{argument}={column!r} is no column of {path}: {remedy}")
        if times == 1:
            kind = schema.field(column).type if parquet else pa.string()
            types[name] = kind.value_type if pa.types.is_dictionary(kind) else kind
            if not _can_be(name, types[name]):
                raise InputTypeError(
                    f"{argument}={column!r} of {path} holds {types[name]}, which is no "
                    f"{_MEANINGS[name]}"
                )
    return types


_MEANINGS = {
    "user_id": "user's id: make it numbers or text",
    "lon": "longitude: make it numbers of degrees",
    "lat": "latitude: make it numbers of degrees",
    "t": "time: make it timestamps, text or Unix seconds",
}


def _can_be(name: str, kind: Any) -> bool:
    """Say whether values of an Arrow type can be our column."""
    from pyarrow import types

    if name == "user_id":
        return not types.is_nested(kind)
    number = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
    timely = name == "t" and (types.is_timestamp(kind) or types.is_date(kind))
    return bool(number or timely or _is_text(kind) or types.is_null(kind))


def id_type(kinds: dict[Path, Any]) -> Any:
    """Return the one Arrow type to which the ids of all files go without loss, or refuse them."""
    import pyarrow as pa

    found = {str(kind): (kind, path) for path, kind in kinds.items() if not pa.types.is_null(kind)}
    distinct = [kind for kind, _ in found.values()]
    if all(map(_is_text, distinct)):
        return pa.large_string()
    if len(distinct) == 1:
        return distinct[0]
    if all(pa.types.is_unsigned_integer(kind) for kind in distinct):
        return pa.uint64()
    if all(pa.types.is_integer(kind) and kind != pa.uint64() for kind in distinct):
        return pa.int64()
    where = " and ".join(f"{name} in {path}" for name, (_, path) in sorted(found.items()))
    raise InputError(
        f"user_id is {where}: one user would pass for two. Give all files one type, or read them "
        f"one by one"
    )


def stream(path: Path, columns: Iterable[str]) -> Iterator[tuple[Any, int]]:
    """Yield a table in chunks of some of its columns, and the rows skipped since the last.

    Rows skipped at the end, maybe all there are, come with a chunk of no rows.
    """
    import pyarrow as pa

    with opened(path) as (file, _):
        there = (file.schema_arrow if path.suffix in PARQUET else file.schema).names
    wanted = sorted(set(columns) & set(there))
    before = 0
    with opened(path, wanted) as (file, skipped):
        parquet = path.suffix in PARQUET
        for batch in file.iter_batches(CHUNK_ROWS, columns=wanted) if parquet else file:
            yield batch, skipped.count - before
            before = skipped.count
        if skipped.count > before:
            yield pa.RecordBatch.from_pylist([], file.schema), skipped.count - before


def standard(chunk: Any, columns: dict[str, str], ids: Any) -> pd.DataFrame:
    """Return a table's chunk under our names and types, without the rows that have no user.

    Parameters
    ----------
    chunk : pyarrow.RecordBatch
        Some of a table's rows.
    columns : dict
        The table's names of our columns. Those of `lon`, `lat`, `t` that it lacks are left out.
    ids : pyarrow.DataType
        The type of all files' ids, from `id_type`.
    """
    import pandas as pd
    import pyarrow as pa
    import pyarrow.compute as pc

    rows: dict[str, Any] = {}
    try:
        # Nulls go before pandas sees them: it makes floats of whole numbers with a null.
        users = _plain(chunk[columns["user_id"]]).cast(ids)
        known = pc.invert(pc.is_null(users, nan_is_null=pa.types.is_floating(ids)))
        if _is_text(ids):
            known = pc.and_kleene(known, pc.not_equal(users, ""))
        rows["user_id"] = users.filter(known).to_pandas()
        for name, column in columns.items():
            if name != "user_id" and column in chunk.schema.names:
                read = times if name == "t" else numbers
                rows[name] = read(_plain(chunk[column]).filter(known))
    except pa.ArrowNotImplementedError:
        kinds = ", ".join(f"{name} {chunk.schema.field(name).type}" for name in chunk.schema.names)
        raise InputTypeError(f"columns of these types cannot be read: {kinds}") from None
    return pd.DataFrame(rows)


def _is_text(kind: Any) -> bool:
    return str(kind) in ("string", "large_string", "string_view")


def _plain(column: Any) -> Any:
    """Return a column without its dictionary, and text in the layout that all functions take."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return column.cast(pa.large_string()) if str(column.type) == "string_view" else column


def numbers(column: Any) -> Any:
    """Return a column as floats, NaN where it is none."""
    import pyarrow as pa

    column = _plain(column)
    try:
        return column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid:
        return number_each(column.to_pylist())


def times(column: Any) -> Any:
    """Return times as datetime64; numbers, in text too, are Unix seconds."""
    import pyarrow as pa

    column = _plain(column)
    for kind in (pa.timestamp("us"), pa.float64()) if _is_text(column.type) else ():
        # No text is both, so a column that can be cast whole is read as each value by itself.
        try:
            column = column.cast(kind)
            break
        except pa.ArrowInvalid:
            continue
    timely = pa.types.is_timestamp(column.type) or pa.types.is_date(column.type)
    micro = microseconds_of_arrow(column) if timely else microseconds_of(column.to_pandas())
    return micro.view("M8[us]")
