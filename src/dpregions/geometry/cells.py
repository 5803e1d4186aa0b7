"""Queries in every form -> the cells they touch, or their shape as drawn -> signed sums.

Owns what `count`, `estimate` and `interval` accept and the shape of what they return. It
works on any doubled array, secret or released, and knows nothing of how the array was made.

Cells that form a rectangle are answered exactly. The cells of any other query form a
staircase, which is not convex: a body that meets it in two pieces adds 2, so the answer is
an approximation, and a warning says so. Who has bodies answers shapes as drawn instead.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dpregions.crs import degrees_remedy
from dpregions.errors import (
    ApproximateCountWarning,
    InputTypeError,
    OutsideAreaWarning,
    Part,
)
from dpregions.geometry.doubled import SignedTable
from dpregions.geometry.drawn import boxes_in_area, valid_in_area
from dpregions.geometry.lattice import REACH, STEPS
from dpregions.geometry.query_forms import (
    QueryShapes,
    crs_to_leave,
    in_form,
    parts_of,
    rectangles_of,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dpregions.choices import Within
    from dpregions.geometry.grid import Grid

_MOST = sys.float_info.max


def _on_a_line(grid: Grid) -> float:
    """Return how near to one of the grid's lines a coordinate counts as on it."""
    return grid.cell_size / (2 * STEPS)


@dataclass(frozen=True)
class Selection:
    """The cells that some queries touch inside the area, or their shapes.

    Attributes
    ----------
    ranges : int64 (4, n)
        ``row0, row1, col0, col1`` of each query, ends included; empty outside the area. Of a
        query as drawn, the cells that its bounds touch.
    masks : dict
        For a query whose cells form no rectangle: which cells of its range it touches.
    shape : tuple or None
        Of the answer; None where `index` rules. ``()`` is one number.
    index : pandas.Index or None
        Of the frame the queries came in.
    bounds : float64 (4, n) or None
        ``xmin, ymin, xmax, ymax`` of each query in the grid's CRS, NaN of an empty one; None
        where cells were selected by their numbers.
    shapes : dict
        For a query that is answered as drawn: its valid geometry in the grid's CRS.
    """

    ranges: NDArray[np.int64]
    masks: dict[int, NDArray[np.bool_]] = field(default_factory=dict)
    shape: tuple[int, ...] | None = ()
    index: Any = None
    bounds: NDArray[np.float64] | None = None
    shapes: dict[int, Any] = field(default_factory=dict)

    @property
    def outside(self) -> NDArray[np.bool_]:
        """Whether each query touches no cell of the area."""
        row0, row1, col0, col1 = self.ranges
        return (row1 < row0) | (col1 < col0)

    def cut(self, grid: Grid) -> NDArray[np.bool_]:
        """Return whether each query lies partly inside the area and partly outside."""
        if self.bounds is None:
            return np.zeros(self.outside.shape, np.bool_)
        slack = _on_a_line(grid)
        xmin, ymin, xmax, ymax = self.bounds
        beyond = (xmin < grid.xmin - slack) | (xmax > grid.xmax + slack)
        beyond |= (ymin < grid.ymin - slack) | (ymax > grid.ymax + slack)
        return np.asarray(beyond & ~self.outside)

    @property
    def as_drawn(self) -> NDArray[np.bool_]:
        """Whether each query is answered as drawn, not about the cells it touches."""
        drawn = np.zeros(self.ranges.shape[1], np.bool_)
        drawn[list(self.shapes)] = True
        return drawn

    def drawn(self) -> tuple[NDArray[np.int64], NDArray[np.object_]]:
        """Return the numbers of the queries that are answered as drawn, and their geometries."""
        found = np.empty(len(self.shapes), np.object_)
        found[:] = list(self.shapes.values())
        return np.fromiter(self.shapes, np.int64, len(self.shapes)), found

    def enlarged(self, grid: Grid) -> NDArray[np.bool_]:
        """Return whether whole cells answer more than each query asked; of rectangles alone."""
        found = np.zeros(self.outside.shape, np.bool_)
        which = self.exact & ~self.outside & ~self.as_drawn
        if self.bounds is None or not which.any():
            return found
        xmin, ymin, xmax, ymax = self.bounds[:, which]
        low = np.maximum(xmin, grid.xmin), np.maximum(ymin, grid.ymin)
        high = np.minimum(xmax, grid.xmax), np.minimum(ymax, grid.ymax)
        answered = np.array(grid.cell_bounds(*self.ranges[:, which]))
        found[which] = (np.abs(answered - np.array([*low, *high])) > _on_a_line(grid)).any(axis=0)
        return found

    def cells_in_words(self, grid: Grid) -> str:
        """Return where the cells of one query lie, for a message."""
        return " ".join(f"{bound:.10g}" for bound in grid.cell_bounds(*self.ranges[:, 0]))

    @property
    def exact(self) -> NDArray[np.bool_]:
        """Whether no body counts twice: a query is as drawn, or its cells form a rectangle."""
        exact = np.ones(self.ranges.shape[1], np.bool_)
        exact[list(self.masks)] = False
        return exact

    @property
    def n_components(self) -> NDArray[np.int64]:
        """How many faces, edges and vertices each query sums."""
        row0, row1, col0, col1 = self.ranges
        rows, cols = np.maximum(row1 - row0 + 1, 0), np.maximum(col1 - col0 + 1, 0)
        n = np.where((rows > 0) & (cols > 0), (2 * rows - 1) * (2 * cols - 1), 0)
        for i, mask in self.masks.items():
            n[i] = sum(int(inner.sum()) for *_, inner in _inside(mask))
        return n

    def signs(self, query: int, grid: Grid) -> NDArray[np.int8]:
        """Return one query as a doubled array: 1 at its faces and vertices, -1 at its edges."""
        signs = np.zeros(grid.doubled_shape, np.int8)
        row0, row1, col0, col1 = self.ranges[:, query]
        if row1 >= row0 and col1 >= col0:
            part = signs[2 * row0 : 2 * row1 + 1, 2 * col0 : 2 * col1 + 1]
            mask = self.masks.get(query, np.ones((row1 - row0 + 1, col1 - col0 + 1), np.bool_))
            for sign, rows, cols, inner in _inside(mask):
                part[rows, cols] = sign * inner
        return signs

    def sums(self, table: SignedTable) -> NDArray[Any]:
        """Return F - E + V over the inside of each query's cells."""
        empty = self.outside
        row0, row1, col0, col1 = cells = np.where(empty, 0, self.ranges)
        sums = table.rectangles(*cells)
        sums[empty] = 0
        for i, mask in self.masks.items():
            part = table.counts[2 * row0[i] : 2 * row1[i] + 1, 2 * col0[i] : 2 * col1[i] + 1]
            sums[i] = sum(
                sign * part[rows, cols][inner].sum() for sign, rows, cols, inner in _inside(mask)
            )
        return sums

    def wrap(self, values: NDArray[Any], name: str = "count") -> Any:
        """Return one value a query in the form the queries came in."""
        return in_form(values, self.shape, self.index, name)


def select(
    grid: Grid,
    query: tuple[Any, ...],
    crs: Any = None,
    *,
    within: Within | None = "cells",
    stacklevel: int | None = 2,
) -> Selection:
    """Return what queries touch, in any accepted form, warning where due.

    Parameters
    ----------
    grid : Grid
    query : tuple
        Four numbers or arrays (xmin, ymin, xmax, ymax); or one geometry, an array of
        geometries, a GeoSeries or a GeoDataFrame.
    crs : optional
        The CRS of queries that carry none; the grid's by default.
    within : {"cells", "shape"}, optional
        What is asked about: the cells that a query touches, or its shape as drawn. None: cells
        for rectangles on the grid's lines, where both are the same, and the shape for others.
    stacklevel : int, optional
        Where a warning points to: 2 is whoever called the caller. None: do not warn.
    """
    if len(query) == 4:
        selection = _select_rectangles(grid, query, crs, within)
    elif len(query) == 1:
        selection = _select_shapes(grid, QueryShapes.of(query[0], crs, grid), within)
    else:
        raise InputTypeError(
            f"a query is four numbers or arrays (xmin, ymin, xmax, ymax), or one geometry, "
            f"GeoSeries or GeoDataFrame; got {len(query)} arguments"
        )
    if stacklevel is not None:
        bare = crs is None and getattr(query[0], "crs", None) is None
        _warn(selection, grid, bare, stacklevel + 2)
    return selection


def _inside(
    mask: NDArray[np.bool_],
) -> Iterator[tuple[int, slice, slice, NDArray[np.bool_]]]:
    """Yield sign, places and selection of the faces, edges and vertices inside marked cells."""
    even, odd = slice(0, None, 2), slice(1, None, 2)
    beside, above = mask[:, :-1] & mask[:, 1:], mask[:-1] & mask[1:]
    yield 1, even, even, mask
    yield -1, even, odd, beside
    yield -1, odd, even, above
    yield 1, odd, odd, beside[:-1] & beside[1:]


def _warn(selection: Selection, grid: Grid, bare: bool, stacklevel: int) -> None:
    outside = int(selection.outside.sum())
    n = selection.ranges.shape[1]
    which = "the query lies" if n == 1 else f"{outside} of {n} queries lie"
    if outside:
        bounds = selection.bounds if bare and outside == n else None
        remedy: tuple[Part, ...] = () if bounds is None else degrees_remedy(grid.crs, bounds)
        found = f"{which} wholly outside the grid's area (or empty): nothing is counted there"
        warnings.warn(OutsideAreaWarning(found, *remedy), stacklevel=stacklevel)
    if selection.masks:
        rough = len(selection.masks)
        which = "the query touches" if n == 1 else f"{rough} of {n} queries touch"
        warnings.warn(
            f"{which} cells that form no rectangle: a region that meets them in two pieces "
            f"counts twice, so the count is an approximation (Grid.is_exact tells which)",
            ApproximateCountWarning,
            stacklevel=stacklevel,
        )


def _select_rectangles(
    grid: Grid, query: tuple[Any, ...], crs: Any, within: Within | None
) -> Selection:
    flat, shape = rectangles_of(query)
    source = crs_to_leave(None, crs, grid, bare=True)
    if source is not None:
        import shapely

        boxes = np.atleast_1d(np.asarray(shapely.box(*flat)))
        given = QueryShapes(boxes, source, list(range(boxes.size)), shape)
        return _select_shapes(grid, given, within)
    return _as_drawn(Selection(grid.cell_ranges(*flat), shape=shape, bounds=flat), grid, within)


def _as_drawn(cells: Selection, grid: Grid, within: Within | None) -> Selection:
    """Return rectangles as drawn where they are asked so, or lie off the grid's lines."""
    if within == "cells" or cells.bounds is None:
        return cells
    which = np.flatnonzero(~cells.outside if within == "shape" else cells.enlarged(grid))
    if not which.size:
        return cells
    shapes = boxes_in_area(cells.bounds[:, which], grid)
    return replace(cells, shapes=dict(zip(which.tolist(), shapes, strict=True)))


def _select_shapes(grid: Grid, given: QueryShapes, within: Within | None) -> Selection:
    """Select for geometries: boxes as rectangles, all else as drawn or cell by cell."""
    import shapely

    shapes = given.in_crs_of(grid)
    coords, owner = shapely.get_coordinates(shapes, return_index=True)
    boxes = _are_boxes(shapes)
    # A rectangle is cut to the area, as four numbers are, so it may reach anywhere.
    limit = np.where(boxes, _MOST, REACH * grid.cell_size)[owner]
    wrong = ~(np.abs(coords - [grid.xmin, grid.ymin]) <= limit[:, None]).all(axis=1)
    given.refuse_far(np.asarray(wrong), owner, f"{REACH} cells from the grid")
    ranges = np.zeros((4, shapes.size), np.int64)
    ranges[[1, 3]] = -1
    bounds = shapely.bounds(shapes).T
    if boxes.any():
        ranges[:, boxes] = grid.cell_ranges(*bounds[:, boxes])
    selection = _as_drawn(Selection(ranges, {}, given.shape, given.index, bounds), grid, within)
    if within == "cells":
        for i in np.flatnonzero(~boxes):
            found = _touched(grid, shapes[i])
            if found is not None:
                ranges[:, i], mask = found
                if not mask.all():
                    selection.masks[int(i)] = mask
    elif not boxes.all():
        others = np.flatnonzero(~boxes)
        valid, inside = valid_in_area(shapes[others], grid)
        others = others[inside]
        ranges[:, others] = grid.cell_ranges(*bounds[:, others])
        selection.shapes.update(zip(others.tolist(), valid[inside], strict=True))
    return selection


def _are_boxes(shapes: NDArray[np.object_]) -> NDArray[np.bool_]:
    """Whether each geometry is a rectangle along the axes, with area, to the last bit."""
    import shapely

    plain = (shapely.get_type_id(shapes) == 3) & (shapely.get_num_coordinates(shapes) == 5)
    if plain.any():
        corners = shapely.get_coordinates(shapes[plain]).reshape(-1, 5, 2)
        low, high = corners.min(axis=1, keepdims=True), corners.max(axis=1, keepdims=True)
        at_corner = ((corners == low) | (corners == high)).all(axis=(1, 2))
        side = corners[:, 1:] != corners[:, :-1]
        one_axis_a_side = (side.sum(axis=2) == 1).all(axis=1)
        opposite = (corners[:, :2] != corners[:, 2:4]).all(axis=(1, 2))
        plain[plain] = at_corner & one_axis_a_side & opposite
    return plain


def _touched(grid: Grid, geometry: Any) -> tuple[NDArray[np.int64], NDArray[np.bool_]] | None:
    """Return the range and the mask of the cells that one geometry touches, if any."""
    import shapely

    from dpregions.geometry.touch_kernel import mark_path, mark_polygon

    coords = shapely.get_coordinates(geometry)
    if not coords.size:
        return None
    cells = grid.snap(*coords.T, nearest=True) // STEPS
    last = [grid.n_cols - 1, grid.n_rows - 1]
    c0, r0 = np.clip(cells.min(axis=0) - 1, 0, last)
    c1, r1 = np.clip(cells.max(axis=0) + 1, 0, last)
    mask = np.zeros((r1 - r0 + 1, c1 - c0 + 1), np.bool_)
    for part in parts_of(geometry):
        if part.geom_type == "Polygon":
            rings, owner = shapely.get_coordinates(shapely.get_rings(part), return_index=True)
            xy = grid.snap(*rings.T, nearest=True)
            offsets = np.concatenate([[0], np.cumsum(np.bincount(owner))])
            if _has_area(xy[offsets[0] : offsets[1]]):
                mark_polygon(xy, offsets, r0, c0, mask)
                continue
        xy = grid.snap(*shapely.get_coordinates(part).T)
        mark_path(xy, *grid.shape, r0, c0, mask)
    rows, cols = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    if not rows.size:
        return None
    ends = np.array([r0 + rows[0], r0 + rows[-1], c0 + cols[0], c0 + cols[-1]])
    return ends, mask[rows[0] : rows[-1] + 1, cols[0] : cols[-1] + 1]


def _has_area(ring: NDArray[np.int64]) -> bool:
    """Whether a ring encloses anything on the lattice (all points collinear: no)."""
    xy = ring - ring[0]
    far = xy[np.argmax(np.abs(xy).sum(axis=1))]
    # Python integers: products of lattice steps may exceed 64 bits.
    return any(int(x) * int(far[1]) != int(y) * int(far[0]) for x, y in xy)
