"""One table of fixes -> one region for each user: density mode, k nearest, diameter, hull.

Owns what a user's fixes become. A region depends on its own user's fixes alone, and not on their
order; which rows count, and whose they are, is the rule of `intake/fix_tables.py`. No message holds
a number of fixes or users. The loops are in `density.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from dpregions.crs import crs_label, same_crs
from dpregions.errors import CRSError
from dpregions.intake.fix_tables import fix_table
from dpregions.intake.units import UNIT_ATTRIBUTE
from dpregions.memory import n_workers

if TYPE_CHECKING:
    import geopandas
    from pyproj import CRS

    from dpregions.arrays import Floats, Ints
    from dpregions.extraction.recipe import Recipe

_ON_EARTH = 1e9
"""Projected coordinates beyond this are no places, and their squares would lose digits."""


def regions_of(fixes: Any, recipe: Recipe, workers: int | None = None) -> geopandas.GeoDataFrame:
    """Return one region for each user of a table of fixes, or for each of its trajectories.

    Parameters
    ----------
    fixes : DataFrame or GeoDataFrame
    recipe : Recipe
    workers : int, optional
        How many threads; by default one for each core.
    """
    import geopandas
    import shapely

    workers = workers or n_workers()
    x, y, codes, when, names = _usable(fixes, recipe, workers)
    order, bounds, numbers = _groups(codes, when, recipe.gap)
    kept, offsets = _kept_fixes(x[order], y[order], bounds, recipe, workers)
    who = {"user_id": names.take(codes[order][bounds[:-1]]).reset_index(drop=True)}
    if recipe.unit == "trajectory":
        who["trajectory"] = numbers
    sets = shapely.from_ragged_array(shapely.GeometryType.MULTIPOINT, kept, (offsets,))
    regions = geopandas.GeoDataFrame(who, geometry=shapely.convex_hull(sets), crs=recipe.crs)
    regions.attrs[UNIT_ATTRIBUTE] = recipe.unit
    return regions


def _usable(
    fixes: Any, recipe: Recipe, workers: int
) -> tuple[Floats, Floats, Ints, Ints | None, Any]:
    """Return the rows that can be used: x and y in the recipe's CRS, ranked users, times."""
    table = fix_table(fixes, recipe.columns)
    good, when = table.usable(), table.when
    x, y = _projected(table.x[good], table.y[good], table.crs, recipe.crs, workers)
    here = (np.abs(x) < _ON_EARTH) & (np.abs(y) < _ON_EARTH)
    good[good] = here
    users = table.users[good], None if when is None else when[good], table.names
    # Adding 0 turns -0 into 0: equal coordinates must have equal bits.
    return x[here] + 0.0, y[here] + 0.0, *users


def _projected(
    x: Floats, y: Floats, source: CRS, target: CRS, workers: int
) -> tuple[Floats, Floats]:
    """Return places in the target CRS, point by point; infinite where there is none."""
    if same_crs(source, target):
        return x, y
    from pyproj import Transformer
    from pyproj.exceptions import ProjError

    def part(cut: slice) -> tuple[Floats, Floats]:
        # A Transformer of its own: they are not to be shared between threads.
        transformer = Transformer.from_crs(source, target, always_xy=True)
        there: tuple[Floats, Floats] = transformer.transform(x[cut], y[cut])
        return there

    ends = np.linspace(0, len(x), (workers if len(x) > 50_000 else 1) + 1).astype(int)
    cuts = [slice(a, b) for a, b in pairwise(ends)]
    try:
        parts = _in_threads(part, cuts, workers)
    except ProjError:
        raise CRSError(
            f"fixes in {crs_label(source)} cannot be taken to {crs_label(target)}"
        ) from None
    return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])


def _in_threads(work: Callable[[Any], Any], tasks: list[Any], workers: int) -> list[Any]:
    if min(len(tasks), workers) < 2:
        return [work(task) for task in tasks]
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(work, tasks))


def _groups(codes: Ints, when: Ints | None, gap: int | None) -> tuple[Any, Ints, Ints]:
    """Return the rows in order of group, where groups start (and the end), and their numbers.

    A group is a user, or a user's trajectory; numbers count each user's groups from 0.
    """
    if when is not None:
        order: Any = np.lexsort((when, codes))
    elif np.all(codes[1:] >= codes[:-1]):
        order = slice(None)
    else:
        order = np.argsort(codes, kind="stable")
    sorted_codes = codes[order]
    new_user = np.append(True, sorted_codes[1:] != sorted_codes[:-1])[: len(codes)]
    new_group = new_user
    if when is not None:
        new_group = new_user | np.append(True, np.diff(when[order]) > gap)[: len(codes)]
    starts = np.flatnonzero(new_group)
    first_of_user = np.flatnonzero(new_user[starts])
    repeats = np.diff(np.append(first_of_user, len(starts)))
    numbers = np.arange(len(starts)) - np.repeat(first_of_user, repeats)
    return order, np.append(starts, len(codes)), numbers


def _kept_fixes(
    x: Floats, y: Floats, bounds: Ints, recipe: Recipe, workers: int
) -> tuple[Floats, Ints]:
    """Return the fixes that each group keeps, one group after the other, and where each starts."""
    from dpregions.extraction import density as _density

    sizes = np.diff(bounds)
    room = np.minimum(sizes, recipe.k)
    slots = np.cumsum(room) - room
    out, counts = np.empty((room.sum(), 2)), np.zeros(len(sizes), np.int64)

    def part(cut: tuple[int, int]) -> None:
        groups = slice(*cut)
        mine = bounds[cut[0] : cut[1] + 1]
        half, whole = recipe.diameter / 2, recipe.diameter
        _density.extract(x, y, mine, recipe.k, half, whole, slots[groups], out, counts[groups])

    # Several tasks a worker, of about equally many fixes, so that none waits for the last.
    goals = np.linspace(0, bounds[-1], 8 * workers + 1)
    ends = np.unique(np.searchsorted(bounds, goals))
    _in_threads(part, list(pairwise(ends.tolist())), workers)
    offsets = np.append(0, np.cumsum(counts))
    rows = np.arange(offsets[-1]) + np.repeat(slots - offsets[:-1], counts)
    return out[rows], offsets
