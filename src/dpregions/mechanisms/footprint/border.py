"""Intervals in the time of a border: what parts of the area, measured, say about rectangles.

Owns the tree of measured parts as flat arrays, what is expected below its leaves, and the walk from
rectangles of cells down to the parts that they cut. Whether the parts are levels of a `Hierarchy`
or of uneven depth is all one here. Sees noisy counts and public numbers alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dpregions import extras
from dpregions.mechanisms.footprint.alike import Alike
from dpregions.mechanisms.footprint.fits import combine
from dpregions.mechanisms.footprint.levels import letter_groups
from dpregions.memory import n_workers

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dpregions.arrays import Floats, Ints
    from dpregions.mechanisms.footprint.buckets import Buckets
    from dpregions.mechanisms.footprint.measuring import Measured

NODE = np.dtype(
    [
        ("row", np.int32),
        ("col", np.int32),
        ("side", np.int32),
        ("group", np.int32),
        ("first", np.int32),
        ("n", np.int32),
        ("spread", np.float64),
        ("fit", np.float64),
        ("held", np.float64),
        ("detail", np.bool_),
    ],
    align=True,
)
"""A part: regions whose footprint is centred in a block of cells, with a letter of a group.

The block is rows ``row`` to ``row + side - 1`` and columns alike, cut at the grid. Children are the
nodes ``first`` to ``first + n - 1``; a leaf has n = 0. `spread` is the variance of what is known of
a part from itself and below (`least_squares.gathered`), `fit` its signed count, `held` the
non-negative count of a leaf. `detail`: a leaf's regions were not told apart when measured; without
it a leaf is one bucket. Side by side in memory, since a walk reads all of a node.
"""

LETTER = np.dtype(
    [
        ("height", np.int32),
        ("width", np.int32),
        ("table", np.int64),
        ("start", np.int64),
        ("weight", np.float64),
    ]
)
"""A letter: its footprint, where its table of chances begins (-1: none), and its first bucket."""

GROUP = np.dtype(
    [
        ("begin", np.int32),
        ("end", np.int32),
        ("lowest", np.int32),
        ("highest", np.int32),
        ("narrowest", np.int32),
        ("widest", np.int32),
    ]
)
"""A group: where its letters are among the members, least and greatest height and width."""

_FEW = 16
"""Cells of a corner up to which each has its own chance, where regions follow a density."""
_NOTHING = 1e-13
"""Share of all regions below which a density is what rounding makes of none."""
_ELLIPSES, _LEAST_ASPECT = 2048, 0.3
_MANY = 1 << 11
"""Rectangles from which on it pays to look at what they share, and for another thread."""


class Letters(NamedTuple):
    """Letters in groups, as the kernel takes them: footprints, and chances to touch their cells."""

    n_rows: int
    n_cols: int
    letters: NDArray[Any]
    """Of dtype `LETTER`."""
    tables: Floats
    """`smooth_table`, then the letters' own tables, one by one."""
    groups: NDArray[Any]
    """Of dtype `GROUP`."""
    members: Ints
    """Numbers of letters, group by group."""

    @classmethod
    def of(
        cls,
        shape: tuple[int, int],
        heights: Ints,
        widths: Ints,
        groups: Sequence[Ints],
        weights: Floats | None = None,
        tables: Sequence[Floats | None] | None = None,
    ) -> Letters:
        """Return letters of a grid's shape, in groups of their numbers; none may be empty.

        A table, ``2 * height x 2 * width``, has a row and a column of zeros, then sums of the
        signed mean Euler array of the letter's bodies; None stands for a large footprint, whose
        chances are those of `smooth_table`. Weights say how common letters are in their group.
        """
        letters = np.zeros(len(heights), LETTER)
        letters["height"], letters["width"] = heights, widths
        letters["weight"] = 1.0 if weights is None else weights
        own = [None] * len(heights) if tables is None else tables
        sizes = np.array([0 if table is None else table.size for table in own], np.int64)
        flat = [smooth_table(), *(np.ravel(table) for table in own if table is not None)]
        letters["table"] = np.where(sizes > 0, len(flat[0]) + np.cumsum(sizes) - sizes, -1)
        found, end = np.zeros(len(groups), GROUP), np.cumsum([len(group) for group in groups])
        found["begin"], found["end"] = end - [len(group) for group in groups], end
        for name, ends, pick in (
            ("lowest", heights, np.min),
            ("highest", heights, np.max),
            ("narrowest", widths, np.min),
            ("widest", widths, np.max),
        ):
            found[name] = [pick(ends[group]) for group in groups]
        members = np.concatenate(list(groups)).astype(np.int64)
        return cls(int(shape[0]), int(shape[1]), letters, np.concatenate(flat), found, members)


class Shares(NamedTuple):
    """What is expected below leaves: made by `by_bucket` or `by_density`."""

    dense: bool
    expected: Floats
    summed: Floats
    density: Floats
    few: int
    least: float

    @classmethod
    def by_bucket(cls, buckets: Buckets, expected: Floats, block: int) -> Shares:
        """Return shares by what each bucket is expected to hold, of leaves of one side."""
        from dpregions.mechanisms.footprint.border_kernel import summed_in_blocks

        b = buckets
        summed = summed_in_blocks(
            expected, b.starts, b.heights, b.widths, b.n_rows, b.n_cols, block
        )
        return cls(False, expected, summed, np.zeros((1, 1)), 0, 0.0)

    @classmethod
    def of_buckets(cls) -> Shares:
        """Return the shares of leaves that are single buckets: there is nothing below."""
        return cls(False, np.zeros(1), np.zeros((1, 1, 1)), np.zeros((1, 1)), 0, 0.0)

    @classmethod
    def by_density(cls, sums: Floats, few: int = _FEW) -> Shares:
        """Return shares by a density of regions over centre cells, and by the letters' weights.

        `sums` is its summed-area table, a row and column of 0 first. Corners of more than `few`
        cells get the mean of some of their chances. Leaves without density count cells alike.
        """
        sums, none = np.ascontiguousarray(sums, np.float64), np.zeros(1)
        return cls(True, none, none[None, None], sums, few, _NOTHING * float(sums[-1, -1]))


@dataclass(frozen=True, eq=False)
class Parts:
    """A tree of measured parts, node 0 its root, and its depth."""

    nodes: NDArray[Any]
    """Of dtype `NODE`."""
    depth: int

    @classmethod
    def of(cls, parent: Ints, nodes: NDArray[Any]) -> Parts:
        """Return the tree of nodes in any order but the root first; `first` and `n` are made here.

        Between a node and many children come virtual nodes that were not measured, blocks of
        doubling sides: they change no fit, and let a walk pass by what it does not cut.
        """
        parent = np.ascontiguousarray(parent, np.int64)
        if extras.is_there("numba"):
            from dpregions.mechanisms.footprint import parts_kernel

            return cls(*parts_kernel.laid_out(parent, nodes))
        from dpregions.mechanisms.footprint import parts_layout

        return cls(*parts_layout.laid_out(parent, nodes))


class Unsure(NamedTuple):
    """What p(1 - p) is at least where a query cuts a leaf, p the share that is thought to touch.

    No share is known to be next to none, or next to all.
    """

    detail: float = 0.0
    """Of a leaf whose regions were not told apart."""
    bucket: float = 0.0
    """Of a leaf that is a single bucket."""


_SURE = Unsure()


class Found(NamedTuple):
    """What a walk found of each rectangle."""

    estimate: Floats
    """The signed fit; NaN where nodes have none."""
    variance: Floats
    """Of the estimate, from noise."""
    detail: Floats
    """Sum of p(1 - p) times held over leaves with detail, p their share that touches; where the
    query cuts one, p(1 - p) is at least what `Unsure` says."""
    detail_squares: Floats
    """The same times held squared."""
    bucket: Floats
    """Sum of p(1 - p) times held over leaves that are single buckets."""
    bucket_squares: Floats

    @property
    def uncertain(self) -> tuple[Floats, Floats]:
        """The sums over all leaves, where they are of one kind."""
        return self.detail + self.bucket, self.detail_squares + self.bucket_squares


@dataclass(frozen=True, eq=False)
class Border:
    """Parts, their letters, and what is expected below: ready to be asked about rectangles."""

    parts: Parts
    letters: Letters
    shares: Shares
    unsure: Unsure = _SURE

    def rectangles(self, ranges: Ints) -> Found:
        """Return what is found of many; ``row0, row1, col0, col1`` of cells, a column each."""
        ranges = np.ascontiguousarray(ranges, np.int64)
        found, n = np.empty((6, ranges.shape[1])), ranges.shape[1]
        alike = self._alike(ranges) if n >= _MANY else self._ready[2]
        n_threads = min(n_workers(), 1 + n // _MANY)
        ends = np.linspace(0, n, 4 * n_threads + 1).astype(np.int64) if n_threads > 1 else [0, n]

        def walk(part: tuple[int, int]) -> None:
            self._walk(ranges[:, slice(*part)], found[:, slice(*part)], alike)

        if n_threads == 1:
            walk((0, n))
            return Found(*found)
        with ThreadPoolExecutor(n_threads) as threads:
            list(threads.map(walk, pairwise(ends)))
        return Found(*found)

    def rectangle(self, row0: int, row1: int, col0: int, col1: int) -> Found:
        """Return the same of one, as Python's numbers."""
        found = np.empty((6, 1))
        ranges = np.array([[row0], [row1], [col0], [col1]], np.int64)
        self._walk(ranges, found, self._ready[2])
        return Found(*found[:, 0].tolist())

    def _walk(self, ranges: Ints, found: Floats, alike: Alike) -> None:
        walk, given, _ = self._ready
        walk(*given, *alike, ranges, found)

    @cached_property
    def _ready(self) -> tuple[Any, tuple[Any, ...], Alike]:
        """The kernel, all that it takes beside queries, and what queries share: nothing."""
        from dpregions.mechanisms.footprint.border_kernel import walk

        given = self.parts.nodes, self.parts.depth, *self.letters, *self.shares, *self.unsure
        return walk, given, Alike.none()

    @cached_property
    def _known_alike(self) -> dict[tuple[int, int], Alike]:
        """What queries of the height and width asked for last share."""
        return {}

    def _alike(self, ranges: Ints) -> Alike:
        """Return what many rectangles share that are of one size, but cut at the grid."""
        row0, row1, col0, col1 = ranges
        size = int((row1 - row0).max()) + 1, int((col1 - col0).max()) + 1
        last = self.letters.n_rows - 1, self.letters.n_cols - 1
        same = (row1 == np.minimum(row0 + size[0] - 1, last[0])).all()
        if min(size) < 1 or not (same and (col1 == np.minimum(col0 + size[1] - 1, last[1])).all()):
            return self._ready[2]
        known = self._known_alike
        if size not in known:
            known.clear()
            known[size] = Alike.of(self.parts, self.letters, self.shares.few, *size)
        return known[size]


def border_of(
    measured: Measured,
    expected: Floats,
    held: Floats,
    fit: Floats | None = None,
    unsure: Unsure = _SURE,
) -> Border:
    """Return the border of a hierarchy's measured levels.

    `held` is of the finest measured parts, `fit` of buckets: without one there are no estimates.
    """
    tree, finest = measured.hierarchy, measured.finest
    parent, nodes, groups = nodes_of(measured, held, fit)
    b, shares = tree.buckets, Shares.of_buckets()
    if finest < len(tree.levels) - 1:
        shares = Shares.by_bucket(b, expected, int(nodes["side"][-1]))
    letters = Letters.of((b.n_rows, b.n_cols), b.heights, b.widths, groups, tables=b.tables)
    letters.letters["start"] = b.starts[:-1]
    return Border(Parts.of(parent, nodes), letters, shares, unsure)


def nodes_of(
    measured: Measured, held: Floats, fit: Floats | None = None
) -> tuple[Ints, NDArray[Any], list[Ints]]:
    """Return a hierarchy's measured levels as nodes, each one's parent, and groups of letters."""
    tree, buckets, spread = measured.hierarchy, measured.hierarchy.buckets, combine(measured)[1]
    used = tree.levels[: measured.finest + 1]
    widest = max(buckets.n_rows, buckets.n_cols)
    start = np.cumsum([0, *tree.sizes[: len(used)]])
    nodes, parent = np.zeros(start[-1], NODE), np.full(start[-1], -1, np.int64)
    groups: list[Ints] = []
    begin: dict[str, int] = {}
    for i, level in enumerate(used):
        if level.letters not in begin:
            begin[level.letters] = len(groups)
            of_letter = letter_groups(buckets, level.letters)
            groups += [np.flatnonzero(of_letter == g) for g in range(int(of_letter.max()) + 1)]
        some, part, n = nodes[start[i] : start[i + 1]], tree.part[i], tree.sizes[i]
        some["row"], some["col"], group = tree.anchors(level)
        some["group"] = group + begin[level.letters]
        some["side"] = min(level.block or widest, widest)
        some["spread"] = spread[i]
        some["fit"] = np.nan if fit is None else np.bincount(part, fit, n)
        if i:
            parent[start[i] : start[i + 1]] = tree.parent[i - 1] + start[i - 1]
    some["held"] = held
    some["detail"] = len(used) < len(tree.levels)
    return parent, nodes, groups


@cache
def smooth_table() -> Floats:
    """Return chances for large footprints: of random ellipses drawn in a box of 16 x 16 cells.

    Public and always the same. An ellipse that touches all sides of its box has one number left,
    how far it leans; that follows from a random angle and aspect.
    """
    from dpregions.mechanisms.footprint.border_kernel import FINENESS

    rng = np.random.default_rng(0)
    aspect = rng.uniform(_LEAST_ASPECT, 1, _ELLIPSES) ** 2
    angle = rng.uniform(0, np.pi, _ELLIPSES)
    s, c = np.sin(angle), np.cos(angle)
    lean = (1 - aspect) * s * c / np.sqrt((c**2 + aspect * s**2) * (s**2 + aspect * c**2))
    n = 2 * FINENESS + 1
    columns, signed = np.arange(n), np.zeros((n + 1, n + 1))
    for line in range(n):
        # An odd line is a row of cells, an even one the line below it: the box's sides are such.
        low, high = line // 2 * 2 / FINENESS - 1, (line + 1) // 2 * 2 / FINENESS - 1
        ends = np.array([_across(lean, low), _across(lean, high)])
        left, right = ends[:, 0].min(axis=0), ends[:, 1].max(axis=0)
        cells = np.clip([(left + 1) / 2 * FINENESS, (right + 1) / 2 * FINENESS], 0, FINENESS - 1)
        first, last = 2 * cells.astype(np.int64) + 1
        first = np.where((-lean >= low) & (-lean <= high), 0, first)[:, None]
        last = np.where((lean >= low) & (lean <= high), n - 1, last)[:, None]
        touched = ((columns >= first) & (columns <= last)).mean(axis=0)
        signed[line + 1, 1:] = touched * (-1.0) ** (line + columns)
    return np.cumsum(np.cumsum(signed, axis=0), axis=1).ravel()


def _across(lean: Floats, y: float) -> Floats:
    """Return where leaning ellipses in the box from -1 to 1 begin and end at a height."""
    wide = np.sqrt(np.maximum((1 - lean**2) * (1 - y**2), 0))
    return np.array([lean * y - wide, lean * y + wide])
