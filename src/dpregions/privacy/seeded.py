"""Seeded noise for studies: the law of a release's noise, repeatable, and therefore not private.

Whoever knows the seed can subtract the noise. So this lives apart from the release path, which
takes no seed and never imports it, and whatever is made with it is stamped as not private.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from dpregions.arrays import Ints
from dpregions.privacy.budget import Budget, BudgetLike
from dpregions.privacy.noise import scale_for, whole_counts


class StudyNoise:
    """Integer Laplace noise from a seeded numpy generator.

    Calibrated by the same `scale_for` as a release's noise. Equal in law up to the floating
    point of numpy's geometric draws, which is good enough to measure utility with and not
    good enough to protect anybody.

    Parameters
    ----------
    seed : int
        Equal seeds give equal noise, call after call.
    """

    private: ClassVar[bool] = False
    label: ClassVar[str] = "study noise, seeded: not private"
    software: ClassVar[tuple[tuple[str, str], ...]] = (("numpy", np.__version__),)

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._generator = np.random.default_rng(seed)

    def __repr__(self) -> str:
        return f"StudyNoise(seed={self.seed!r})"

    def add(self, values: Ints, *, epsilon: BudgetLike, sensitivity: int) -> Ints:
        """Return the values, each with its own draw of noise added."""
        counts = whole_counts(values)
        # The difference of two geometric draws is discrete Laplace; p = 1 - exp(-1/scale).
        p = -np.expm1(-1 / scale_for(epsilon, sensitivity))
        noise = self._generator.geometric(p, counts.shape)
        noise -= self._generator.geometric(p, counts.shape)
        return counts + noise

    def allot(self, budget: Budget) -> StudyNoise:
        """Return itself: it meters nothing."""
        del budget
        return self
