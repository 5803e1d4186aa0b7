"""GeoParquet, and plain Parquet with a column of WKB, by row groups."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpregions import arrow_regions
from dpregions.arrow_regions import (
    RegionStream,
    arrow_errors,
    attempt,
    geometry_field,
    in_our_words,
)
from dpregions.errors import InputError
from dpregions.io.requests import Request
from dpregions.units import stated_unit

if TYPE_CHECKING:
    import pyarrow


def open_geoparquet(path: Path, request: Request) -> RegionStream:
    """Open a Parquet file of regions; its own metadata say the CRS and the unit."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    request.refuse_useless("GeoParquet")
    damaged = InputError(f"{path} is cut short, damaged or not Parquet")
    kinds = (*arrow_errors(), ValueError)  # names of columns that are no text
    file = attempt(lambda: pq.ParquetFile(path, pre_buffer=False), kinds, damaged)
    schema = attempt(lambda: file.schema_arrow, kinds, damaged)
    marked = stated_unit(schema.metadata)
    ids = request.id_columns(schema.names, marked)
    geometry, carried = geometry_field(schema, request.geometry)
    if any(pa.types.is_dictionary(schema.field(name).type) for name in ids):
        file = attempt(lambda: _without_dictionaries(path), kinds, damaged)
    batches = in_our_words(_batches(file, [*ids, geometry], request), arrow_errors(), damaged)
    return request.stream(batches, schema, ids, geometry, carried, marked)


def _without_dictionaries(path: Path) -> Any:
    """Open a file by its own types, not by those that Arrow noted beside them.

    Arrow refuses a dictionary of text for one value that is not UTF-8. Its note is passed over by
    another name in a copy of the footer, where nothing else changes.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    with open(path, "rb") as file:
        file.seek(-8, os.SEEK_END)
        size = int.from_bytes(file.read(4), "little")
        file.seek(-8 - size, os.SEEK_END)
        footer = file.read(size + 8).replace(b"ARROW:schema", b"ARROW:unread")
    metadata = pq.read_metadata(pa.BufferReader(b"PAR1" + footer))
    return pq.ParquetFile(path, metadata=metadata, pre_buffer=False)


def _batches(file: Any, columns: list[str], request: Request) -> Iterator[pyarrow.RecordBatch]:
    done, total = 0, max(1, file.metadata.num_rows)
    with file:
        for batch in file.iter_batches(arrow_regions.CHUNK_ROWS, columns=columns):
            done += batch.num_rows
            yield batch
            request.show(done / total)
