"""Parquet and CSV tables, in chunks of Arrow columns, read leniently.

Rows of wrong fields are skipped and counted, what is no number or time becomes null, bytes that
are no text are replaced: a table is never refused for one of its rows, and no message quotes one.
"""

from __future__ import annotations

import codecs
import gzip
import io
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpregions.errors import InputError
from dpregions.fixes import microseconds_of

if TYPE_CHECKING:
    import pandas as pd

CHUNK_ROWS = 1 << 18
"""Rows of a Parquet file read at once."""

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

    def read(self, size: int = -1) -> bytes:
        """Return up to `size` bytes, none at the end."""
        while len(self._rest) < size:
            more = self._file.read(size)
            self._rest += self._decode(more, final=not more).encode()
            if not more:
                break
        head, self._rest = self._rest[:size], self._rest[size:]
        return head

    def readable(self) -> bool:
        """Say yes."""
        return True


@contextmanager
def _opened(path: Path, columns: list[str] | None = None) -> Iterator[tuple[Any, Skipped]]:
    """Open a Parquet file, or a CSV file whose columns (all, by default) are read as text."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyarrow import csv

    skipped = Skipped()
    try:
        if path.suffix in PARQUET:
            with pq.ParquetFile(path) as file:
                yield file, skipped
            return
        kinds = dict.fromkeys(columns or [], pa.string())
        options = (
            csv.ReadOptions(block_size=1 << 23),
            csv.ParseOptions(invalid_row_handler=skipped),
            csv.ConvertOptions(column_types=kinds, include_columns=columns),
        )
        openly = gzip.open if path.suffix == ".gz" else open
        with openly(path, "rb") as file, csv.open_csv(_CleanText(file), *options) as reader:
            yield reader, skipped
    except pa.ArrowInvalid:
        # Arrow's own message may quote a row.
        raise InputError(f"{path} is empty or cannot be read as {path.suffix}") from None


def column_names(path: Path) -> list[str]:
    """Return the names of a table's columns."""
    with _opened(path) as (file, _):
        return list((file.schema_arrow if path.suffix in PARQUET else file.schema).names)


def stream(path: Path, columns: Iterable[str]) -> Iterator[tuple[Any, int]]:
    """Yield a table in chunks of some of its columns, and the rows skipped since the last."""
    wanted = sorted(set(columns) & set(column_names(path)))
    before = 0
    with _opened(path, wanted) as (file, skipped):
        parquet = path.suffix in PARQUET
        for batch in file.iter_batches(CHUNK_ROWS, columns=wanted) if parquet else file:
            yield batch, skipped.count - before
            before = skipped.count


def standard(chunk: Any, columns: dict[str, str]) -> pd.DataFrame:
    """Return a table's chunk under our names and types; what cannot be read is null."""
    import pandas as pd

    rows: dict[str, Any] = {}
    for name, column in columns.items():
        if column in chunk.schema.names:
            read = {"user_id": _users, "t": times}.get(name, numbers)
            rows[name] = read(chunk[column])
    return pd.DataFrame(rows)


def _is_text(column: Any) -> bool:
    return str(column.type) in ("string", "large_string", "string_view")


def _users(column: Any) -> pd.Series[Any]:
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    users: pd.Series[Any] = column.to_pandas()
    return users.where(users != "") if _is_text(column) else users


def numbers(column: Any) -> Any:
    """Return a column as floats, NaN where it is none."""
    import pandas as pd
    import pyarrow as pa

    try:
        return column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid:
        return pd.to_numeric(column.to_pandas(), errors="coerce").to_numpy(float)


def times(column: Any) -> Any:
    """Return times as datetime64; numbers, in text too, are Unix seconds."""
    import pyarrow as pa

    for kind in (pa.timestamp("us"), pa.float64()) if _is_text(column) else ():
        try:
            column = column.cast(kind)
            break
        except pa.ArrowInvalid:
            continue
    return microseconds_of(column.to_pandas()).view("M8[us]")
