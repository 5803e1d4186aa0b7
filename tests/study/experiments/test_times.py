"""Times: of which steps they are taken."""

from __future__ import annotations

from dpregions.study.datasets import Setting
from dpregions.study.experiments.base import Unit, measure
from dpregions.study.experiments.times import PREPARATION, TIMES
from support.small_studies import TINY, source


def test_times_are_taken_of_every_step(tmp_path):
    table = measure(
        source(tmp_path, "paper", "four corners"), Unit(TIMES.measure, Setting(TINY, 10), 0, 2)
    )
    once = table["step"].isin(PREPARATION)
    assert list(table.loc[once, "step"]) == list(PREPARATION)
    assert list(table.loc[~once, "step"]) == 2 * ["diff-priv", "lin-prog", "round", "four corners"]
    assert table["seconds"].gt(0).all()
