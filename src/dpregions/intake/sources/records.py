"""Records that were read one by one -> Arrow batches, and what the files they come from share.

For formats whose readers are our own: each record is its ids as text (`ids.id_text`) and its WKB,
or None where it has none. Owns how many records are held at once, the words in which layers are
refused, and the CRS that a file states. Nothing here looks at what a record holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpregions.errors import Argument, CRSError, InputError
from dpregions.intake.arrow import Kinds, RegionStream, attempt, in_our_words
from dpregions.intake.sources.requests import Request

if TYPE_CHECKING:
    import pyarrow
    from pyproj import CRS

Record = tuple[list[str | None], bytes | None]

BATCH_BYTES = 1 << 26
LONGEST = 1 << 30
"""Bytes beyond which a record does not fit into Arrow's columns: it counts nowhere."""


def damaged(path: Path) -> InputError:
    """Return the error for a file that cannot be read to its end."""
    return InputError(f"{path} is cut short, damaged or not of the format its name says")


def refuse_useless(request: Request) -> None:
    """Refuse options that mean nothing for files of layers, which mark their geometry."""
    request.refuse_useless("this format", "layer")
    if request.geometry is not None:
        raise InputError(
            Argument("geometry", ""), " has no use for this format: its layers mark their geometry"
        )


def one_layer(path: Path, found: list[str], wanted: str | None) -> str:
    """Return the layer that is meant, of those with a geometry; refuse to choose among several."""
    listed = ", ".join(map(repr, found))
    if not found:
        raise InputError(f"{path} has no layer with a geometry")
    if wanted is None and len(found) > 1:
        raise InputError(
            f"{path} has several layers: choose one by ", Argument("layer", ""), f", of {listed}"
        )
    if wanted is not None and wanted not in found:
        raise InputError(Argument("layer", repr(wanted)), f" is not in {path}: there are {listed}")
    return wanted or found[0]


def stated_crs(
    path: Path, wkt: str | None, authority: str | None = None, code: int | str | None = None
) -> CRS | None:
    """Return the CRS that a file states, by its authority's code or else by its definition.

    None where it states none: GeoPackage has names for that, which begin with "undefined".
    """
    from pyproj import CRS
    from pyproj.exceptions import ProjError

    if authority and code:
        try:
            return CRS.from_authority(authority.upper(), code)
        except (ProjError, ValueError):
            pass  # an authority that PROJ does not know, or the file's own
    if not wkt or wkt == "undefined":
        return None
    error = CRSError(f"{path}: its CRS cannot be read: write the file again with another")
    crs = attempt(lambda: CRS.from_wkt(wkt), (ProjError, ValueError), error)
    return None if crs.name.lower().startswith("undefined") else crs


def record_schema(ids: list[str]) -> pyarrow.Schema:
    """Return the schema of `record_batches`."""
    import pyarrow as pa

    fields = [*(pa.field(name, pa.string()) for name in ids), pa.field("geometry", pa.binary())]
    return pa.schema(fields)


def stream(
    path: Path,
    records: Iterator[Record],
    kinds: Kinds,
    ids: list[str],
    request: Request,
    crs: CRS | None,
) -> RegionStream:
    """Return records as a stream; where reading fails in a known way, their file is damaged."""
    size = path.stat().st_size
    batches = record_batches(in_our_words(records, kinds, damaged(path)), ids, request, size)
    made = request.stream(batches, record_schema(ids), ids, "geometry", crs)
    made.spells_values = True
    return made


def record_batches(
    records: Iterable[Record],
    ids: list[str],
    request: Request,
    total: int,
    *,
    batch_bytes: int = BATCH_BYTES,
    longest: int = LONGEST,
) -> Iterator[pyarrow.RecordBatch]:
    """Yield records in batches, few enough to be held, out of a file of `total` bytes."""
    schema = record_schema(ids)
    held: list[list[Any]] = [[] for _ in schema]
    done, size = 0, 0
    for users, wkb in records:
        values: tuple[Any, ...] = (*users, wkb)
        length = sum(map(len, filter(None, values)))
        if length > longest:
            values, length = (None,) * len(values), 0
        for column, value in zip(held, values, strict=True):
            column.append(value)
        size += length
        if len(held[-1]) >= request.chunk_rows or size >= batch_bytes:
            done += size
            yield record_batch(held, schema)
            request.show(min(0.99, done / max(1, total)))  # which may be packed
            size, held = 0, [[] for _ in schema]
    if held[-1]:
        yield record_batch(held, schema)
    request.show(1.0)


def record_batch(columns: list[list[Any]], schema: pyarrow.Schema) -> pyarrow.RecordBatch:
    """Return columns of values as a batch."""
    import pyarrow as pa

    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.record_batch(arrays, schema=schema)
