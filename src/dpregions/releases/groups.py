"""What was published of several disjoint groups, taken together. Private.

Each group has its own outcome; together they answer as one. Counts and estimates add up, as each
user is in one group at most. So do the variances of their noise, which is independent. What is not
known of shapes comes from one public prior, so it is taken to err the same way in all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import add
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from dpregions.mechanisms.base import Outcome
from dpregions.releases.statement import Spending

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from dpregions.geometry.cells import Selection
    from dpregions.geometry.domain import Domain
    from dpregions.geometry.layers import Layer
    from dpregions.privacy.budget import Budget
    from dpregions.privacy.groups import Groups


@dataclass(frozen=True, eq=False)
class GroupsOutcome(Outcome):
    """Outcomes of all groups, asked on one grid. Private."""

    groups: Groups
    parts: tuple[Outcome, ...]
    """Of each group, as it was measured."""
    asked: tuple[Outcome, ...]
    """Of each group, what that says of the grid."""

    @classmethod
    def of(
        cls, grid: Domain, parts: Sequence[Outcome], groups: Groups, each: Budget, whole: Budget
    ) -> GroupsOutcome:
        """Return the outcomes of groups as one.

        Parameters
        ----------
        grid : Grid or Partition
            What they are asked on.
        parts : sequence of Outcome
            In the order of the groups.
        groups : Groups
        each, whole : Budget
            What each of them cost by itself, and all together.
        """
        spending: Spending = ((f"{len(parts)} groups beside each other, each of them", whole),)
        if whole != each:
            spending = tuple((f"group {label!r}", each) for label in groups.labels)
        asked = tuple(_asked(part, grid) for part in parts)
        return cls(grid, *_sums(asked), spending, groups, tuple(parts), asked)

    @property
    def answers_shapes(self) -> bool:  # type: ignore[override]
        """Whether queries may be answered as drawn."""
        return self.asked[0].answers_shapes

    @property
    def is_covert(self) -> bool:
        """Whether they were published without their signed parts."""
        return self.parts[0].is_covert

    def covert(self) -> Self:
        """Return the same without signed parts."""
        parts = tuple(part.covert() for part in self.parts)
        asked = tuple(_asked(part, self.grid) for part in parts)
        return replace(self, signed=None, parts=parts, asked=asked)

    @cached_property
    def _estimates(self) -> NDArray[Any]:
        found = _sum([part.estimates() for part in self.asked])
        found.flags.writeable = False
        return found

    def estimates(self) -> NDArray[Any] | None:
        """Return the sum of the groups' signed estimates; None in a covert outcome."""
        return None if self.is_covert else self._estimates if self.signed is None else self.signed

    def count(self, selection: Selection) -> NDArray[np.int64]:
        """Return the sum of the groups' counts."""
        return _sum([part.count(selection) for part in self.asked])

    def estimate(self, selection: Selection) -> NDArray[Any]:
        """Return the sum of the groups' estimates."""
        return _sum([part.estimate(selection) for part in self.asked])

    def estimate_of(self, cells: tuple[int, int, int, int]) -> Any:
        """Return the same of one rectangle of cells."""
        return sum(part.estimate_of(cells) for part in self.asked)

    def bounds(self, selection: Selection, confidence: float) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the ends of intervals, which hold the count where those of each group do."""
        low, high = super().bounds(selection, confidence)
        if not self.answers_shapes:
            return low, high
        count = self.count(selection)
        return np.minimum(low, count), np.maximum(high, count)

    def worst_bounds(
        self, selection: Selection, confidence: float
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the sums of ends that all hold at once: each misses in its part of the cases."""
        each = 1 - (1 - confidence) / len(self.asked)
        found = [part.worst_bounds(selection, each) for part in self.asked]
        return _sum([low for low, _ in found]), _sum([high for _, high in found])

    def half_widths(self, selection: Selection, confidence: float) -> NDArray[Any]:
        """Return half widths: as many deviations as the widest group's, or a normal variable's.

        A sum of independent noise lies between the noise of one group and a normal variable, so
        neither can be too few.
        """
        deviation = np.hypot(*self.deviations(selection))
        times = np.full(deviation.shape, NormalDist().inv_cdf((1 + confidence) / 2))
        for part in self.asked:
            own = np.hypot(*part.deviations(selection))
            width = part.half_widths(selection, confidence)
            ratio = np.divide(width, own, out=np.zeros(own.shape), where=own > 0)
            times = np.maximum(times, ratio)
        found: NDArray[Any] = times * deviation
        return found

    def deviations(self, selection: Selection) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the deviations of sums: of noise, by variances; of shapes, added up."""
        each = [part.deviations(selection) for part in self.asked]
        noise = np.sqrt(_sum([noise**2 for noise, _ in each]))
        return noise, _sum([shape for _, shape in each])

    def to_regions(self) -> Layer:
        """Return the synthetic regions of all groups, with the column `group`."""
        layers = [part.to_regions() for part in self.parts]
        labels = np.repeat(np.array(self.groups.labels, object), [len(layer) for layer in layers])
        first = layers[0]
        shapes = np.concatenate([layer.shapes for layer in layers])
        return type(first)({"group": labels}, shapes, first.crs)

    def corners(self) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
        """Return the corners of all groups' bodies; the same body of two groups is there twice."""
        xy, offsets, times = zip(*(part.corners() for part in self.parts), strict=True)
        sizes = np.concatenate([np.diff(starts) for starts in offsets])
        return np.concatenate(xy), np.append(0, np.cumsum(sizes)), np.concatenate(times)

    def options(self) -> dict[str, Any]:
        """Return the mechanism's options that all groups share; what was chosen is each one's."""
        found = [part.options() for part in self.parts]
        return {name: v for name, v in found[0].items() if all(o.get(name) == v for o in found)}

    def on(self, grid: Domain) -> GroupsOutcome:
        """Return what the groups' outcomes say of another domain."""
        asked = tuple(_asked(part, grid) for part in self.parts)
        counts, signed = _sums(asked)
        return replace(self, grid=grid, counts=counts, signed=signed, asked=asked)


def _asked(part: Outcome, grid: Domain) -> Outcome:
    return part if part.grid == grid else part.on(grid)


def _sums(asked: Sequence[Outcome]) -> tuple[NDArray[np.int64], NDArray[Any] | None]:
    """Return the sum of counts, and that of estimates where all have made them already."""
    signed = [part.signed for part in asked]
    known = None if any(one is None for one in signed) else _sum(signed)
    return _sum([part.counts for part in asked]), known


def _sum(arrays: Sequence[Any]) -> Any:
    plus: Callable[[Any, Any], Any] = add
    return reduce(plus, arrays)
