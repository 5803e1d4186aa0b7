"""Parquet files opened for reading: by groups of rows, and text of any bytes.

Owns three habits of Arrow's reader that are changed here: it would hold a whole file at once, it
refuses a whole dictionary of text for one value that is not UTF-8, and it writes out as many copies
of a long value as a small file asks for.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

BATCH_BYTES = 1 << 28
"""Bytes of one column that a batch holds, about, where rows are as long as a dictionary's."""

_PIECEMEAL: dict[str, Any] = {"pre_buffer": False, "buffer_size": 1 << 20}
"""How a file is read: not all of it at once, nor all of a column of a group of rows."""


def open_parquet(path: Path) -> Any:
    """Return a `pyarrow.parquet.ParquetFile` with columns of plain values, not of dictionaries."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = pq.ParquetFile(path, **_PIECEMEAL)
    if not any(pa.types.is_dictionary(field.type) for field in file.schema_arrow):
        return file
    file.close()
    return pq.ParquetFile(path, metadata=_metadata_without_arrows_types(path), **_PIECEMEAL)


def _metadata_without_arrows_types(path: Path) -> Any:
    """Return a file's metadata by its own types, not by those that Arrow noted beside them.

    The note is passed over by another name in a copy of the footer, where nothing else changes.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    with open(path, "rb") as file:
        file.seek(-8, os.SEEK_END)
        size = int.from_bytes(file.read(4), "little")
        file.seek(-8 - size, os.SEEK_END)
        footer = file.read(size + 8).replace(b"ARROW:schema", b"ARROW:unread")
    return pq.read_metadata(pa.BufferReader(b"PAR1" + footer))


def batches_of(path: Path, file: Any, rows: int, columns: list[str]) -> Iterator[Any]:
    """Yield a file's batches of at most so many rows, and of fewer where these are very long."""
    groups = range(file.metadata.num_row_groups)
    at_once = partial(_rows_at_once, path, file, rows, columns)
    for few, some in groupby(groups, at_once):
        yield from file.iter_batches(few, row_groups=list(some), columns=columns)


def _rows_at_once(path: Path, file: Any, rows: int, columns: list[str], group: int) -> int:
    """Return how many rows of a group to read at once.

    By what its dictionaries hold: each value may be repeated in a few bits. What the footer says
    of a column is not asked, as Arrow ends the process where that is damaged.
    """
    most = min(rows, file.metadata.row_group(group).num_rows)
    for name in columns:
        if most > 1 and _is_bytes(file.schema_arrow.field(name).type):
            longest = _longest(path, file.metadata, group, name)
            if longest * most > BATCH_BYTES:
                rows = min(rows, max(1, BATCH_BYTES // longest))
    return rows


def _is_bytes(kind: Any) -> bool:
    import pyarrow.types as types

    return any(
        said(kind)
        for said in (
            types.is_string,
            types.is_binary,
            types.is_large_string,
            types.is_large_binary,
        )
    )


def _longest(path: Path, metadata: Any, group: int, column: str) -> int:
    """Return the length of the longest value in the dictionary of a column of a group."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    options = {"metadata": metadata, "read_dictionary": [column]}
    with pq.ParquetFile(path, **options, **_PIECEMEAL) as file:
        first = next(file.iter_batches(1, row_groups=[group], columns=[column]), None)
        if first is None:
            return 0
        return pc.max(pc.binary_length(first.column(0).dictionary)).as_py() or 0
