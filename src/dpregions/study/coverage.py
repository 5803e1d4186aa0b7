"""How often the intervals of releases hold the true count, and how wide they are.

Study on exact data: not a private release. Each release is made as it is in use, but for its
seeded noise, and asked what users ask: nothing here knows how an interval comes about.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from dpregions.geometry.rectangles import Rectangles
from dpregions.planning.exact_data import ExactData
from dpregions.privacy.seeded import StudyNoise
from dpregions.releases import make

if TYPE_CHECKING:
    import pandas as pd

    from dpregions.arrays import Floats, Ints
    from dpregions.geometry.grid import Grid
    from dpregions.privacy.budget import BudgetLike


def interval_coverage(
    regions: Any,
    grid: Grid,
    max_diameter: float | str,
    *,
    epsilon: BudgetLike,
    releases: int,
    confidence: float = 0.95,
    placements: int = 12,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
) -> pd.DataFrame:
    """Return how often intervals of the footprint mechanism hold the true count, by size.

    Parameters
    ----------
    regions, grid, max_diameter
        As `release` takes them, with a column `user_id`.
    epsilon : number or Budget
        For each release.
    releases : int
    confidence : float
    placements : int
        Rectangles of each size, anew for each release.
    seed : int
    progress : callable, optional
        Told how many releases are done.

    Returns
    -------
    pandas.DataFrame
        By share of the area: `held` (share of intervals with the true count), `noisy` (share
        where noise makes over half of the expected error), `held_noisy` (of those), `width`
        (mean, in regions) and `relative_width` (to the true count). Its attributes: `label`,
        and `plans`, how often which levels were measured.
    """
    import pandas as pd

    exact = ExactData.of(regions, grid, max_diameter).truth
    rectangles = Rectangles(*grid.shape)
    rows: list[tuple[Any, ...]] = []
    plans: dict[tuple[str, ...], int] = {}
    for number in range(releases):
        noise = StudyNoise(int(np.random.default_rng([seed, number]).integers(2**62)))
        release = make.release_with(
            noise, regions, grid, epsilon=epsilon, max_diameter=max_diameter
        )
        measured = tuple(what for what, _ in release.spending)
        plans[measured] = plans.get(measured, 0) + 1
        rng = np.random.default_rng([seed, number, 1])
        for share in rectangles.SHARES:
            cells = rectangles.placed(*rectangles.shape_of(share), placements, rng, turned=True)
            query, truth = inside(cells, grid), exact.answers(cells)
            low, high = release.interval(*query, confidence=confidence, within="cells")
            expected = release.expected_error(*query, within="cells")
            held, noisy = (low <= truth) & (truth <= high), expected.noise > expected.total / 2
            found = zip(held, noisy, high - low, truth, strict=True)
            rows += [(share, number, *values) for values in found]
        if progress is not None:
            progress(number + 1)
    each = pd.DataFrame(rows, columns=["share", "release", "held", "noisy", "width", "truth"])
    each["held_noisy"] = each["held"].where(each["noisy"])
    by_size = each.groupby("share")
    table = by_size[["held", "noisy", "held_noisy", "width"]].mean().astype(float)
    table["relative_width"] = by_size["width"].mean() / by_size["truth"].mean()
    table.attrs.update(label=ExactData.label, plans=plans)
    return table


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
