"""What is measured at a setting: errors, consistency, times, maps; a few repetitions at a time.

Study on exact data: not a private release. One draw of each method answers every question of
its repetition. Noise and questions follow from the seed, the setting, the repetition and the
method's name, and from nothing else: it does not matter in which parts, in which order or
beside which other methods the repetitions are run. Times alone are the machine's.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpregions.atomic_files import SECRET, replacing
from dpregions.geometry.rectangles import placed, rectangles, shape_of, shapes_of_area
from dpregions.mechanisms.paper import pipeline as paper
from dpregions.mechanisms.paper.sensitivity import euler_sensitivity
from dpregions.planning.exact_data import Answering, EulerAnswers, ExactData
from dpregions.planning.workload import l1_distance, relative_errors
from dpregions.privacy.budget import Budget
from dpregions.privacy.noise import NoiseSource
from dpregions.privacy.seeded import StudyNoise
from dpregions.study.datasets import MAX_DIAMETER, DataSet, Setting, exact_data
from dpregions.study.harness import METHODS, Method

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    Row = dict[str, Any]

EULER = "euler"
"""The truth, as a method."""

SMALL = tuple(percent / 100 for percent in range(1, 11))
LARGE = tuple(percent / 100 for percent in range(10, 101, 10))
"""Sizes of questions, as shares of the area."""

PLACEMENTS = 100
"""Questions of each size and shape in each repetition."""

EXAMPLE_K = 400
"""Fixes that make the region of the made-up user who is shown."""

READING = 10.0
"""About how many seconds it takes to read a file of fixes and extract their regions."""

SECONDS = {
    "errors": (0.0, 0.1),
    "consistency": (0.0, 2.5),
    "times": (READING, 0.1),
    "maps": (0.0, 0.1),
    "extraction": (READING / 5, 0.0),
}
"""About how long a measure takes: once, for reading a file of fixes, and each repetition."""

FRACTION = 2**20
"""Fractional answers are compared in whole parts of this: sums of them are then exact."""


@dataclass(frozen=True)
class Source:
    """What every measurement of a study shares."""

    methods: tuple[str, ...]
    seed: int
    folder: Path | None
    """Of data."""
    kept: Path
    """Folder of regions, and of the fixes of the users who are shown."""


@dataclass(frozen=True)
class Unit:
    """Some repetitions of one measure at one setting: done whole, saved whole."""

    measure: str
    setting: Setting
    first: int
    last: int

    @property
    def name(self) -> str:
        """A name for its file."""
        return f"{self.measure}-{self.setting.key}-{self.first:05d}"

    @property
    def cost(self) -> float:
        """About how many seconds it takes; a draw of all methods grows with footprints of k x k."""
        once, each = SECONDS[self.measure]
        reads = self.first == 0 and not self.setting.data.made_up
        draw = self.setting.cells_spanned**2 / 400
        return once * reads + (self.last - self.first) * (each + draw)


def measure(source: Source, unit: Unit) -> pd.DataFrame:
    """Do one unit of work."""
    import pandas as pd

    return pd.DataFrame(list(MEASURES[unit.measure](source, unit)))


def shape_areas(n: int) -> dict[str, int]:
    """Return a small and a large area, in cells, whose shapes are compared on n x n cells.

    3 and 30 % of the area, with six shapes each at n = 20; a quarter and three quarters where
    3 % is less than a cell.
    """
    small, large = (0.03, 0.3) if n >= 10 else (0.25, 0.75)
    return {"small": round(small * n * n), "large": round(large * n * n)}


def errors(source: Source, unit: Unit) -> Iterator[Row]:
    """Yield each method's median error for sizes and shapes of questions, and its L1 distance."""
    data = _exact(unit.setting, source.kept)
    for repetition in range(unit.first, unit.last):
        rng = _stream(source.seed, unit.setting.key, repetition, "questions")
        asked = list(_questions(unit.setting.n, rng))
        for method, found in _draws(source, unit.setting, data, repetition):
            common = {"repetition": repetition, "method": method}
            for kind, share, height, width, cells in asked:
                off = relative_errors(
                    found.answers(cells), data.truth.answers(cells), data.n_regions
                )
                yield {
                    **common,
                    "question": kind,
                    "share": share,
                    "height": height,
                    "width": width,
                    "value": float(np.median(off)),
                }
            whole = implied_histogram(found, unit.setting.n)
            yield {
                **common,
                "question": "l1",
                "share": 1.0,
                "height": unit.setting.n,
                "width": unit.setting.n,
                "value": l1_distance(whole, data.counts),
            }


def consistency(source: Source, unit: Unit) -> Iterator[Row]:
    """Yield the percentages of constraints, rectangles and nested pairs that contradict."""
    data = _exact(unit.setting, source.kept)
    for repetition in range(unit.first, unit.last):
        for method, found in _draws(source, unit.setting, data, repetition):
            whole = implied_histogram(found, unit.setting.n)
            if whole.dtype.kind == "f":
                whole = np.rint(FRACTION * whole).astype(np.int64)
            broken = paper.violations(whole, percent=True)
            real = _contradictions(whole.astype(np.int64).tobytes(), whole.shape)
            yield {"repetition": repetition, "method": method, **broken, **real}


@lru_cache(maxsize=4)
def _contradictions(counts: bytes, shape: tuple[int, int]) -> dict[str, float]:
    """Return percentages of contradictions; equal arrays (the truth, LinProg and Round) once."""
    whole = np.frombuffer(counts, np.int64).reshape(shape)
    found = paper.inconsistency(whole)
    return {
        "negative": 100 * found.negative / found.rectangles,
        "non_monotone": 100 * found.non_monotone / found.pairs,
        "next_non_monotone": next_non_monotone(whole),
    }


def times(source: Source, unit: Unit) -> Iterator[Row]:
    """Yield the seconds that each step takes, on this machine and beside what else it does."""
    setting = unit.setting
    if unit.first == 0:
        yield from _preparation_times(source, setting.data, setting)
    data = _exact(setting, source.kept)
    steps = _timed_steps(source, setting, data)
    for step in steps.values():
        step(StudyNoise(0))  # compile and load, once
    for repetition in range(unit.first, unit.last):
        for name, step in steps.items():
            noise = _noise(source.seed, setting.key, repetition, name)
            yield {"repetition": repetition, "step": name, "seconds": _seconds(step, noise)}


def maps(source: Source, unit: Unit) -> Iterator[Row]:
    """Yield every method's answer for every cell, of one repetition."""
    data = _exact(unit.setting, source.kept)
    for method, found in _draws(source, unit.setting, data, unit.first):
        cells = _blocks(found, unit.setting.n, 1, 1)
        for (row, col), value in np.ndenumerate(cells):
            yield {"method": method, "row": row, "col": col, "regions": float(value)}


def extraction(source: Source, unit: Unit) -> Iterator[Row]:
    """Yield the facts of one user's region."""
    import shapely

    data = unit.setting.data
    fixes, k = shown_user(data, source)
    region = replace(data, k=k, unit="user", gap=None).regions_of(fixes).geometry.iloc[0]
    circle = shapely.minimum_bounding_radius(region)
    yield {
        "fixes": len(fixes),
        "k": k,
        "corners": len(shapely.get_coordinates(region)) - 1,
        "area_km2": region.area / 1e6,
        "circle_km": 2 * circle / 1e3,
    }


MEASURES: dict[str, Callable[[Source, Unit], Iterator[Row]]] = {
    "errors": errors,
    "consistency": consistency,
    "times": times,
    "maps": maps,
    "extraction": extraction,
}


def shown_user(data: DataSet, source: Source) -> tuple[pd.DataFrame, int]:
    """Return one user's fixes, and k; kept, so that table and picture stay of the same user."""
    import pandas as pd

    if data.made_up:
        return one_user(data, None)
    path = source.kept / f"{data.name}_user.parquet"
    if not path.exists():
        with replacing(path, mode=SECRET) as part:
            one_user(data, source.folder)[0].to_parquet(part, index=False)
    return pd.read_parquet(path), data.k


def one_user(data: DataSet, folder: Path | None) -> tuple[pd.DataFrame, int]:
    """Return the fixes of one user, and k: made up, or with the median number of fixes.

    Where a region stands for a trajectory, those of the user's longest.
    """
    import pandas as pd

    from dpregions.plots.extraction import example_user

    if data.made_up:
        return example_user().assign(user_id=0), EXAMPLE_K
    fixes = data.fixes(folder)
    sizes = fixes["user_id"].value_counts().sort_index().sort_values(kind="stable")
    mine = fixes[fixes["user_id"] == sizes.index[len(sizes) // 2]]
    if data.gap is not None:
        trajectory = (mine["t"].diff() > pd.Timedelta(data.gap)).cumsum()
        mine = mine[trajectory == trajectory.value_counts().sort_index().idxmax()]
    return mine.reset_index(drop=True), data.k


def implied_histogram(found: Answering, n: int) -> NDArray[Any]:
    """Return the Euler histogram that answers imply, for any method.

    An edge holds what two neighbouring cells answer beyond the answer of both together, a
    vertex what is then missing from a block of four. For a method with an Euler histogram
    it is that histogram. For sums of cells it is the cells, and 0 on edges and vertices.
    """
    if isinstance(found, EulerAnswers):
        return found.counts
    one, wide = _blocks(found, n, 1, 1), _blocks(found, n, 1, 2)
    high, four = _blocks(found, n, 2, 1), _blocks(found, n, 2, 2)
    upright = one[:, :-1] + one[:, 1:] - wide
    flat = one[:-1] + one[1:] - high
    faces = one[:-1, :-1] + one[1:, 1:] + one[:-1, 1:] + one[1:, :-1]
    edges = upright[:-1] + upright[1:] + flat[:, :-1] + flat[:, 1:]
    whole = np.zeros((2 * n - 1, 2 * n - 1), one.dtype)
    whole[::2, ::2], whole[::2, 1::2], whole[1::2, ::2] = one, upright, flat
    whole[1::2, 1::2] = four - faces + edges
    return whole


def next_non_monotone(counts: NDArray[np.int64]) -> float:
    """Return in how many percent of pairs a row or column apart the smaller answers more.

    Where any rectangle contradicts one that contains it, one of these steps between them does.
    """
    rows, cols = (side // 2 + 1 for side in counts.shape)
    row0, row1, col0, col1 = np.indices((rows, rows, cols, cols)).reshape(4, -1)
    found = EulerAnswers(counts)
    inner = np.stack([row0, row1, col0, col1])[:, (row0 <= row1) & (col0 <= col1)]
    answers, steps, worse = found.answers(inner), 0, 0
    for grown in np.array([[-1, 0, 0, 0], [0, 1, 0, 0], [0, 0, -1, 0], [0, 0, 0, 1]]):
        outer = inner + grown[:, None]
        fits = (outer[0] >= 0) & (outer[1] < rows) & (outer[2] >= 0) & (outer[3] < cols)
        steps += int(fits.sum())
        worse += int((found.answers(outer[:, fits]) < answers[fits]).sum())
    return 100 * worse / max(steps, 1)


def _blocks(found: Answering, n: int, height: int, width: int) -> NDArray[Any]:
    """Return the answers of every placement of a block of cells."""
    shape = (n - height + 1, n - width + 1)
    row, col = np.indices(shape).reshape(2, -1)
    answers = found.answers(np.stack([row, row + height - 1, col, col + width - 1]))
    return np.asarray(answers).reshape(shape)


@lru_cache(maxsize=2)
def _exact(setting: Setting, kept: Path) -> ExactData:
    return exact_data(setting, kept)


def _stream(seed: int, key: str, repetition: int, purpose: str) -> np.random.Generator:
    return np.random.default_rng([seed, repetition, *f"{key} {purpose}".encode()])


def _noise(seed: int, key: str, repetition: int, method: str) -> StudyNoise:
    return StudyNoise(int(_stream(seed, key, repetition, method).integers(2**62)))


def _draws(
    source: Source, setting: Setting, data: ExactData, repetition: int
) -> Iterator[tuple[str, Answering]]:
    """Yield what each method gives with one draw of noise, the truth first."""
    yield EULER, data.truth
    budget = Budget(setting.epsilon)
    for name in source.methods:
        noise = _noise(source.seed, setting.key, repetition, name)
        yield from METHODS[name](data, budget, "add-remove", noise).items()


def _questions(
    n: int, rng: np.random.Generator
) -> Iterator[tuple[str, float, int, int, NDArray[np.int64]]]:
    """Yield kind, share of the area, height, width and placements of each question."""
    for share in sorted({*SMALL, *LARGE}):
        yield "size", share, *shape_of(share, n, n), rectangles(share, n, n, PLACEMENTS, rng)
    for kind, area in shape_areas(n).items():
        for height, width in shapes_of_area(area, n, n):
            cells = placed(height, width, n, n, PLACEMENTS, rng)
            yield kind, area / n**2, height, width, cells


def _seconds(step: Callable[[Any], object], argument: Any) -> float:
    start = time.perf_counter()
    step(argument)
    return time.perf_counter() - start


def _preparation_times(source: Source, data: DataSet, setting: Setting) -> Iterator[Row]:
    from dpregions import synthetic

    data.regions_of(synthetic.fixes(3))  # compile, once
    start = time.perf_counter()
    fixes = data.fixes(source.folder)
    read = time.perf_counter()
    regions = data.regions_of(fixes)
    extracted = time.perf_counter()
    by_user = "user_id" if data.unit == "user" else None
    exact = ExactData.of(regions, data.grid(setting.n), MAX_DIAMETER, user_id=by_user)
    exact.counts  # noqa: B018 - counted on first use
    counted = time.perf_counter()
    seconds = (read - start, extracted - read, counted - extracted)
    for step, value in zip(PREPARATION, seconds, strict=True):
        yield {"repetition": 0, "step": step, "seconds": value}


PREPARATION = ("read the fixes", "fixes to regions", "Euler")
"""Steps before any noise, done once."""


def _timed_steps(
    source: Source, setting: Setting, data: ExactData
) -> dict[str, Callable[[NoiseSource], object]]:
    """Return what is timed: the paper's steps one by one, other methods whole."""
    budget = Budget(setting.epsilon)
    steps: dict[str, Callable[[NoiseSource], object]] = {}
    reach = euler_sensitivity(data.bound.k, "add-remove", setting.n, setting.n)

    def diff_priv(noise: NoiseSource) -> NDArray[np.int64]:
        return np.maximum(noise.add(data.counts, epsilon=budget, sensitivity=reach), 0)

    noisy = diff_priv(StudyNoise(source.seed))
    consistent = paper.lin_prog(noisy)
    for name in source.methods:
        if name == "paper":
            steps["diff-priv"] = diff_priv
            steps["lin-prog"] = lambda _: paper.lin_prog(noisy)
            steps["round"] = lambda _: paper.round_counts(consistent)
        else:
            steps[name] = partial(_whole, METHODS[name], data, budget)
    return steps


def _whole(run: Method, data: ExactData, budget: Budget, noise: NoiseSource) -> object:
    return run(data, budget, "add-remove", noise)
