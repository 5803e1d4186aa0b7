"""Published bodies on cells that were not measured: counted exactly, nobody twice."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

import dpregions as dpr
from dpregions.errors import (
    CRSError,
    GridError,
    InputTypeError,
    OutsideAreaWarning,
    PrivacyError,
)
from dpregions.privacy.seeded import StudyNoise
from dpregions.releases.make import release_with
from support.releases_on_cells import (
    AREA,
    CRS,
    PARTITIONS,
    districts,
    hexagons,
    squares,
    study_on,
    town_on,
    union_of,
    voronoi,
)

MADE = study_on(voronoi())
BODIES = MADE.to_regions()


def shapely_count(shape) -> int:
    return int(shapely.intersects(np.asarray(BODIES.geometry), shape).sum())


@pytest.mark.parametrize("name", PARTITIONS)
def test_counts_are_the_exact_histogram_of_the_published_bodies(name):
    cells = PARTITIONS[name]()
    found = MADE if cells == MADE.grid else MADE.on(cells)
    exact = dpr.EulerHistogram.from_regions(BODIES, cells, user_id=None)
    np.testing.assert_array_equal(found.counts, exact.counts)
    assert found.counts.sum() > 0


@pytest.mark.parametrize("name", ["voronoi", "hexagons", "polygons"])
def test_a_set_of_cells_counts_the_bodies_that_touch_its_union(name):
    cells = PARTITIONS[name]()
    asked, rng = MADE.on(cells), np.random.default_rng(1)
    sets = [[label] for label in cells.labels[:8]]
    sets += [rng.choice(np.array(cells.labels, object), 4).tolist() for _ in range(12)]
    with warnings.catch_warnings():  # nobody counts twice: nothing to warn of
        warnings.simplefilter("error")
        found = asked.count(cells=sets)
    assert found.tolist() == [shapely_count(union_of(cells, labels)) for labels in sets]
    np.testing.assert_array_equal(asked.count(cells=sets[3]), found[3])
    faces = asked.counts[: cells.n_cells]
    np.testing.assert_array_equal(asked.count(cells=[[v] for v in cells.labels]), faces)


@given(st.lists(st.integers(0, 39), min_size=1, max_size=12), st.integers(0, 39))
@settings(max_examples=40)
def test_more_cells_never_count_less_and_never_more_than_their_sum(some, one_more):
    names = [f"mast {i}" for i in some]
    before, alone = MADE.count(cells=names), MADE.count(cells=[f"mast {one_more}"])
    after = MADE.count(cells=[*names, f"mast {one_more}"])
    assert max(before, alone) <= after <= before + alone


def test_drawn_shapes_are_answered_as_drawn_and_inside_the_area_alone():
    shapes = [
        shapely.Point(5, 4).buffer(1.5),
        shapely.LineString([(1, 1), (6, 3)]),
        shapely.Point(3, 3),
        shapely.box(2.5, 2.5, 4, 4.2),
        shapely.Point(5, 4).buffer(3).difference(shapely.Point(5, 4).buffer(2.5)),
    ]
    area = MADE.grid.area
    found = MADE.count(np.array(shapes))
    assert found.tolist() == [shapely_count(shape.intersection(area)) for shape in shapes]
    beyond = shapely.box(9, 7, 30, 30)
    assert MADE.count(beyond) == shapely_count(beyond.intersection(area))


def test_beside_the_area_nobody_is_counted_and_that_is_said():
    with pytest.warns(OutsideAreaWarning, match="no cell"):
        assert MADE.count(20, 20, 21, 21) == 0


def test_the_whole_area_has_one_answer_on_every_partition():
    whole = MADE.count(*AREA)
    assert whole == MADE.count(cells=list(voronoi().labels)) > 0
    for cells in (hexagons(), districts(), squares()):
        asked = MADE.on(cells)
        assert asked.count(*AREA) == whole == asked.count(cells=list(cells.labels))
        np.testing.assert_allclose(asked.estimate(*AREA), MADE.estimate(*AREA))
        np.testing.assert_allclose(asked.interval(*AREA), MADE.interval(*AREA))


def test_asking_elsewhere_twice_is_asking_once():
    twice, once = MADE.on(hexagons()).on(districts()), MADE.on(districts())
    np.testing.assert_array_equal(twice.counts, once.counts)
    np.testing.assert_array_equal(twice.signed, once.signed)
    assert (twice.grid, twice.base) == (districts(), MADE.base)
    back = twice.on(voronoi())
    np.testing.assert_array_equal(back.counts, MADE.counts)
    home = twice.on(MADE.base)
    assert home.base is None
    np.testing.assert_array_equal(home.counts, MADE.outcome.counts)
    assert home.stated()["spending"] == MADE.stated()["spending"]


def test_a_release_on_a_grid_is_asked_on_other_cells_too():
    grid = dpr.Grid(0, 0, 1, n_rows=8, n_cols=10, crs=CRS)
    made = study_on(grid, town_on(grid))
    cells = dpr.Partition.from_grid(grid)
    np.testing.assert_array_equal(
        made.on(cells).counts[: cells.n_cells], made.counts[::2, ::2].ravel()
    )
    exact = dpr.EulerHistogram.from_regions(made.to_regions(), hexagons(), user_id=None)
    np.testing.assert_array_equal(made.on(hexagons()).counts, exact.counts)


def test_with_hardly_any_noise_estimates_are_near_counts_and_both_near_the_truth():
    regions = town_on(voronoi(), 3000, 4)
    made = study_on(voronoi(), regions, epsilon=1000)
    truth = dpr.EulerHistogram.from_regions(regions, voronoi(), max_diameter=2.0, crs=CRS).faces
    n = voronoi().n_cells
    for values in (made.counts[:n], made.signed[:n], made.estimate(cells=[[v] for v in NAMES])):
        assert np.abs(values - truth).mean() < 0.06 * truth.mean()
    low, high = made.interval(cells=[[name] for name in NAMES])
    counts = made.count(cells=[[name] for name in NAMES])
    assert ((low <= counts) & (counts <= high)).all()
    assert ((low <= truth) & (truth <= high)).mean() > 0.9


NAMES = voronoi().labels


def test_expected_errors_and_intervals_are_of_the_cells_that_were_asked_for():
    small, large = (MADE.expected_error(cells=list(NAMES[:n])) for n in (1, 20))
    assert 0 < small.total < large.total
    low, high = MADE.interval(cells=list(NAMES[:5]), confidence=0.5)
    wider = MADE.interval(cells=list(NAMES[:5]), confidence=0.99)
    assert wider[0] <= low <= high <= wider[1]


def test_a_covert_release_has_counts_elsewhere_and_nothing_more():
    made = study_on(voronoi(), covert=True)
    asked = made.on(hexagons())
    assert asked.signed is None
    np.testing.assert_array_equal(asked.counts, MADE.on(hexagons()).counts)
    assert asked.count(*AREA) == MADE.count(*AREA)
    with pytest.raises(PrivacyError, match="covert"):
        asked.estimate(*AREA)


# What is refused


def test_another_crs_is_refused_with_the_remedy():
    for crs in ("EPSG:32633", None):
        cells = dpr.Partition.hexagons(AREA, 2, crs=crs)
        with pytest.raises(CRSError, match="in the CRS of the release") as caught:
            MADE.on(cells)
        assert "EPSG:32632" in str(caught.value)


def test_another_place_is_refused():
    cells = dpr.Partition.hexagons((500, 500, 510, 508), 2, crs=CRS)
    with pytest.raises(GridError, match="another place"):
        MADE.on(cells)


def test_a_grid_that_was_not_measured_is_refused_with_the_remedy():
    grid = dpr.Grid(0, 0, 1, n_rows=8, n_cols=10, crs=CRS)
    with pytest.raises(InputTypeError, match=r"Partition\.from_grid\(grid\)"):
        MADE.on(grid)
    assert MADE.on(dpr.Partition.from_grid(grid)).count(*AREA) == MADE.count(*AREA)


@pytest.mark.parametrize("cells", [AREA, "masts.parquet", None, shapely.box(0, 0, 1, 1)])
def test_what_is_neither_grid_nor_partition_is_refused(cells):
    with pytest.raises(InputTypeError, match="Grid or a Partition"):
        MADE.on(cells)


def test_a_release_by_the_papers_method_has_no_bodies_to_ask_elsewhere():
    for cells in (voronoi(), squares()):
        made = study_on(cells, method="paper")
        with pytest.raises(PrivacyError, match="its own cells alone"):
            made.on(hexagons())
        assert made.on(cells).count(*AREA) == made.count(*AREA)


def test_on_a_slanted_area_all_bodies_touch_it_and_intervals_hold_the_whole():
    """Regions are cut to the area before they are measured on squares that reach beyond it."""
    diamond = shapely.Polygon([(0, 0), (60, 40), (100, 100), (40, 60)])
    rng = np.random.default_rng(1)
    xy = rng.uniform(0, 100, (9_000, 2))
    xy = xy[shapely.contains_xy(diamond, *xy.T)]
    cells = dpr.Partition.voronoi(xy[:25], diamond)
    regions = shapely.buffer(shapely.points(xy), rng.uniform(0.5, 2.5, len(xy)))
    terms = {"epsilon": 1, "max_diameter": 10, "user_id": None}
    held = 0
    for seed in range(10):
        release = release_with(StudyNoise(seed), regions, cells, **terms)
        bodies = release.to_regions()
        assert shapely.intersects(diamond, bodies.geometry.array).all()
        assert release.count(diamond) == len(bodies)
        exact = dpr.EulerHistogram.from_regions(bodies, cells, user_id=None)
        np.testing.assert_array_equal(exact.counts, release.counts)
        low, high = release.interval(diamond)
        held += low <= len(xy) <= high
    assert held >= 9


def test_cells_beyond_the_area_of_a_release_are_warned_of():
    release = study_on(PARTITIONS["voronoi"]())
    xmin, ymin, xmax, ymax = release.grid.bounds
    wide = dpr.Partition.hexagons((xmin, ymin, 2 * xmax, ymax), 2.5, crs=release.grid.crs)
    with pytest.warns(OutsideAreaWarning, match="reach beyond the area"):
        release.on(wide)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        release.on(PARTITIONS["hexagons"]())
