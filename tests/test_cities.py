"""Kinds of made-up cities: each is what its name says, on any area and with any bound."""

from __future__ import annotations

import numpy as np
import pytest
import shapely

from dpregions import EulerHistogram, Grid, cities, synthetic
from dpregions.errors import InputError

GRID = Grid(0, 0, 1, 40, 40)


def lengths(city):
    """How long each region is, as a share of the largest diameter."""
    return 2 * shapely.minimum_bounding_radius(city.regions(GRID, 2).geometry.values) / 2


@pytest.mark.parametrize("kind", cities.KINDS)
def test_a_city_is_of_its_size_repeats_with_its_seed_and_differs_with_another(kind):
    one, same, other = (cities.made_up(kind, 300, seed=seed) for seed in (1, 1, 2))
    assert one.homes.shape == (300, 2) and one.around.shape[::2] == (300, 2)
    np.testing.assert_array_equal(one.homes, same.homes)
    np.testing.assert_array_equal(one.around, same.around)
    assert not np.isin(one.homes, other.homes).any()
    assert len(cities.made_up(kind, 0).regions(GRID, 2)) == 0


@pytest.mark.parametrize("kind", cities.KINDS)
def test_most_regions_are_in_the_area_and_within_the_bound(kind):
    city = cities.made_up(kind, 4000)
    inside = ((city.homes >= 0) & (city.homes < 1)).all(axis=1)
    assert inside.mean() > 0.85
    assert (lengths(city) <= 1.0).mean() > 0.9


def test_a_city_is_stretched_to_the_area_and_its_regions_to_the_bound():
    city = cities.made_up("even", 50)
    small, large = Grid(0, 0, 1, 10, 20), Grid(100, 50, 5, 10, 20)
    near, far = city.places(small, 2), city.places(large, 10)
    np.testing.assert_allclose(far, near * 5 + [100, 50])


def test_districts_are_the_synthetic_city():
    made = cities.made_up("districts", 200, seed=3).regions(synthetic.grid(), "2km")
    expected = synthetic.regions(200, seed=3)
    assert made.crs == expected.crs
    assert made.geometry.geom_equals_exact(expected.geometry, 1e-3).all()


def test_an_even_city_is_even_and_a_skewed_one_has_four_fifths_in_a_fiftieth():
    def busiest_fiftieth(kind):
        found = np.histogram2d(*cities.made_up(kind, 50_000).homes.T, bins=50, range=[[0, 1]] * 2)
        cells = np.sort(found[0].ravel())[::-1]
        return cells[: round(len(cells) * cities.CENTRE_AREA)].sum() / 50_000

    assert busiest_fiftieth("even") < 0.04
    assert abs(busiest_fiftieth("skewed") - cities.CENTRE_SHARE) < 0.02


def test_two_malls_hold_twenty_regions_of_twenty_three():
    city = cities.made_up("malls", 2300)
    faces = EulerHistogram.from_regions(city.regions(GRID, 2), GRID, user_id=None).faces
    spots = np.sort(faces.ravel())[::-1]
    assert spots[0] > 300 and np.median(faces) <= 2
    close = (np.abs(city.homes[:, None] - city.homes[None, ::10]).max(axis=2) < 0.03).sum(axis=0)
    assert 0.8 < (close > 700).mean() < 0.93


def test_sizes_are_those_that_the_names_say():
    typical = {kind: np.median(lengths(cities.made_up(kind, 2000))) for kind in cities.KINDS}
    assert typical["small"] < 0.1 < 0.2 < typical["even"] < 0.5 < typical["wide"]
    assert abs(typical["thin"] - 0.65) < 0.01


@pytest.mark.parametrize("kind", ["corridor", "thin"])
def test_thin_regions_and_corridors_have_no_area(kind):
    assert cities.made_up(kind, 20).regions(GRID, 2).area.max() == 0


def test_a_corridor_is_a_line():
    homes = cities.made_up("corridor", 2000).homes
    assert abs(np.corrcoef(homes.T)[0, 1]) > 0.98


def test_unknown_kinds_and_numbers_are_refused_by_name():
    with pytest.raises(InputError, match="kind='round' is unknown: use even, districts, skewed"):
        cities.made_up("round", 10)
    with pytest.raises(InputError, match="n_regions must be at least 0, got -1"):
        cities.made_up("even", -1)
