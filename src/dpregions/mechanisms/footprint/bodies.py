"""Bodies: counts of buckets -> an actual multiset of convex bodies -> its Euler histogram.

The release of the footprint mechanism is the exact histogram of these bodies: consistent and
covert by construction. They are made from fitted counts and the public catalogue only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dpregions.errors import InputError
from dpregions.geometry.doubled import SpanCounts
from dpregions.geometry.lattice import STEPS
from dpregions.memory import BODY, refuse_beyond

if TYPE_CHECKING:
    import geopandas
    from numpy.typing import NDArray

    from dpregions.geometry.grid import Grid
    from dpregions.mechanisms.footprint.buckets import Buckets
    from dpregions.mechanisms.footprint.catalogue import Catalogue

_GOLDEN = (5**0.5 - 1) / 2
_BATCH = 1 << 15


@dataclass(frozen=True, eq=False)
class Bodies:
    """A multiset of bodies: a pattern of the catalogue at a place, so many times.

    `row` and `col` are the lower left cell of the body's footprint.
    """

    catalogue: Catalogue
    pattern: NDArray[np.int64]
    row: NDArray[np.int64]
    col: NDArray[np.int64]
    times: NDArray[np.int64]

    def tallied(self) -> Bodies:
        """Return the same multiset sorted by row, column and pattern, each but once."""
        order = np.lexsort((self.pattern, self.col, self.row))
        key = np.stack([self.row, self.col, self.pattern])[:, order]
        new = np.ones(len(order), np.bool_)
        new[1:] = (np.diff(key, axis=1) != 0).any(axis=0)
        row, col, pattern = key[:, new]
        times = np.add.reduceat(self.times[order], np.flatnonzero(new)) if len(order) else order
        return Bodies(self.catalogue, pattern, row, col, times)

    def counts_on(self, n_rows: int, n_cols: int) -> NDArray[np.int64]:
        """Return the Euler histogram of the bodies on a grid of so many cells."""
        whole = SpanCounts(n_rows, n_cols)
        for start in range(0, len(self.pattern), _BATCH):
            part = slice(start, start + _BATCH)
            spans = self.catalogue.spans[self.pattern[part]].astype(np.int64)
            body, line = np.nonzero(spans[:, :, 0] <= spans[:, :, 1])
            row = 2 * self.row[part][body] + line
            first, last = (spans[body, line] + self.col[part][body, None]).T
            whole.add_spans(row, first, last, self.times[part][body])
        return whole.histogram()

    def to_regions(self, grid: Grid) -> geopandas.GeoDataFrame:
        """Return each body as a convex polygon, in the grid's CRS.

        A vertex is put in the middle of its lattice step, so that reading it back snaps to
        the same step: the polygons have exactly the histogram `counts`.
        """
        import geopandas

        _refuse_coarse_floats(grid)
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
        return geopandas.GeoDataFrame(geometry=shapes, crs=grid.crs)

    def _polygons(self, which: NDArray[np.int64], grid: Grid) -> NDArray[np.object_]:
        """Return the polygons of some bodies."""
        import shapely

        c = self.catalogue
        used = self.pattern[which]
        sizes = np.diff(c.offsets)[used]
        ends = np.cumsum(sizes)
        vertex = np.arange(ends[-1]) - np.repeat(ends - sizes - c.offsets[used], sizes)
        cell = np.stack([self.col[which], self.row[which]], axis=-1)
        steps = c.xy[vertex] + np.repeat(cell * STEPS, sizes, axis=0)
        corner = np.array([grid.xmin, grid.ymin])
        cells, within = np.divmod(steps, STEPS)
        xy = corner + cells * grid.cell_size + (within + 0.5) * (grid.cell_size / STEPS)
        rings = shapely.linearrings(xy, indices=np.repeat(np.arange(len(used)), sizes))
        polygons: NDArray[np.object_] = shapely.polygons(rings)
        return polygons


def _refuse_coarse_floats(grid: Grid) -> None:
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
    dealt out in the catalogue's proportions, evenly along the same curve.
    """
    row, col = buckets.centres
    order = np.lexsort((buckets.letters, _hilbert(row, col)))
    running = np.rint(np.cumsum(fitted[order])).astype(np.int64)
    times = np.diff(running, prepend=0)
    held = times > 0
    where, times = order[held], times[held]
    letter = buckets.letters[where]
    row, col = (place[where] for place in buckets.places)
    catalogue = buckets.catalogue
    if buckets.alphabet == "patterns":
        return Bodies(catalogue, buckets.patterns[letter], row, col, times).tallied()
    letter, row, col = (v.repeat(times) for v in (letter, row, col))
    h, w = buckets.heights[letter], buckets.widths[letter]
    turn = _rank_within(letter)
    # Fractions of multiples of the golden ratio are spread evenly over every stretch of ranks.
    at = (turn * _GOLDEN) % 1.0 + catalogue.first[h, w]
    upper = np.concatenate([[0.0], np.cumsum(catalogue.weights)])
    # Weights of one footprint sum to 1: shift each footprint's stretch to its own unit interval.
    share = upper[catalogue.first[h, w]] + (at - catalogue.first[h, w])
    pattern = np.searchsorted(upper, share, side="right") - 1
    pattern = np.clip(pattern, catalogue.first[h, w], catalogue.last[h, w] - 1)
    return Bodies(catalogue, pattern, row, col, np.ones(len(pattern), np.int64)).tallied()


def _rank_within(group: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many of the same group came before each entry."""
    order = np.argsort(group, kind="stable")
    ranks = np.empty(len(group), np.int64)
    starts = np.searchsorted(group[order], group[order], side="left")
    ranks[order] = np.arange(len(group)) - starts
    return ranks


def _hilbert(row: NDArray[np.int64], col: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the position of cells along Hilbert's curve."""
    side = 1
    while side <= max(row.max(initial=0), col.max(initial=0)):
        side *= 2
    x, y = col.copy(), row.copy()
    along = np.zeros(len(row), np.int64)
    half = side // 2
    while half:
        right, up = (x & half) > 0, (y & half) > 0
        along += half * half * ((3 * right) ^ up)
        turn = ~up
        flip = turn & right
        x, y = np.where(flip, side - 1 - x, x), np.where(flip, side - 1 - y, y)
        x, y = np.where(turn, y, x), np.where(turn, x, y)
        half //= 2
    return along
