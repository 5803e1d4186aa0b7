"""What a histogram asks of a grid: its components, bounds, outlines, counts and queries.

The half of `Grid` that makes it a `Domain`; the other half, in `grid.py`, owns where its lines are
and how it is made, named and saved. Everything here is public but the outlines and counts that
pass through.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from dpregions.crs import unit_label
from dpregions.errors import (
    Argument,
    InputError,
    InputTypeError,
    QueryError,
    QueryNumber,
)
from dpregions.geometry.bases import Base
from dpregions.geometry.cells import Selection, select
from dpregions.geometry.doubled import Edges, SignedTable, SpanCounts
from dpregions.geometry.layers import Layer
from dpregions.geometry.lookups import look_up
from dpregions.geometry.outlines import Bound, Outlines
from dpregions.geometry.query_forms import QueryShapes

if TYPE_CHECKING:
    import geopandas
    from numpy.typing import NDArray
    from pyproj import CRS

    from dpregions.choices import Kind, Oversize, Within
    from dpregions.geometry.grid import Grid


class CountedGrid:
    """Square cells as a domain."""

    if TYPE_CHECKING:
        xmin: float
        ymin: float
        cell_size: float
        n_rows: int
        n_cols: int
        crs: CRS | None

    @property
    def _whole(self) -> Grid:
        return cast("Grid", self)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of cells."""
        return self.n_rows, self.n_cols

    @property
    def doubled_shape(self) -> tuple[int, int]:
        """Shape of the array of faces, edges and vertices: ``(2*n_rows-1, 2*n_cols-1)``."""
        return 2 * self.n_rows - 1, 2 * self.n_cols - 1

    @property
    def form(self) -> str:
        """What kind of domain it is: "grid"."""
        return "grid"

    @property
    def counts_shape(self) -> tuple[int, int]:
        """The shape of an array of counts: `doubled_shape`."""
        return self.doubled_shape

    @property
    def kinds(self) -> NDArray[np.int8]:
        """0 for a face, 1 for an inner edge, 2 for an inner vertex, in `counts_shape`."""
        row, col = ((np.arange(n) & 1).astype(np.int8) for n in self.doubled_shape)
        kinds: NDArray[np.int8] = np.add.outer(row, col)
        return kinds

    def split(self, counts: NDArray[Any]) -> tuple[NDArray[Any], Edges, NDArray[Any]]:
        """Return the values of faces, of edges by direction, and of vertices."""
        edges = Edges(vertical=counts[::2, 1::2], horizontal=counts[1::2, ::2])
        return counts[::2, ::2], edges, counts[1::2, 1::2]

    @property
    def place_names(self) -> tuple[str, ...]:
        """The names of what `places` returns."""
        return "row", "col"

    def places(self) -> dict[str, NDArray[np.int32]]:
        """Return where each component is in the doubled array: its `row` and `col`."""
        row, col = np.indices(self.doubled_shape, np.int32).reshape(2, -1)
        return {"row": row, "col": col}

    @property
    def n_components(self) -> int:
        """How many faces, inner edges and inner vertices there are together."""
        rows, cols = self.doubled_shape
        return rows * cols

    @property
    def cells_in_words(self) -> str:
        """How many cells there are, for a message."""
        size = f"{self.cell_size:.10g} {unit_label(self.crs)}"
        return f"{self.n_rows} x {self.n_cols} cells of {size}"

    @property
    def enforced_in_words(self) -> str:
        """What it enforces on regions beside their diameter: nothing."""
        return ""

    @property
    def size_in_words(self) -> str:
        """How large it is, for a message."""
        return f"a grid of {self.n_rows} x {self.n_cols} cells ({self.n_components:,} components)"

    def bound(self, max_diameter: float | str, oversize: Oversize) -> Bound:
        """Return the bound that `max_diameter` sets, as the integers that enforce it."""
        return Bound.of(self._whole, max_diameter, oversize)

    def most_touched(self, bound: Bound) -> int:
        """Return how many components a body within the bound touches at most.

        The lemma is that of `mechanisms.paper.sensitivity`: 2k+1 doubled rows and columns.
        """
        rows, cols = (min(2 * bound.k + 1, n) for n in self.doubled_shape)
        return rows * cols

    def bases(self, bound: Bound) -> tuple[Base, ...]:
        """Return the grids that regions may be measured on: itself."""
        return (Base(self._whole, bound),)

    def touching(self, outlines: Outlines) -> NDArray[np.bool_]:
        """Say which bodies touch a cell."""
        return outlines.touching(*self.shape)

    def outlines(
        self, coords: NDArray[np.float64], starts: NDArray[np.int64], bound: Bound | None
    ) -> Outlines:
        """Return the bounded outlines of records: record i has points from ``starts[i]`` on."""
        return Outlines.of(coords, starts, self._whole, bound)

    def counter(self) -> SpanCounts:
        """Return counts of nothing, to add to."""
        return SpanCounts(*self.shape)

    def table(self, counts: NDArray[Any]) -> SignedTable:
        """Return counts ready to be summed over queries."""
        return SignedTable(counts)

    def look_up(
        self, query: tuple[Any, ...], crs: Any, within: Within | None
    ) -> tuple[int, int, int, int] | None:
        """Return the rectangle of cells that answers one query of plain numbers, if any."""
        return look_up(self._whole, query, within) if crs is None and len(query) == 4 else None

    def shapes_of(self, given: Any) -> NDArray[np.object_]:
        """Return geometries in the grid's CRS, from any form that queries have."""
        return QueryShapes.of(given, None, self).in_crs_of(self)

    def select(
        self,
        query: tuple[Any, ...],
        crs: Any = None,
        *,
        cells: Any = None,
        within: Within | None = "cells",
        once: bool = False,
        stacklevel: int | None = 2,
    ) -> Selection:
        """Return what queries touch, in any accepted form, warning where due."""
        if cells is not None:
            raise QueryError(
                Argument("cells"), " are labels of a partition's cells: ask a grid by rectangles"
            )
        level = None if stacklevel is None else stacklevel + 1
        return select(self._whole, query, crs, within=within, stacklevel=level)

    def is_exact(self, *query: Any, crs: Any = None) -> Any:
        """Tell whether a query's cells form a rectangle, so that its count is exact.

        Takes the queries that `EulerHistogram.count` takes; looks at the grid alone.
        """
        selection = select(self._whole, query, crs, stacklevel=None)
        return selection.wrap(selection.exact, "exact")

    def enclosing(self, *query: Any, crs: Any = None) -> tuple[Any, Any, Any, Any]:
        """Return the smallest rectangle of whole cells around a query, as its bounds.

        A rectangle in degrees is none on the grid: its cells may form a staircase, which counts
        some regions twice. ``release.count(*grid.enclosing(...))`` asks about a rectangle, exactly.

        Parameters
        ----------
        *query
            What `Release.count` takes: four bounds, numbers or arrays, or geometries.
        crs : optional
            The CRS of numbers or geometries that carry none; the grid's by default. Corners are
            reprojected; sides are straight in the grid's CRS.

        Returns
        -------
        tuple
            ``(xmin, ymin, xmax, ymax)`` in the grid's CRS, each in the form of the query. What
            reaches beyond the area is cut there; what lies wholly outside is not moved.

        Examples
        --------
        >>> from dpregions import Grid
        >>> Grid(0, 0, 1, n_rows=4, n_cols=5).enclosing(0.5, 1, 2.1, 3)
        (0.0, 1.0, 3.0, 3.0)
        """
        selection = select(self._whole, query, crs, within="shape", stacklevel=None)
        bounds = np.asarray(selection.bounds)
        if (empty := np.flatnonzero(np.isnan(bounds).any(axis=0))).size:
            raise QueryError(QueryNumber(empty[0]), " is empty: no cells enclose it")
        found = self._whole.cell_ranges(*bounds)
        inside = (found[0] <= found[1]) & (found[2] <= found[3])
        bounds[:, inside] = self._whole.cell_bounds(*found[:, inside])
        xmin, ymin, xmax, ymax = (
            selection.wrap(side, name)
            for side, name in zip(bounds, ("xmin", "ymin", "xmax", "ymax"), strict=True)
        )
        return xmin, ymin, xmax, ymax

    def to_geodataframe(self, kind: Kind = "faces") -> geopandas.GeoDataFrame:
        """Return the faces, inner edges or inner vertices as geometries.

        Returns
        -------
        geopandas.GeoDataFrame
            `row` and `col` are positions in the doubled array, so that
            ``counts[frame["row"], frame["col"]]`` are the counts in the frame's order.
        """
        return self.layer(kind).frame()

    def layer(self, kind: Kind = "faces") -> Layer:
        """Return what `to_geodataframe` does, as a layer."""
        import shapely

        if kind not in ("faces", "edges", "vertices"):
            raise InputError(
                Argument("kind", repr(kind)), " is unknown: use 'faces', 'edges' or 'vertices'"
            )
        i, j = np.indices(self.doubled_shape).reshape(2, -1)
        wanted = {"faces": 0, "edges": 1, "vertices": 2}[kind]
        i, j = (index[(i % 2) + (j % 2) == wanted] for index in (i, j))
        # A component lies between lines ceil(i/2) and i//2 + 1: for an odd index they coincide.
        y0, y1 = (self.ymin + line * self.cell_size for line in ((i + 1) // 2, i // 2 + 1))
        x0, x1 = (self.xmin + line * self.cell_size for line in ((j + 1) // 2, j // 2 + 1))
        if kind == "faces":
            shapes = shapely.box(x0, y0, x1, y1)
        elif kind == "edges":
            ends = np.stack([np.stack([x0, y0], -1), np.stack([x1, y1], -1)], axis=1)
            shapes = shapely.linestrings(ends)
        else:
            shapes = shapely.points(x0, y0)
        return Layer({"row": i, "col": j}, np.asarray(shapes), self.crs)

    def blocks_shape(self, block: int) -> tuple[int, int]:
        """Return rows and columns of blocks of `block` x `block` cells; refuse other sizes."""
        if isinstance(block, bool) or not hasattr(block, "__index__"):
            raise InputTypeError(
                Argument("block"), f" must be a whole number of cells, got {block!r}"
            )
        side, longer = block.__index__(), max(self.shape)
        if not 1 <= side <= longer:
            raise InputError(
                Argument("block"),
                f" must be from 1 to {longer}, the cells along the grid's longer side, got {side}",
            )
        return -(-self.n_rows // side), -(-self.n_cols // side)

    def select_blocks(self, block: int, start: int, stop: int) -> Selection:
        """Return the blocks from number `start` to `stop`, row by row, cut at the area."""
        _, across = self.blocks_shape(block)
        row, col = (block * part for part in np.divmod(np.arange(start, stop), across))
        ends = (np.minimum(row + block, self.n_rows) - 1, np.minimum(col + block, self.n_cols) - 1)
        return Selection(np.stack([row, ends[0], col, ends[1]]), shape=(stop - start,))

    def blocks_layer(self, block: int) -> Layer:
        """Return all blocks as rectangles, row by row, cut at the area.

        `row` and `col` are the position of a block's lower left cell in the doubled array.
        """
        import shapely

        rows, cols = self.blocks_shape(block)
        if block == 1:
            return self.layer("faces")
        cells = self.select_blocks(block, 0, rows * cols).ranges
        shapes = shapely.box(*self._whole.cell_bounds(*cells))
        places = {"row": 2 * cells[0], "col": 2 * cells[2]}
        return Layer(places, np.asarray(shapes), self.crs)

    def draw(self, ax: Any, values: NDArray[Any], style: dict[str, Any]) -> Any:
        """Draw a value for each face on matplotlib axes, as an image; return what colours it."""
        xmin, ymin, xmax, ymax = self._whole.bounds
        options = {"interpolation": "nearest", "extent": (xmin, xmax, ymin, ymax)} | style
        image = values.reshape(self.shape)
        return ax.imshow(image, origin="lower", aspect="equal", **options)
