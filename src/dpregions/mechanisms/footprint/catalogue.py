"""The public catalogue of patterns: which components a body of a given footprint may touch.

Made from public parameters alone (the bound in cells): many random ellipses within the bound
are laid on a grid, and what they touch is tallied. It serves three ends: a prior for the shape
of a region whose footprint is known, the alphabet when shapes are measured, and witnesses for
each pattern, convex polygons within the bound that touch just that. The draw is seeded with
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
from dpregions.mechanisms.footprint.ellipses import CORNERS, longest, n_ellipses, outlines_of
from dpregions.mechanisms.footprint.sizes import PATTERNS_A_FOOTPRINT, diamond
from dpregions.mechanisms.footprint.tuning import TUNING, Tuning
from dpregions.mechanisms.footprint.witnesses import (
    CLEAR,
    Patterns,
    Witnesses,
    clear_footprints,
    ragged,
    spread_witnesses,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dpregions.arrays import Floats, Ints

ALL_MEANS_SIDE = 24
"""Widest footprint of a catalogue whose means are all held at once: 50 MB."""


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
    starts : int64
        Pattern `p` has the witnesses ``starts[p]:starts[p + 1]``, which lie along a curve.
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
    starts: NDArray[np.int64]
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
        witnesses: NDArray[np.int64],
        xy: NDArray[np.int64],
        corners: NDArray[np.int64],
    ) -> Catalogue:
        """Return the catalogue of patterns sorted by footprint.

        `witnesses` says how many each pattern has, `corners` how many each outline has.
        """
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
            starts=np.concatenate([[0], np.cumsum(witnesses)]),
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

    @cached_property
    def nearest(self) -> Ints:
        """The size nearest to each that some pattern has: ``[h, w]`` first, then both."""
        there = np.argwhere(self.last > self.first)
        at = np.arange(self.side + 1)
        far = np.abs(at[:, None] - there.T[:, None])
        best = [(row + far[1]).argmin(axis=-1) for row in far[0]]
        return there[np.array(best)]

    def pattern_arrays(self, which: slice = slice(None)) -> NDArray[np.float64]:
        """Return patterns as arrays of 0 and 1, padded to ``2 * side - 1`` squared."""
        at = np.arange(2 * self.side - 1)
        low, high = 2 * self.spans[which, :, :1], 2 * self.spans[which, :, 1:]
        return ((at >= low) & (at <= high)).astype(np.float64)

    def mean_of(self, height: int, width: int) -> Floats:
        """Return the prior mean pattern of a footprint size, padded to ``2 * side - 1`` squared."""
        which = slice(self.first[height, width], self.last[height, width])
        weighted = self.pattern_arrays(which) * self.weights[which, None, None]
        mean: Floats = weighted.sum(axis=0)
        return mean

    @cached_property
    def size_means(self) -> Floats:
        """The prior mean pattern of each footprint size, ``[h, w]`` first.

        580 MB where footprints are 65 cells wide: there, ask `means_of` for those that are needed.
        """
        size = 2 * self.side - 1
        means = np.zeros((self.side + 1, self.side + 1, size, size))
        # Footprint by footprint: all patterns at once would not fit, where k is large.
        for h, w in np.argwhere(self.last > self.first):
            means[h, w] = self.mean_of(h, w)
        means.flags.writeable = False
        return means

    def means_of(self, heights: Ints, widths: Ints) -> Floats:
        """Return the prior mean pattern of some footprint sizes."""
        if self.side <= ALL_MEANS_SIDE:
            return self.size_means[heights, widths]
        means = np.zeros((len(heights), 2 * self.side - 1, 2 * self.side - 1))
        for i, (h, w) in enumerate(zip(heights, widths, strict=True)):
            means[i] = self.mean_of(h, w)
        return means


def catalogue(side: int, bound: int, tuning: Tuning = TUNING) -> Catalogue:
    """Return the catalogue for bodies within `bound` steps and footprints within `side` cells."""
    return drawn_catalogue(side, bound, tuning.least_aspect, tuning.length_power)


@lru_cache(maxsize=8)
def drawn_catalogue(side: int, bound: int, least_aspect: float, length_power: float) -> Catalogue:
    """Return the catalogue by the numbers that it depends on: others of a tuning do not matter."""
    big = 2 * side + 4
    bodies = _bodies(side, bound, big, least_aspect, length_power)
    places, spans, keep = clear_footprints(bodies, big, side)
    shown, pattern, times = _tallied(places, spans, keep, side)
    first = shown[np.unique(pattern, return_index=True)[1]]
    heights, widths = places[first, 2:].T
    vertex, offsets = ragged(bodies.offsets, shown)
    corner = np.repeat(places[shown][:, [1, 0]] * STEPS, np.diff(offsets), axis=0)
    drawn = Witnesses(pattern, Outlines(bodies.xy[vertex] - corner, offsets))
    found = spread_witnesses(Patterns(side, bound, heights, widths, spans[first]), drawn)
    return Catalogue.of(
        side,
        heights,
        widths,
        spans=spans[first],
        times=times,
        witnesses=np.bincount(found.pattern),
        xy=found.outlines.xy,
        corners=np.diff(found.outlines.offsets),
    )


def _tallied(
    places: NDArray[np.int64], spans: NDArray[np.int16], keep: NDArray[np.bool_], side: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the bodies that have a pattern of the catalogue, which one, and how often each is.

    Bodies with the same footprint size and spans have one pattern; those to keep are looked at.
    """
    keys = np.concatenate([places[:, 2:], spans.reshape(len(spans), -1)], axis=1)[keep]
    rows, same, times = np.unique(
        keys.astype(np.int16), axis=0, return_inverse=True, return_counts=True
    )
    chosen = _most_frequent(rows[:, 0] * (side + 1) + rows[:, 1], times)
    number = np.full(len(rows), -1)
    number[chosen] = np.arange(len(chosen))
    pattern = number[same]
    return np.flatnonzero(keep)[pattern >= 0], pattern[pattern >= 0], times[chosen]


def _most_frequent(size: NDArray[np.int64], times: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return, in order, at most `PATTERNS_A_FOOTPRINT` patterns of each size, frequent first."""
    order = np.lexsort((-times, size))
    start = np.searchsorted(size[order], size[order], side="left")
    rank = np.arange(len(order)) - start
    return np.sort(order[rank < PATTERNS_A_FOOTPRINT])


def _bodies(side: int, bound: int, big: int, least_aspect: float, length_power: float) -> Outlines:
    """Return outlines of random ellipses, and of a diamond for every footprint there can be."""
    rng = np.random.default_rng(0)
    n = n_ellipses(side)
    along = longest(side, bound) * rng.random(n) ** length_power
    across = along * rng.uniform(least_aspect, 1.0, n)
    turn = rng.uniform(0, np.pi, n)
    x, y = (big / 2 + rng.random((n, 2))).T
    points = outlines_of(along, across, turn, x, y).reshape(-1, 2)
    starts = np.arange(n + 1) * CORNERS
    sides = range(1, side + 1)
    diamonds = np.array([diamond(h, w, bound) for h in sides for w in sides])
    points = np.concatenate([points, diamonds.reshape(-1, 2)])
    starts = np.concatenate([starts, starts[-1] + 4 * np.arange(1, len(diamonds) + 1)])
    return Outlines.of(points, starts, Grid(0, 0, 1, big, big), Bound(side, bound - CLEAR, True))
