"""How often the intervals of releases hold the true count, and how wide they are.

Study on exact data: not a private release. Each release chooses what to measure anew, as it
does in use.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from dpregions.geometry.cells import Selection
from dpregions.geometry.rectangles import SHARES, rectangles
from dpregions.mechanisms.footprint.mechanism import Footprint
from dpregions.planning.exact_data import LABEL, ExactData
from dpregions.privacy.budget import Budget, BudgetLike
from dpregions.privacy.seeded import StudyNoise

if TYPE_CHECKING:
    import pandas as pd


def interval_coverage(
    data: ExactData,
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
    data : ExactData
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
        whose noise part is over half of the width), `held_noisy` (of those), `width` (mean, in
        regions) and `relative_width` (to the true count). Its attributes: `label`, and `plans`,
        how often which levels were measured.
    """
    import pandas as pd

    budget = Budget(epsilon)
    normal = NormalDist().inv_cdf((1 + confidence) / 2)
    rows: list[tuple[Any, ...]] = []
    plans: dict[tuple[str, ...], int] = {}
    for release in range(releases):
        noise = StudyNoise(int(np.random.default_rng([seed, release]).integers(2**62)))
        made = data.outcome(Footprint(), budget, "add-remove", noise)
        measured = tuple(what for what, _ in made.spending)
        plans[measured] = plans.get(measured, 0) + 1
        rng = np.random.default_rng([seed, release, 1])
        for share in SHARES:
            cells = rectangles(share, *data.grid.shape, placements, rng)
            truth, selection = data.truth.answers(cells), Selection(cells, shape=None)
            low, high = made.bounds(selection, confidence)
            width = made.half_widths(selection, confidence)
            _, of_shape = made.deviations(selection)
            noisy = normal * of_shape < math.sqrt(0.75) * width
            held = (low <= truth) & (truth <= high)
            found = zip(held, noisy, high - low, truth, strict=True)
            rows += [(share, release, *values) for values in found]
        if progress is not None:
            progress(release + 1)
    each = pd.DataFrame(rows, columns=["share", "release", "held", "noisy", "width", "truth"])
    each["held_noisy"] = each["held"].where(each["noisy"])
    by_size = each.groupby("share")
    table = by_size[["held", "noisy", "held_noisy", "width"]].mean().astype(float)
    table["relative_width"] = by_size["width"].mean() / by_size["truth"].mean()
    table.attrs.update(label=LABEL, plans=plans)
    return table
