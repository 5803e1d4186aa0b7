"""Published bodies, asked on the cells of a partition, which were not measured.

Bodies can be counted on anything, exactly, so every query is answered as drawn: a set of cells is
the union of them, and no body counts twice there. Sees what was published and public values alone.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dpregions import extras
from dpregions.crs import crs_label, same_crs
from dpregions.errors import (
    Argument,
    CRSError,
    DPRegionsWarning,
    GridError,
    InputTypeError,
    MissingExtraError,
    OutsideAreaWarning,
    PrivacyError,
)
from dpregions.geometry.partition import Partition
from dpregions.mechanisms.base import Columns, Outcome

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dpregions.geometry.cells import Selection
    from dpregions.geometry.domain import Domain
    from dpregions.geometry.layers import Layer
    from dpregions.mechanisms.footprint.outcome import FootprintOutcome

_MOST_INTERPRETED = 1000
"""Distinct bodies that are counted on cells without a compiler: some seconds of work."""
_MOST_LAID = 1 << 18
"""Witnesses laid on the cells, about, for the signed estimates of components."""


@dataclass(frozen=True, eq=False)
class BodiesElsewhere(Outcome):
    """Counts of published bodies on other cells, and the signed estimates of these. Private."""

    answers_shapes: ClassVar[bool] = True

    source: FootprintOutcome
    """What was published."""

    @classmethod
    def of(cls, source: FootprintOutcome, grid: Domain) -> BodiesElsewhere:
        """Count an outcome's bodies on a partition; refuse one of another CRS or another place."""
        if not isinstance(grid, Partition):
            raise InputTypeError(
                Argument("grid"),
                f" must be a Partition, got {type(grid).__name__}: a grid becomes one by "
                f"Partition.from_grid(grid)",
            )
        if grid.cap is not None:
            raise GridError("a cap is for the paper's method: ask on the cells without one")
        _refuse_elsewhere(source.grid, grid)
        _warn_beyond(source, grid)
        coords, starts, times = source.corners()
        if not extras.is_there("numba") and len(times) > _MOST_INTERPRETED:
            bodies = f"counting {len(times):,} distinct bodies on the cells of a partition"
            raise MissingExtraError("numba", "curator", bodies)
        counter = grid.counter()
        counter.add_times(grid.outlines(coords, starts, None), times)
        return cls(grid, counter.histogram(), None, source.spending, source)

    @property
    def is_covert(self) -> bool:
        """Whether what was published has no signed part."""
        return self.source.is_covert

    def estimates(self) -> NDArray[np.float64] | None:
        """Return the signed estimate of every component, made when it is first asked."""
        return self._estimates

    @cached_property
    def _estimates(self) -> NDArray[np.float64] | None:
        if self.source.is_covert:
            return None
        if not extras.is_there("numba"):
            laid = "laying bodies on every edge and vertex of a partition"
            raise MissingExtraError("numba", "curator", laid)
        found = _expected(self.source, self.grid)
        found.flags.writeable = False
        return found

    def count(self, selection: Any) -> NDArray[np.int64]:
        """Return how many bodies touch what is asked."""
        return self.source.count(self._at_home(selection))

    def estimate(self, selection: Any) -> NDArray[Any]:
        """Return estimates of what is asked, as drawn."""
        return self.source.estimate(self._at_home(selection))

    def bounds(self, selection: Any, confidence: float) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the ends of intervals, which hold the counts too."""
        return self.source.bounds(self._at_home(selection), confidence)

    def readings(
        self, selection: Any, confidence: float
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Return estimates and the ends of their intervals."""
        return self.source.readings(self._at_home(selection), confidence)

    def worst_bounds(self, selection: Any, confidence: float) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the ends of intervals whatever regions do inside measured parts."""
        return self.source.worst_bounds(self._at_home(selection), confidence)

    def half_widths(self, selection: Any, confidence: float) -> NDArray[np.float64]:
        """Return half widths from the deviations of noise and of shapes."""
        return self.source.half_widths(self._at_home(selection), confidence)

    def deviations(self, selection: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return what noise and what unmeasured detail add."""
        return self.source.deviations(self._at_home(selection))

    def _at_home(self, selection: Any) -> Selection:
        """Return what is asked as shapes on the grid that was measured."""
        shapes = selection.geometries(self.grid)
        with warnings.catch_warnings():  # who selected on these cells has warned already
            warnings.simplefilter("ignore", DPRegionsWarning)
            return self.source.grid.select((shapes,), within="shape")

    def to_regions(self) -> Layer:
        """Return each body as a convex polygon."""
        return self.source.to_regions()

    def columns(self) -> Columns:
        """Refuse: a file keeps what was measured."""
        raise PrivacyError("what bodies are elsewhere follows from their release: save that")


def _refuse_elsewhere(base: Domain, grid: Domain) -> None:
    if (base.crs is None) != (grid.crs is None) or (
        base.crs is not None and grid.crs is not None and not same_crs(base.crs, grid.crs)
    ):
        names = ["no CRS" if d.crs is None else crs_label(d.crs) for d in (base, grid)]
        raise CRSError(
            f"the release is in {names[0]}, and it is asked on cells in {names[1]}: make the cells "
            f"in the CRS of the release",
            argument="grid",
        )
    here, there = np.reshape(base.bounds, (2, 2)), np.reshape(grid.bounds, (2, 2))
    if (there[0] >= here[1]).any() or (there[1] <= here[0]).any():
        raise GridError(
            f"the cells lie in {_in_words(grid)}, wholly outside the area of the release, "
            f"{_in_words(base)}: is this the partition of another place?",
            argument="grid",
        )


def _in_words(domain: Domain) -> str:
    xmin, ymin, xmax, ymax = (f"{v:.10g}" for v in domain.bounds)
    return f"x {xmin} to {xmax}, y {ymin} to {ymax}"


def _warn_beyond(source: FootprintOutcome, grid: Partition) -> None:
    """Warn of cells that reach beyond what was measured: nothing is known there."""
    import shapely

    measured = shapely.box(*source.grid.bounds) if source.area is None else source.area
    # The cells of the release's own partition reach a few lattice steps beyond its area.
    cells = grid.layer("faces").shapes
    width = max(np.ptp(np.reshape(source.grid.bounds, (2, 2)), axis=0))
    whole = shapely.buffer(measured, 1e-6 * width, join_style="mitre")
    shapely.prepare(whole)
    n = int((~shapely.covers(whole, cells)).sum())
    if n:
        warnings.warn(
            OutsideAreaWarning(
                f"{n} of {len(cells)} cells reach beyond the area of the release: only what lies "
                f"inside it is counted there"
            ),
            stacklevel=5,
        )


def _expected(source: FootprintOutcome, grid: Any) -> NDArray[np.float64]:
    """Return the signed estimate of each component: what witnesses of each bucket touch."""
    signed = np.zeros(grid.n_components)
    for coords, starts, weight in source.laid_out(_MOST_LAID):
        offsets, items = grid.touched(grid.outlines(coords, starts, None))
        signed += np.bincount(items, np.repeat(weight, np.diff(offsets)), grid.n_components)
    return signed
