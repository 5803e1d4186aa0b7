"""How often intervals hold the true count: what is asked, by decile of truth, and what is below."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import pytest

import dpregions as dpr
from dpregions import cities
from dpregions.geometry.rectangles import Rectangles
from dpregions.planning.exact_data import ExactData
from dpregions.privacy.seeded import StudyNoise
from dpregions.releases import make
from dpregions.study.coverage import (
    ANYWHERE,
    WITH_PEOPLE,
    asked_of,
    asked_shapes,
    inside,
    interval_rows,
    seed_of,
)
from dpregions.study.coverage_figures import (
    coverage_table,
    coverage_tests,
    width_ratios,
    with_deciles,
)

GRID = dpr.synthetic.grid("12km", "1km")


@cache
def town() -> ExactData:
    return ExactData.of(dpr.synthetic.regions(1000), GRID, "2km")


def rows(**options):
    return interval_rows(town(), "2km", **{"epsilon": 1, "placements": 8} | options)


def made_up_rows(rng, chance, releases=60, deciles=10, each=6):
    """Rows of one size whose intervals hold with a chance for each decile, alike in a release."""
    decile = np.tile(np.repeat(np.arange(deciles), each), releases)
    release = np.repeat(np.arange(releases), deciles * each)
    # Half of the queries of a release share its luck.
    shared = rng.random((releases, deciles))[release, decile]
    luck = np.where(rng.random(len(release)) < 0.5, shared, rng.random(len(release)))
    held = luck < np.asarray(chance)[decile]
    truth = 100.0 * decile + rng.random(len(release))
    return pd.DataFrame(
        {"release": release, "size": "1 x 1", "truth": truth, "low": truth - held, "high": truth}
    ).assign(low=lambda t: np.where(held, t["low"], t["truth"] + 1), high=truth + 2.0)


# What is asked


def test_each_release_is_asked_every_size_at_both_kinds_of_places_and_the_area_once():
    found = rows(releases=2)
    asked = found[found["release"] == 0].groupby(["size", "placed"], sort=False).size()
    sizes = ["1 x 1", "2 x 2", "3 x 3", "25 %", "50 %"]
    for size in sizes:
        assert asked[size].to_dict() == {ANYWHERE: 4, WITH_PEOPLE: 4}
    assert asked["100 %"].to_dict() == {ANYWHERE: 1}
    assert found.attrs["label"] == ExactData.label
    assert sum(found.attrs["plans"].values()) == 2


def test_no_shape_is_asked_twice():
    for n in (1, 2, 3, 4, 10, 20):
        shapes = asked_shapes(dpr.Grid(0, 0, 1, n, n))
        assert len(set(shapes.values())) == len(shapes)
        assert (n, n) in shapes.values()


def test_releases_are_the_same_one_by_one_and_together():
    together, told = rows(releases=3), []
    alone = pd.concat([rows(releases=[i], progress=told.append) for i in range(3)])
    pd.testing.assert_frame_equal(together, alone.reset_index(drop=True))
    assert told == [1, 1, 1]
    assert together.groupby("release")["low"].sum().nunique() == 3


def test_data_that_are_counted_once_give_the_intervals_of_a_release_of_the_regions():
    found, asked = rows(releases=1), asked_of(town(), 0, 8)
    regions = dpr.synthetic.regions(1000)
    noise = StudyNoise(seed_of(0))
    release = make.release_with(noise, regions, GRID, epsilon=1, max_diameter="2km")
    low, high = release.interval(*inside(asked.cells, GRID), within="cells")
    np.testing.assert_array_equal(found["low"], low)
    np.testing.assert_array_equal(found["high"], high)


def test_places_with_people_are_as_busy_as_regions_are():
    grid = dpr.Grid(0, 0, 1, 40, 40)
    data = ExactData.of(cities.made_up("skewed", 3000).regions(grid, 2), grid, 2)
    asked = asked_of(data, 0, 400)
    table = pd.DataFrame({"size": asked.size, "placed": asked.placed})
    table["truth"] = data.truth.answers(asked.cells)
    median = table.groupby(["size", "placed"])["truth"].median()
    assert median["1 x 1", ANYWHERE] < 5 < 100 < median["1 x 1", WITH_PEOPLE]
    centre = data.centres[:, np.newaxis, :]
    row0, row1, col0, col1 = asked.cells[:, [p == WITH_PEOPLE for p in asked.placed], np.newaxis]
    held = (row0 <= centre[0]) & (centre[0] <= row1) & (col0 <= centre[1]) & (centre[1] <= col1)
    assert held.any(axis=1).all()


def test_a_query_is_asked_of_the_cells_whose_truth_it_is_held_against():
    """Counted exactly, the rectangle of a query touches what its cells touch."""
    exact = dpr.EulerHistogram.from_regions(dpr.synthetic.regions(1000), GRID, max_diameter="2km")
    rng, on = np.random.default_rng(0), Rectangles(*GRID.shape)
    for share in on.SHARES:
        cells = on.placed(*on.shape_of(share), 30, rng, turned=True)
        np.testing.assert_array_equal(
            exact.count(*inside(cells, GRID)), town().truth.answers(cells)
        )


def test_with_hardly_any_noise_intervals_are_about_the_cells_that_truth_is_of():
    """And not about rectangles a quarter of a cell within them, as drawn."""
    found = coverage_table(rows(epsilon=50, releases=2, placements=24), ["size"])
    assert (found["held"] > 0.9).all()
    assert (found["width"] < 0.25 * found["truth"].clip(lower=40)).all()


def test_more_confidence_holds_more_with_wider_intervals():
    low, high = (coverage_table(rows(releases=3, confidence=c), ["size"]) for c in (0.2, 0.999))
    assert (high["width"] > 2 * low["width"]).all()
    assert low["held"].mean() < 0.65
    assert high["held"].mean() > 0.99


@pytest.mark.slow
def test_intervals_hold_where_detail_is_guessed_from_blocks_and_the_mix():
    found = rows(epsilon=0.4, releases=60, placements=24)
    chosen = found.attrs["plans"]
    guessed = sum(n for plan, n in chosen.items() if "by size of footprint in the area" in plan)
    assert guessed > 50
    held = coverage_table(found, ["size"])["held"]
    # 60 totals: seven misses of the whole area would be three standard deviations.
    assert (held > 0.88).all()
    assert held.mean() > 0.94


# What comes of it


def test_deciles_are_of_a_size_and_equal_truths_share_one():
    table = pd.DataFrame({"size": ["a"] * 10 + ["b"] * 10, "low": 0.0, "high": 5.0})
    table["truth"] = [0] * 6 + [1, 2, 3, 4] + list(range(10, 20))
    found = with_deciles(table)
    assert found["decile"].tolist() == [4] * 6 + [7, 8, 9, 10] + list(range(1, 11))
    assert found["held"].tolist() == [True] * 10 + [False] * 10
    assert (found["width"] == 5).all()


def test_what_holds_too_seldom_is_below_and_nothing_else():
    rng = np.random.default_rng(0)
    chance = [0.95] * 9 + [0.7]
    settings = {"good": made_up_rows(rng, [0.95] * 10), "bad": made_up_rows(rng, chance)}
    found = coverage_tests(settings)
    assert found.index[found["below"]].tolist() == [("bad", "1 x 1", 10)]
    assert found["n"].sum() == sum(map(len, settings.values()))


def test_what_holds_just_as_often_as_promised_is_seldom_below():
    """Family-wise: one of 60 families of 20, where luck is shared within releases."""
    rng = np.random.default_rng(1)
    false = 0
    for _ in range(60):
        settings = {str(i): made_up_rows(rng, [0.92] * 10, releases=50) for i in range(2)}
        false += coverage_tests(settings, resamples=500)["below"].any()
    assert false <= 3


def test_an_interval_that_always_holds_is_not_below():
    found = coverage_tests({"all": made_up_rows(np.random.default_rng(2), [1.0] * 10)})
    assert not found["below"].any() and (found["held"] == 1).all()


def test_widths_are_compared_size_by_size():
    now = pd.DataFrame({"size": ["a", "b"], "truth": 1.0, "low": 0.0, "high": [3.0, 4.0]})
    found = width_ratios(now, now.assign(high=[2.0, 4.0]))
    assert found["ratio"].to_dict() == {"a": 1.5, "b": 1.0}
    assert found["held_earlier"].tolist() == [1.0, 1.0]
