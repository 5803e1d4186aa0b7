"""What a release adds to exact counts has the law that it states, on every way that counts take.

The test has power, which is tested too: it accepts integer Laplace noise of the scale, and rejects
noise 30 % off in scale, shifted, Gaussian, missing in places, or used twice.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
import shapely
from scipy import stats

import dpregions as dpr
from dpregions import EulerHistogram, Grid
from dpregions.engines.local import count
from dpregions.intake.regions import read_outlines
from dpregions.mechanisms.footprint.mechanism import Footprint
from dpregions.mechanisms.footprint.tally import FootprintTally
from support.footprint_releases import BLOCKS

GRID = Grid(0, 0, 1, 60, 60)
N, EPSILON = 3_000, 10
SCALE = 25 / EPSILON
"""Of the paper's noise: a region of two cells touches up to 25 components."""
CHANCE = 1e-7
"""How seldom good noise may be rejected."""


def p_value(noise: np.ndarray, scale: float) -> float:
    """Return how seldom integer Laplace noise of a scale is as far from its law, or as uneven."""
    ratio, n = np.exp(-1 / scale), noise.size
    most = int(scale * np.log(n / 40))  # beyond which fewer than some 20 are expected on a side
    values = np.arange(-most, most + 1)
    law = (1 - ratio) / (1 + ratio) * ratio ** np.abs(values)
    tail = (1 - law.sum()) / 2
    cut = np.clip(noise, -most - 1, most + 1)
    seen = np.bincount(cut + most + 1, minlength=2 * most + 3)
    whole = stats.chisquare(seen, n * np.array([tail, *law, tail])).pvalue
    # Four parts by place, each by its mean size: noise that is missing somewhere is seen there.
    sizes = [np.abs(part) for part in np.array_split(noise, 4)]
    mean, square = 2 * ratio / (1 - ratio**2), 2 * ratio / (1 - ratio) ** 2
    far = [abs(s.mean() - mean) / np.sqrt((square - mean**2) / s.size) for s in sizes]
    return float(min(whole, *(2 * stats.norm.sf(z) for z in far)))


def alike(one: np.ndarray, other: np.ndarray) -> float:
    """Return how seldom two independent noises are as correlated."""
    return float(stats.pearsonr(one, other).pvalue)


@pytest.fixture(scope="module")
def city() -> pa.Table:
    """Return regions of users who have two each, in many small batches."""
    rng = np.random.default_rng(3)
    shapes = shapely.buffer(shapely.points(rng.uniform(0, 60, (N, 2))), 0.9, quad_segs=2)
    wkb = pa.array(shapely.to_wkb(shapes).tolist(), pa.binary())
    table = pa.table({"user_id": np.arange(N) // 2, "geometry": wkb})
    return pa.Table.from_batches(table.to_batches(max_chunksize=100))


def drawn(regions, city: pa.Table, **options) -> np.ndarray:
    """Return the noise of a release by the paper's method, place by place."""
    made = dpr.release(regions, GRID, epsilon=EPSILON, max_diameter=2, method="paper", **options)
    given = {"max_diameter": 2, "user_id": "user_id"} | options
    return (made.signed - EulerHistogram.from_regions(city, GRID, **given).counts).ravel()


def one_thread(city, request):
    return city.combine_chunks()


def threads_and_batches(city, request):
    request.getfixturevalue("monkeypatch").setattr("dpregions.intake.regions.BATCH", 100)
    return city


def several_passes(city, request):
    request.getfixturevalue("monkeypatch").setattr(
        "dpregions.engines.local.memory_bytes", lambda: 4.0 * 40_000
    )
    return city


def a_stream(city, request):
    return city.to_reader()


def the_driver_of_spark(city, request):
    return request.getfixturevalue("spark").createDataFrame(city).repartition(3)


@pytest.mark.filterwarnings("ignore:PySpark does not yet:FutureWarning")
@pytest.mark.parametrize(
    "way", [one_thread, threads_and_batches, several_passes, a_stream, the_driver_of_spark]
)
def test_noise_has_its_law_and_no_two_releases_share_it(way, city, request):
    one, other = (drawn(way(city, request), city) for _ in range(2))
    assert one.size > 14_000
    for noise in (one, other):
        assert p_value(noise, SCALE) > CHANCE
    assert alike(one, other) > CHANCE
    assert alike(one[1:], one[:-1]) > CHANCE


def test_each_row_by_itself_has_the_same_law(city):
    assert p_value(drawn(city, city, user_id=None), SCALE) > CHANCE


def laplace(rng, scale, n=14_161):
    a = np.exp(-1 / scale)
    return rng.geometric(1 - a, n) - rng.geometric(1 - a, n)


@pytest.mark.parametrize("seed", range(20))
def test_the_test_accepts_the_true_law(seed):
    assert p_value(laplace(np.random.default_rng(seed), SCALE), SCALE) > CHANCE


MUTANTS = {
    "30 % too small": lambda rng: laplace(rng, SCALE / 1.3),
    "30 % too large": lambda rng: laplace(rng, 1.3 * SCALE),
    "shifted": lambda rng: laplace(rng, SCALE) + 1,
    "Gaussian": lambda rng: np.rint(rng.normal(0, np.sqrt(2) * SCALE, 14_161)).astype(int),
    "missing in a tenth": lambda rng: laplace(rng, SCALE) * (np.arange(14_161) > 1_416),
    "cut at 0": lambda rng: np.maximum(laplace(rng, SCALE), 0),
    "in steps of two": lambda rng: 2 * laplace(rng, SCALE / 2),
}


@pytest.mark.parametrize("mutant", MUTANTS)
@pytest.mark.parametrize("seed", range(3))
def test_the_test_rejects_other_noise(mutant, seed):
    assert p_value(MUTANTS[mutant](np.random.default_rng(seed)), SCALE) < CHANCE


def test_noise_that_is_used_twice_is_seen():
    noise = laplace(np.random.default_rng(0), SCALE)
    other = laplace(np.random.default_rng(1), SCALE)
    assert alike(noise, other) > CHANCE > alike(noise, noise)
    half = np.concatenate([noise[:7_000], other[:7_161]])
    assert alike(noise, half) < CHANCE


@pytest.mark.filterwarnings("ignore:PySpark does not yet:FutureWarning")
@pytest.mark.parametrize("way", [threads_and_batches, several_passes, the_driver_of_spark])
def test_footprints_have_theirs_on_every_level(way, city, request):
    method = Footprint(strategy=BLOCKS)
    made = dpr.release(way(city, request), GRID, epsilon=2, max_diameter=2, method=method)
    measured = made.outcome.reading.measured
    tree = measured.hierarchy
    reading = read_outlines(city, GRID, GRID.bound(2, "shrink"), user_id="user_id")
    tally = count(reading, lambda: FootprintTally(tree.buckets))
    exact = tally.counts(tree.buckets)
    drawn = 0
    for level, (values, variance) in measured.noisy.items():
        noise = values - tree.sums(level, exact)
        ratio = ((variance + 1) - np.sqrt(2 * variance + 1)) / variance
        if noise.size > 400:
            assert p_value(noise.astype(int), -1 / np.log(ratio)) > CHANCE
            drawn += noise.size
    assert drawn > 2_000
