"""Sources of noise for tests: seeded and watched, none, written beforehand, and not to be asked."""

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

    def allot(self, budget):
        return self


class Untouched:
    """A source of noise that must not be asked."""

    private = False
    label = "none"
    software = ()

    def add(self, values, *, epsilon, sensitivity):
        raise AssertionError("noise was drawn")

    def allot(self, budget):
        return self


class NoNoise:
    """A source of no noise that remembers how it was calibrated."""

    private = False
    label = "no noise"
    software = ()

    def __init__(self):
        self.calls = []

    def add(self, values, *, epsilon, sensitivity):
        self.calls.append((float(Budget(epsilon)), sensitivity))
        return np.asarray(values, np.int64)

    def allot(self, budget):
        return self


class Scripted:
    """Answers written beforehand, whatever the values: the data have no say. Keeps the values."""

    private = False
    label = "scripted"
    software = ()

    def __init__(self, seed: int, total: int) -> None:
        self._rng, self._total = np.random.default_rng(seed), total
        self.asked: list[tuple[np.ndarray, Budget, int]] = []

    def add(self, values, *, epsilon, sensitivity):
        self.asked.append((np.array(values), Budget(epsilon), sensitivity))
        n = len(values)
        part = self._rng.dirichlet(np.full(n, 0.3)) * self._total
        return np.rint(part + self._rng.laplace(0, 2, n)).astype(np.int64)

    def allot(self, budget):
        return self
