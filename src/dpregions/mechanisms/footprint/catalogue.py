"""The public catalogue of patterns: which components a body of a given footprint may touch.

Made from public parameters alone (the bound in cells): many random ellipses within the bound
are laid on a grid, and what they touch is tallied. It serves three ends: a prior for the shape
of a region whose footprint is known, the alphabet when shapes are measured, and a witness for
each pattern, a convex polygon within the bound that touches just that. The draw is seeded with
a constant: everyone has the same catalogue. It never sees data.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np

from dpregions.geometry.grid import Grid
from dpregions.geometry.lattice import STEPS
from dpregions.geometry.outlines import Bound, Outlines
from dpregions.mechanisms.footprint.tuning import TUNING, Tuning

if TYPE_CHECKING:
    from numpy.typing import NDArray

PATTERNS_A_FOOTPRINT = 64
"""Patterns kept of each size: a limit of the file format, which refuses more."""
CORNERS = 12
"""Corners of an ellipse's outline: another limit of the file format."""
CLEAR = 4
"""A witness keeps its pattern when it is moved by this many lattice steps: geometry, not tuned."""
_ELLIPSES, _ELLIPSES_PER_CELL = 40_000, 400
"""Ellipses drawn, and more for each cell of the largest footprint: as many as take a second."""


@dataclass(frozen=True, eq=False)
class Catalogue:
    """Patterns sorted by footprint; arrays over patterns.

    Attributes
    ----------
    heights, widths : int64
        Of the footprint, in cells.
    spans : int16, (n, 2 * side - 1, 2)
        First and last cell column on each doubled row.
    times : int64
        How often the pattern was drawn; what follows down to `prior` is made from it.
    weights : float64
        Prior probability among the patterns of the same footprint.
    first, last : int64, (side + 1, side + 1)
        Patterns of footprint h x w are ``first[h, w]:last[h, w]``.
    prior : float64, (side + 1, side + 1)
        Prior probability of the footprint's size.
    xy, offsets : int64
        Witness outlines, ragged, in lattice steps from the footprint's lower left corner.
    """

    side: int
    heights: NDArray[np.int64]
    widths: NDArray[np.int64]
    spans: NDArray[np.int16]
    times: NDArray[np.int64]
    weights: NDArray[np.float64]
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    prior: NDArray[np.float64]
    xy: NDArray[np.int64]
    offsets: NDArray[np.int64]

    @classmethod
    def of(
        cls,
        side: int,
        heights: NDArray[np.int64],
        widths: NDArray[np.int64],
        spans: NDArray[np.int16],
        times: NDArray[np.int64],
        xy: NDArray[np.int64],
        corners: NDArray[np.int64],
    ) -> Catalogue:
        """Return the catalogue of patterns sorted by footprint; `corners`: of each outline."""
        first = np.zeros((side + 1, side + 1), np.int64)
        n = np.zeros_like(first)
        np.add.at(n, (heights, widths), 1)
        first.ravel()[1:] = np.cumsum(n)[:-1]
        total = np.zeros(first.shape)
        np.add.at(total, (heights, widths), times)
        return cls(
            side=side,
            heights=heights,
            widths=widths,
            spans=spans,
            times=times,
            weights=times / total[heights, widths],
            first=first,
            last=first + n,
            prior=total / total.sum(),
            xy=xy,
            offsets=np.concatenate([[0], np.cumsum(corners)]),
        )

    def __len__(self) -> int:
        return len(self.heights)

    @cached_property
    def often(self) -> NDArray[np.int64]:
        """The patterns of each footprint, where they are, the most frequent first."""
        return np.lexsort((-self.times, self.widths, self.heights))

    def has(self, height: int, width: int) -> bool:
        """Whether some body within the bound has this footprint."""
        return bool(self.first[height, width] < self.last[height, width])

    def pattern_arrays(self, which: slice = slice(None)) -> NDArray[np.float64]:
        """Return patterns as arrays of 0 and 1, padded to ``2 * side - 1`` squared."""
        at = np.arange(2 * self.side - 1)
        low, high = 2 * self.spans[which, :, :1], 2 * self.spans[which, :, 1:]
        return ((at >= low) & (at <= high)).astype(np.float64)

    @cached_property
    def size_means(self) -> NDArray[np.float64]:
        """The prior mean pattern of each footprint size, ``[h, w]`` first."""
        size = 2 * self.side - 1
        means = np.zeros((self.side + 1, self.side + 1, size, size))
        # Footprint by footprint: all patterns at once would not fit, where k is large.
        for h, w in np.argwhere(self.last > self.first):
            which = slice(self.first[h, w], self.last[h, w])
            weighted = self.pattern_arrays(which) * self.weights[which, None, None]
            means[h, w] = weighted.sum(axis=0)
        means.flags.writeable = False
        return means


def catalogue(side: int, bound: int, tuning: Tuning = TUNING) -> Catalogue:
    """Return the catalogue for bodies within `bound` steps and footprints within `side` cells."""
    return drawn_catalogue(side, bound, tuning.least_aspect, tuning.length_power)


@lru_cache(maxsize=8)
def drawn_catalogue(side: int, bound: int, least_aspect: float, length_power: float) -> Catalogue:
    """Return the catalogue by the numbers that it depends on: others of a tuning do not matter."""
    big = 2 * side + 4
    bodies = _bodies(side, bound, big, least_aspect, length_power)
    places, spans = bodies.footprints(big, big, side, empty=True)
    keep = places[:, 2] > 0
    for dx, dy in ((CLEAR, CLEAR), (CLEAR, -CLEAR), (-CLEAR, CLEAR), (-CLEAR, -CLEAR)):
        there = Outlines(bodies.xy + np.array([dx, dy]), bodies.offsets)
        moved = there.footprints(big, big, side, empty=True)
        keep &= (moved[0] == places).all(axis=1) & (moved[1] == spans).all(axis=(1, 2))
    # Tally: bodies with the same footprint size and spans are one pattern.
    keys = np.concatenate([places[:, 2:], spans.reshape(len(spans), -1)], axis=1)[keep]
    rows, witness, times = np.unique(
        keys.astype(np.int16), axis=0, return_index=True, return_counts=True
    )
    chosen = _most_frequent(rows[:, 0] * (side + 1) + rows[:, 1], times)
    rows, times = rows[chosen], times[chosen]
    xy, offsets = bodies.xy, bodies.offsets
    shown = np.flatnonzero(keep)[witness[chosen]]
    heights, widths = rows[:, 0].astype(np.int64), rows[:, 1].astype(np.int64)
    sizes = np.diff(offsets)[shown]
    vertices = np.concatenate([np.arange(offsets[b], offsets[b + 1]) for b in shown])
    corner = places[shown][:, [1, 0]] * STEPS
    return Catalogue.of(
        side,
        heights,
        widths,
        spans=rows[:, 2:].reshape(len(rows), -1, 2).astype(np.int16),
        times=times,
        xy=xy[vertices] - np.repeat(corner, sizes, axis=0),
        corners=sizes,
    )


def _most_frequent(size: NDArray[np.int64], times: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return, in order, at most `PATTERNS_A_FOOTPRINT` patterns of each size, frequent first."""
    order = np.lexsort((-times, size))
    start = np.searchsorted(size[order], size[order], side="left")
    rank = np.arange(len(order)) - start
    return np.sort(order[rank < PATTERNS_A_FOOTPRINT])


def _bodies(side: int, bound: int, big: int, least_aspect: float, length_power: float) -> Outlines:
    """Return outlines of random ellipses, and of a diamond for every footprint there can be."""
    rng = np.random.default_rng(0)
    n = _ELLIPSES + _ELLIPSES_PER_CELL * side**2
    longest = min((bound - 4 * CLEAR) / STEPS, float(side))
    along = longest * rng.random(n) ** length_power
    across = along * rng.uniform(least_aspect, 1.0, n)
    turn = rng.uniform(0, np.pi, (n, 1))
    middle = big / 2 + rng.random((n, 2, 1))
    angle = np.arange(CORNERS) * 2 * np.pi / CORNERS
    u, v = np.cos(angle) * along[:, None] / 2, np.sin(angle) * across[:, None] / 2
    x = middle[:, 0] + np.cos(turn) * u - np.sin(turn) * v
    y = middle[:, 1] + np.sin(turn) * u + np.cos(turn) * v
    points = np.stack([x, y], axis=-1).reshape(-1, 2)
    starts = np.arange(n + 1) * CORNERS
    diamonds = np.array(
        [_diamond(h, w, bound) for h in range(1, side + 1) for w in range(1, side + 1)]
    )
    points = np.concatenate([points, diamonds.reshape(-1, 2)])
    starts = np.concatenate([starts, starts[-1] + 4 * np.arange(1, len(diamonds) + 1)])
    return Outlines.of(points, starts, Grid(0, 0, 1, big, big), Bound(side, bound - CLEAR, True))


_INSET = 0.23
"""How far a diamond's tips reach into their cells: far enough to be clear of the sides."""
_WAIST, _WAIST_ODD, _WAIST_EVEN = 0.6, 0.47, 0.29
"""Where a diamond is widest: as a share of one that spans one or two cells, or within the middle
cell of a longer one. Any fractions do whose sides pass no vertex of the grid within `CLEAR`: round
ones, such as a half, would. Not tuned: a diamond only sees to it that a footprint has a witness."""


def _diamond(h: int, w: int, bound: int) -> NDArray[np.float64]:
    """Return the corners of a diamond with footprint h x w whose extent is as small as can be."""
    (left, x, right), (bottom, y, top) = (_tips_and_waist(n, bound) for n in (w, h))
    return np.array([[left, y], [x, bottom], [right, y], [x, top]])


def _tips_and_waist(n: int, bound: int) -> tuple[float, float, float]:
    """Return where a diamond over n cells begins, is widest and ends along an axis."""
    # To touch n cells it must span n - 2 whole ones. What the bound leaves is for its two tips,
    # and half of that is not used: outlines are snapped, moved and held against a tighter bound.
    inset = min(_INSET, max(bound / STEPS - (n - 2), 0.0) / 4)
    low, high = (1 - inset, n - 1 + inset) if n > 1 else (0.5 - inset, 0.5 + inset)
    if n <= 2:  # its whole extent may be far less than a cell
        return low, low + _WAIST * (high - low), high
    return low, n // 2 + (_WAIST_ODD if n % 2 else _WAIST_EVEN), high
