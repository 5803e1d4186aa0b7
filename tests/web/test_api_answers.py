"""What the API answers is what the release answers, and says of it."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from dpregions import Grid
from dpregions.errors import ApproximateCountWarning
from dpregions.web.questions import question_of
from dpregions.web.settings import Limits
from support.releases_on_cells import hexagons, study_on
from support.served import Served, city, collection, feature, later_city, serving
from support.small_releases import GRID, paper_study
from support.small_releases import study as covert_study

ROWS, COLS = city().grid.shape


@pytest.fixture(scope="module")
def served() -> Served:
    with serving({"City of X": city(), "later": later_city()}) as found:
        yield found


def drawn(release, shape, crs="EPSG:4326"):
    """What a release says of a shape as drawn."""
    low, high = release.interval(shape, crs=crs)
    return {"count": release.count(shape, crs=crs), "low": low, "high": high}


def numbers(answer):
    return {name: answer[name] for name in ("count", "low", "high")}


def square(lon=11.0, lat=48.49, half=0.01):
    return shapely.box(lon - half, lat - half, lon + half, lat + half)


@given(
    st.tuples(st.integers(0, ROWS - 1), st.integers(0, ROWS - 1)).map(sorted),
    st.tuples(st.integers(0, COLS - 1), st.integers(0, COLS - 1)).map(sorted),
    st.sampled_from([0.5, 0.9, 0.95, 0.999]),
)
def test_a_rectangle_of_cells_is_answered_as_the_release_does(served, rows, cols, confidence):
    cells = [*rows, *cols]
    found = served.json("count", cells=",".join(map(str, cells)), confidence=confidence)
    bounds = city().grid.cell_bounds(*cells)
    low, high = city().interval(*bounds, confidence=confidence)
    assert numbers(found) == {"count": city().count(*bounds), "low": low, "high": high}
    assert found["estimate"] == pytest.approx(city().estimate(*bounds))
    assert found["answered"]["cells"] == cells
    assert found["answered"]["bounds"] == pytest.approx(bounds)
    assert found["answered"]["exact"] and not found["outside"] and not found["answered"]["cut"]
    assert found["confidence"] == confidence


def test_a_bbox_in_degrees_is_answered_for_the_cells_around_it_and_says_so(served):
    found = served.json("count", bbox="10.99,48.48,11.02,48.50", crs="EPSG:4326")
    asked = found["answered"]
    assert asked["snapped"] == "enclosing" and asked["within"] == "cells" and asked["exact"]
    assert found["asked"] == {"bbox": [10.99, 48.48, 11.02, 48.5], "crs": "EPSG:4326"}
    bounds = city().grid.enclosing(shapely.box(10.99, 48.48, 11.02, 48.50), crs=4326)
    assert asked["bounds"] == pytest.approx(bounds)
    assert found["count"] == city().count(*bounds)


def test_the_sides_of_a_bbox_follow_its_own_crs():
    """A parallel bends in a projected plane: its middle is not between its ends."""
    grid = Grid(300_000, 5_300_000, 50, 2400, 3000, crs="EPSG:32632")
    ends = shapely.box(7.0, 48.5, 10.5, 49.0)
    straight = grid.enclosing(ends, crs=4326)
    asked = {"bbox": "7.0,48.5,10.5,49.0", "crs": "EPSG:4326"}
    bent = grid.enclosing(question_of(asked, Limits(), labelled=False).shape, crs=4326)
    assert bent[1] < straight[1] - 1000


@pytest.mark.parametrize("snap", ["drawn", "touched"])
def test_a_bbox_is_answered_as_drawn_or_for_the_cells_it_touches_on_request(served, snap):
    box = shapely.segmentize(shapely.box(10.96, 48.48, 11.04, 48.50), 0.08 / 32)
    found = served.json("count", bbox="10.96,48.48,11.04,48.50", crs="EPSG:4326", snap=snap)
    within = {"drawn": "shape", "touched": "cells"}[snap]
    with pytest.warns(ApproximateCountWarning) if snap == "touched" else np.errstate():
        assert found["count"] == city().count(box, crs=4326, within=within)
    assert found["answered"]["within"] == within
    assert found["answered"]["snapped"] == (None if snap == "drawn" else "touched")
    assert found["answered"]["exact"] == (snap == "drawn")


def test_a_bbox_in_the_releases_own_crs_is_answered_as_drawn(served):
    xmin, ymin, *_ = city().grid.bounds
    bounds = [xmin + 700, ymin + 100, xmin + 2600, ymin + 1300]
    found = served.json("count", bbox=",".join(map(str, bounds)))
    assert found["answered"]["within"] == "shape"
    assert numbers(found) == pytest.approx(drawn(city(), shapely.box(*bounds), None))


def test_a_shape_as_wkt_is_answered_as_drawn(served):
    shape = shapely.Point(11, 48.49).buffer(0.012)
    for path in ("count", "area"):
        found = served.json(path, coords=shape.wkt, crs="EPSG:4326")
        assert numbers(found) == pytest.approx(drawn(city(), shapely.from_wkt(shape.wkt)))


def test_a_point_is_a_place_and_with_a_radius_a_circle(served):
    x, y = np.mean(np.reshape(city().grid.bounds, (2, 2)), axis=0)
    place = served.json("count", point=f"{x},{y}")
    assert place["count"] == city().count(shapely.Point(x, y))
    circle = served.json("count", point=f"{x},{y}", radius=1000)
    assert numbers(circle) == pytest.approx(drawn(city(), shapely.Point(x, y).buffer(1000), None))
    assert circle["asked"] == {"point": [x, y], "radius": 1000}


def test_features_come_back_with_their_numbers(served):
    shapes = [square(), square(10.98, 48.5, 0.004), shapely.Point(11, 48.49)]
    parts = [feature(shapely.geometry.mapping(s), name=f"{i}") for i, s in enumerate(shapes)]
    sent = collection(*parts)
    response = served.post(sent)
    assert response.headers["content-type"] == "application/geo+json"
    found = response.json()
    assert found["dpregions"]["privacy"]["epsilon"] == str(city().budget)
    for shape, before, after in zip(shapes, sent["features"], found["features"], strict=True):
        assert shapely.geometry.shape(after["geometry"]) == shape
        assert after["properties"]["name"] == before["properties"]["name"]
        assert numbers(after["properties"]["dpregions"]) == pytest.approx(drawn(city(), shape))


def test_one_feature_comes_back_as_one(served):
    found = served.post(feature(shapely.geometry.mapping(square()), a=1)).json()
    assert found["type"] == "Feature" and found["properties"]["a"] == 1
    assert found["properties"]["dpregions"]["count"] == city().count(square(), crs=4326)


def test_features_may_be_in_the_releases_own_coordinates(served):
    x, y = np.mean(np.reshape(city().grid.bounds, (2, 2)), axis=0)
    shape = shapely.box(x, y, x + 900, y + 800)
    sent = feature(shapely.geometry.mapping(shape))
    for crs in ("none", "EPSG:32632"):
        found = served.post(sent, crs=crs).json()["properties"]["dpregions"]
        assert found["count"] == city().count(shape)


def test_csv_has_a_row_for_each_answer_and_its_promise(served):
    text = served.client.get(served.at("count.csv"), params={"cells": "2,5,3,4"}).text
    (row,) = csv.DictReader(io.StringIO(text))
    assert row["count"] == str(city().count(*city().grid.cell_bounds(2, 5, 3, 4)))
    assert row["release"] == served.ids[0] and row["epsilon"] == str(city().budget)
    sent = collection(feature(shapely.geometry.mapping(square()), name="=1+1"))
    (row,) = csv.DictReader(io.StringIO(served.post(sent, path="count.csv").text))
    assert row["name"] == "'=1+1", "a spreadsheet would compute it"


@pytest.mark.parametrize("snap", [None, "drawn", "touched", "enclosing"])
def test_what_lies_outside_counts_0_and_says_so(served, snap):
    params = {"bbox": "20,48,20.1,48.1", "crs": "EPSG:4326"} | ({"snap": snap} if snap else {})
    found = served.json("count", **params)
    assert (found["count"], found["low"], found["high"], found["outside"]) == (0, None, None, True)
    asked = {"a": served.ids[0], "b": served.ids[1]} | params
    found = served.client.get("/api/v1/difference", params=asked).json()
    assert (found["difference"], found["low"], found["outside"]) == (0, None, True)


def test_degrees_without_a_crs_are_noticed(served):
    found = served.json("count", bbox="10.99,48.48,11.02,48.50")
    assert found["outside"] and "look like degrees" in found["answered"]["note"]


def test_what_reaches_beyond_the_area_is_cut_and_says_so(served):
    for snap in ("drawn", "enclosing"):
        found = served.json("count", bbox="10,48.48,11,48.5", crs="EPSG:4326", snap=snap)
        assert found["answered"]["cut"] and not found["outside"]


def test_the_difference_is_that_of_the_library(served):
    a, b = served.ids
    query = {"a": a, "b": b, "cells": "2,7,3,9"}
    found = served.client.get("/api/v1/difference", params=query).json()
    bounds = city().grid.cell_bounds(2, 7, 3, 9)
    compared = city().compare(later_city())
    assert found["difference"] == compared.count(*bounds)
    assert (found["low"], found["high"]) == pytest.approx(compared.interval(*bounds))
    assert found["counts"] == [city().count(*bounds), later_city().count(*bounds)]
    assert "not recorded" in found["statement"]


def test_a_release_is_told_of_with_its_statement(served):
    (first, _) = served.client.get("/api/v1/releases").json()["releases"]
    assert first["id"] == served.ids[0] and first["id"].startswith("city-of-x-")
    assert (first["rows"], first["columns"], first["private"]) == (12, 15, False)
    found = served.client.get(f"/api/v1/releases/{first['id']}").json()
    assert found["statement"] == city().describe()


def test_a_covert_release_has_counts_alone():
    covert = covert_study(covert=True)
    with serving({"covert": covert}) as served:
        found = served.json("count", cells="0,1,0,2")
        assert found["count"] == covert.count(*GRID.cell_bounds(0, 1, 0, 2))
        assert not found.keys() & {"low", "high", "estimate", "confidence"}
        assert "counts only" in served.problem("intervals.bin", 404)["detail"]


def test_a_release_without_bodies_answers_the_cells_that_a_shape_touches():
    paper = paper_study()
    with serving({"paper": paper}) as served:
        found = served.json("count", bbox="0.5,0.5,2.5,1.5")
        assert found["answered"]["cells"] == [0, 1, 0, 2]
        assert found["count"] == paper.count(0.5, 0.5, 2.5, 1.5)
        refused = served.problem("count", 422, bbox="0.5,0.5,2.5,1.5", snap="drawn")
        assert "no bodies" in refused["detail"]
        sent = feature({"type": "Point", "coordinates": [0.5, 0.5]})
        answer = served.post(sent).json()["properties"]["dpregions"]
        assert answer["count"] == paper.count(shapely.Point(0.5, 0.5))


def test_a_partition_is_asked_by_the_labels_of_its_cells():
    release = study_on(hexagons())
    labels = hexagons().labels[:2]
    with serving({"hexagons": release}) as served:
        found = served.json("count", cells=",".join(map(str, labels)))
        assert found["count"] == release.count(cells=list(labels))
        assert "no cell 'nowhere'" in served.problem("count", 422, cells="nowhere")["detail"]
        assert "rows and columns" in served.problem("components.bin", 404)["detail"]
        assert served.problem("count", 422, bbox="1,1,2,2", snap="enclosing")
