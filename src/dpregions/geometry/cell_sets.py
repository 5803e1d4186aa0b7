"""Queries on a partition -> sets of cells -> signed sums of the components inside them.

Inside a set are its faces, the edges with both faces in it and the vertices with all faces in it.
A body adds to a sum how many pieces it meets the set in, less the holes it goes round: 1, if the
set is convex. Of any other set of several cells the sum is an approximation, and a warning says so.
Works on any counts, secret or released.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from dpregions.crs import degrees_remedy
from dpregions.errors import (
    ApproximateCountWarning,
    Argument,
    InputTypeError,
    OutsideAreaWarning,
    QueryError,
)
from dpregions.geometry.complexes import Complex, Ragged
from dpregions.geometry.query_forms import (
    QueryShapes,
    crs_to_leave,
    in_form,
    parts_of,
    rectangles_of,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dpregions.geometry.partition import Partition

_NAMED = 6
"""Most cells that a message names."""


_BORDER = 256
"""Lattice steps by which the cells of a partition may reach beyond its area."""


@dataclass(frozen=True, eq=False)
class CellSelection:
    """The cells of a partition that some queries touch.

    Attributes
    ----------
    complex : Complex
    cells : Ragged
        The cells of each query, ascending.
    shape : tuple or None
        Of the answer; None where `index` rules. ``()`` is one number.
    index : pandas.Index or None
        Of the frame the queries came in.
    shapes : array of geometries, optional
        The queries as drawn, valid and in the partition's CRS, where they are asked so.
    bounds : float64 (4, n) or None
        ``xmin, ymin, xmax, ymax`` of each query in the partition's CRS, NaN of an empty one; None
        where cells were named.
    once : bool
        Whoever answers counts nobody twice, whatever the cells are.
    """

    complex: Complex
    cells: Ragged
    shape: tuple[int, ...] | None = ()
    index: Any = None
    shapes: NDArray[np.object_] | None = None
    bounds: NDArray[np.float64] | None = None
    once: bool = False

    @property
    def as_drawn(self) -> NDArray[np.bool_]:
        """Whether each query is asked as drawn, not about the cells it touches."""
        return np.full(self.n_queries, self.shapes is not None)

    def geometries(self, partition: Partition) -> NDArray[np.object_]:
        """Return what each query is about: its shape inside the area, or the union of its cells."""
        import shapely

        if self.shapes is not None:
            return np.asarray(shapely.intersection(self.shapes, partition.area))
        faces = partition.layer("faces").shapes
        found = np.empty(self.n_queries, np.object_)
        for i in range(self.n_queries):
            cells = self.cells.items[self.cells.offsets[i] : self.cells.offsets[i + 1]]
            found[i] = shapely.coverage_union_all(faces[cells])  # they share their corners
        return found

    def cut(self, partition: Partition) -> NDArray[np.bool_]:
        """Return whether each query lies partly inside the area and partly outside."""
        if self.bounds is None:
            return np.zeros(self.n_queries, np.bool_)
        low, high = np.reshape(partition.bounds, (2, 2))
        slack = _BORDER * partition.step
        beyond = (low - slack > self.bounds[:2].T).any(axis=1)
        beyond |= (high + slack < self.bounds[2:].T).any(axis=1)
        return np.asarray(beyond & ~self.outside)

    def enlarged(self, partition: Partition) -> NDArray[np.bool_]:
        """Return whether whole cells answer each query that was drawn: any may be more than it."""
        return np.asarray(~self.outside & ~self.as_drawn & (self.bounds is not None))

    def cells_in_words(self, partition: Partition) -> str:
        """Return which cells one query touches, for a message: some of their labels."""
        labels = [str(partition.labels[cell]) for cell in self.cells.items[:_NAMED]]
        more = int(self.n_cells[0]) - len(labels)
        return ", ".join(labels) + (f" and {more:,} more" if more else "")

    @property
    def n_queries(self) -> int:
        """How many queries there are."""
        return self.cells.offsets.size - 1

    @property
    def n_cells(self) -> NDArray[np.int64]:
        """How many cells each query touches."""
        return np.diff(self.cells.offsets)

    @property
    def outside(self) -> NDArray[np.bool_]:
        """Whether each query touches no cell."""
        return self.n_cells == 0

    @cached_property
    def _query(self) -> NDArray[np.int64]:
        return np.repeat(np.arange(self.n_queries), self.n_cells)

    @cached_property
    def components(self) -> Ragged:
        """The components inside each query's cells, ascending."""
        c = self.complex
        sides, query = self._sides
        inner = c.side_edge[sides] >= 0
        # An edge is inside when all of its sides, of both faces, are there; a vertex likewise.
        n_sides = np.bincount(c.side_edge[c.side_edge >= 0], minlength=c.n_edges)
        edges = _all_present(query[inner], c.side_edge[sides[inner]], n_sides)
        number = np.full(c.x.size, -1)
        number[c.vertices] = np.arange(c.n_vertices)
        vertex = number[c.points[sides]]
        at = vertex >= 0
        vertices = _all_present(query[at], vertex[at], np.diff(c.vertex_faces.offsets))
        parts = [
            (self._query, self.cells.items),
            (edges[0], c.n_faces + edges[1]),
            (vertices[0], c.n_faces + c.n_edges + vertices[1]),
        ]
        which = np.concatenate([part[0] for part in parts])
        items = np.concatenate([part[1] for part in parts])
        order = np.lexsort((items, which))
        sizes = np.bincount(which, minlength=self.n_queries)
        return Ragged(np.concatenate([[0], np.cumsum(sizes)]), items[order])

    @cached_property
    def _sides(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Every side of every query's cells, and its query."""
        c, cells = self.complex, self.cells.items
        sizes = np.diff(c.offsets)[cells]
        starts = np.repeat(c.offsets[cells] - np.cumsum(sizes) + sizes, sizes)
        return starts + np.arange(starts.size), np.repeat(self._query, sizes)

    @property
    def n_components(self) -> NDArray[np.int64]:
        """How many faces, edges and vertices each query sums."""
        return np.diff(self.components.offsets)

    @cached_property
    def exact(self) -> NDArray[np.bool_]:
        """Whether each sum counts every body once: a single cell, a convex set, or none.

        A set is convex when its border is one ring without a reflex turn, in integers. Of several
        cells that are not convex themselves, no sum is sure. All cells
        of a convex partition count as such: F - E + V = 1 holds for each body.
        """
        if self.once:
            return np.ones(self.n_queries, np.bool_)
        n, whole = self.n_cells, self.complex.n_faces
        known = (n <= 1) | ((n == whole) & self.complex.is_convex)
        return np.asarray(known | (self._are_convex() & ~self._have_bent_cells()))

    def _have_bent_cells(self) -> NDArray[np.bool_]:
        """Whether each query has a cell that is not convex, which a body may meet twice."""
        c = self.complex
        bent = np.zeros(c.n_faces, np.bool_)
        if not c.is_convex:
            bent[c.side_face[c.side_turn < 0]] = True
        found = np.bincount(self._query[bent[self.cells.items]], minlength=self.n_queries)
        return np.asarray(found > 0)

    def _are_convex(self) -> NDArray[np.bool_]:
        c, n_points = self.complex, self.complex.x.size
        sides, query = self._sides
        beyond = query * c.n_faces + c.side_face[c.side_twin[sides]]
        here = np.sort(self._query * c.n_faces + self.cells.items)
        outer = (c.side_twin[sides] < 0) | ~_among(beyond, here)
        sides, query = sides[outer], query[outer]
        start = query * n_points + c.points[sides]
        end = query * n_points + c.side_end[sides]
        order = np.argsort(start, kind="stable")
        at = order[np.minimum(np.searchsorted(start[order], end), max(start.size - 1, 0))]
        dx, dy = c.side_steps
        ax, ay, bx, by = dx[sides], dy[sides], dx[sides[at]], dy[sides[at]]
        wrong = ax * by - ay * bx < 0
        low = ((ax < 0) | ((ax == 0) & (ay < 0))) & ((bx > 0) | ((bx == 0) & (by > 0)))
        pinched = np.zeros(start.size, np.bool_)
        pinched[order[1:]] = np.diff(start[order]) == 0
        bad = np.bincount(query[wrong | pinched], minlength=self.n_queries) > 0
        return np.asarray(~bad & (np.bincount(query[low], minlength=self.n_queries) == 1))

    def sums(self, counts: NDArray[Any]) -> NDArray[Any]:
        """Return F - E + V over the inside of each query's cells."""
        offsets, items = self.components
        signed = counts[items] * (1 - 2 * (self.complex.kinds[items] & 1).astype(counts.dtype))
        ends = np.concatenate([np.zeros(1, signed.dtype), np.cumsum(signed)])
        if counts.dtype.kind == "f":  # differences of running sums would lose digits
            query = np.repeat(np.arange(self.n_queries), np.diff(offsets))
            return np.bincount(query, weights=signed, minlength=self.n_queries)
        return ends[offsets[1:]] - ends[offsets[:-1]]

    def signs(self, query: int) -> NDArray[np.int8]:
        """Return one query as 1 at its faces and vertices, -1 at its edges, 0 elsewhere."""
        signs = np.zeros(self.complex.n_components, np.int8)
        offsets, items = self.components
        inside = items[offsets[query] : offsets[query + 1]]
        signs[inside] = 1 - 2 * (self.complex.kinds[inside] & 1)
        return signs

    def wrap(self, values: NDArray[Any], name: str = "count") -> Any:
        """Return one value for each query in the form the queries came in."""
        return in_form(values, self.shape, self.index, name)


def select_cells(
    partition: Partition,
    query: tuple[Any, ...],
    crs: Any = None,
    *,
    cells: Any = None,
    drawn: bool = False,
    once: bool = False,
    stacklevel: int | None = 2,
) -> CellSelection:
    """Return the cells that queries touch, in any accepted form, warning where due.

    Parameters
    ----------
    partition : Partition
    query : tuple
        Four numbers or arrays (xmin, ymin, xmax, ymax); or one geometry, an array of geometries,
        a GeoSeries or a GeoDataFrame; or nothing, where `cells` are given.
    crs : optional
        The CRS of queries that carry none; the partition's by default.
    cells : list, optional
        The labels of the cells of one query; or a list of such lists.
    drawn : bool
        Keep the shapes of queries too: who has bodies answers them as drawn.
    once : bool
        Whoever answers counts nobody twice: do not warn of sets that are not convex.
    stacklevel : int, optional
        Where a warning points to: 2 is whoever called the caller. None: do not warn.

    Notes
    -----
    A query is read to the nearest lattice step. One with area touches the cells whose interior
    meets its interior; a line or a point touches cells as a body does.
    """
    numbers = None
    if cells is not None:
        if query:
            raise InputTypeError(*("give a query or ", Argument("cells"), ", not both"))
        selection = _by_labels(partition, cells)
    elif len(query) == 4:
        import shapely

        numbers, shape = rectangles_of(query)
        flat = numbers
        if crs is None:  # cut to the area, as on a grid: numbers may be of any size
            low, high = np.reshape(partition.bounds, (2, 2))
            room = np.tile(high - low, 2)[:, None]
            flat = np.clip(flat, np.tile(low, 2)[:, None] - room, np.tile(high, 2)[:, None] + room)
        boxes = np.atleast_1d(np.asarray(shapely.box(*flat)))
        source = crs_to_leave(None, crs, partition, bare=True)
        given = QueryShapes(boxes, source, list(range(boxes.size)), shape)
        selection = _by_shapes(partition, given, drawn)
    elif len(query) == 1:
        selection = _by_shapes(partition, QueryShapes.of(query[0], crs, partition), drawn)
    else:
        raise InputTypeError(
            f"a query is four numbers or arrays (xmin, ymin, xmax, ymax), or one geometry, "
            f"GeoSeries or GeoDataFrame, or cells=[labels]; got {len(query)} arguments"
        )
    selection = replace(selection, once=once)
    if stacklevel is not None:
        bare = bool(query) and crs is None and getattr(query[0], "crs", None) is None
        given_bounds = selection.bounds if numbers is None else numbers
        _warn(selection, partition, given_bounds if bare else None, stacklevel + 2)
    return selection


def _all_present(
    query: NDArray[np.int64], item: NDArray[np.int64], wanted: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the distinct (query, item) pairs that are there as often as is wanted of an item."""
    n = max(wanted.size, 1)
    key, found = np.unique(query * n + item, return_counts=True)
    key = key[found == wanted[key % n]] if key.size else key
    return key // n, key % n


def _among(values: NDArray[np.int64], ordered: NDArray[np.int64]) -> NDArray[np.bool_]:
    if not ordered.size:
        return np.zeros(values.size, np.bool_)
    at = np.minimum(np.searchsorted(ordered, values), ordered.size - 1)
    return np.asarray(ordered[at] == values)


def _ragged(query: NDArray[np.int64], cell: NDArray[np.int64], n: int, n_faces: int) -> Ragged:
    """Return lists of distinct cells, ascending, of (query, cell) pairs."""
    key = np.unique(query * n_faces + cell)
    sizes = np.bincount(key // n_faces, minlength=n)
    return Ragged(np.concatenate([[0], np.cumsum(sizes)]), key % n_faces)


def _by_labels(partition: Partition, cells: Any) -> CellSelection:
    if isinstance(cells, str | bytes) or not hasattr(cells, "__iter__"):
        raise InputTypeError(Argument("cells"), " must be a list of labels, or a list of such")
    given = list(cells)
    lists = [not isinstance(v, str | bytes) and hasattr(v, "__iter__") for v in given]
    several = any(lists)
    if several and not all(lists):
        raise InputTypeError(
            Argument("cells"), " must be labels, or lists of labels: some are one, some the other"
        )
    sets = [list(v) for v in given] if several else [given]
    number = {label: i for i, label in enumerate(partition.labels)}
    query: list[int] = []
    found: list[int] = []
    unknown: list[Any] = []
    for i, labels in enumerate(sets):
        for label in labels:
            label = label.item() if isinstance(label, np.generic) else label
            try:
                cell = number.get(label)
            except TypeError:
                cell = None
            if cell is None:
                unknown.append(label)
            else:
                found.append(cell)
                query.append(i)
    if unknown:
        names = ", ".join(map(repr, unknown[:6]))
        raise QueryError(
            Argument("cells"),
            f" that the partition does not have: {names}; `labels` has those that it has",
        )
    ragged = _ragged(
        np.array(query, np.int64), np.array(found, np.int64), len(sets), partition.n_faces
    )
    return CellSelection(partition.complex, ragged, (len(sets),) if several else ())


def _by_shapes(partition: Partition, given: QueryShapes, drawn: bool) -> CellSelection:
    import shapely

    shapes = given.in_crs_of(partition)
    coords, owner = shapely.get_coordinates(shapes, return_index=True)
    reach = partition.reach
    wrong = np.asarray(~(np.abs(coords - [partition.xmin, partition.ymin]) <= reach).all(axis=1))
    given.refuse_far(wrong, owner, f"{reach:g} from the area")
    snapped = shapely.transform(shapes, partition.nearest_steps)
    solid = np.isin(shapely.get_type_id(shapes), (3, 6)) & (shapely.area(snapped) > 0)
    query, cell = _touched_by_polygons(partition, snapped[solid])
    pairs = [(np.flatnonzero(solid)[query], cell)]
    for i in np.flatnonzero(~solid):
        for part, given_part in zip(parts_of(snapped[i]), parts_of(shapes[i]), strict=True):
            if part.geom_type == "Polygon" and part.area > 0:
                cell = _touched_by_polygons(partition, np.array([part]))[1]
            else:
                cell = _touched_by_path(partition, shapely.get_coordinates(given_part))
            pairs.append((np.full(cell.size, i), cell))
    which, cells = (np.concatenate(part).astype(np.int64) for part in zip(*pairs, strict=True))
    ragged = _ragged(which, cells, len(shapes), partition.n_faces)
    kept = None
    if drawn:
        kept = shapes.copy()
        bad = ~shapely.is_valid(kept)
        kept[bad] = shapely.make_valid(kept[bad])
    bounds = np.asarray(shapely.bounds(shapes)).T
    return CellSelection(partition.complex, ragged, given.shape, given.index, kept, bounds)


def _touched_by_polygons(
    partition: Partition, polygons: NDArray[np.object_]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return (polygon, cell) pairs whose interiors meet, all in lattice steps."""
    import shapely

    invalid = ~shapely.is_valid(polygons)
    polygons[invalid] = shapely.make_valid(polygons[invalid])
    tree = partition.face_tree
    sure = np.asarray(tree.query(polygons, predicate="contains"))
    near = np.asarray(tree.query(polygons, predicate="intersects"))
    n = partition.n_faces
    rest = near[:, ~_among(near[0] * n + near[1], np.sort(sure[0] * n + sure[1]))]
    meets = shapely.relate_pattern(polygons[rest[0]], tree.geometries[rest[1]], "T********")
    query, cell = np.concatenate([sure, rest[:, meets]], axis=1)
    kept = _meet_inside(partition, polygons[query], cell)
    return query[kept], cell[kept]


def _meet_inside(
    partition: Partition, polygons: NDArray[np.object_], cell: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Say which polygons, of those that meet a cell each, do so inside the area.

    Cells reach some steps beyond the area, to which bodies are cut: what lies beside the area meets
    no cell. Half a step off its border, what follows a slanted side does not depend on rounding.
    """
    import shapely

    kept, ring = np.ones(cell.size, np.bool_), partition.complex.area
    if not ring.size:
        return kept
    inside = shapely.buffer(shapely.Polygon(ring), -0.5, join_style="mitre")
    shapely.prepare(inside)
    cells = partition.face_tree.geometries
    across = np.flatnonzero(
        ~shapely.contains_properly(inside, polygons)
        & ~shapely.contains_properly(inside, cells[cell])
    )
    some, which = np.unique(cell[across], return_inverse=True)
    cut = shapely.intersection(cells[some], inside)
    kept[across] = shapely.relate_pattern(polygons[across], cut[which], "T********")
    return kept


def _touched_by_path(partition: Partition, coords: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the cells that a path touches, as a body of each of its segments would."""
    if not len(coords):
        return np.zeros(0, np.int64)
    if len(coords) > 1:
        coords = np.stack([coords[:-1], coords[1:]], axis=1).reshape(-1, 2)
    starts = np.arange(0, len(coords) + 1, min(len(coords), 2))
    bodies = partition.outlines(np.ascontiguousarray(coords), starts)
    items = partition.touched(bodies).items
    return np.unique(items[items < partition.n_faces])


def _warn(selection: CellSelection, partition: Partition, bounds: Any, stacklevel: int) -> None:
    n, outside = selection.n_queries, int(selection.outside.sum())
    if outside:
        remedy = degrees_remedy(partition.crs, bounds) if bounds is not None else ()
        named = selection.bounds is None
        which = "the query" if n == 1 else f"{outside} of {n} queries"
        does = ("names" if named else "touches") if n == 1 else ("name" if named else "touch")
        found = f"{which} {does} no cell of the partition: nothing is counted there"
        remedy = remedy if outside == n else ()
        warnings.warn(OutsideAreaWarning(found, *remedy), stacklevel=stacklevel)
    rough = int((~selection.exact).sum())
    if rough:
        which = "the query's cells are" if n == 1 else f"the cells of {rough} of {n} queries are"
        warnings.warn(
            f"{which} not a convex set: a region that meets them in two pieces counts twice, so "
            f"the count is an approximation (Partition.is_exact tells which)",
            ApproximateCountWarning,
            stacklevel=stacklevel,
        )
