import geopandas
import numpy as np
import pytest
import shapely

from dpregions import EulerHistogram, synthetic
from dpregions.errors import InputError


def test_the_same_seed_gives_the_same_city():
    first, second = synthetic.regions(50, seed=3), synthetic.regions(50, seed=3)
    assert first.geometry.geom_equals(second.geometry).all()
    assert synthetic.fixes(5, seed=3).equals(synthetic.fixes(5, seed=3))


def test_another_seed_gives_another_city():
    first, second = synthetic.regions(50, seed=3), synthetic.regions(50, seed=4)
    assert not first.geometry.geom_equals(second.geometry).any()


def test_a_user_has_the_same_region_in_a_larger_city():
    small, large = synthetic.regions(10), synthetic.regions(500)
    assert small.geometry.geom_equals(large.geometry[:10]).all()


def test_sizes_are_mixed_and_places_crowded():
    regions = synthetic.regions(5000)
    across = 2 * shapely.minimum_bounding_radius(regions.geometry.values)
    low, median, high = np.quantile(across, [0.05, 0.5, 0.99])
    assert low < 400 and 500 < median < 1200 and high > 2500
    faces = EulerHistogram.from_regions(regions, synthetic.grid()).faces
    assert faces.max() > 10 * faces.mean()
    assert (faces == 0).any()


def test_most_fixes_lie_in_or_near_the_region_or_at_work():
    regions, fixes = synthetic.regions(40), synthetic.fixes(40)
    assert list(fixes.columns) == ["user_id", "t", "lon", "lat"]
    points = geopandas.GeoSeries.from_xy(fixes["lon"], fixes["lat"], crs=4326).to_crs(regions.crs)
    own = regions.geometry.array[fixes["user_id"].to_numpy()]
    near_home = shapely.distance(np.asarray(points.array), np.asarray(own)) < 300
    assert 0.5 < near_home.mean() < 0.95


@pytest.mark.parametrize("make", [synthetic.regions, synthetic.fixes])
def test_an_empty_city_is_a_city(make):
    assert len(make(0)) == 0


def test_a_negative_number_of_users_is_refused():
    with pytest.raises(InputError, match="n_users must be at least 0, got -1"):
        synthetic.regions(-1)
    with pytest.raises(InputError, match="per_user must be at least 1, got 0"):
        synthetic.fixes(3, per_user=0)
