"""What the page gets of a release: described in words, sizes, the privacy card."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

from dpregions.page import payload
from dpregions.page.bodies import bodies
from dpregions.page.card import card_of
from support.grouped_towns import AGES, study_by_age
from support.pages import on_grid, plane, small, tilted
from support.releases_on_cells import study_on, voronoi


def as_if_private(release):
    """The same release as if its noise were not a study's: for what a card would say of it."""
    return dataclasses.replace(release, private=True)


def card(release):
    return {part["title"]: part["text"] for part in card_of(release)}


def test_a_description_is_json_and_the_same_release_gives_the_same_bytes():
    one, other = (payload.described(tilted(), name="it") for _ in range(2))
    assert json.dumps(one, allow_nan=False) == json.dumps(other)
    assert payload.components(tilted()) == payload.components(tilted())


def test_blocks_double_until_few_are_left():
    assert payload.described(tilted(), name="it")["blocks"] == [1, 2, 4, 8]
    assert payload.described(plane(), name="it")["blocks"] == [1, 2]


def test_every_rectangle_is_given_where_there_are_few():
    assert payload.described(small(), name="it")["every_rectangle"]
    assert not payload.described(tilted(), name="it")["every_rectangle"]


def test_a_plane_has_no_place_on_earth():
    assert payload.described(plane(), name="it")["mesh"]["plain"]
    assert not payload.described(tilted(), name="it")["mesh"]["plain"]


def test_the_card_says_how_sure_somebody_may_become():
    made = on_grid(small().grid, epsilon=1)
    assert "NOT PRIVATE" in card(made)["How much?"]
    private = as_if_private(made)
    assert "at most 73.2 % sure" in card(private)["How much?"]
    assert "change at most 2.8 times" in card(private)["How much?"]
    assert "a record is in the data" in card(private)["How much?"]


@pytest.mark.parametrize(
    ("epsilon", "words"), [(6, "promises little"), (0.1, "at most 52.5 % sure")]
)
def test_the_card_says_when_it_promises_little(epsilon, words):
    made = as_if_private(on_grid(small().grid, epsilon=epsilon))
    assert words in card(made)["How much?"]


def test_the_card_tells_people_from_records_and_adding_from_replacing():
    made = as_if_private(on_grid(small().grid, neighbours="replace-one"))
    assert "here or somewhere else" in card(made)["How much?"]
    assert "several records" in card(made)["Who is in here?"]


@pytest.mark.parametrize("covert", [False, True])
def test_the_page_of_groups_has_the_bodies_of_all_of_them(covert, tmp_path):
    made = study_by_age(covert=covert)
    made.explore("ages").save(tmp_path / "ages.html")
    assert (tmp_path / "ages.html").read_text().startswith("<!doctype html>")
    alone = [bodies(made.group(age)) for age in AGES]
    assert len(bodies(made)) > max(map(len, alone))


def test_the_page_of_groups_without_bodies_has_none():
    made = study_by_age(method="paper")
    assert bodies(made) is None and "</html>" in made.explore("ages").html


def test_cells_of_a_partition_are_geojson_in_degrees_with_their_counts():
    release = study_on(voronoi())
    found = payload.cells(release)["features"]
    frame = release.to_geodataframe()
    assert [f["properties"]["count"] for f in found] == frame["count"].tolist()
    assert [f["properties"]["low"] for f in found] == np.floor(frame["low"]).tolist()
    assert found[3]["properties"]["label"] == "mast 3"
    west, south, east, north = frame.to_crs(4326).total_bounds
    x, y = np.array(found[3]["geometry"]["coordinates"][0])[:, :2].T
    assert west <= x.min() and x.max() <= east and south <= y.min() and y.max() <= north
