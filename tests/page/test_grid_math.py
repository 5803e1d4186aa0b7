"""The page's arithmetic in the browser, beside the library's."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import shapely
from pyproj import Transformer

import dpregions as dpr
from dpregions.errors import ApproximateCountWarning
from dpregions.page import payload
from dpregions.page.bodies import STEPS, bodies
from support import browser as support
from support.pages import on_grid, plane, random_rectangles, small, tilted
from support.small_releases import paper_study

_LOAD = """async ([said, parts]) => {
  const m = await import("/grid_math.js");
  const buffer = (text) => m.bytesOf(text).buffer;
  const { rows, cols } = said.frame;
  window.m = m;
  window.counts = new m.Counts(buffer(parts.components), rows, cols);
  window.mesh = new m.Mesh(said.mesh, rows, cols);
  window.ends = {};
  for (const block of said.blocks) {
    const { values } = counts.blocks(block);
    const text = parts[`ends${block}`];
    if (text) ends[block] = m.unpackEnds(buffer(text), (i) => values[i]);
  }
  if (parts.bodies) window.bodies = new m.Bodies(buffer(parts.bodies));
  if (parts.rectangles)
    window.rectangles = new m.RectangleIntervals(buffer(parts.rectangles), counts);
}"""


@pytest.fixture(scope="module")
def page(browser: Any) -> Iterator[Any]:
    """A blank page on the address of the modules."""
    with support.files_served() as address:
        page = browser.new_page()
        page.goto(f"{address}/vendor/vendor.json")
        yield page
        page.close()


def load(page: Any, release: dpr.Release) -> None:
    """Give the page all that a release's file would have."""
    said = payload.described(release, name="it")
    parts = {"components": payload.components(release)}
    parts |= {f"ends{block}": payload.intervals(release, block) for block in said["blocks"]}
    if said["every_rectangle"]:
        parts["rectangles"] = payload.rectangle_intervals(release)
    held = bodies(release)
    if held is not None:
        parts["bodies"] = held
    packed = {name: base64.b64encode(part).decode() for name, part in parts.items()}
    page.evaluate(_LOAD, [said, packed])


def far_north() -> dpr.Release:
    return on_grid(dpr.Grid(4_300_000, 5_000_000, 25_000, 20, 16, crs="EPSG:3035"), n=500)


def british() -> dpr.Release:
    return on_grid(dpr.Grid(520_000, 170_000, 700, 9, 33, crs="EPSG:27700"), n=800)


@pytest.mark.parametrize("release", [tilted, small, plane, far_north, british])
def test_every_rectangle_counts_as_in_the_library(page, release):
    made = release()
    load(page, made)
    asked = random_rectangles(made.grid, 400)
    found = page.evaluate(
        "(asked) => asked.map((cells) => counts.rectangle(...cells))", asked.T.tolist()
    )
    np.testing.assert_array_equal(found, made.count(*made.grid.cell_bounds(*asked)))


def test_counts_of_the_paper_s_mechanism_are_its_own_too(page):
    made = paper_study()
    load(page, made)
    asked = random_rectangles(made.grid, 100)
    found = page.evaluate(
        "(asked) => asked.map((cells) => counts.rectangle(...cells))", asked.T.tolist()
    )
    np.testing.assert_array_equal(found, made.count(*made.grid.cell_bounds(*asked)))


def test_intervals_of_blocks_are_the_library_s_rounded_outwards(page):
    made = tilted()
    load(page, made)
    for block in payload.described(made, name="it")["blocks"]:
        low, high = made.cell_intervals(block)
        found = page.evaluate(
            f"() => ({{ low: [...ends[{block}].low], high: [...ends[{block}].high] }})"
        )
        np.testing.assert_array_equal(found["low"], np.floor(low).ravel())
        np.testing.assert_array_equal(found["high"], np.ceil(high).ravel())


def test_intervals_of_all_rectangles_are_the_library_s_rounded_outwards(page):
    made = small()
    load(page, made)
    asked = random_rectangles(made.grid, 300)
    found = np.array(
        page.evaluate("(asked) => asked.map((cells) => rectangles.of(...cells))", asked.T.tolist())
    )
    low, high = made.interval(*made.grid.cell_bounds(*asked))
    np.testing.assert_array_equal(found, np.column_stack([np.floor(low), np.ceil(high)]))


@pytest.mark.parametrize("release", [tilted, small, far_north, british])
def test_places_are_found_both_ways_and_lie_where_the_projection_has_them(page, release):
    made = release()
    load(page, made)
    grid = made.grid
    rng = np.random.default_rng(2)
    places = rng.uniform(0, 1, (200, 2)) * grid.shape
    lonlat = np.array(
        page.evaluate("(places) => places.map((p) => mesh.toDegrees(...p))", places.tolist())
    )
    back = page.evaluate("(places) => places.map((p) => mesh.fromDegrees(...p))", lonlat.tolist())
    np.testing.assert_allclose(back, places, atol=1e-6)
    x, y = grid.xmin + places[:, 1] * grid.cell_size, grid.ymin + places[:, 0] * grid.cell_size
    there = Transformer.from_crs(4326, grid.crs, always_xy=True).transform(*lonlat.T)
    assert np.hypot(there[0] - x, there[1] - y).max() < grid.cell_size / 100


@pytest.mark.parametrize("release", [tilted, small, plane])
def test_bodies_that_touch_an_area_are_as_many_as_in_the_library(page, release):
    made = release()
    load(page, made)
    grid, rng = made.grid, np.random.default_rng(3)
    for _ in range(12):
        centre = rng.uniform(0.1, 0.9, 2) * grid.shape
        around = centre + rng.normal(size=(6, 2)) * min(grid.shape) / 5
        hole = shapely.Point(around.mean(axis=0)).buffer(0.4)
        shape = shapely.MultiPoint(around).convex_hull.difference(hole)
        if shape.geom_type != "Polygon":
            continue
        rings = [shapely.get_coordinates(r)[:-1] for r in (shape.exterior, *shape.interiors)]
        found = page.evaluate("(parts) => bodies.touching(parts)", [[r.tolist() for r in rings]])
        drawn = shapely.transform(
            shape, lambda rc: rc[:, ::-1] * grid.cell_size + [grid.xmin, grid.ymin]
        )
        assert found == made.count(drawn, within="shape")
    assert STEPS == 1 << 20


def test_cells_that_an_area_touches_sum_up_as_in_the_library(page):
    made = small()
    load(page, made)
    grid, rng = made.grid, np.random.default_rng(4)
    for _ in range(20):
        corners = rng.uniform(-1, 11, (5, 2))
        shape = shapely.MultiPoint(corners).convex_hull
        ring = shapely.get_coordinates(shape)[:-1]
        found = page.evaluate(
            "([ring, rows, cols]) => counts.cells(m.polygonCells([ring], rows, cols))",
            [ring.tolist(), *grid.shape],
        )
        drawn = shapely.transform(
            shape, lambda rc: rc[:, ::-1] * grid.cell_size + [grid.xmin, grid.ymin]
        )
        with pytest.warns(ApproximateCountWarning):
            assert found == made.count(drawn, within="cells")


@pytest.mark.parametrize(
    ("lines", "cells"),
    [
        ((1.2, 3.4, 2.0, 5.0), [1, 3, 2, 4]),
        ((1.0, 2.0, 0.0, 1.0), [1, 1, 0, 0]),
        ((-4, 0.5, -1, 0.5), [0, 0, 0, 0]),
        ((-4, -1, 2, 3), None),
        ((2.0, 2.0, 3.5, 3.5), [2, 2, 3, 3]),
        ((3, 99, 4, 99), [3, 5, 4, 7]),
    ],
)
def test_a_dragged_rectangle_is_of_the_cells_that_it_touches(page, lines, cells):
    assert page.evaluate("(lines) => m.cellsTouched(...lines, 6, 8)", lines) == cells
