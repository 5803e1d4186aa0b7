"""A layer: columns, and a geometry for each row. What frames, Arrow tables and files are made of.

Knows nothing of what the columns say. Needs neither pandas nor GDAL, which not every reader has.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dpregions import extras

if TYPE_CHECKING:
    import geopandas
    import pyarrow
    from numpy.typing import NDArray
    from pyproj import CRS


@dataclass(frozen=True, eq=False)
class Layer:
    """Columns by their names, geometries, and their CRS."""

    GEOMETRY: ClassVar[str] = "geometry"
    """What the column of geometries is called."""

    columns: dict[str, Any]
    """Arrays or lists, of one length."""
    shapes: NDArray[np.object_]
    crs: CRS | None

    def __len__(self) -> int:
        return len(self.shapes)

    def with_columns(self, **columns: Any) -> Layer:
        """Return the layer with more columns, or others of these names."""
        return Layer({**self.columns, **columns}, self.shapes, self.crs)

    def frame(self) -> geopandas.GeoDataFrame:
        """Return the layer as a GeoDataFrame."""
        with extras.named():
            import geopandas
        return geopandas.GeoDataFrame(self.columns, geometry=self.shapes, crs=self.crs)

    def arrow(self) -> pyarrow.Table:
        """Return the layer as an Arrow table, with the geometries as WKB that names its CRS."""
        import pyarrow as pa

        names = [*self.columns, self.GEOMETRY]
        arrays = [*map(_arrow, self.columns.values()), self.wkb()]
        known = {"crs": self.crs.to_json_dict(), "crs_type": "projjson"} if self.crs else {}
        marked = {
            "ARROW:extension:name": "geoarrow.wkb",
            "ARROW:extension:metadata": json.dumps(known),
        }
        fields = [
            pa.field(name, array.type, metadata=marked if name == self.GEOMETRY else None)
            for name, array in zip(names, arrays, strict=True)
        ]
        return pa.table(arrays, pa.schema(fields))

    def wkb(self) -> pyarrow.Array:
        """Return the geometries as WKB."""
        import pyarrow as pa
        import shapely

        return pa.array(shapely.to_wkb(self.shapes, flavor="iso"), pa.binary())

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield the rows without their geometries, as Python's values; None for what is missing."""
        lists = [_arrow(column).to_pylist() for column in self.columns.values()]
        if not lists:
            yield from ({} for _ in range(len(self)))
        for values in zip(*lists, strict=True):
            yield dict(zip(self.columns, values, strict=True))

    @staticmethod
    def joined(layers: Sequence[Layer]) -> Layer:
        """Return layers below each other; a column that one of them lacks is null there."""
        import pyarrow as pa

        if len(layers) == 1:
            return layers[0]
        names = dict.fromkeys(name for layer in layers for name in layer.columns)
        columns: dict[str, Any] = {}
        for name in names:
            given = [_arrow(at.columns[name]) if name in at.columns else None for at in layers]
            kind = next(array.type for array in given if array is not None)
            columns[name] = pa.concat_arrays(
                [
                    pa.nulls(len(at), kind) if array is None else array.cast(kind)
                    for array, at in zip(given, layers, strict=True)
                ]
            )
        shapes = np.concatenate([layer.shapes for layer in layers])
        return Layer(columns, shapes, layers[0].crs)


def _arrow(column: Any) -> pyarrow.Array:
    """Return a column as one Arrow array."""
    import pyarrow as pa

    if isinstance(column, pa.ChunkedArray):
        return column.combine_chunks()
    array = column if isinstance(column, pa.Array) else pa.array(column)
    return array.cast(pa.string()) if pa.types.is_null(array.type) else array  # labels of nothing
