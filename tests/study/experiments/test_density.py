"""Maps of regions by cell."""

from __future__ import annotations

from numpy.testing import assert_array_equal

from dpregions.study.datasets import Setting, exact_data
from dpregions.study.experiments.base import Unit, measure
from dpregions.study.experiments.density import DENSITY
from dpregions.study.methods import EULER
from support.small_studies import TINY, source


def test_maps_hold_the_exact_faces_and_every_methods_answers(tmp_path):
    setting = Setting(TINY, 10)
    table = measure(source(tmp_path, "paper"), Unit(DENSITY.measure, setting, 0, 1))
    exact = table[table["method"] == EULER].pivot(index="row", columns="col", values="regions")
    assert_array_equal(exact.to_numpy(), exact_data(setting, tmp_path).counts[::2, ::2])
    assert set(table["method"]) == {EULER, "diff-priv", "lin-prog", "round"}
