"""Parquet files opened for reading: by groups of rows, and text of any bytes.

Owns two habits of Arrow's reader that are changed here: it would hold a whole file at once, and
it refuses a whole dictionary of text for one value that is not UTF-8.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any


def open_parquet(path: Path) -> Any:
    """Return a `pyarrow.parquet.ParquetFile` with columns of plain values, not of dictionaries."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    # Not pre-buffered: that would hold all of a file at once.
    file = pq.ParquetFile(path, pre_buffer=False)
    if not any(pa.types.is_dictionary(field.type) for field in file.schema_arrow):
        return file
    file.close()
    return pq.ParquetFile(path, metadata=_metadata_without_arrows_types(path), pre_buffer=False)


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
