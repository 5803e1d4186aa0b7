"""What a caller asks of a source, the same for every kind, and what every adaptor does with it.

An adaptor opens its source, refuses what does not fit, and hands over Arrow batches; the columns
that were asked for become a `RegionStream` here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dpregions.choices import Unit
from dpregions.crs import one_crs
from dpregions.errors import Argument, InputError
from dpregions.intake.arrow import RegionStream, plain_column, plain_type
from dpregions.intake.ids import one_column, refuse_kind
from dpregions.intake.sources.csv_blocks import CSV_BLOCK
from dpregions.intake.units import id_columns

if TYPE_CHECKING:
    import pyarrow
    from pyproj import CRS

CHUNK_ROWS = 1 << 16
"""Rows of a source held at once, users apart."""


@dataclass(frozen=True)
class Request:
    """The arguments of `open_regions`, checked. `user_id` None: each row is its own user.

    And how much of a source is held at once, in rows and in bytes of CSV.
    """

    user_id: str | None = "user_id"
    geometry: str | None = None
    crs: CRS | None = None
    sql: str | None = None
    layer: str | None = None
    lon: str | None = None
    lat: str | None = None
    progress: Callable[[float], None] | None = None
    unit: Unit | None = None
    master: str | None = None
    by: str | None = None
    chunk_rows: int = CHUNK_ROWS
    csv_block: int = CSV_BLOCK

    def refuse_useless(self, kind: str, *useful: str) -> None:
        """Refuse options that mean nothing for a kind of source: they were given for a reason."""
        for name in ("sql", "layer", "lon", "lat"):
            value = getattr(self, name)
            if value is not None and name not in useful:
                raise InputError(Argument(name, ""), f" has no use for {kind}: leave it out")

    def id_columns(self, names: list[str] | None, marked: str | None = None) -> list[str]:
        """Return the columns to read beside regions, out of those that a source declares.

        Those that make an id, and that of groups, which are compared alike.
        """
        ids = id_columns(self.user_id, self.unit, marked=marked, columns=names)
        if self.by is None:
            return ids
        if names is not None:
            one_column(self.by, names, "by")
        return ids if self.by in ids else [*ids, self.by]

    def argument_of(self, column: str) -> str:
        """Return the argument that names a column which is read beside regions."""
        return "by" if column == self.by else "user_id"

    def show(self, done: float) -> None:
        """Report the share of the work done."""
        if self.progress is not None:
            self.progress(min(1.0, done))

    def stream(
        self,
        batches: Iterator[pyarrow.RecordBatch],
        schema: pyarrow.Schema,
        ids: list[str],
        geometry: str,
        carried: CRS | None,
        unit: str | None = None,
    ) -> RegionStream:
        """Return the id columns and the geometry of batches as a stream, in chunks."""
        import pyarrow as pa

        if geometry in ids or "geometry" in ids:
            raise InputError(
                Argument("user_id", repr(self.user_id)), " is the column of regions: name another"
            )
        for name in ids:
            refuse_kind(name, schema.field(name).type, self.argument_of(name))
        fields = [pa.field(name, plain_type(schema.field(name).type)) for name in ids]
        fields.append(pa.field("geometry", plain_type(schema.field(geometry).type)))
        plain = pa.schema(fields)
        chosen = (
            _chosen(batch.slice(start, self.chunk_rows), [*ids, geometry], plain)
            for batch in batches
            for start in range(0, batch.num_rows, self.chunk_rows)
        )
        stated = "trajectory" if self.unit == "trajectory" else unit
        return RegionStream(chosen, plain, one_crs(carried, self.crs, "the regions"), stated)


def _chosen(batch: Any, names: list[str], schema: pyarrow.Schema) -> pyarrow.RecordBatch:
    import pyarrow as pa

    columns = [plain_column(batch.column(name)) for name in names]
    return pa.record_batch(columns, schema=schema)
