"""Witnesses: convex bodies that realise each pattern, spread over where such a body may lie.

Chosen among the catalogue's ellipses; where a pattern was drawn too rarely, moved, turned and
scaled copies join them. Each keeps its pattern when it is moved by `CLEAR` lattice steps and stays
within the bound. Corners are rounded to a grain, so that a file of them stays small. Everything
here is public and follows from a fixed seed; nothing sees data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dpregions.curve import along_curve
from dpregions.geometry.grid import Grid
from dpregions.geometry.lattice import STEPS
from dpregions.geometry.outlines import Bound, Outlines

if TYPE_CHECKING:
    from numpy.typing import NDArray

CLEAR = 4
"""A witness keeps its pattern when it is moved by this many lattice steps: geometry, not tuned."""
LEAST, OF_A_SIZE = 16, 64
"""Witnesses of each pattern at least, and of all patterns of a footprint's size together."""
_GRAINS = 256
"""Corners lie on so many lines along a cell (or the bound, where that is shorter)."""
_ROUNDS = 8
"""Rounds of copies, each nearer to its model than those before."""
_HALVINGS = 8
"""Halvings of what is not known of the least scale of a witness."""
_PLACES = 64
"""How finely middles are told apart, along each side of a footprint, when they are put in order."""


def ragged(
    offsets: NDArray[np.int64], which: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the vertices of some outlines, and the offsets of these outlines among them."""
    sizes = np.diff(offsets)[which]
    ends = np.cumsum(sizes)
    n = int(ends[-1]) if len(ends) else 0
    vertex = np.arange(n) - np.repeat(ends - sizes - offsets[which], sizes)
    return vertex, np.concatenate([[0], ends])


def clear_footprints(
    bodies: Outlines, n: int, side: int
) -> tuple[NDArray[np.int64], NDArray[np.int16], NDArray[np.bool_]]:
    """Return the footprints and spans of outlines on n x n cells, and which of them are clear.

    Those that touch a cell and have the same when they are moved by `CLEAR`.
    """
    places, spans = bodies.footprints(n, n, side, empty=True)
    clear = places[:, 2] > 0
    for dx, dy in ((CLEAR, CLEAR), (CLEAR, -CLEAR), (-CLEAR, CLEAR), (-CLEAR, -CLEAR)):
        there = Outlines(bodies.xy + np.array([dx, dy]), bodies.offsets)
        moved = there.footprints(n, n, side, empty=True)
        clear &= (moved[0] == places).all(axis=1) & (moved[1] == spans).all(axis=(1, 2))
    return places, spans, clear


@dataclass(frozen=True, eq=False)
class Patterns:
    """What witnesses have to realise: patterns, as the catalogue has them, within a bound."""

    side: int
    bound: int
    heights: NDArray[np.int64]
    widths: NDArray[np.int64]
    spans: NDArray[np.int16]
    least: int = LEAST
    together: int = OF_A_SIZE
    """Witnesses of each pattern at least, and of all patterns of a footprint's size together."""
    nearness: float | None = None
    """How much copies of witnesses are changed at first; None: as far as suits few cells."""

    def wanted(self) -> NDArray[np.int64]:
        """Return how many witnesses each pattern has: more where its size has few patterns."""
        size = self.heights * (self.side + 1) + self.widths
        of_size = np.bincount(size)[size]
        return np.maximum(-(-self.together // of_size), self.least)

    def had_by(self, pool: Witnesses) -> NDArray[np.bool_]:
        """Say which outlines have their pattern, also when they are moved by `CLEAR`."""
        good = np.diff(pool.outlines.offsets) >= 3
        moves = [(0, 0)] + [(x, y) for x in (CLEAR, -CLEAR) for y in (CLEAR, -CLEAR)]
        for move in moves:
            which = np.flatnonzero(good)
            vertex, offsets = ragged(pool.outlines.offsets, which)
            # A cell of room on all sides: what a move leads out of the footprint must be seen.
            xy = pool.outlines.xy[vertex] + STEPS + np.array(move)
            n = self.side + 2
            places, spans = Outlines(xy, offsets).footprints(n, n, self.side, empty=True)
            of = pool.pattern[which]
            good[which] = (
                (places[:, :2] == 1).all(axis=1)
                & (places[:, 2] == self.heights[of])
                & (places[:, 3] == self.widths[of])
                & (spans == self.spans[of]).all(axis=(1, 2))
            )
        return good

    def coarse(self, outlines: Outlines) -> Outlines:
        """Return outlines with corners rounded to the grain; empty ones where that breaks them."""
        grain = max(1 << (min(self.bound, STEPS) // _GRAINS).bit_length() - 1, 1)
        xy = np.maximum(outlines.xy, 0) // grain * grain + grain // 2
        area = Grid(0, 0, 1, self.side, self.side)
        return Outlines.of(
            xy / STEPS, outlines.offsets, area, Bound(self.side, self.bound - CLEAR, True)
        )


@dataclass(frozen=True, eq=False)
class Witnesses:
    """Outlines, in lattice steps from their footprint's lower left corner, and their patterns."""

    pattern: NDArray[np.int64]
    outlines: Outlines

    def __getitem__(self, which: NDArray[np.int64]) -> Witnesses:
        vertex, offsets = ragged(self.outlines.offsets, which)
        return Witnesses(self.pattern[which], Outlines(self.outlines.xy[vertex], offsets))

    def __add__(self, other: Witnesses) -> Witnesses:
        one, more = self.outlines, other.outlines
        offsets = np.concatenate([one.offsets, one.offsets[-1] + more.offsets[1:]])
        outlines = Outlines(np.concatenate([one.xy, more.xy]), offsets)
        return Witnesses(np.concatenate([self.pattern, other.pattern]), outlines)

    @property
    def middles(self) -> NDArray[np.float64]:
        """The mean corner of each outline; none is empty."""
        starts = self.outlines.offsets[:-1]
        sums = np.add.reduceat(self.outlines.xy, starts, axis=0)
        middles: NDArray[np.float64] = sums / np.diff(self.outlines.offsets)[:, None]
        return middles

    def in_order(self) -> Witnesses:
        """Return them by pattern, and each pattern's along a curve through their middles."""
        col, row = (self.middles * (_PLACES / STEPS)).astype(np.int64).T
        return self[np.lexsort((along_curve(row, col), self.pattern))]

    def spread(self, wanted: NDArray[np.int64]) -> Witnesses:
        """Return at most so many of each pattern, evenly along the curve; of ones in order."""
        n = np.bincount(self.pattern, minlength=len(wanted))
        rank = np.arange(len(self.pattern)) - (np.cumsum(n) - n)[self.pattern]
        n, most = n[self.pattern], wanted[self.pattern]
        # Of n ranks those are taken at which `most` equal steps pass another whole number.
        taken = (n <= most) | ((rank + 1) * most // n > rank * most // n)
        return self[np.flatnonzero(taken)]

    def copies(
        self, models: NDArray[np.int64], nearness: float, bound: int, seed: int
    ) -> Witnesses:
        """Return changed copies of some outlines: the nearer to 0, the smaller the change."""
        rng = np.random.default_rng(seed)
        made = self[models]
        n = len(models)
        # Along a line a body may move freely, across it by a share of its size: often one axis.
        reach = np.where(rng.random((n, 2)) < 0.5, STEPS, min(bound, STEPS))
        move = nearness * reach * rng.uniform(-0.5, 0.5, (n, 2))
        scale = 1 + nearness * rng.uniform(-0.7, 0.3, n)
        turn = nearness * rng.uniform(-0.7, 0.7, n)
        sizes = np.diff(made.outlines.offsets)
        middle = np.repeat(made.middles, sizes, axis=0)
        cos, sin, dx, dy = np.repeat(
            [scale * np.cos(turn), scale * np.sin(turn), *move.T], sizes, 1
        )
        x, y = (made.outlines.xy - middle).T
        moved = middle + np.stack([cos * x - sin * y + dx, sin * x + cos * y + dy], axis=-1)
        outlines = Outlines(np.rint(moved).astype(np.int64), made.outlines.offsets)
        return Witnesses(made.pattern, outlines)

    def least(self, patterns: Patterns) -> NDArray[np.float64]:
        """Return the corners of the same outlines, as small as they keep their patterns.

        They are shrunk about their middles: where one cell is touched, to next to a point.
        """
        sizes = np.diff(self.outlines.offsets)
        middle = np.repeat(self.middles, sizes, axis=0)
        off = self.outlines.xy - middle
        large, small = np.ones(len(sizes)), np.zeros(len(sizes))
        for _ in range(_HALVINGS):
            scale = (large + small) / 2
            xy = np.rint(middle + off * np.repeat(scale, sizes)[:, None]).astype(np.int64)
            keeps = patterns.had_by(Witnesses(self.pattern, Outlines(xy, self.outlines.offsets)))
            large, small = np.where(keeps, scale, large), np.where(keeps, small, scale)
        return middle + off * np.repeat(large, sizes)[:, None]


def spread_witnesses(patterns: Patterns, drawn: Witnesses) -> Witnesses:
    """Return witnesses of every pattern, from drawn ones; at least one of each has it."""
    wanted = patterns.wanted()
    pool = drawn.in_order()
    found = _coarse(patterns, pool.spread(2 * wanted))
    nearness = patterns.nearness
    if nearness is None:
        nearness = 1 / (patterns.side + 1)  # rare patterns leave little room, wide ones less
    for seed in range(_ROUNDS):
        n = np.bincount(found.pattern, minlength=len(wanted))
        short = np.maximum(wanted - n, 0)
        if not short.any():
            break
        models = _models(pool, 2 * short + 4 * (short > 0))
        copies = pool.copies(models, nearness, patterns.bound, seed)
        found += _coarse(patterns, copies)
        nearness *= 0.6
    found = found.in_order().spread(wanted)
    # A pattern that no other outline has keeps what was drawn, over and over.
    short = wanted - np.bincount(found.pattern, minlength=len(wanted))
    return (found + pool[_models(pool, short)]).in_order()


def _coarse(patterns: Patterns, given: Witnesses) -> Witnesses:
    """Return those that are witnesses still once their corners are rounded to the grain."""
    rounded = Witnesses(given.pattern, patterns.coarse(given.outlines))
    return rounded[np.flatnonzero(patterns.had_by(rounded))]


def _models(pool: Witnesses, times: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return so many outlines of each pattern in turn; of ones in order."""
    n = np.bincount(pool.pattern, minlength=len(times))
    pattern = np.repeat(np.arange(len(times)), times)
    rank = np.arange(len(pattern)) - np.repeat(np.cumsum(times) - times, times)
    return (np.cumsum(n) - n)[pattern] + rank % n[pattern]
