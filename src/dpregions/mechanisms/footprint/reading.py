"""A reading of what was measured: the two fits, and how far the signed one may be off.

Sees noisy counts and public parameters alone. It follows from what was measured, so a file keeps
only that.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dpregions.mechanisms.footprint.bodies import pulled_in
from dpregions.mechanisms.footprint.border import Border, Unsure, border_of
from dpregions.mechanisms.footprint.chances import Chances, WitnessSample
from dpregions.mechanisms.footprint.expectation import expected_buckets, mix_doubt
from dpregions.mechanisms.footprint.fits import (
    combine,
    covert_fit,
    covert_fit_of,
    shares_of,
    signed_fit,
)
from dpregions.mechanisms.footprint.shape_mix import shaped
from dpregions.mechanisms.footprint.tuning import TUNING, Tuning
from dpregions.mechanisms.footprint.worst import WorstCase, worst_of
from dpregions.mechanisms.least_squares import sums
from dpregions.privacy import law

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dpregions.geometry.cells import Selection
    from dpregions.geometry.grid import Grid
    from dpregions.mechanisms.footprint.measuring import Measured

_LEAST_LAID = 4
"""Witnesses of each bucket at least, where all buckets are laid out."""
_DENSE = 4
"""Where a query weighs one of so many parts of a level or more, all of them are gone through."""


class FinestParts(NamedTuple):
    """The finest parts measured: of each bucket, what they hold, what they are expected to."""

    of_bucket: NDArray[np.int64]
    held: NDArray[np.float64]
    expected: NDArray[np.float64]


class LaidOut(NamedTuple):
    """Bodies by their corners, where each one's start, and how many regions each stands for."""

    coords: NDArray[np.float64]
    starts: NDArray[np.int64]
    weight: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Reading:
    """What measurements say of every bucket, and how far that may be off."""

    counted: Measured
    """On buckets whose shapes are mixed as the catalogue has them."""
    tuning: Tuning = TUNING

    @cached_property
    def measured(self) -> Measured:
        """The same, shapes mixed as they were counted; made when the first is asked."""
        return shaped(self.counted, self.tuning)

    @cached_property
    def expected(self) -> NDArray[np.float64]:
        """How much each bucket is expected to hold beforehand, up to a factor."""
        return expected_buckets(self.measured, self.tuning)

    @cached_property
    def fitted(self) -> NDArray[np.float64]:
        """The signed counts of buckets that estimates come from."""
        return signed_fit(self.measured, self.expected)

    @cached_property
    def held(self) -> NDArray[np.float64]:
        """The non-negative counts that the bodies follow: how many regions a query may split."""
        return covert_fit(self.measured, self.expected, self.tuning)

    @cached_property
    def _variance(self) -> QueryVariance:
        return QueryVariance(self.measured, self.expected)

    @cached_property
    def _mix_doubt(self) -> float:
        """How little is known of the mix of sizes, where single sizes were not measured."""
        return mix_doubt(self.measured)

    @cached_property
    def clumping(self) -> float:
        """How much regions inside the finest measured parts fall the same way.

        Judged one level higher, by how parts stray from their expected shares of the part above.
        """
        tree, finest = self.measured.hierarchy, self.measured.finest
        if not finest:
            return 1.0
        best, spread = combine(self.measured)
        above = best[finest - 1][tree.parent[finest - 1]]
        share = shares_of(tree, finest, self.expected)
        return clumping_of(best[finest], spread[finest], above, share, self.tuning.clumping)

    @cached_property
    def _most(self) -> float:
        """How many regions there are, at least one."""
        return max(float(combine(self.measured)[0][0][0]), 1.0)

    @cached_property
    def _finest(self) -> FinestParts | None:
        """The finest measured parts, where there is unmeasured detail below them."""
        tree, finest = self.measured.hierarchy, self.measured.finest
        if finest == len(tree.levels) - 1:
            return None
        part, n = tree.part[finest], tree.sizes[finest]
        held, expected = (np.bincount(part, v, n) for v in (self.held, self.expected))
        return FinestParts(part, held.astype(np.float64), expected.astype(np.float64))

    @cached_property
    def _witnesses(self) -> WitnessSample:
        """What buckets lay on queries as drawn; made when the first is asked."""
        return WitnessSample.of(self.measured.hierarchy.buckets)

    @cached_property
    def border(self) -> Border:
        """What answers rectangles; made when the first is asked."""
        tree, finest = self.measured.hierarchy, self.measured.finest
        if finest < len(tree.levels) - 1:
            held = covert_fit_of(self.measured, self.expected, self.tuning, finest)
        else:
            held = np.empty(len(self.held))
            held[tree.part[finest]] = self.held
        patterns, t = tree.buckets.alphabet == "patterns", self.tuning
        unsure = Unsure(bucket=t.unsure_pattern if patterns else t.unsure_bucket)
        return border_of(self.measured, self.expected, held, unsure=unsure)

    @cached_property
    def worst(self) -> WorstCase:
        """What bounds rectangles whatever regions do inside measured parts; made when asked."""
        return worst_of(self.measured, self.fitted)

    def deviations(
        self, selection: Selection, grid: Grid
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the standard deviations, from noise and from shape, of estimates about cells."""
        buckets = self.measured.hierarchy.buckets
        noise, shape = np.zeros((2, selection.ranges.shape[1]))
        plain = np.flatnonzero(selection.exact & ~selection.as_drawn)
        if plain.size:
            found = self.border.rectangles(selection.ranges[:, plain])
            noise[plain] = np.sqrt(found.variance)
            shape[plain] = np.sqrt(self._shape_variance(*found.uncertain))
        for i in selection.masks:
            chance = buckets.weigh(selection.signs(i, grid))[None]
            noise[i : i + 1], shape[i : i + 1] = self._deviations(np.arange(len(buckets)), chance)
        return noise, shape

    def deviations_of(self, row0: int, row1: int, col0: int, col1: int) -> tuple[float, float]:
        """Return what `deviations` does, of one rectangle of cells, without the cost of arrays."""
        found = self.border.rectangle(row0, row1, col0, col1)
        return math.sqrt(found.variance), math.sqrt(self._shape_variance(*found.uncertain))

    def drawn(
        self, shapes: NDArray[np.object_], grid: Grid, inside: Inside | None = None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Return estimates of queries as drawn and their deviations, from noise and from shape.

        Real bodies may be far smaller than the catalogue's, all of them alike: what smaller ones
        would touch less counts as doubt about shapes. Where all bodies touched an area, `inside`
        has their chances to, of every bucket: what is asked is then given that they did.
        """
        estimates, noise, shape = np.zeros((3, len(shapes)))
        for i, drawn in enumerate(shapes):
            which, chance, least = self.chances(drawn, grid)
            if inside is not None:
                which, chance, least = inside.given(drawn, which, chance, least)
            estimates[i] = self.fitted[which] @ chance
            (noise[i],), (rough,) = self._deviations(which, chance[None])
            smaller = self.held[which] @ (chance - least)
            shape[i] = math.hypot(rough, self.tuning.size_doubt * smaller)
        return estimates, noise, shape

    def chances(self, shape: Any, grid: Grid) -> Chances:
        """Return the chances that a body of each bucket touches a shape."""
        return self._witnesses.chances(shape, grid)

    def laid_out(self, grid: Grid, most: int) -> Iterator[LaidOut]:
        """Yield witnesses of every bucket, about `most` in all, each with its share of the fit."""
        buckets = self.measured.hierarchy.buckets
        row, col = buckets.places
        n = max(most // len(buckets), _LEAST_LAID)
        for letter, (start, stop) in enumerate(pairwise(buckets.starts)):
            corners, offsets = self._witnesses.typical(letter, n)
            at = np.stack([col[start:stop], row[start:stop]], axis=-1)
            xy = (corners + at[:, None]).reshape(-1, 2) * grid.cell_size + [grid.xmin, grid.ymin]
            starts = offsets[:-1] + len(corners) * np.arange(stop - start)[:, None]
            weight = np.repeat(self.fitted[start:stop] / n, n)
            yield LaidOut(xy, np.append(starts.ravel(), len(xy)), weight)

    def _deviations(
        self, which: NDArray[np.int64], chance: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return standard deviations from the chances (a row per query) of the buckets `which`."""
        noise = np.sqrt(self._variance.of(chance, which))
        parts = self._finest
        if parts is None:
            held = self.held[which]
        else:
            some, at, n = touched(parts.of_bucket[which], len(parts.held))
            held, expected = parts.held[some], parts.expected[some]
            chance = row_sums(at, chance * self.expected[which], n) / expected
        either = np.maximum(chance * (1 - chance), 0.0)
        return noise, np.sqrt(self._shape_variance(either @ held, either @ held**2))

    def _shape_variance(self, spread: Any, squares: Any) -> Any:
        """Return the variance from shapes: regions fall either way, and the prior may be off.

        From what parts hold times p(1 - p), and the same of squares.
        """
        t = self.tuning
        if self.measured.finest == len(self.measured.levels) - 1:
            return variance_of_shapes(spread, squares, t)
        mix = (t.mix_doubt * self._mix_doubt) ** 2 + t.place_doubt**2
        found = variance_of_detail(spread, squares, self.clumping, self._most)
        return found + mix * spread * spread


def clumping_of(best: Any, spread: Any, above: Any, share: Any, least: float) -> float:
    """Return how much regions of a part fall the same way, from noisy counts of its children.

    These stray from their expected shares by noise, by chance, and by this: 0 not at all, 1 if all
    regions of a part are in one child. Never less than `least`: it is needed one level further
    down, where nothing was measured.
    """
    above = np.maximum(above, 0.0)
    chance = above * share * (1 - share)
    strays = ((best - above * share) ** 2 - spread - chance).sum()
    squares = (above * chance).sum()
    return float(np.clip(strays / squares if squares > 0 else 0.0, least, 1.0))


def variance_of_detail(spread: Any, squares: Any, clumping: float, most: float) -> Any:
    """Return the variance from regions of parts of which nobody knows where inside they are.

    From what parts hold times p(1 - p), and the same of squares. Where a query cuts few parts, all
    that the fullest of them holds may lie on one side, which a normal law does not expect. So two
    standard deviations reach as far as twice what a part holds in the mean, or as all regions.
    """
    held = np.divide(squares, spread, out=np.zeros_like(spread, np.float64), where=spread > 0)
    return np.maximum(spread + clumping * squares, np.minimum(held, most / 2) ** 2)


def variance_of_shapes(spread: Any, squares: Any, tuning: Tuning) -> Any:
    """Return the variance from shapes in buckets: chance, regions alike, shapes that are off."""
    doubt = tuning.shape_doubt * spread
    return tuning.shape_crowd * spread + tuning.shape_clumping * squares + doubt * doubt


def half_widths(noise: Any, shape: Any, confidence: float) -> Any:
    """Return half widths of intervals from standard deviations, numbers or arrays.

    A sum of noise lies between one Laplace draw and a normal variable: the wider is taken.
    """
    of_noise, of_shape = _factors(law.checked_confidence(confidence))
    return np.hypot(of_noise * noise, of_shape * shape)


@lru_cache(maxsize=64)
def _factors(confidence: float) -> tuple[float, float]:
    """Return how many standard deviations a half width is: of noise, and of shape."""
    normal = NormalDist().inv_cdf((1 + confidence) / 2)
    return max(normal, -math.log(1 - confidence) / math.sqrt(2)), normal


@dataclass(frozen=True, eq=False)
class Inside:
    """What is known of bodies that all touched an area: their chances to, by bucket."""

    chance: NDArray[np.float64]
    least: NDArray[np.float64]
    lost: NDArray[np.int64]
    """Buckets whose footprint meets the area, but none of whose witnesses does."""
    places: NDArray[np.float64]
    """Where the area is nearest to each of these."""

    @classmethod
    def of(cls, reading: Reading, area: Any, grid: Grid) -> Inside:
        """Return the chances of all buckets of a reading."""
        import shapely

        buckets = reading.measured.hierarchy.buckets
        which, some, small = reading.chances(area, grid)
        chance, least = np.zeros((2, len(buckets)))
        chance[which], least[which] = some, small
        lost = np.flatnonzero(chance <= 0)
        row, col = (place[lost] for place in buckets.places)
        letter = buckets.letters[lost]
        corner = np.array([grid.xmin, grid.ymin] * 2)
        ends = np.stack([col, row, col + buckets.widths[letter], row + buckets.heights[letter]])
        boxes = shapely.box(*(ends.T * grid.cell_size + corner).T)
        shapely.prepare(area)
        met = shapely.intersects(area, boxes)
        lines = shapely.shortest_line(area, shapely.centroid(boxes[met]))
        near = shapely.get_coordinates(lines).reshape(-1, 2, 2)[:, 0]
        chance[chance <= 0] = 1.0
        return cls(chance, np.where(least > 0, least, chance), lost[met], pulled_in(near, area))

    def given(
        self,
        shape: Any,
        which: NDArray[np.int64],
        chance: NDArray[np.float64],
        least: NDArray[np.float64],
    ) -> Chances:
        """Return chances to touch a shape, given that the area was touched."""
        import shapely

        chance = np.minimum(chance / self.chance[which], 1.0)
        least = np.minimum(least / self.least[which], chance)
        lost = self.lost[shapely.intersects_xy(shape, *self.places.T)]
        sure = np.ones(len(lost))
        return Chances(*map(np.concatenate, ([which, lost], [chance, sure], [least, sure])))


@dataclass(frozen=True, eq=False)
class QueryVariance:
    """The variance of weighted sums of the signed fit's buckets; public. For many queries.

    Down the tree a part's fit is its estimate plus its share of what its parent's fit differs
    from the sum: so the sum's variance follows from the bottom up, one pass.
    """

    measured: Measured
    expected: NDArray[np.float64]

    @cached_property
    def _spread(self) -> list[NDArray[np.float64]]:
        return combine(self.measured)[1]

    @cached_property
    def _below(self) -> list[tuple[NDArray[np.float64], NDArray[np.float64] | None]]:
        """By level, each part's variance and its parent's sum of them; or its expected share."""
        tree = self.measured.hierarchy
        found: list[tuple[NDArray[np.float64], NDArray[np.float64] | None]] = []
        for level in range(1, len(tree.levels)):
            s = self._spread[level]
            if np.isinf(s).any():
                found.append((shares_of(tree, level, self.expected), None))
            else:
                found.append((s, sums(tree.parent[level - 1], s, tree.sizes[level - 1])))
        return found

    def of(
        self, weights: NDArray[np.float64], which: NDArray[np.int64] | slice = slice(None)
    ) -> NDArray[np.float64]:
        """Return the variance for each row of `weights`, on the buckets `which`; others weigh 0."""
        tree = self.measured.hierarchy
        part: NDArray[np.int64] | slice = tree.part[-1][which]
        slope, rest = weights, np.zeros_like(weights)
        for level in range(len(tree.levels) - 1, 0, -1):
            up, at, n = touched(tree.parent[level - 1][part], tree.sizes[level - 1])
            below, whole = self._below[level - 1]
            carried = slope * below[part]
            if whole is None:
                slope, rest = row_sums(at, carried, n), np.zeros((len(weights), n))
            else:
                mean = row_sums(at, carried, n) / whole[up]
                rest = row_sums(at, rest + slope * carried, n) - mean**2 * whole[up]
                slope = mean
            part = up
        found = (rest + slope**2 * self._spread[0]).sum(axis=1)
        return np.maximum(found, 0.0)


def touched(
    part: NDArray[np.int64], n: int
) -> tuple[NDArray[np.int64] | slice, NDArray[np.int64], int]:
    """Return which of n parts occur, which of these each one is, and how many they are.

    All parts, where many occur: going through them is then quicker than sorting.
    """
    if _DENSE * len(part) >= n:
        return slice(None), part, n
    found, at = np.unique(part, return_inverse=True)
    return found, at, len(found)


def row_sums(part: NDArray[np.int64], values: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    """Return, in each row of values, the sum of those in each of n parts."""
    q = len(values)
    at = part + n * np.arange(q)[:, None]
    return sums(at.ravel(), values.ravel(), q * n).reshape(q, n)
