"""What stands in for the data in a rehearsal: made-up cities, or a proxy that is public.

Owns how a city of about so many regions comes to lie on a grid. The data that will be released are
never among its inputs: a proxy is a file of regions that may be looked at, such as those of another
year or another city.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from dpregions import cities
from dpregions.errors import Argument, InputError
from dpregions.geometry.lattice import STEPS
from dpregions.geometry.outlines import Bound, Outlines
from dpregions.planning.exact_data import ExactData, outlines_that_count

if TYPE_CHECKING:
    from dpregions.arrays import Ints
    from dpregions.geometry.grid import Grid

MOST_REGIONS = 200_000
"""Regions that are made up one by one; more are made up as several of each."""

RANGE = ("even", "districts", "skewed")
"""The kinds of cities that are rehearsed where none is told."""

PROXY = "proxy"
"""The name of what stands in where a proxy is given."""


class StandIn(Protocol):
    """What a rehearsal can be done on."""

    @property
    def name(self) -> str:
        """A kind of city, or `PROXY`."""

    def on(self, grid: Grid, max_diameter: float | str, n_regions: int, seed: int) -> ExactData:
        """Return a city of about `n_regions` on a grid, another for each seed."""


@dataclass(frozen=True)
class MadeUp:
    """Cities of a kind, made up from public parameters alone."""

    name: str

    def on(self, grid: Grid, max_diameter: float | str, n_regions: int, seed: int) -> ExactData:
        """Return a city, its outlines as intake makes them: in integers, longer ones shrunk."""
        each, times = _several(n_regions)
        bound = Bound.of(grid, max_diameter, "shrink")
        places = cities.made_up(self.name, each, seed=seed).places(grid, max_diameter)
        starts = np.arange(len(places) + 1) * places.shape[1]
        outlines = Outlines.of(places.reshape(-1, 2), starts, grid, bound)
        return ExactData(grid, bound, (outlines,), times)


@dataclass(frozen=True, eq=False)
class Proxy:
    """Cities drawn from regions that may be looked at, each region as likely as any other.

    Where more regions are needed than there are, each is used several times, moved by up to its
    own size (at least half a cell), so that copies do not lie on top of each other.
    """

    regions: Any
    """A file, or anything else that `release` takes; each row is one region."""

    name = PROXY

    def on(self, grid: Grid, max_diameter: float | str, n_regions: int, seed: int) -> ExactData:
        """Return a city of regions drawn from those that touch the area."""
        each, times = _several(n_regions)
        bound = Bound.of(grid, max_diameter, "shrink")
        if grid not in self._read:
            self._read[grid] = self._touching(grid, bound)
        known = self._read[grid]
        there, rng = len(known.offsets) - 1, np.random.default_rng(seed)
        again = each > there
        taken = _taken(known, rng.choice(there, each, replace=again))
        return ExactData(grid, bound, (_moved(taken, rng) if again else taken,), times)

    @cached_property
    def _read(self) -> dict[Grid, Outlines]:
        return {}

    def _touching(self, grid: Grid, bound: Bound) -> Outlines:
        batches = outlines_that_count(self._opened(), grid, bound, None)
        kept = [_taken(one, np.flatnonzero(one.touching(*grid.shape))) for one in batches]
        sizes = np.concatenate([np.zeros(1, np.int64), *(np.diff(one.offsets) for one in kept)])
        if len(sizes) == 1:
            raise InputError(
                Argument("like"),
                " has no region in the area: give regions of the same place as the grid",
            )
        return Outlines(np.concatenate([one.xy for one in kept]), np.cumsum(sizes))

    def _opened(self) -> Any:
        if not isinstance(self.regions, str | Path):
            return self.regions
        from dpregions.intake.sources.opening import open_regions

        return open_regions(self.regions, user_id=None)


def stand_ins(shape: str | None, like: Any) -> Sequence[StandIn]:
    """Return what to rehearse on: the kind that was told, a proxy, or a range of kinds."""
    if like is not None and shape is not None:
        raise InputError("give one of ", Argument("shape"), " and ", Argument("like"))
    if like is not None:
        return [Proxy(like)]
    if shape is None:
        return [MadeUp(kind) for kind in RANGE]
    cities.check_kind(shape, "shape")
    return [MadeUp(shape)]


def _several(n_regions: int) -> tuple[int, int]:
    """Return how many regions to make up, and how many each stands for."""
    times = -(-n_regions // MOST_REGIONS)
    return max(n_regions // times, 1), times


def _taken(outlines: Outlines, which: Ints) -> Outlines:
    """Return some outlines, in an order of which some may be there several times."""
    sizes = np.diff(outlines.offsets)[which]
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    first = np.repeat(outlines.offsets[:-1][which] - offsets[:-1], sizes)
    return Outlines(outlines.xy[first + np.arange(offsets[-1])], offsets)


def _moved(outlines: Outlines, rng: np.random.Generator) -> Outlines:
    """Return each outline moved by up to its own size, whole steps of the lattice."""
    starts = outlines.offsets[:-1]
    extent = np.maximum.reduceat(outlines.xy, starts) - np.minimum.reduceat(outlines.xy, starts)
    reach = np.maximum(extent.max(axis=1, keepdims=True), STEPS // 2)
    off = np.rint(rng.uniform(-1.0, 1.0, (len(starts), 2)) * reach).astype(outlines.xy.dtype)
    return Outlines(
        outlines.xy + np.repeat(off, np.diff(outlines.offsets), axis=0), outlines.offsets
    )
