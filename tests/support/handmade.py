"""Releases made by hand, without data or noise: for tests of what is done with a release."""

from __future__ import annotations

from decimal import Decimal

import numpy as np

from dpregions.geometry.grid import Grid
from dpregions.mechanisms.base import Outcome
from dpregions.privacy.budget import Budget
from dpregions.releases.published import Release

EPSILON = Budget(Decimal("0.35"))


def published(
    grid: Grid, *, covert: bool = False, start: int = 0, counts=None, **changes
) -> Release:
    """A release whose components all have different counts: no turn or flip goes unseen."""
    if counts is None:
        counts = start + np.random.default_rng(3).permutation(grid.n_components)
        counts = counts.reshape(grid.doubled_shape)
    facts = {
        "grid": grid,
        "method": "footprint",
        "budget": EPSILON,
        "neighbours": "add-remove",
        "unit": "user",
        "sensitivity": 1,
        "max_diameter": 2 * grid.cell_size,
        "oversize": "shrink",
        "private": True,
        "noise": "integer noise",
        "spending": (("all", EPSILON),),
        "covert": covert,
    } | changes
    signed = None if covert else counts - 0.375
    return Release(**facts, outcome=Handmade(grid, counts, signed, facts["spending"]))


class Handmade(Outcome):
    """Counts out of the blue; estimates that are off by one."""

    def half_widths(self, selection, confidence):
        return 2.0 * np.ones(selection.ranges.shape[1])

    def deviations(self, selection):
        return np.ones((2, selection.ranges.shape[1]))
