"""GeoJSON, through GDAL's Arrow stream (pyogrio).

GDAL warns of single records and reads on past the end of a file that was cut short. Here its
warnings are silenced, and a file that ends early is refused.
"""

from __future__ import annotations

import json
import mmap
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from dpregions import arrow_regions
from dpregions.arrow_regions import (
    RegionStream,
    arrow_errors,
    attempt,
    geometry_field,
    in_our_words,
)
from dpregions.crs import read_crs
from dpregions.io.records import damaged as file_damaged
from dpregions.io.records import one_layer, refuse_useless
from dpregions.io.requests import Request

if TYPE_CHECKING:
    import pyarrow

T = TypeVar("T")


def open_vector(path: Path, request: Request) -> RegionStream:
    """Open a file that GDAL reads; several layers need `layer`."""
    import pyogrio

    refuse_useless(request)
    place, damaged = str(path), file_damaged(path)
    kinds = (pyogrio.errors.DataSourceError, pyogrio.errors.DataLayerError, *arrow_errors())
    layer = attempt(lambda: _layer(path, place, request.layer), kinds, damaged)
    info = attempt(lambda: _quietly(lambda: pyogrio.read_info(place, layer=layer)), kinds, damaged)
    if info["driver"] == "GeoJSONSeq":
        attempt(lambda: _read_last_line(path), (ValueError, RecursionError), damaged)
    ids = request.id_columns(list(info["fields"]))
    batches = in_our_words(_batches(place, layer, ids, info["features"], request), kinds, damaged)
    schema = next(batches)
    geometry, _ = geometry_field(schema)
    crs = None if info["crs"] is None else read_crs(info["crs"])
    return request.stream(batches, schema, ids, geometry, crs)


def _layer(path: Path, place: str, wanted: str | None) -> str:
    import pyogrio

    layers = _quietly(lambda: pyogrio.list_layers(place))
    if not len(layers):
        raise OSError  # `attempt` says what it means
    return one_layer(path, [str(name) for name, kind in layers if kind], wanted)


def _read_last_line(path: Path) -> None:
    """Read the last of a file's features, a line each, which GDAL leaves out where it is cut."""
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
        end = len(text)
        while end and text[end - 1 : end].isspace():
            end -= 1
        # RFC 8142 puts a record separator before each, which may then have several lines.
        start = text.rfind(b"\x1e", 0, end)
        start = text.rfind(b"\n", 0, end) if start < 0 else start
        json.loads(text[start + 1 : end])


def _quietly(call: Callable[[], T]) -> T:
    """Return what a call does without GDAL's warnings, which may quote a record."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call()


def _batches(
    place: str, layer: str, ids: list[str], n_features: int, request: Request
) -> Iterator[Any]:
    """Yield the schema, then the batches; refuse fewer rows than the file says it has."""
    from pyogrio.raw import open_arrow

    options = {"columns": ids, "layer": layer, "batch_size": arrow_regions.CHUNK_ROWS}
    done = 0
    with ExitStack() as stack:
        arrow = open_arrow(place, use_pyarrow=True, **options)
        _, reader = _quietly(lambda: stack.enter_context(arrow))
        yield reader.schema
        while (batch := _quietly(lambda: _next(reader))) is not None:
            done += batch.num_rows
            yield _sound(batch)
            request.show(done / max(1, n_features))
    if done < n_features:
        raise OSError  # in_our_words says what it means


def _sound(batch: pyarrow.RecordBatch) -> pyarrow.RecordBatch:
    """Return a batch that is valid Arrow data, or fail; a text that is none fails nothing."""
    import pyarrow as pa

    columns = [_text(c) if pa.types.is_string(c.type) else c for c in batch.columns]
    batch = pa.record_batch(columns, schema=batch.schema)
    batch.validate(full=True)
    return batch


def _text(column: Any) -> Any:
    """Return a column of text; where bytes are no UTF-8, with an escape for each."""
    import pyarrow as pa

    stored = column.view(pa.binary())
    stored.validate(full=True)
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        values = (None if v is None else v.decode("utf-8", "backslashreplace")
                  for v in stored.to_pylist())  # fmt: skip
        return pa.array(values, column.type)
    return column


def _next(reader: Any) -> pyarrow.RecordBatch | None:
    try:
        return reader.read_next_batch()
    except StopIteration:
        return None
