"""Regions as Arrow data: which column holds them, their CRS, and the stream every source becomes.

Owns the reading of Arrow schemas and `RegionStream`, the one form that files and databases
(`io/`) take before the intake (`regions.py`). No message quotes a value of a row, and Arrow's
own messages, which may, are never passed on.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING, Any, Self, TypeVar

from dpregions.crs import crs_label, read_crs
from dpregions.errors import (
    Argument,
    DPRegionsWarning,
    InputError,
    InputTypeError,
    SourceError,
)
from dpregions.intake.ids import one_column
from dpregions.intake.units import UNIT_ATTRIBUTE

if TYPE_CHECKING:
    import pyarrow
    from pyproj import CRS

T = TypeVar("T")
Kinds = tuple[type[BaseException], ...]

GEOMETRY_NAMES = ("geometry", "geom", "wkb")
"""Names that tell the column of regions where a source does not mark one."""


class RegionStream:
    """Regions on their way from a source to the intake: ids and WKB in batches, read once.

    Anything that takes Arrow takes it (``__arrow_c_stream__``). The column `geometry` holds
    WKB (geoarrow.wkb, with the CRS), the others the ids. Secret, as the source is.

    Attributes
    ----------
    schema : pyarrow.Schema
    crs : pyproj.CRS or None
    attrs : dict
        ``attrs["dpregions_unit"]`` says what one region stands for, where the source does.
    note : str or None
        What whoever opens a source of this kind should know; it does not depend on the rows.
    """

    def __init__(
        self,
        batches: Iterator[pyarrow.RecordBatch],
        schema: pyarrow.Schema,
        crs: CRS | None,
        unit: str | None = None,
    ) -> None:
        import pyarrow as pa

        kind = schema.field("geometry").type
        geometry = pa.field("geometry", kind, metadata=wkb_metadata(crs))
        self.schema = pa.schema([*(f for f in schema if f.name != "geometry"), geometry])
        self.crs = crs
        self.attrs = {} if unit is None else {UNIT_ATTRIBUTE: unit}
        self.note: DPRegionsWarning | None = None
        self.spells_values = False
        """Whether columns beside the geometry hold texts that `ids.id_text` wrote."""
        # Rows of wrong fields in what was read so far: exact, so for the curator's check alone.
        self.skipped_rows: Callable[[], int] = lambda: 0
        # Opens the same source once more, where that can be done.
        self.reopen: Callable[[], RegionStream] | None = None
        self._batches = batches
        self._was_read = False

    @property
    def unit(self) -> str | None:
        """What one region stands for, where the source says so."""
        return self.attrs.get(UNIT_ATTRIBUTE)

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self.schema.names)

    def __iter__(self) -> Iterator[pyarrow.RecordBatch]:
        """Yield the batches; once."""
        if self._was_read:
            raise InputError("these regions were read already: open the source again")
        self._was_read = True
        schema = self.schema
        return (b if b.schema == schema else b.cast(schema) for b in self._batches)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Export the batches by Arrow's protocol; once."""
        import pyarrow as pa

        reader = pa.RecordBatchReader.from_batches(self.schema, iter(self))
        return reader.__arrow_c_stream__(requested_schema)

    def close(self) -> None:
        """Let go of the file or the connection, read to the end or not."""
        self._was_read = True
        if isinstance(self._batches, Generator):
            self._batches.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        """Return the columns and the CRS; nothing is counted."""
        where = crs_label(self.crs) if self.crs else "no CRS"
        return f"<RegionStream of {', '.join(self.columns)}, {where}>"


def wkb_metadata(crs: CRS | None) -> dict[str, str]:
    """Return what marks a field of an Arrow schema as WKB in a CRS."""
    described = {"crs": crs.to_json_dict(), "crs_type": "projjson"} if crs else {}
    return {
        "ARROW:extension:name": "geoarrow.wkb",
        "ARROW:extension:metadata": json.dumps(described),
    }


def in_our_words(batches: Iterator[T], kinds: Kinds, error: Exception) -> Iterator[T]:
    """Yield batches; where reading fails in a known way raise `error`, and keep nothing else.

    Raised outside the handler: not even the error's context may hold a record or a password.
    """
    end = object()
    while (batch := attempt(lambda: next(batches, end), kinds, error)) is not end:
        yield batch  # type: ignore[misc]


def attempt(call: Callable[[], T], kinds: Kinds, error: Exception) -> T:
    """Return what a call does; where it fails in a known way raise `error`, without context."""
    try:
        return call()
    except kinds:
        pass
    raise error


def is_arrow(regions: Any) -> bool:
    """Say whether an object gives Arrow data."""
    return hasattr(regions, "__arrow_c_stream__") or hasattr(regions, "__arrow_c_array__")


def with_schema(regions: Any) -> Any:
    """Return a stream of Arrow data with its schema, before a row is read; anything else as it is.

    What has a schema or attributes of its own, such as a frame, is not a bare stream.
    """
    if not is_arrow(regions) or hasattr(regions, "schema") or hasattr(regions, "iloc"):
        return regions
    return arrow_reader(regions)


def arrow_reader(regions: Any) -> pyarrow.RecordBatchReader:
    """Return a reader of Arrow data; data without columns becomes the column 'geometry'."""
    import pyarrow as pa

    try:
        if not hasattr(regions, "__arrow_c_stream__"):
            field = pa.field(_FieldOf(regions)).with_name("geometry")
            return pa.table([pa.array(regions)], schema=pa.schema([field])).to_reader()
        try:
            return pa.RecordBatchReader.from_stream(regions)
        except pa.ArrowInvalid:  # a stream without columns
            return pa.table({"geometry": pa.chunked_array(regions)}).to_reader()
    except (pa.ArrowException, TypeError):
        # Not Arrow's own message: it may quote a record.
        raise InputTypeError(
            f"regions of type {type(regions).__name__} cannot be read as Arrow data: give WKB in "
            f"a column, or a GeoDataFrame (geopandas.GeoDataFrame(..., geometry=...))"
        ) from None


class _FieldOf:
    """An Arrow array's type with its metadata: the CRS is there, and `pa.array` drops it."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def __arrow_c_schema__(self) -> Any:
        return self._array.__arrow_c_array__()[0]


def arrow_batches(reader: Any) -> Iterator[pyarrow.RecordBatch]:
    """Yield the batches of a reader; what fails on the way is said in our words."""
    if isinstance(reader, RegionStream):
        return iter(reader)
    error = SourceError("the Arrow stream failed while it was read: nothing was released")
    return in_our_words(iter(reader), arrow_errors(), error)


def arrow_errors() -> Kinds:
    """Return what a reader of Arrow data raises when its source fails: quotes of records too."""
    import pyarrow as pa

    return (pa.ArrowException, OSError)


def plain_column(column: Any) -> Any:
    """Return a column in a plain layout: an extension's storage, a dictionary's values."""
    import pyarrow as pa

    if isinstance(column.type, pa.BaseExtensionType):
        column = column.cast(column.type.storage_type)
    kind = plain_type(column.type)
    return column if column.type == kind else column.cast(kind)


def plain_type(kind: Any) -> Any:
    """Return the type of a column in a plain layout."""
    import pyarrow as pa

    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    # Not all of Arrow's functions take the layout of views, which Polars exports.
    views = {pa.binary_view(): pa.large_binary(), pa.string_view(): pa.large_string()}
    return views.get(kind, kind)


def geometry_field(schema: pyarrow.Schema, wanted: str | None = None) -> tuple[str, CRS | None]:
    """Return the WKB column of an Arrow schema (the wanted one, if any is) and its CRS.

    What GeoParquet calls the primary column goes before what else is marked as a geometry.
    """
    geo = _described(schema.metadata, b"geo")
    columns, primary = geo.get("columns", {}), geo.get("primary_column")
    if not isinstance(columns, dict) or (geo and primary not in [*columns]):
        raise InputError("the schema's metadata 'geo' cannot be read: it is no GeoParquet")
    marked = [field.name for field in schema if _extension(field)]
    known = wanted or (primary if primary in schema.names else None)
    if known is None and len(marked) > 1:
        choices = ", ".join(marked)
        raise InputError(
            "several geometries: choose one by ", Argument("geometry", ""), f", of {choices}"
        )
    name = known or next(iter(marked), primary) or _unmarked(schema)
    one_column(name, schema.names, "geometry")
    field = schema.field(name)
    if _extension(field) not in ("", "geoarrow.wkb", "ogc.wkb"):
        raise InputTypeError(f"column {name!r} is {_extension(field)}: give WKB (geoarrow.wkb)")
    crs = _described(field.metadata, b"ARROW:extension:metadata").get("crs")
    if crs is None and name in columns:
        crs = _geoparquet_crs(columns[name], name)
    elif not _extension(field) and not is_binary(field.type):
        raise InputTypeError(
            Argument("geometry", repr(name)), f" holds {field.type}, which is no WKB"
        )
    return name, None if crs is None else read_crs(crs)


def _described(metadata: dict[bytes, bytes] | None, key: bytes) -> dict[str, Any]:
    """Return what metadata say under a key, in JSON: nothing where the key is not there."""
    text = (metadata or {}).get(key)
    error = InputError(f"the schema's metadata {key.decode()!r} cannot be read")
    found = attempt(lambda: json.loads(text or b"{}"), (ValueError, RecursionError), error)
    if not isinstance(found, dict):
        raise error
    return found


def _extension(field: Any) -> str:
    """Return the name of a field's type of geometry, empty if it is marked as none."""
    name = (field.metadata or {}).get(b"ARROW:extension:name", b"").decode("utf-8", "replace")
    name = name or getattr(field.type, "extension_name", "")
    return name if name.startswith("geoarrow.") or name == "ogc.wkb" else ""


def _unmarked(schema: pyarrow.Schema) -> str:
    """Return the column of WKB of a schema that marks none: the only one, or one by its name."""
    binary = [field.name for field in schema if is_binary(field.type)]
    named = [name for name in GEOMETRY_NAMES if name in binary]
    if len(binary) == 1 or named:
        return (named or binary)[0]
    raise InputTypeError(
        f"no WKB column among {', '.join(schema.names)}: one binary column is needed, or one "
        f"named 'geometry'. Fixes become regions by dpregions.regions_from_fixes"
    )


def _geoparquet_crs(column: Any, name: str) -> Any:
    if not isinstance(column, dict):
        raise InputError("the schema's metadata 'geo' cannot be read: it is no GeoParquet")
    if column.get("encoding") != "WKB":
        raise InputTypeError(
            f"column {name!r} is encoded as {column.get('encoding')}: give WKB instead"
        )
    return column.get("crs", "OGC:CRS84")  # the format's default where the key is absent


def is_binary(kind: Any) -> bool:
    """Say whether an Arrow type holds bytes."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    checks = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view)
    return any(check(kind) for check in checks)
