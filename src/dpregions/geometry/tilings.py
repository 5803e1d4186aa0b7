"""Rings of cells as people draw them -> an integer complex, or an error that names the cells.

One way for all partitions: coordinates go to the lattice, points nearer than the tolerance become
one, corners that lie on a neighbour's side split it, and `Complex.check` proves the result. What
cannot be proved is refused, with the labels of the cells that overlap, leave a gap or lie apart.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dpregions.errors import GridError
from dpregions.geometry.complexes import ACROSS, MOST_FACES, MOST_POINTS, Complex
from dpregions.geometry.lattice import STEPS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dpregions.geometry.grid import Grid

TOLERANCE = 4
"""Steps within which points are one, unless the caller says otherwise."""

_ROUNDS = 4
_NAMED = 6


@dataclass(frozen=True)
class Lattice:
    """Integer steps over an area: where step 0 is, and a step that is a power of two."""

    origin: tuple[float, float]
    step: float

    @classmethod
    def over(cls, xmin: float, ymin: float, xmax: float, ymax: float) -> Lattice:
        """Return the lattice of at most 2**30 steps from one side of an area to the other."""
        width, far = max(xmax - xmin, ymax - ymin), max(map(abs, (xmin, ymin, xmax, ymax)))
        if not (0 < width < math.inf):
            raise GridError(f"an area {width:g} wide has no room for cells: give one with area")
        step = 2.0 ** (math.ceil(math.log2(width)) - 30)
        if width / step > ACROSS:  # the logarithm was rounded
            step *= 2
        refuse_step(step, width, far)
        return cls((math.floor(xmin / step) * step, math.floor(ymin / step) * step), step)

    def steps(self, xy: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return coordinates in steps, not rounded."""
        return (xy - np.array(self.origin)) / self.step

    def nearest(self, xy: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return coordinates in whole steps."""
        return np.rint(self.steps(xy)).astype(np.int64)


def refuse_step(step: float, width: float, far: float) -> None:
    """Refuse a step that coordinates so far from 0 do not resolve, or beyond what floats hold."""
    if not math.ulp(far) <= step or not 2.0**-900 <= step <= 2.0**900:
        raise GridError(
            f"an area {width:g} wide is too small beside coordinates up to {far:g}, or beyond "
            f"what numbers hold: use another origin or another unit of length"
        )


def rings_of(
    polygons: NDArray[np.object_], lattice: Lattice
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the outer rings of polygons in steps, counter-clockwise, open, and where each starts.

    Which way a ring runs is what its area on the lattice says. Corners that differ by rounding
    alone may be out of order in a cell that was drawn, and GEOS, which looks at the highest corner
    and the two beside it, then takes the cell for clockwise.
    """
    import shapely

    rings = shapely.get_exterior_ring(polygons)
    coords, owner = shapely.get_coordinates(rings, return_index=True)
    closing = np.append(np.diff(owner) != 0, True)
    xy, owner = lattice.nearest(coords[~closing]), owner[~closing]
    offsets = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=len(rings)))])
    place, size = np.arange(len(xy)) - offsets[owner], np.diff(offsets)[owner]
    x, y = xy.T
    after = offsets[owner] + (place + 1) % size
    # The sums wrap and come back: twice an area on the lattice fits in 64 bits.
    twice = np.add.reduceat(x * y[after] - y * x[after], offsets[:-1])
    clockwise = (twice < 0)[owner]
    return xy[offsets[owner] + np.where(clockwise, size - 1 - place, place)], offsets


def refuse_too_many(n_cells: int) -> None:
    """Refuse more cells than are counted."""
    if n_cells > MOST_FACES:
        raise GridError(f"{n_cells:,} cells are more than the {MOST_FACES:,} that are counted")


def tiled(
    polygons: NDArray[np.object_],
    labels: Sequence[Any],
    lattice: Lattice,
    *,
    tolerance: int = TOLERANCE,
    area: NDArray[np.int64] | None = None,
    slack: int | None = None,
) -> Complex:
    """Return the complex of cells; refuse cells that do not tile, by their labels.

    Parameters
    ----------
    polygons : array of shapely.Polygon
        Valid, without holes, in CRS units.
    labels : sequence
        Of the cells, for messages.
    lattice : Lattice
    tolerance : int
        Steps within which points are one.
    area : int64 (n, 2), optional
        The convex ring that bodies are cut to.
    slack : int, optional
        Of the complex; by default what rounding and the tolerance leave.
    """
    refuse_too_many(len(polygons))
    corners, offsets = rings_of(polygons, lattice)
    if len(corners) > MOST_POINTS:
        raise GridError(
            f"the cells have {len(corners):,} corners together, of at most {MOST_POINTS:,}"
        )
    xy, rings = _merged(corners, offsets, tolerance)
    rings = rings.cleaned(labels)
    for _ in range(_ROUNDS):
        split = _split(xy, rings, tolerance)
        if split is None:
            break
        rings = split.cleaned(labels)
    rings = _without_straight_corners(xy, rings).cleaned(labels)
    _refuse_overlaps_and_gaps(xy, rings, polygons, labels, tolerance * lattice.step)
    used, points = np.unique(rings.points, return_inverse=True)
    points = _from_lowest(points, rings.face)
    made = Complex(
        x=xy[used, 0],
        y=xy[used, 1],
        offsets=np.concatenate([[0], np.cumsum(np.bincount(rings.face))]),
        points=points.astype(np.int32),
        origin=lattice.origin,
        step=lattice.step,
        area=np.zeros((0, 2), np.int32) if area is None else area.astype(np.int32),
        slack=tolerance + 2 if slack is None else slack,
    )
    made.check()
    return made


@dataclass(frozen=True)
class _Rings:
    """Rings as one list of points, each with its face; a ring's points are next to each other."""

    points: NDArray[np.int64]
    face: NDArray[np.int64]

    def neighbours(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the place before and the place after each in its ring."""
        n = self.points.size
        first = np.flatnonzero(np.append(True, np.diff(self.face) != 0))
        last = np.append(first[1:], n) - 1
        before, after = np.arange(n) - 1, np.arange(n) + 1
        before[first], after[last] = last, first
        return before, after

    def unpaired(self, n_points: int) -> NDArray[np.int64]:
        """Return the sides, by their first place, that no ring runs the other way."""
        end = self.points[self.neighbours()[1]]
        key = self.points * n_points + end
        return np.flatnonzero(~np.isin(key, end * n_points + self.points))

    def cleaned(self, labels: Sequence[Any]) -> _Rings:
        """Leave out points that repeat, and ways there and back; refuse a cell that vanishes."""
        rings = self
        while True:
            sizes = np.bincount(rings.face, minlength=len(labels))
            if sizes.min() < 3:
                names = named(labels, np.flatnonzero(sizes < 3))
                raise GridError(
                    f"cells without an area of their own, once points within the tolerance are "
                    f"one: {names}. Leave them out, or use a smaller tolerance"
                )
            before, after = rings.neighbours()
            odd = rings.points == rings.points[before]
            if not odd.any():
                odd = rings.points[before] == rings.points[after]
            if not odd.any():
                return rings
            rings = _Rings(rings.points[~odd], rings.face[~odd])


def named(labels: Sequence[Any], which: Any) -> str:
    """Return some labels for a message, the first few of them."""
    few = [repr(_plain(labels[int(i)])) for i in which[:_NAMED]]
    more = len(which) - len(few)
    return ", ".join(few) + (f" and {more:,} more" if more > 0 else "")


def _plain(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label


def _merged(
    xy: NDArray[np.int64], offsets: NDArray[np.int64], tolerance: int
) -> tuple[NDArray[np.int64], _Rings]:
    """Return the distinct points, in order of x, then y, and the rings by their numbers.

    Points nearer to each other than the tolerance, also by way of others, are the lowest of them.
    """
    import shapely

    from dpregions.geometry.tiling_kernel import lowest_of_clusters

    key, number = np.unique((xy[:, 0] << 32) + xy[:, 1], return_inverse=True)
    distinct = np.stack([(key + (1 << 31)) >> 32, ((key + (1 << 31)) & 0xFFFFFFFF) - (1 << 31)], -1)
    places = np.asarray(shapely.points(distinct.astype(np.float64)))
    one, other = shapely.STRtree(places).query(places, predicate="dwithin", distance=tolerance)
    lowest = lowest_of_clusters(len(distinct), one, other)
    face = np.repeat(np.arange(offsets.size - 1), np.diff(offsets))
    return distinct, _Rings(lowest[number], face)


def _split(xy: NDArray[np.int64], rings: _Rings, tolerance: int) -> _Rings | None:
    """Return the rings with corners put into the sides they lie on; None where none does."""
    import shapely

    sides = rings.unpaired(len(xy))
    start, end = rings.points[sides], rings.points[rings.neighbours()[1][sides]]
    corners = np.unique(start)
    lines = shapely.linestrings(np.stack([xy[start], xy[end]], axis=1).astype(np.float64))
    tree = shapely.STRtree(np.asarray(shapely.points(xy[corners].astype(np.float64))))
    side, corner = tree.query(lines, predicate="dwithin", distance=tolerance)
    corner = corners[corner]
    inner = (corner != start[side]) & (corner != end[side])
    side, corner = side[inner], corner[inner]
    if not side.size:
        return None
    way = (xy[end] - xy[start])[side].astype(np.float64)
    along = ((xy[corner] - xy[start[side]]) * way).sum(axis=1) / (way * way).sum(axis=1)
    place = np.concatenate([np.arange(rings.points.size), sides[side]])
    order = np.lexsort((np.concatenate([np.full(rings.points.size, -1.0), along]), place))
    points = np.concatenate([rings.points, corner])[order]
    return _Rings(points, np.concatenate([rings.face, rings.face[sides[side]]])[order])


def _without_straight_corners(xy: NDArray[np.int64], rings: _Rings) -> _Rings:
    """Leave out points on a straight line where no third face begins."""
    before, after = rings.neighbours()
    a, b, c = xy[rings.points[before]], xy[rings.points], xy[rings.points[after]]
    turn = (b - a)[:, 0] * (c - b)[:, 1] - (b - a)[:, 1] * (c - b)[:, 0]
    straight = (turn == 0) & (((b - a) * (c - b)).sum(axis=1) > 0)
    # Every face that has the point has it as such, and they are the two sides of one line,
    # or one at the border.
    n = len(xy)
    faces = np.bincount(rings.points, minlength=n)
    needless = np.bincount(rings.points[straight], minlength=n) == faces
    outer = rings.unpaired(n)
    on_border = np.zeros(n, np.bool_)
    on_border[rings.points[outer]] = True
    on_border[rings.points[after[outer]]] = True
    needless &= np.where(on_border, faces == 1, faces == 2)
    keep = ~needless[rings.points]
    return _Rings(rings.points[keep], rings.face[keep])


def _from_lowest(points: NDArray[np.int64], face: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return rings that each start at its lowest point: one form for one complex."""
    first = np.flatnonzero(np.append(True, np.diff(face) != 0))
    size = np.diff(np.append(first, points.size))
    lowest = np.minimum.reduceat(points, first)
    at = np.flatnonzero(points == lowest[face])
    at = at[np.append(True, np.diff(face[at]) != 0)]
    within = np.arange(points.size) - first[face]
    return points[first[face] + (within + (at - first)[face]) % size[face]]


def _refuse_overlaps_and_gaps(
    xy: NDArray[np.int64],
    rings: _Rings,
    polygons: NDArray[np.object_],
    labels: Sequence[Any],
    tolerance: float,
) -> None:
    """Refuse rings that do not tile one area, and name the cells where they do not."""
    n = len(xy)
    end = rings.points[rings.neighbours()[1]]
    key = rings.points * n + end
    outer = rings.unpaired(n)
    starts = np.bincount(rings.points[outer], minlength=n)
    twice = np.unique(key).size < key.size
    visits = np.unique(rings.face * n + rings.points).size < rings.points.size
    loops = [] if twice or starts.max(initial=0) > 1 else _loops(rings.points[outer], end[outer])
    if not twice and not visits and len(loops) == 1:
        return
    _refuse_overlaps(polygons, labels, tolerance)
    if len(loops) > 1:
        sizes = [_twice_area(xy[loop]) for loop in loops]
        outside = int(np.argmax(sizes))
        holes = [loop for i, loop in enumerate(loops) if i != outside]
        beside = [np.unique(rings.face[np.isin(rings.points, loop)]) for loop in holes]
        if all(size < 0 for i, size in enumerate(sizes) if i != outside):
            raise GridError(
                f"the cells leave a gap between {named(labels, beside[0])}"
                f"{_more(holes)}: fill it, or give a tolerance above its width"
            )
        raise GridError(
            f"the cells are not one piece, apart from the others lie {named(labels, beside[0])}"
            f"{_more(holes)}: make a partition of each piece, or give a larger tolerance"
        )
    pinched = np.flatnonzero(starts > 1) if starts.max(initial=0) > 1 else rings.points[outer]
    cells = np.unique(rings.face[np.isin(rings.points, pinched)])
    raise GridError(
        f"the cells do not tile an area about {named(labels, cells)}: they meet in a corner alone, "
        f"or their borders cross within the tolerance"
    )


def _more(found: Any) -> str:
    return f" (and {len(found) - 1:,} more places)" if len(found) > 1 else ""


def _refuse_overlaps(
    polygons: NDArray[np.object_], labels: Sequence[Any], tolerance: float
) -> None:
    import shapely

    one, other = shapely.STRtree(polygons).query(polygons, predicate="intersects")
    one, other = one[one < other], other[one < other]
    shared = shapely.intersection(polygons[one], polygons[other])
    # A strip within the tolerance is not an overlap.
    wide = shapely.area(shared) > tolerance * shapely.length(shared) / 2
    if wide.any():
        pairs = [named(labels, pair) for pair in np.stack([one[wide], other[wide]], -1)[:3]]
        raise GridError(
            f"cells overlap: {'; '.join(pair.replace(', ', ' and ') for pair in pairs)}"
            f"{_more(np.flatnonzero(wide)[2:].tolist())}. Each place belongs to one cell: cut them"
        )


def _loops(start: NDArray[np.int64], end: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Return the rings that sides form, each point of which starts one of them."""
    after = dict(zip(start.tolist(), end.tolist(), strict=True))
    loops = []
    while after:
        point, following = after.popitem()
        loop = [point]
        while following != point and following in after:
            loop.append(following)
            following = after.pop(following)
        loops.append(np.array(loop))
    return loops


def _twice_area(xy: NDArray[np.int64]) -> int:
    x, y = xy.T
    return int((x * np.roll(y, -1) - y * np.roll(x, -1)).sum())


def complex_of_grid(grid: Grid) -> Complex:
    """Return the cells of a grid, row by row, on its own lattice."""
    rows, cols = grid.shape
    row, col = (v.ravel() for v in np.indices(grid.shape))
    corners = [(0, 0), (0, 1), (1, 1), (1, 0)]
    # Points column by column, so that they are in order of x, then y.
    points = np.stack([(col + c) * (rows + 1) + row + r for r, c in corners], axis=-1)
    x, y = (v.ravel() * STEPS for v in np.indices((cols + 1, rows + 1)))
    return Complex(
        x=x,
        y=y,
        offsets=4 * np.arange(rows * cols + 1),
        points=points.ravel(),
        origin=(grid.xmin, grid.ymin),
        step=grid.cell_size / STEPS,
        area=np.zeros((0, 2)),
        slack=0,
    )
