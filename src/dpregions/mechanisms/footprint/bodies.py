"""Bodies: counts of buckets -> an actual multiset of convex bodies -> its Euler histogram.

The release of the footprint mechanism is the exact histogram of these bodies: consistent and
covert by construction. They are made from fitted counts and the public catalogue only. As polygons
they are counted on any shape.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dpregions.curve import along_curve
from dpregions.errors import InputError
from dpregions.geometry.doubled import SpanCounts
from dpregions.geometry.lattice import STEPS
from dpregions.geometry.layers import Layer
from dpregions.mechanisms.footprint.witnesses import ragged
from dpregions.memory import BODY, refuse_beyond

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dpregions.geometry.grid import Grid
    from dpregions.mechanisms.footprint.buckets import Buckets
    from dpregions.mechanisms.footprint.catalogue import Catalogue

_GOLDEN = (5**0.5 - 1) / 2
_INWARD = 1e-6
"""How far points are pulled towards an area's middle: far beyond the rounding of its border."""
_BATCH = 1 << 15
_WIDEST = 1 << 62
"""Up to here numbers of several columns are packed into one."""
_PAIRS = 1 << 24
"""Pairs of a query and a body that touch each other, held at once."""


@dataclass(frozen=True, eq=False)
class Bodies:
    """A multiset of bodies: a witness of a pattern of the catalogue at a place, so many times.

    `row` and `col` are the lower left cell of the body's footprint, `witness` the number of the
    outline among its pattern's.
    """

    catalogue: Catalogue
    pattern: NDArray[np.int64]
    witness: NDArray[np.int64]
    row: NDArray[np.int64]
    col: NDArray[np.int64]
    times: NDArray[np.int64]
    moved: NDArray[np.float64] | None = None
    """How far each is moved, in CRS units, so that it touches the area; None: none is."""

    @classmethod
    def of_patterns(
        cls,
        catalogue: Catalogue,
        pattern: NDArray[np.int64],
        row: NDArray[np.int64],
        col: NDArray[np.int64],
        times: NDArray[np.int64],
    ) -> Bodies:
        """Return bodies of patterns at places, each the first witness of its pattern."""
        return cls(catalogue, pattern, np.zeros_like(pattern), row, col, times)

    def tallied(self) -> Bodies:
        """Return the same multiset sorted by row, column, pattern and witness, each but once."""
        key, ends = _packed(self.row, self.col, self.pattern, self.witness)
        order = np.argsort(key)
        key = key[order]
        starts = np.flatnonzero(np.diff(key, prepend=-1))
        times = np.add.reduceat(self.times[order], starts) if len(order) else order
        del order
        row, col, pattern, witness = _unpacked(key[starts], ends)
        return Bodies(self.catalogue, pattern, witness, row, col, times)

    def touching(self, area: Any, grid: Grid) -> Bodies:
        """Return bodies of the same patterns at the same places that touch an area, if any does.

        Another witness of the pattern stands in for one that does not; `moved` is for the rest.
        """
        import shapely

        shapely.prepare(area)
        n, witness = np.diff(self.catalogue.starts)[self.pattern], self.witness.copy()
        astray = np.arange(len(witness))
        for _ in range(int(n.max(initial=0))):
            made = replace(self, witness=witness)
            astray = made._beside(area, astray, grid)
            if not astray.size:
                break
            witness[astray] = (witness[astray] + 1) % n[astray]
        return replace(self, witness=witness).tallied()

    def moved_into(self, area: Any, grid: Grid) -> Bodies:
        """Return the same bodies, those beside an area moved to touch it."""
        import shapely

        moved = np.zeros((len(self.times), 2))
        shapely.prepare(area)
        astray = self._beside(area, np.arange(len(self.times)), grid)
        lines = shapely.shortest_line(area, self._polygons(astray, grid))
        ends = shapely.get_coordinates(lines)
        there, here = ends.reshape(-1, 2, 2).swapaxes(0, 1)
        moved[astray] = pulled_in(there, area) - here
        return replace(self, moved=moved)

    def _beside(self, area: Any, which: NDArray[np.int64], grid: Grid) -> NDArray[np.int64]:
        """Return which of some bodies do not touch an area, looked at a batch at a time."""
        import shapely

        found = [
            some[~shapely.intersects(area, self._polygons(some, grid))]
            for some in np.split(which, np.arange(_BATCH, len(which), _BATCH))
        ]
        return np.concatenate(found)

    def dealt(self) -> Bodies:
        """Return bodies of the same patterns at the same places, by all of their witnesses.

        Each pattern's witnesses are dealt evenly along a curve through the area, so that a query
        below a cell meets about as many bodies as their chance to touch it says.
        """
        key, _ = _packed(self.pattern, along_curve(self.row, self.col))
        order = np.argsort(key, kind="stable")
        del key
        pattern, row, col, times = (
            v[order] for v in (self.pattern, self.row, self.col, self.times)
        )
        del order  # bodies may be tens of millions: what is not needed any more is let go
        which, witness, times = _dealt_witnesses(self.catalogue, pattern, times)
        pattern, row, col = pattern[which], row[which], col[which]
        del which
        return Bodies(self.catalogue, pattern, witness, row, col, times).tallied()

    def counts_on(self, n_rows: int, n_cols: int) -> NDArray[np.int64]:
        """Return the Euler histogram of the bodies on a grid of so many cells."""
        whole = SpanCounts(n_rows, n_cols)
        whole.add_patterns(self.row, self.col, self.catalogue.spans, self.pattern, self.times)
        return whole.settled()

    def to_regions(self, grid: Grid) -> Layer:
        """Return each body as a convex polygon, in the grid's CRS.

        A vertex is put in the middle of its lattice step, so that reading it back snaps to
        the same step: the polygons have exactly the histogram `counts`.
        """
        refuse_coarse_floats(grid)
        n = int(self.times.sum())
        refuse_beyond(
            BODY * n,
            f"making polygons of its {n:,} synthetic regions",
            "ask the release for counts, or take its components instead",
        )
        shapes = np.empty(n, np.object_)
        ends = np.cumsum(self.times)
        for start in range(0, n, _BATCH):
            at = np.arange(start, min(start + _BATCH, n))
            shapes[at] = self._polygons(np.searchsorted(ends, at, side="right"), grid)
        return Layer({}, shapes, grid.crs)

    def corners(
        self, grid: Grid
    ) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
        """Return the corners of distinct bodies, where each one's start, and how often it is."""
        refuse_coarse_floats(grid)
        return *self._corners(np.arange(len(self.times)), grid), self.times

    def polygons(self, grid: Grid) -> NDArray[np.object_]:
        """Return the polygon of each distinct body."""
        return self._polygons(np.arange(len(self.times)), grid)

    def _polygons(self, which: NDArray[np.int64], grid: Grid) -> NDArray[np.object_]:
        """Return the polygons of some bodies."""
        import shapely

        xy, offsets = self._corners(which, grid)
        rings = shapely.linearrings(xy, indices=np.repeat(np.arange(len(which)), np.diff(offsets)))
        return np.asarray(shapely.polygons(rings))

    def _corners(
        self, which: NDArray[np.int64], grid: Grid
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return the corners of some bodies in the grid's CRS, and where each one's start."""
        c = self.catalogue
        vertex, offsets = ragged(c.offsets, c.starts[self.pattern[which]] + self.witness[which])
        sizes = np.diff(offsets)
        cell = np.stack([self.col[which], self.row[which]], axis=-1)
        steps = c.xy[vertex] + np.repeat(cell * STEPS, sizes, axis=0)
        corner = np.array([grid.xmin, grid.ymin])
        cells, within = np.divmod(steps, STEPS)
        xy = corner + cells * grid.cell_size + (within + 0.5) * (grid.cell_size / STEPS)
        if self.moved is not None:
            xy += np.repeat(self.moved[which], sizes, axis=0)
        return xy, offsets

    def drawn(self, grid: Grid) -> DrawnBodies:
        """Return the bodies as polygons on a grid, to be counted on any shape."""
        import shapely

        refuse_coarse_floats(grid)
        n = len(self.times)
        refuse_beyond(
            BODY * n,
            f"making polygons of its {n:,} distinct synthetic regions",
            "ask for counts within cells instead",
        )
        parts = [
            self._polygons(np.arange(start, min(start + _BATCH, n)), grid)
            for start in range(0, n, _BATCH)
        ]
        shapes = np.concatenate(parts) if parts else np.empty(0, np.object_)
        return DrawnBodies(shapely.STRtree(shapes), self.times)


@dataclass(frozen=True, eq=False)
class DrawnBodies:
    """Distinct bodies as polygons in a search tree, and how often each is there."""

    tree: Any
    times: NDArray[np.int64]

    def counts(self, shapes: NDArray[np.object_]) -> NDArray[np.int64]:
        """Return how many bodies each geometry touches; touching borders count."""
        counts = np.zeros(len(shapes), np.int64)
        batch = max(_PAIRS // max(len(self.times), 1), 1)
        for start in range(0, len(shapes), batch):
            some = shapes[start : start + batch]
            query, body = self.tree.query(some, predicate="intersects")
            np.add.at(counts, start + query, self.times[body])
        return counts


def pulled_in(points: NDArray[np.float64], area: Any) -> NDArray[np.float64]:
    """Return points on the border of a convex area, a little inside."""
    middle = np.array(area.centroid.coords[0])
    return points + _INWARD * (middle - points)


def refuse_coarse_floats(grid: Grid) -> None:
    """Refuse a grid so far from its CRS's origin that floats there miss the lattice."""
    reach = max(map(abs, grid.bounds))
    if 4 * math.ulp(reach) > grid.cell_size / STEPS:
        raise InputError(
            f"coordinates near {reach:g} are too coarse, as floats, to draw regions in cells of "
            f"{grid.cell_size:g}: use a CRS with its origin nearby, or larger cells"
        )


def make_bodies(buckets: Buckets, fitted: NDArray[np.float64]) -> Bodies:
    """Return bodies whose numbers follow fitted counts of buckets, rounded to whole numbers.

    Buckets are taken along a curve through the area that keeps neighbours together, and the
    running sum is rounded: any run of neighbours is off by less than one body, so rounding
    costs a query about as much as its border is long. Where only sizes are known, shapes are
    dealt out in the catalogue's proportions, evenly along the same curve. Witnesses are dealt
    last: which one realises a pattern moves no count of cells.
    """
    row, col = buckets.centres
    order = np.lexsort((buckets.letters, along_curve(row, col)))
    running = np.rint(np.cumsum(fitted[order])).astype(np.int64)
    times = np.diff(running, prepend=0)
    held = times > 0
    where, times = order[held], times[held]
    letter = buckets.letters[where]
    row, col = (place[where] for place in buckets.places)
    catalogue = buckets.catalogue
    if buckets.alphabet == "patterns":
        made = Bodies.of_patterns(catalogue, buckets.patterns[letter], row, col, times)
        return made.tallied().dealt()
    letter, row, col = (v.repeat(times) for v in (letter, row, col))
    return bodies_of_sizes(catalogue, row, col, buckets.heights[letter], buckets.widths[letter])


def bodies_of_sizes(
    catalogue: Catalogue,
    row: NDArray[np.int64],
    col: NDArray[np.int64],
    height: NDArray[np.int64],
    width: NDArray[np.int64],
) -> Bodies:
    """Return bodies with some footprints, one each, shapes dealt in the catalogue's proportions.

    Evenly over the footprints of each size, in the order given; then witnesses are dealt.
    """
    pattern = _dealt_patterns(catalogue, height, width)
    ones = np.ones(len(pattern), np.int64)
    return Bodies.of_patterns(catalogue, pattern, row, col, ones).tallied().dealt()


def sample_of_sizes(
    catalogue: Catalogue,
    row: NDArray[np.int64],
    col: NDArray[np.int64],
    height: NDArray[np.int64],
    width: NDArray[np.int64],
) -> Bodies:
    """Return a body for each of some footprints, in their order; shapes and witnesses are dealt.

    A size that the catalogue lacks is stood for by the next smaller one that it has.
    """
    height, width = catalogue.nearest[height, width].T
    pattern = _dealt_patterns(catalogue, height, width)
    n = np.diff(catalogue.starts)[pattern]
    witness = ((_rank_within(pattern) * _GOLDEN) % 1.0 * n).astype(np.int64)
    return Bodies(catalogue, pattern, witness, row, col, np.ones(len(pattern), np.int64))


def _dealt_patterns(
    catalogue: Catalogue, height: NDArray[np.int64], width: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return a pattern for each footprint, in the catalogue's proportions."""
    turn = _rank_within(height * (catalogue.side + 1) + width)
    first, last = catalogue.first[height, width], catalogue.last[height, width]
    # Fractions of multiples of the golden ratio are spread evenly over every stretch of ranks.
    part = (turn * _GOLDEN) % 1.0
    upper = np.concatenate([[0.0], np.cumsum(catalogue.weights)])
    # Weights of one footprint sum to 1: shift each footprint's stretch to its own unit interval.
    share = upper[first] + part
    return np.clip(np.searchsorted(upper, share, side="right") - 1, first, last - 1)


def _dealt_witnesses(
    catalogue: Catalogue, pattern: NDArray[np.int64], times: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return bodies by their witnesses: of which entry each is, which witness, and how often."""
    n = np.diff(catalogue.starts)[pattern]
    # As often as all witnesses take part, each does; the others are dealt out one by one.
    all_of_them, rest = np.divmod(times, n)
    start = np.cumsum(rest) - rest
    start = start[np.searchsorted(pattern, pattern, side="left")]
    one = np.repeat(np.arange(len(rest)), rest)
    rank = np.arange(len(one)) - start[one]
    # Fractions of multiples of the golden ratio are spread evenly over every stretch of ranks.
    turn = rank * _GOLDEN
    del rank, start
    turn += pattern[one] * _GOLDEN**2
    turn %= 1.0
    turn *= n[one]
    each = np.flatnonzero(all_of_them)
    every = np.repeat(each, n[each])
    number = np.arange(len(every)) - np.repeat(np.cumsum(n[each]) - n[each], n[each])
    witness = np.concatenate([turn.astype(np.int64), number])
    del turn
    times = np.concatenate([np.ones(len(one), np.int64), all_of_them[every]])
    return np.concatenate([one, every]), witness, times


def _packed(*columns: NDArray[np.int64]) -> tuple[NDArray[np.int64], list[NDArray[np.int64] | int]]:
    """Return one number for each row of some columns, none negative, in the order of the rows.

    And what `_unpacked` takes. Where the columns' numbers do not fit into one beside each other,
    the rows so far are numbered in their order.
    """
    key = np.zeros(len(columns[0]), np.int64)
    ends: list[NDArray[np.int64] | int] = []
    reach = 1
    for column in columns:
        end = int(column.max(initial=0)) + 1
        if reach * end >= _WIDEST:
            known, key = np.unique(key, return_inverse=True)
            reach = len(known)
            ends.append(known)
        key = key * end
        key += column
        reach *= end
        ends.append(end)
    return key, ends


def _unpacked(
    key: NDArray[np.int64], ends: list[NDArray[np.int64] | int]
) -> list[NDArray[np.int64]]:
    """Return the columns of what `_packed` made of them."""
    found: list[NDArray[np.int64]] = []
    for end in reversed(ends):
        if isinstance(end, int):
            key, column = np.divmod(key, end)
            found.append(column)
        else:
            key = end[key]
    return found[::-1]


def _rank_within(group: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many of the same group came before each entry."""
    order = np.argsort(group, kind="stable")
    ranks = np.empty(len(group), np.int64)
    starts = np.searchsorted(group[order], group[order], side="left")
    ranks[order] = np.arange(len(group)) - starts
    return ranks
