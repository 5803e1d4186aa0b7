"""One harness for study and benchmarks: methods side by side, same data, epsilon, questions.

Study on exact data: not a private release. One draw of each method answers every question of
its repetition. Noise and questions follow from the seed, the setting's key, the repetition and
the method's name, and from nothing else: it does not matter in which parts, in which order or
beside which other methods the repetitions are run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dpregions.geometry.doubled import SignedTable
from dpregions.geometry.rectangles import Rectangles
from dpregions.planning.exact_data import ExactData
from dpregions.privacy.budget import Budget
from dpregions.privacy.seeded import StudyNoise
from dpregions.study.methods import METHODS, Method

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike

    from dpregions.arrays import Ints, Numbers
    from dpregions.choices import Neighbours
    from dpregions.planning.exact_data import Answering
    from dpregions.privacy.budget import BudgetLike

Row = dict[str, Any]

COLUMNS = ("repetition", "method", "question", "share", "height", "width", "value")
"""Of what `Trial.errors` yields."""

PLACEMENTS = 100
"""Questions of each size and shape in each repetition."""

ANYWHERE, PEOPLE = "size", "people"
"""Kinds of questions by size: placed evenly, as in the paper, and placed as people are."""


class Question(NamedTuple):
    """One size and shape of rectangle, at several places."""

    kind: str
    share: float
    """Of the area."""
    height: int
    width: int
    cells: Ints
    """Its places: ``row0, row1, col0, col1``."""


@dataclass(frozen=True)
class Trial:
    """Methods on one data set at one epsilon; each repetition has its own noise and questions."""

    data: ExactData
    methods: Mapping[str, Method]
    budget: Budget
    neighbours: Neighbours = "add-remove"
    seed: int = 0
    key: str = ""
    """Of the setting: another has other noise."""

    def rng(self, repetition: int, purpose: str) -> np.random.Generator:
        """Return the random numbers of a repetition for one purpose."""
        return np.random.default_rng([self.seed, repetition, *f"{self.key} {purpose}".encode()])

    def noise(self, repetition: int, method: str) -> StudyNoise:
        """Return a method's noise in a repetition."""
        return StudyNoise(int(self.rng(repetition, method).integers(2**62)))

    def draws(self, repetition: int) -> Iterator[tuple[str, Answering]]:
        """Yield what each method gives with one draw of noise."""
        for name, method in self.methods.items():
            noise = self.noise(repetition, name)
            yield from method(self.data, self.budget, self.neighbours, noise).items()

    def errors(
        self, repetition: int, ask: Callable[[np.random.Generator], Iterable[Question]]
    ) -> Iterator[Row]:
        """Yield each method's median error for each question, and its L1 distance."""
        asked = list(ask(self.rng(repetition, "questions")))
        data, (n_rows, n_cols) = self.data, self.data.grid.shape
        for method, found in self.draws(repetition):
            values: list[tuple[Any, ...]] = []
            for *question, cells in asked:
                off = data.errors(found.answers(cells), cells)
                values.append((*question, float(np.median(off))))
            whole = implied_histogram(found, n_rows, n_cols)
            values.append(("l1", 1.0, n_rows, n_cols, l1_distance(whole, data.counts)))
            for row in values:
                yield dict(zip(COLUMNS, (repetition, method, *row), strict=True))


def sized_questions(
    shares: Iterable[float],
    n_rows: int,
    n_cols: int,
    rng: np.random.Generator,
    placements: int = PLACEMENTS,
) -> Iterator[Question]:
    """Yield near-square rectangles of some shares of the area, at random places."""
    rectangles = Rectangles(n_rows, n_cols)
    for share in shares:
        shape = rectangles.shape_of(share)
        cells = rectangles.placed(*shape, placements, rng, turned=True)
        yield Question(ANYWHERE, share, *shape, cells)


def people_questions(
    shares: Iterable[float],
    data: ExactData,
    rng: np.random.Generator,
    placements: int = PLACEMENTS,
) -> Iterator[Question]:
    """Yield the same rectangles, placed as people are: each region is as likely to be near one."""
    rectangles = Rectangles(*data.grid.shape)
    for share in shares:
        shape = rectangles.shape_of(share)
        cells = data.placed_as_people(*shape, placements, rng, turned=True)
        yield Question(PEOPLE, share, *shape, cells)


def evaluate(
    data: ExactData,
    methods: Iterable[str] | Mapping[str, Method] = tuple(METHODS),
    *,
    epsilon: BudgetLike,
    repetitions: int,
    seed: int = 0,
    neighbours: Neighbours = "add-remove",
    shares: Sequence[float] = Rectangles.SHARES,
    placements: int = PLACEMENTS,
) -> pd.DataFrame:
    """Measure methods on exact data: a table of errors, not a private release.

    Parameters
    ----------
    data : ExactData
    methods : names of `METHODS`, or a mapping of names to methods
    epsilon : number or Budget
        For each run of a method.
    repetitions : int
        Each with fresh noise and fresh placements, the same placements for all methods.
    seed : int
        Equal seeds give equal tables.
    neighbours : {"add-remove", "replace-one"}
    shares : sequence of float
        Sizes of rectangles, as shares of the area.
    placements : int
        Rectangles of each size in each repetition.

    Returns
    -------
    pandas.DataFrame
        What `Trial.errors` yields: `value` is the median relative error where `question` is
        "size" (placed evenly) or "people" (placed as people are), and the distance of the whole
        histogram from the exact one where it is "l1".
        Its attribute `label` says what it is.
    """
    import pandas as pd

    chosen = methods if isinstance(methods, Mapping) else {name: METHODS[name] for name in methods}
    trial = Trial(data, chosen, Budget(epsilon), neighbours, seed)

    def ask(rng: np.random.Generator) -> Iterator[Question]:
        yield from sized_questions(shares, *data.grid.shape, rng, placements)
        yield from people_questions(shares, data, rng, placements)

    table = pd.DataFrame([row for i in range(repetitions) for row in trial.errors(i, ask)])
    table.attrs["label"] = ExactData.label
    return table


def l1_distance(released: ArrayLike, exact: ArrayLike) -> float:
    """Return the sum of absolute differences of two histograms."""
    return float(np.abs(np.asarray(released, np.float64) - np.asarray(exact)).sum())


def errors_by_size(table: pd.DataFrame, placed: str = ANYWHERE) -> pd.DataFrame:
    """Return the error of each method (rows) at each share (columns).

    The median over repetitions of the median over placements, which are `ANYWHERE` or as `PEOPLE`.
    """
    sizes = table[table["question"] == placed]
    return sizes.groupby(["method", "share"], sort=False)["value"].median().unstack("share")


def implied_histogram(found: Answering, n_rows: int, n_cols: int) -> Numbers:
    """Return the Euler histogram that answers imply, for any method.

    An edge holds what two neighbouring cells answer beyond the answer of both together, a
    vertex what is then missing from a block of four. For a method with an Euler histogram
    it is that histogram. For sums of cells it is the cells, and 0 on edges and vertices.
    """
    if isinstance(found, SignedTable):
        return found.counts
    one, wide, high, four = (
        answers_of_blocks(found, n_rows, n_cols, height, width)
        for height, width in ((1, 1), (1, 2), (2, 1), (2, 2))
    )
    upright = one[:, :-1] + one[:, 1:] - wide
    flat = one[:-1] + one[1:] - high
    faces = one[:-1, :-1] + one[1:, 1:] + one[:-1, 1:] + one[1:, :-1]
    edges = upright[:-1] + upright[1:] + flat[:, :-1] + flat[:, 1:]
    whole = np.zeros((2 * n_rows - 1, 2 * n_cols - 1), one.dtype)
    whole[::2, ::2], whole[::2, 1::2], whole[1::2, ::2] = one, upright, flat
    whole[1::2, 1::2] = four - faces + edges
    return whole


def answers_of_blocks(
    found: Answering, n_rows: int, n_cols: int, height: int, width: int
) -> Numbers:
    """Return the answers of every placement of a block of cells."""
    shape = (n_rows - height + 1, n_cols - width + 1)
    row, col = np.indices(shape).reshape(2, -1)
    answers = found.answers(np.stack([row, row + height - 1, col, col + width - 1]))
    return np.asarray(answers).reshape(shape)
