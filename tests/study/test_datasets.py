"""The public choices of the data sets."""

from __future__ import annotations

from dpregions.study.datasets import CABSPOTTING, GEOLIFE, TDRIVE, Setting


def test_sensitivities_are_those_the_paper_prints():
    assert [Setting(TDRIVE, n).sensitivity for n in (20, 30, 10)] == [25, 49, 9]
    assert Setting(GEOLIFE, 20).sensitivity == 25
    assert [Setting(CABSPOTTING, n).sensitivity for n in (4, 20)] == [49, 729]


def test_cells_have_the_sides_of_the_paper():
    assert [Setting(CABSPOTTING, n).cell_km for n in (4, 20)] == [0.8, 0.16]
    assert Setting(TDRIVE, 20).data.grid(20).shape == (20, 20)
    assert Setting(TDRIVE, 30).data.grid(30).shape == (30, 30)
