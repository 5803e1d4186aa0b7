"""Units of work and what they cost."""

from __future__ import annotations

import pytest

from dpregions.study.datasets import CABSPOTTING, TDRIVE, Setting
from dpregions.study.experiments import EXPERIMENTS
from dpregions.study.experiments.base import READING, Unit
from dpregions.study.experiments.consistency import CONSISTENCY
from dpregions.study.experiments.errors import ERRORS
from dpregions.study.experiments.times import TIMES
from support.small_studies import TINY


@pytest.mark.parametrize(
    ("measured", "setting", "seconds"),
    [
        (ERRORS, Setting(CABSPOTTING, 20), 0.52),
        (CONSISTENCY.measure, Setting(TDRIVE, 20), 2.56),
    ],
)
def test_costs_are_near_the_seconds_once_measured(measured, setting, seconds):
    cost = Unit(measured, setting, 10, 20).cost / 10
    assert cost == pytest.approx(seconds, rel=0.2)


def test_every_measure_has_a_cost_and_reading_a_file_counts_once():
    assert all(made.measure.once + made.measure.each > 0 for made in EXPERIMENTS.values())
    first, second = (Unit(TIMES.measure, Setting(TDRIVE, 20), at, at + 10).cost for at in (0, 10))
    assert first - second == pytest.approx(READING)
    assert Unit(TIMES.measure, Setting(TINY, 20), 0, 10).cost == pytest.approx(second)
