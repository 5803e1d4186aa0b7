"""A data set on a grid, exactly, in every form that some method starts from. Secret.

For rehearsals on made-up cities and for studies: on exact data, not a private release.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

import numpy as np

from dpregions.engines.choice import tally_of
from dpregions.geometry.doubled import SignedTable, SpanCounts
from dpregions.geometry.lattice import STEPS
from dpregions.geometry.outlines import Bound
from dpregions.geometry.rectangles import Rectangles

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from dpregions.arrays import Floats, Ints, Numbers
    from dpregions.choices import Neighbours
    from dpregions.geometry.domain import Domain
    from dpregions.geometry.grid import Grid
    from dpregions.geometry.outlines import Outlines
    from dpregions.mechanisms.base import Mechanism, Outcome, Prepared
    from dpregions.privacy.budget import Budget
    from dpregions.privacy.noise import NoiseSource


class Answering(Protocol):
    """Anything that counts regions in rectangles ``row0, row1, col0, col1`` of cells."""

    def answers(self, rectangles: Ints) -> Numbers:
        """Return one count a rectangle."""


@dataclass(frozen=True, eq=False)
class ExactData:
    """A data set on a grid, in every form that some method starts from. Secret."""

    label: ClassVar[str] = "study on exact data: not a private release"

    grid: Grid
    bound: Bound
    outlines: tuple[Outlines, ...]
    times: int = 1
    """How many regions each outline stands for, in a made-up city."""

    @classmethod
    def of(
        cls, regions: Any, grid: Grid, max_diameter: float | str, *, user_id: Any = "user_id"
    ) -> ExactData:
        """Read regions as `release` does, once for all methods and repetitions."""
        bound = Bound.of(grid, max_diameter, "shrink")
        return cls(grid, bound, outlines_that_count(regions, grid, bound, user_id))

    def __repr__(self) -> str:
        return f"<ExactData on {self.grid!r}: {self.label}>"

    @cached_property
    def counted(self) -> SpanCounts:
        """The exact Euler histogram while it adds up."""
        whole = SpanCounts(*self.grid.shape)
        for batch in self.outlines:
            whole.add(batch)
        return whole * self.times

    @cached_property
    def counts(self) -> Ints:
        """The exact Euler histogram."""
        return self.counted.histogram()

    def outcome(
        self, mechanism: Mechanism, budget: Budget, neighbours: Neighbours, noise: NoiseSource
    ) -> Outcome:
        """Return what a mechanism publishes of the data with some noise; it counts them once."""
        prepared = mechanism.prepare(self.grid, self.bound, budget, neighbours)
        return prepared.publish(self.tally(prepared, mechanism), noise)

    def tally(self, prepared: Prepared, key: Any) -> Any:
        """Return the data as a mechanism counts them, once for each key."""
        if key not in self._tallies:
            tally = prepared.tally()
            for batch in self.outlines:
                tally.add(batch)
            self._tallies[key] = tally if self.times == 1 else tally * self.times
        return self._tallies[key]

    @cached_property
    def _tallies(self) -> dict[Any, Any]:
        return {}

    @cached_property
    def truth(self) -> SignedTable:
        """The exact answers."""
        return SignedTable(self.counts)

    @cached_property
    def n_regions(self) -> int:
        """How many regions touch the area."""
        rows, cols = self.grid.shape
        return int(self.truth.answers(np.array([[0], [rows - 1], [0], [cols - 1]]))[0])

    def errors(self, answers: Numbers, rectangles: Ints) -> Floats:
        """Return how far answers are off, relative to the exact ones: `relative_errors`."""
        return relative_errors(answers, self.truth.answers(rectangles), self.n_regions)

    def placed_as_people(
        self, height: int, width: int, n: int, rng: np.random.Generator, *, turned: bool = False
    ) -> Ints:
        """Return `n` placements of a rectangle about regions, each of them as likely as any other.

        Where no region touches the area they are placed evenly.
        """
        on, there = Rectangles(*self.grid.shape), self.centres
        if there.shape[1] == 0:
            return on.placed(height, width, n, rng, turned=turned)
        held = there[:, rng.integers(0, there.shape[1], n)]
        return on.holding(height, width, held, rng, turned=turned)

    @cached_property
    def boxes(self) -> Ints:
        """First and last row, first and last column of each region's cells inside the area."""
        side = min(self.bound.k + 1, max(self.grid.shape))
        places = [batch.footprints(*self.grid.shape, side)[0] for batch in self.outlines]
        row, col, height, width = np.concatenate([np.zeros((0, 4), np.int64), *places]).T
        return np.stack([row, row + height - 1, col, col + width - 1])

    @cached_property
    def points(self) -> Floats:
        """Where each region is that touches the area: y and x of its centroid, in cells from 0.

        A centroid outside is moved to the nearest place inside, so that points miss no region.
        """
        found = [np.zeros((0, 2))]  # a source without regions has no batch
        for batch in self.outlines:
            touching = batch.touching(*self.grid.shape)
            found.append(centroids(batch)[touching[np.diff(batch.offsets) > 0]])
        shape = np.array(self.grid.shape, np.float64)
        yx = np.concatenate(found)[:, ::-1] / STEPS
        return np.clip(yx, 0.0, np.nextafter(shape, 0.0)).T

    @cached_property
    def centres(self) -> Ints:
        """Row and column of the cell that holds each region's point."""
        return np.floor(self.points).astype(np.int64)


class _Kept:
    """A tally that keeps outlines as they come, in one thread."""

    nbytes = 1 << 62

    def __init__(self) -> None:
        self.outlines: list[Outlines] = []

    def add(self, outlines: Outlines) -> None:
        self.outlines.append(outlines)

    def __iadd__(self, other: _Kept) -> Self:
        self.outlines += other.outlines
        return self


def outlines_that_count(
    regions: Any, grid: Domain, bound: Bound, user_id: Any
) -> tuple[Outlines, ...]:
    """Return the outlines of regions, one for each user, batch by batch."""
    return tuple(tally_of(regions, grid, bound, _Kept, user_id=user_id).outlines)


FLOOR = 0.001
"""Errors are relative to the true answer, or to this share of all regions where that is more."""


def relative_errors(answers: ArrayLike, truth: ArrayLike, n_regions: int) -> Floats:
    """Return how far answers are off, relative to the truth or to a floor of all regions.

    Examples
    --------
    >>> relative_errors([110, 2], [100, 0], n_regions=1000).tolist()
    [0.1, 2.0]
    """
    truth = np.asarray(truth, np.float64)
    scale = np.maximum(truth, max(FLOOR * n_regions, np.finfo(float).tiny))
    return np.abs(np.asarray(answers, np.float64) - truth) / scale


def centroids(outlines: Outlines) -> Floats:
    """Return the centroid of each outline, in lattice steps; of a segment, its middle."""
    sizes = np.diff(outlines.offsets)
    xy, owner = outlines.xy.astype(np.float64), np.repeat(np.arange(len(sizes)), sizes)
    first = np.zeros((len(sizes), 2))
    first[sizes > 0] = xy[outlines.offsets[:-1][sizes > 0]]
    a = xy - first[owner]
    b = np.roll(a, -1, axis=0)
    b[outlines.offsets[1:][sizes > 0] - 1] = 0.0  # the last vertex meets the first again
    cross = a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]
    n = len(sizes)
    area = np.bincount(owner, cross, n)
    with np.errstate(divide="ignore", invalid="ignore"):
        middle = [np.bincount(owner, cross * (a + b)[:, i], n) / (3 * area) for i in (0, 1)]
        flat = [np.bincount(owner, a[:, i], n) / sizes for i in (0, 1)]
    offset = np.where((area != 0)[:, None], np.stack(middle, axis=-1), np.stack(flat, axis=-1))
    return (first + offset)[sizes > 0]
