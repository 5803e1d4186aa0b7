"""GeoParquet, and plain Parquet with a column of WKB, by row groups."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpregions.errors import Argument, InputError, InputTypeError
from dpregions.intake.arrow import (
    RegionStream,
    arrow_errors,
    attempt,
    geometry_field,
    in_our_words,
)
from dpregions.intake.sources.parquet_files import batches_of, open_parquet
from dpregions.intake.sources.requests import Request
from dpregions.intake.units import stated_unit

if TYPE_CHECKING:
    import pyarrow


def open_geoparquet(path: Path, request: Request) -> RegionStream:
    """Open a Parquet file of regions; its own metadata say the CRS and the unit."""
    request.refuse_useless("GeoParquet")
    damaged = InputError(f"{path} is cut short, damaged or not Parquet")
    kinds = (*arrow_errors(), ValueError)  # names of columns that are no text
    file = attempt(lambda: open_parquet(path), kinds, damaged)
    schema = attempt(lambda: file.schema_arrow, kinds, damaged)
    marked = stated_unit(schema.metadata)
    ids = request.id_columns(schema.names, marked)
    geometry, carried = geometry_field(schema, request.geometry)
    _refuse_int96(file, ids)
    batches = in_our_words(_batches(path, file, [*ids, geometry], request), arrow_errors(), damaged)
    return request.stream(batches, schema, ids, geometry, carried, marked)


def _refuse_int96(file: Any, ids: list[str]) -> None:
    """Refuse times of an old kind as ids: Arrow reads far ones as other times."""
    for i in range(len(file.schema)):
        column = file.schema.column(i)
        if column.path in ids and column.physical_type == "INT96":
            raise InputTypeError(
                Argument("user_id", repr(column.path)),
                " holds times as INT96, of which several would pass for "
                "one: make them text or whole numbers",
            )


def _batches(
    path: Path, file: Any, columns: list[str], request: Request
) -> Iterator[pyarrow.RecordBatch]:
    groups = [file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)]
    ends = list(accumulate(group.num_rows for group in groups))
    sizes = [0, *accumulate(group.total_byte_size for group in groups)]
    done = 0
    with file:
        for batch in batches_of(path, file, request.chunk_rows, columns):
            done += batch.num_rows
            yield batch
            # By bytes of whole groups: a share of the rows would tell how many there are.
            request.show(sizes[bisect_right(ends, done)] / max(1, sizes[-1]))
