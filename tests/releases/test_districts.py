"""The total of a release, and districts in their order."""

import geopandas
import numpy as np
import pytest
import shapely

import dpregions as dpr
from dpregions.errors import InputError, OutsideAreaWarning

GRID = dpr.synthetic.grid()
CITY = dpr.synthetic.regions(800)
XMIN, YMIN, XMAX, YMAX = GRID.bounds
SHAPES = {
    "corner": shapely.box(XMIN, YMIN, XMIN + 1500, YMIN + 1500),
    "all": shapely.box(*GRID.bounds),
    "middle": shapely.Point((XMIN + XMAX) / 2, (YMIN + YMAX) / 2).buffer(4000),
}


@pytest.fixture(scope="module")
def release():
    return dpr.release(CITY, GRID, epsilon=1, max_diameter="2km")


@pytest.fixture(scope="module")
def covert():
    return dpr.release(CITY, GRID, epsilon=1, max_diameter="2km", covert=True)


def districts():
    return geopandas.GeoDataFrame(
        {"name": list(SHAPES)}, geometry=list(SHAPES.values()), crs=GRID.crs
    )


def test_the_summary_is_the_whole_area_with_its_interval(release):
    found = release.summary(confidence=0.9)
    assert found.count == release.count(*GRID.bounds)
    assert (found.low, found.high) == release.interval(*GRID.bounds, confidence=0.9)
    said = str(found)
    assert said.startswith(f"{found.count:,} regions touch the area, with 90 % confidence ")
    assert said.endswith("(one region per user, epsilon = 1.0).")


def test_a_covert_summary_has_a_count_alone(covert):
    found = covert.summary()
    assert found.low is None and found.high is None
    assert str(found).startswith(f"{found.count:,} regions touch the area (one region")


def test_districts_are_ranked_by_their_counts(release):
    table = release.table(districts(), confidence=0.9)
    assert list(table.columns) == ["name", "count", "low", "high", "exact", "rank"]
    assert table["name"].tolist() == ["all", "middle", "corner"]
    assert table["rank"].tolist() == [1, 2, 3]
    there = districts()
    assert table["count"].sort_index().tolist() == release.count(there).tolist()
    ends = release.interval(there, confidence=0.9)
    np.testing.assert_array_equal(table[["low", "high"]].sort_index(), ends)
    assert table["exact"].all()


def test_equal_counts_share_a_rank_and_what_lies_outside_has_none(release):
    beside = shapely.box(XMAX + 10, YMIN, XMAX + 20, YMAX)
    shapes = [SHAPES["corner"], beside, SHAPES["all"], SHAPES["all"]]
    with pytest.warns(OutsideAreaWarning):
        table = release.table(geopandas.GeoSeries(shapes, index=list("abcd"), crs=GRID.crs))
    assert table.index.tolist() == ["c", "d", "a", "b"]
    assert table["rank"].tolist()[:3] == [1, 1, 3]
    last = table.loc["b"]
    assert last[["count", "low", "high", "rank"]].isna().all()


def test_shapes_alone_and_covert_releases_have_what_there_is(covert):
    table = covert.table(np.array(list(SHAPES.values())))
    assert list(table.columns) == ["count", "exact", "rank"]
    assert table.index.tolist() == [1, 2, 0]


def test_a_column_that_the_table_adds_is_refused_by_its_name(release):
    with pytest.raises(InputError, match="column rank already, which the table adds: rename it"):
        release.table(districts().assign(rank=1))


def test_masts_have_a_summary_and_a_table_too(release):
    hexagons = dpr.Partition.hexagons(GRID.bounds, 4000, crs=GRID.crs)
    there = release.on(hexagons)
    assert there.summary().count == there.count(*hexagons.bounds)
    assert there.table(districts())["name"].tolist() == ["all", "middle", "corner"]
