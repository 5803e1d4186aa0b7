"""How often the intervals of releases hold the true count: where it is small and where it is large.

Study on exact data: not a private release. Each release is made as it is in use, but for its seeded
noise and for data that are counted once for all releases, and it is asked what users ask: nothing
here knows how an interval comes about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dpregions.geometry.rectangles import Rectangles
from dpregions.mechanisms.footprint.mechanism import Footprint
from dpregions.planning.exact_data import ExactData
from dpregions.privacy.seeded import StudyNoise
from dpregions.releases import make

if TYPE_CHECKING:
    import pandas as pd

    from dpregions.arrays import Floats, Ints
    from dpregions.choices import Neighbours
    from dpregions.geometry.domain import Domain
    from dpregions.geometry.grid import Grid
    from dpregions.geometry.outlines import Bound
    from dpregions.mechanisms.base import Mechanism, Outcome, Prepared
    from dpregions.privacy.budget import Budget, BudgetLike
    from dpregions.privacy.noise import NoiseSource

SIDES, SHARES = (1, 2, 3), (0.05, 0.25, 0.5, 1.0)
"""Sizes of queries: sides of squares in cells, and shares of the area."""

ANYWHERE, WITH_PEOPLE = "anywhere", "with people"
"""How a query is placed: evenly over the area, or about a region, each as likely as any other."""


def asked_shapes(grid: Grid) -> dict[str, tuple[int, int]]:
    """Return the sizes of queries on a grid, in cells, each shape once.

    Examples
    --------
    >>> from dpregions import Grid
    >>> list(asked_shapes(Grid(0, 0, 1, 4, 4)))
    ['1 x 1', '2 x 2', '3 x 3', '50 %', '100 %']
    """
    on = Rectangles(*grid.shape)
    named = {f"{side} x {side}": (side, side) for side in SIDES if side <= min(grid.shape)}
    named |= {f"{share:.0%}".replace("%", " %"): on.shape_of(share) for share in SHARES}
    first = {shape: name for name, shape in reversed(named.items())}
    return {name: shape for name, shape in named.items() if first[shape] == name}


@dataclass(frozen=True)
class Asked:
    """The queries that one release is asked, the same whatever its noise and mechanism."""

    size: tuple[str, ...]
    placed: tuple[str, ...]
    cells: Ints
    """``row0, row1, col0, col1`` of each."""

    @classmethod
    def of(cls, data: ExactData, placements: int, rng: np.random.Generator) -> Asked:
        """Return so many queries of each size, half of them placed evenly; the area once."""
        on, size, placed, cells = Rectangles(*data.grid.shape), [], [], []
        for name, shape in asked_shapes(data.grid).items():
            half = placements // 2
            found = {
                ANYWHERE: on.placed(*shape, placements - half, rng, turned=True),
                WITH_PEOPLE: data.placed_as_people(*shape, half, rng, turned=True),
            }
            if shape == data.grid.shape:
                found = {ANYWHERE: on.placed(*shape, 1, rng)}
            for how, where in found.items():
                size += [name] * where.shape[1]
                placed += [how] * where.shape[1]
                cells.append(where)
        return cls(tuple(size), tuple(placed), np.concatenate(cells, axis=1))


def asked_of(data: ExactData, number: int, placements: int, seed: int = 0) -> Asked:
    """Return what release `number` of a study is asked."""
    return Asked.of(data, placements, np.random.default_rng([seed, number, 1]))


def seed_of(number: int, seed: int = 0) -> int:
    """Return the seed of the noise of release `number` of a study."""
    return int(np.random.default_rng([seed, number]).integers(2**62))


def interval_rows(
    data: ExactData,
    max_diameter: float | str,
    *,
    epsilon: BudgetLike,
    releases: int | Iterable[int],
    mechanism: Mechanism | None = None,
    confidence: float = 0.95,
    placements: int = 40,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
) -> pd.DataFrame:
    """Make releases, ask each for intervals, and return one row per query.

    Parameters
    ----------
    data : ExactData
        Counted once.
    max_diameter : float or str
        With which `data` were read.
    epsilon : number or Budget
        For each release.
    releases : int or iterable of int
        How many, or which.
    mechanism : Mechanism, optional
        By default the footprint mechanism as it is in use.
    confidence : float
    placements : int
        Queries of each size in each release, half of them placed as people are.
    seed : int
    progress : callable, optional
        Told how many releases are done.

    Returns
    -------
    pandas.DataFrame
        `release`, `size`, `placed`, `truth`, `low`, `high` and `count`. Its attributes: `label`,
        and `plans`, how often what was measured.
    """
    counted = Counted(data, mechanism or Footprint())
    plans: dict[str, int] = {}
    numbers = range(releases) if isinstance(releases, int) else releases
    found = []
    for done, number in enumerate(numbers, 1):
        release = make.release_with(
            StudyNoise(seed_of(number, seed)), [], data.grid, user_id=None, method=counted,
            epsilon=epsilon, max_diameter=max_diameter, crs=data.grid.crs,
        )  # fmt: skip
        measured = "; ".join(what for what, _ in release.spending)
        plans[measured] = plans.get(measured, 0) + 1
        asked = asked_of(data, number, placements, seed)
        query = inside(asked.cells, data.grid)
        low, high = release.interval(*query, confidence=confidence, within="cells")
        answers = release.count(*query, within="cells")
        truth = data.truth.answers(asked.cells)
        found.append(rows_of(number, asked, truth, low, high, answers))
        if progress is not None:
            progress(done)
    return labelled(found, plans)


def rows_of(number: int, asked: Asked, truth: Any, low: Any, high: Any, count: Any) -> pd.DataFrame:
    """Return one release's answers as rows."""
    import pandas as pd

    values = {"truth": truth, "low": low, "high": high, "count": count}
    return pd.DataFrame({"release": number, "size": asked.size, "placed": asked.placed, **values})


def labelled(rows: list[pd.DataFrame], plans: Mapping[str, int]) -> pd.DataFrame:
    """Return the rows of all releases, with what they are and what was measured."""
    import pandas as pd

    whole = pd.concat(rows, ignore_index=True)
    whole.attrs.update(label=ExactData.label, plans=dict(plans))
    return whole


@dataclass(frozen=True, eq=False)
class Counted:
    """A mechanism for data that are counted already, of which hundreds of releases are made.

    It is prepared once, and what it is given to count is left aside.
    """

    name: ClassVar[str] = Footprint.name
    data: ExactData
    mechanism: Mechanism

    def prepare(
        self, grid: Domain, bound: Bound, budget: Budget, neighbours: Neighbours
    ) -> CountedPrepared:
        """Settle what public values decide."""
        if budget not in self._prepared:
            prepared = self.mechanism.prepare(grid, bound, budget, neighbours)
            tally = self.data.tally(prepared, self.mechanism)
            self._prepared[budget] = CountedPrepared(prepared, tally)
        return self._prepared[budget]

    @cached_property
    def _prepared(self) -> dict[Budget, CountedPrepared]:
        return {}


@dataclass(frozen=True, eq=False)
class CountedPrepared:
    """A prepared mechanism and the data's tally."""

    prepared: Prepared
    counted: Any

    @property
    def sensitivity(self) -> int:
        """That of the mechanism."""
        return self.prepared.sensitivity

    def tally(self) -> Any:
        """Return an empty tally, which stays empty."""
        return self.prepared.tally()

    def publish(self, tally: Any, noise: NoiseSource) -> Outcome:
        """Return what is published of the data."""
        return self.prepared.publish(self.counted, noise)


def inside(cells: Ints, grid: Grid) -> tuple[Floats, ...]:
    """Return rectangles that touch just these cells: ``xmin, ymin, xmax, ymax``."""
    row0, row1, col0, col1 = cells
    x, y, side = grid.xmin, grid.ymin, grid.cell_size
    # A quarter of a cell from its edge, so that no rounding reaches the next one.
    return (
        x + (col0 + 0.25) * side,
        y + (row0 + 0.25) * side,
        x + (col1 + 0.75) * side,
        y + (row1 + 0.75) * side,
    )
