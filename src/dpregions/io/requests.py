"""What a caller asks of a source, the same for every kind, and what every adaptor does with it.

An adaptor opens its source, refuses what does not fit, and hands over Arrow batches; the columns
that were asked for become a `RegionStream` here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dpregions.arrow_regions import RegionStream, one_column, one_crs, plain_column, plain_type
from dpregions.errors import InputError
from dpregions.fixes import TRAJECTORY_KEYS, UNIT_ATTRIBUTE

if TYPE_CHECKING:
    import pyarrow
    from pyproj import CRS


@dataclass(frozen=True)
class Request:
    """The arguments of `open_regions`, checked. `user_id` None: each row is its own user."""

    user_id: str | None = "user_id"
    geometry: str | None = None
    crs: CRS | None = None
    sql: str | None = None
    layer: str | None = None
    lon: str | None = None
    lat: str | None = None
    progress: Callable[[float], None] | None = None

    def refuse_useless(self, kind: str, *useful: str) -> None:
        """Refuse options that mean nothing for a kind of source: they were given for a reason."""
        for name in ("sql", "layer", "lon", "lat"):
            value = getattr(self, name)
            if value is not None and name not in useful:
                raise InputError(f"{name}= has no use for {kind}: leave it out")

    def id_columns(self, names: list[str], unit: str | None = None) -> list[str]:
        """Return the columns that make an id, out of those there are.

        Regions of trajectories have two: a trajectory's number counts within its user.
        """
        if self.user_id is None:
            return []
        keys = [name for name in TRAJECTORY_KEYS if name in names]
        if unit == "trajectory" and self.user_id in keys and TRAJECTORY_KEYS[-1] in keys:
            return keys
        one_column(self.user_id, names, "user_id")
        return [self.user_id]

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
        """Return the id columns and the geometry of batches as a stream."""
        import pyarrow as pa

        if geometry in ids or "geometry" in ids:
            raise InputError(f"user_id={self.user_id!r} is the column of regions: name another")
        fields = [pa.field(name, plain_type(schema.field(name).type)) for name in ids]
        fields.append(pa.field("geometry", plain_type(schema.field(geometry).type)))
        plain = pa.schema(fields)
        chosen = (_chosen(batch, [*ids, geometry], plain) for batch in batches)
        return RegionStream(chosen, plain, one_crs(carried, self.crs), unit)


def stated_unit(schema: pyarrow.Schema) -> str | None:
    """Return what one region stands for, where the file says so."""
    unit = (schema.metadata or {}).get(UNIT_ATTRIBUTE.encode())
    return unit.decode("utf-8", "replace") if unit else None


def _chosen(batch: Any, names: list[str], schema: pyarrow.Schema) -> pyarrow.RecordBatch:
    import pyarrow as pa

    columns = [plain_column(batch.column(name)) for name in names]
    return pa.record_batch(columns, schema=schema)
