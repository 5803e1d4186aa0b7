"""Sources of noise for tests: seeded and watched, none at all, and one that must not be asked."""

from __future__ import annotations

import numpy as np

from dpregions.privacy.budget import Budget
from dpregions.privacy.seeded import StudyNoise


class Spy(StudyNoise):
    """Seeded noise that remembers what it was asked for and what it gave."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.asked: list[tuple[np.ndarray, Budget, int, np.ndarray]] = []

    def add(self, values, *, epsilon, sensitivity):
        noisy = super().add(values, epsilon=epsilon, sensitivity=sensitivity)
        self.asked.append((values.copy(), epsilon, sensitivity, noisy))
        return noisy


class Untouched:
    """A source of noise that must not be asked."""

    private = False
    label = "none"

    def add(self, values, *, epsilon, sensitivity):
        raise AssertionError("noise was drawn")


class NoNoise:
    """A source of no noise that remembers how it was calibrated."""

    private = False
    label = "no noise"

    def __init__(self):
        self.calls = []

    def add(self, values, *, epsilon, sensitivity):
        self.calls.append((float(Budget(epsilon)), sensitivity))
        return np.asarray(values, np.int64)
