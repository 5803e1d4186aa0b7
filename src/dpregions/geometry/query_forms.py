"""Queries as people give them: rectangles as numbers, geometries in every form, and their CRS.

Owns what a query may be, and the form in which its answer goes back. It knows the CRS and the
bounds of a domain, a grid or a partition, and nothing of cells.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dpregions.crs import match_crs, one_crs, read_crs, reproject, same_crs
from dpregions.errors import InputTypeError, Part, QueryError, QueryNumber

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pyproj import CRS

_BOUNDS = ("xmin", "ymin", "xmax", "ymax")


def _refuse_rectangle(bounds: Any, which: Part) -> None:
    named = ", ".join(f"{n}={v}" for n, v in zip(_BOUNDS, bounds, strict=True))
    if not all(-math.inf < v < math.inf for v in bounds):
        raise QueryError(which, f" has a bound that is not finite: {named}")
    raise QueryError(
        which,
        f" is reversed: {named}; give xmin <= xmax and ymin <= ymax "
        f"(a window across the antimeridian: as two queries)",
    )


def rectangles_of(query: tuple[Any, ...]) -> tuple[NDArray[np.float64], tuple[int, ...]]:
    """Return rectangles as rows xmin, ymin, xmax, ymax, and the shape they came in."""
    try:
        bounds = np.broadcast_arrays(*(np.asarray(v, dtype=np.float64) for v in query))
    except (TypeError, ValueError, OverflowError) as error:
        raise QueryError(
            f"xmin, ymin, xmax, ymax must be numbers or arrays of one shape: {error}"
        ) from None
    shape = bounds[0].shape
    flat = np.stack([b.ravel() for b in bounds])
    bad = ~np.isfinite(flat).all(axis=0) | (flat[0] > flat[2]) | (flat[1] > flat[3])
    if bad.any():
        i = int(np.flatnonzero(bad)[0])
        _refuse_rectangle(flat[:, i].tolist(), QueryNumber(i) if shape else "the query")
    return flat, shape


class QueryShapes(NamedTuple):
    """Queries as geometries, and the form that their answers are to have."""

    shapes: NDArray[np.object_]
    source: CRS | None
    """The CRS to reproject them from, None where they are in the domain's."""
    labels: list[Any]
    """Of the queries, for messages."""
    shape: tuple[int, ...] | None
    index: Any = None

    @classmethod
    def of(cls, query: Any, crs: Any, grid: Any) -> QueryShapes:
        """Read a geometry, an array of geometries, a GeoSeries or a GeoDataFrame."""
        import shapely

        if isinstance(query, shapely.Geometry):
            source = crs_to_leave(None, crs, grid, bare=True)
            return cls(np.array([query]), source, ["the query"], ())
        if hasattr(query, "active_geometry_name") and query.active_geometry_name is None:
            raise InputTypeError(
                "the queries are a GeoDataFrame without a geometry column: name it, "
                "set_geometry(...)"
            )
        carried = getattr(query, "crs", None)
        if hasattr(query, "geometry") and hasattr(query, "index"):
            source = crs_to_leave(carried, crs, grid, bare=False)
            shapes = np.asarray(query.geometry.array, dtype=object)
            return cls(shapes, source, list(query.index), None, query.index)
        try:
            shapes = np.asarray(query, dtype=object)
            known = shapely.is_geometry(shapes) | shapely.is_missing(shapes)
        except (TypeError, ValueError):
            known = np.False_
        if not np.all(known) or np.ndim(shapes) == 0:
            raise InputTypeError(
                f"a query is four numbers or arrays (xmin, ymin, xmax, ymax), or a geometry, an "
                f"array of geometries, a GeoSeries or a GeoDataFrame; got {type(query).__name__}"
            )
        source = crs_to_leave(carried, crs, grid, bare=carried is None)
        return cls(shapes.ravel(), source, list(range(shapes.size)), shapes.shape)

    def in_crs_of(self, grid: Any) -> NDArray[np.object_]:
        """Return the geometries in the domain's CRS; refuse a null one."""
        import shapely

        if (null := np.flatnonzero(shapely.is_missing(self.shapes))).size:
            raise QueryError(
                f"the query at index {self.labels[null[0]]!r} is null: drop or fill it"
            )
        source, target = self.source, grid.crs
        if source is None or target is None:
            return self.shapes
        return np.asarray(shapely.transform(self.shapes, lambda xy: reproject(xy, source, target)))

    def refuse_far(self, wrong: NDArray[np.bool_], owner: NDArray[np.int64], reach: str) -> None:
        """Refuse queries of which a coordinate is wrong, by the first of them."""
        if wrong.any():
            raise QueryError(
                f"the query at index {self.labels[owner[wrong][0]]!r} has a coordinate that is not "
                f"finite or is more than {reach} (or its CRS has no such place here)"
            )


def crs_to_leave(carried: CRS | None, stated: Any, grid: Any, *, bare: bool) -> CRS | None:
    """Return the CRS to reproject queries from, None where they are in the grid's."""
    if stated is not None:
        carried, bare = one_crs(carried, read_crs(stated), "the queries"), False
    if bare:
        return None
    match_crs(carried, grid, "queries")
    if carried is None or grid.crs is None or same_crs(carried, grid.crs):
        return None
    return carried


def in_form(values: NDArray[Any], shape: tuple[int, ...] | None, index: Any, name: str) -> Any:
    """Return one value a query as a number, in a shape, or on an index."""
    if index is not None:
        import pandas as pd

        return pd.Series(values, index=index, name=name)
    return values.item() if shape == () else values.reshape(shape or ())


def parts_of(geometry: Any) -> Iterator[Any]:
    """Yield the points, lines and polygons of a geometry, however deep they nest."""
    for part in getattr(geometry, "geoms", [geometry]):
        if hasattr(part, "geoms"):
            yield from parts_of(part)
        elif not part.is_empty:
            yield part
