"""Releases made by hand, without data or noise: for tests of what is done with a release."""

from __future__ import annotations

from decimal import Decimal

import numpy as np

from dpregions.geometry.grid import Grid
from dpregions.privacy.budget import Budget, PrivacyUnit
from dpregions.releases.published import Release

EPSILON = Budget(Decimal("0.35"))


def published(grid: Grid, *, covert: bool = False, start: int = 0, **changes) -> Release:
    """A release whose components all have different counts: no turn or flip goes unseen."""
    counts = start + np.random.default_rng(3).permutation(grid.n_components)
    counts = counts.reshape(grid.doubled_shape)
    facts = {
        "grid": grid,
        "counts": counts,
        "signed": None if covert else counts - 0.375,
        "method": "footprint",
        "budget": EPSILON,
        "privacy_unit": PrivacyUnit("add-remove", "user"),
        "sensitivity": 1,
        "max_diameter": 2 * grid.cell_size,
        "oversize": "shrink",
        "private": True,
        "noise": "integer noise",
        "spending": (("all", EPSILON),),
    }
    return Release(**facts | changes)
