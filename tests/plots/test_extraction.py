"""The picture of region extraction: what it draws, and what it needs."""

from __future__ import annotations

import sys

import pandas as pd
import pytest

from dpregions import synthetic
from dpregions.errors import MissingExtraError
from dpregions.plots.extraction import plot_extraction

UTM = "EPSG:32632"


def test_the_picture_is_drawn():
    matplotlib = pytest.importorskip("matplotlib")
    figure = plot_extraction(synthetic.example_user(), k=100, max_diameter="2km", crs=UTM)
    assert isinstance(figure, matplotlib.figure.Figure)
    assert len(figure.axes) == 4
    on_a_line = pd.DataFrame({"lon": [9.0, 9.001, 9.002], "lat": 48.5})
    for few in (on_a_line, on_a_line[:1]):
        assert plot_extraction(few, k=100, max_diameter="2km", crs=UTM).axes


@pytest.mark.parametrize("package", ["matplotlib", "scipy"])
def test_the_picture_needs_the_extra_and_names_it(monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=rf"{package}.*dpregions\[plot\]"):
        plot_extraction(synthetic.example_user(), k=100, max_diameter="2km", crs=UTM)
