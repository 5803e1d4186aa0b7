"""The explorer as one file, opened offline: every tool, by mouse, by touch and by keyboard.

What the page says is what the release says; nothing is asked of anyone, and nothing complained of.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import shapely

import dpregions as dpr
from support import browser as support
from support.browser import answer_of, boxes_of, draw_with, ends_of, opened, place_of
from support.pages import html_of, on_grid, plane, small, tilted


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return tmp_path_factory.mktemp("html")


@pytest.fixture(scope="module")
def address(folder: Any, browser: Any) -> str:
    """The file of a town that is tilted on the map."""
    return html_of(tilted(), folder, "tilted")


@pytest.fixture(scope="module")
def shared(browser: Any, address: str) -> Iterator[Any]:
    with opened(browser, address, offline=True) as page:
        yield page


@pytest.fixture(scope="module")
def page_of_modules(browser: Any) -> Iterator[Any]:
    """A blank page on the address of the modules."""
    with support.files_served() as address:
        page = browser.new_page()
        page.goto(f"{address}/vendor/vendor.json")
        yield page
        page.close()


_AS_CSV = """async ([query, said]) => {
  const { asCSV } = await import("/files.js");
  return asCSV([query], { now: () => ({ count: 1 }) }, said);
}"""


@pytest.fixture
def page(shared: Any) -> Any:
    """One page for many tests, each from the start."""
    shared.evaluate("() => explorer.reset()")
    shared.mouse.move(640, 30)
    return shared


def drag(page: Any, start: tuple[float, float], end: tuple[float, float]) -> None:
    page.mouse.move(*start)
    page.mouse.down()
    page.mouse.move((start[0] + end[0]) / 2, (start[1] + end[1]) / 2)
    page.mouse.move(*end)
    page.mouse.up()


def ask_rectangle(page: Any, r0: float, r1: float, c0: float, c1: float) -> None:
    page.click("#tools >> text=Rectangle")
    drag(page, place_of(page, r0, c0), place_of(page, r1, c1))


def count_of(release: dpr.Release, cells: tuple[int, int, int, int]) -> int:
    return release.count(*release.grid.cell_bounds(*cells))


def test_a_dragged_rectangle_is_of_cells_and_counts_what_the_release_says(page):
    ask_rectangle(page, 4.3, 15.6, 6.2, 20.9)
    assert boxes_of(page) == (4, 15, 6, 20)
    assert answer_of(page) == count_of(tilted(), (4, 15, 6, 20))
    assert "rectangle of cells" in page.inner_text(".notes")


def test_a_handle_pulls_one_side_and_undo_puts_it_back(page):
    ask_rectangle(page, 4.3, 15.6, 6.2, 15.9)
    before = boxes_of(page)
    page.mouse.move(*place_of(page, 10, 16))
    page.mouse.down()
    page.mouse.move(*place_of(page, 10, 18))
    page.mouse.move(*place_of(page, 12, 22.4))
    page.mouse.up()
    assert boxes_of(page) == (4, 15, 6, 22)
    assert answer_of(page) == count_of(tilted(), (4, 15, 6, 22))
    page.click("#undo")
    assert boxes_of(page) == before
    page.click("#undo")
    assert page.is_visible("#answer .empty")


def test_the_count_goes_with_the_pointer(page):
    page.click("#tools >> text=Rectangle")
    page.mouse.move(*place_of(page, 2.5, 2.5))
    page.mouse.down()
    for row, col in ((5.5, 8.5), (9.5, 12.5), (20.5, 25.5)):
        page.mouse.move(*place_of(page, row, col))
        assert answer_of(page) == count_of(tilted(), (2, int(row), 2, int(col)))
    page.mouse.up()


def test_what_lies_beyond_the_area_is_cut_and_wholly_outside_is_said(page):
    ask_rectangle(page, -1.5, 3.5, -1.5, 4.5)
    assert boxes_of(page) == (0, 3, 0, 4)
    assert "Only the part inside" in page.inner_text(".notes")
    ask_rectangle(page, 24.4, 25.2, 10, 16)
    assert "wholly outside" in page.inner_text("#hint")


def lonlat_rings(page: Any) -> list[list[list[float]]]:
    found: list[list[list[float]]] = page.evaluate(
        "() => window.explorer.state.values.current.parts[0]"
    )
    return found


def as_drawn(page: Any, release: dpr.Release) -> int:
    polygon = shapely.Polygon(lonlat_rings(page)[0])
    found: int = release.count(polygon, crs="EPSG:4326")
    return found


def test_a_polygon_is_counted_as_drawn_and_its_corners_can_be_pulled(page):
    draw_with(page, "Polygon")
    corners = [place_of(page, *p) for p in ((5, 5), (7, 22), (18, 20), (16, 8))]
    for corner in [*corners, corners[0]]:
        page.mouse.click(*corner)
        page.wait_for_timeout(60)
    assert answer_of(page) == as_drawn(page, tilted())
    before = answer_of(page)
    drag(page, corners[2], place_of(page, 22, 27))
    assert answer_of(page) == as_drawn(page, tilted()) != before


@pytest.mark.parametrize("leave", ["Move", "Escape"])
def test_a_drawing_that_is_given_up_leaves_the_numbers_of_what_is_on_the_map(page, leave):
    ask_rectangle(page, 4.3, 15.6, 6.2, 20.9)
    before = answer_of(page)
    draw_with(page, "Polygon")
    for corner in ((5, 5), (7, 22), (18, 20)):
        page.mouse.click(*place_of(page, *corner))
        page.wait_for_timeout(60)
    page.mouse.move(*place_of(page, 16, 8))
    page.wait_for_selector(".size:has-text('polygon')")
    if leave == "Move":
        page.click("#tools >> text=Move")
    else:
        page.keyboard.press("Escape")
    page.wait_for_selector(".size:not(:has-text('polygon'))")
    assert answer_of(page) == before == count_of(tilted(), (4, 15, 6, 20))


def test_a_polygon_whose_sides_cross_is_given_up_with_a_word(page):
    ask_rectangle(page, 4.3, 15.6, 6.2, 20.9)
    before = answer_of(page)
    draw_with(page, "Polygon")
    corners = [place_of(page, *p) for p in ((5, 5), (15, 15), (5, 15), (15, 5))]
    x, y = zip(*corners, strict=True)
    left, right, low, high = min(x), max(x), min(y), max(y)
    for corner in [(left, high), (right, low), (right, high), (left, low), (left, high)]:
        page.mouse.click(*corner)
        page.wait_for_timeout(60)
    page.wait_for_selector("#hint:has-text('sides cross')")
    assert answer_of(page) == before


def test_a_circle_and_a_freehand_outline_are_counted_as_drawn(page):
    draw_with(page, "Circle")
    page.mouse.click(*place_of(page, 12, 14))
    page.mouse.move(*place_of(page, 12, 18))
    page.mouse.click(*place_of(page, 13, 19))
    assert len(lonlat_rings(page)[0]) > 20
    assert answer_of(page) == as_drawn(page, tilted())
    draw_with(page, "Freehand")
    places = [(12 + 6 * math.sin(t), 14 + 6 * math.cos(t)) for t in np.linspace(0, 6.1, 10)]
    page.mouse.click(*place_of(page, *places[0]))
    for place in places[1:]:
        page.mouse.move(
            *place_of(page, *place),
        )
    page.mouse.click(*place_of(page, *places[-1]))
    assert "freehand" in page.inner_text(".size")
    assert answer_of(page) == as_drawn(page, tilted())


def test_a_saved_query_comes_back_by_its_link_and_leaves_as_csv_and_geojson(browser, address):
    with opened(browser, address, offline=True, accept_downloads=True) as page:
        ask_rectangle(page, 4.3, 15.6, 6.2, 20.9)
        page.fill("#query-name", "=Centre; 1")
        page.click("button:text-is('Save')")
        assert "Saved (1)" in page.inner_text("#saved-title", timeout=2000).title()
        files = {}
        for kind in ("CSV", "GeoJSON"):
            with page.expect_download() as got:
                page.click(f"#saved button:text-is('{kind}')")
            files[kind] = got.value.path().read_text()
        count = count_of(tilted(), (4, 15, 6, 20))
        assert f"'=Centre; 1,{count}," in files["CSV"] and "sha256:" in files["CSV"]
        (feature,) = json.loads(files["GeoJSON"])["features"]
        assert feature["properties"]["count"] == count
        assert feature["properties"]["epsilon"] == "1" and not feature["properties"]["private"]
        inside = shapely.from_geojson(json.dumps(feature["geometry"])).buffer(-1e-4)
        assert tilted().count(inside, crs="EPSG:4326", within="cells") == count
        link = page.evaluate("() => location.href")
    with opened(browser, link, offline=True) as page:
        assert boxes_of(page) == (4, 15, 6, 20)
        assert "=Centre; 1" in page.inner_text(".saved-list")


@pytest.mark.parametrize("name", ["a\rb", "a\nb", "a\r\nb", 'a"b', "a,b", "\ra"])
def test_a_name_stays_in_its_field_of_the_csv(page_of_modules, name):
    said = {"name": "town", "epsilon": "1", "unit": "user", "private": True}
    text = page_of_modules.evaluate(_AS_CSV, [{"name": name, "kind": "cells", "cells": [0]}, said])
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    assert [row["name"].removeprefix("'") for row in rows] == [name]
    assert rows[0]["release"] == "town"


def test_a_file_of_few_rectangles_has_the_interval_of_each(browser, folder):
    with opened(browser, html_of(small(), folder, "small"), offline=True) as page:
        ask_rectangle(page, 2.2, 7.7, 3.1, 8.5)
        bounds = small().grid.cell_bounds(2, 7, 3, 8)
        low, high = small().interval(*bounds)
        assert answer_of(page) == small().count(*bounds)
        assert ends_of(page) == (math.floor(low), math.ceil(high))


def test_a_file_of_many_rectangles_has_the_intervals_of_blocks_and_no_other(page):
    for key, value in zip(("r0", "r1", "c0", "c1"), (4, 7, 8, 11), strict=True):
        page.fill(f"#box-{key}", str(value))
    page.keyboard.press("Enter")
    low, high = tilted().interval(*tilted().grid.cell_bounds(4, 7, 8, 11))
    assert ends_of(page) == (math.floor(low), math.ceil(high))
    page.fill("#box-c1", "12")
    page.keyboard.press("Enter")
    assert answer_of(page) == count_of(tilted(), (4, 7, 8, 12))
    assert "dpregions serve" in page.inner_text(".notes") and page.is_hidden("#answer .bar")


def test_a_whole_session_by_keyboard(page):
    page.locator("canvas.maplibregl-canvas").focus()
    page.keyboard.press("r")
    for _ in range(3):
        page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    for key in ("ArrowRight", "ArrowRight", "ArrowUp", "ArrowUp", "ArrowUp"):
        page.keyboard.press(key)
    page.keyboard.press("Enter")
    row0, row1, col0, col1 = cells = boxes_of(page)
    assert (row1 - row0, col1 - col0) == (3, 2)
    assert answer_of(page) == count_of(tilted(), cells)
    page.keyboard.press("p")
    for steps in ("ArrowUp", "ArrowRight", "ArrowDown"):
        page.keyboard.press("Enter")
        for _ in range(4):
            page.keyboard.press(steps)
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    assert "polygon" in page.inner_text(".size")
    assert answer_of(page) == as_drawn(page, tilted())
    page.keyboard.press("Control+z")
    assert boxes_of(page) == cells
    page.locator("#query-name").focus()
    page.keyboard.type("By keys")
    page.keyboard.press("Enter")
    assert "By keys" in page.inner_text(".saved-list")
    page.wait_for_timeout(1100)
    assert f"{answer_of(page):,}" in page.inner_text("#spoken")


def test_tabs_go_from_tools_over_the_map_to_the_panel(page):
    page.focus("#theme")
    seen = []
    for _ in range(12):
        page.keyboard.press("Tab")
        seen.append(page.evaluate("() => document.activeElement.closest('[id]').id"))
    assert seen[0] == "tools"
    assert seen.index("map") < seen.index("box-r0")


def test_a_phone_by_touch(browser, address):
    with opened(
        browser, address, offline=True, viewport=support.PHONE, has_touch=True, is_mobile=True
    ) as page:
        page.tap("#tools >> text=Rectangle")
        page.touchscreen.tap(*place_of(page, 8.5, 10.5))
        page.touchscreen.tap(*place_of(page, 15.5, 19.5))
        assert answer_of(page) == count_of(tilted(), (8, 15, 10, 19))
        sizes = page.evaluate(
            """() => [...document.querySelectorAll("#tools button, #grip, .handle .target")]
            .filter((e) => e.checkVisibility()).map((e) => e.getBoundingClientRect().height)"""
        )
        assert min(sizes) >= 26 and sorted(sizes)[1] >= 43.5
        page.tap("#grip")
        assert page.is_visible("#boxes")
        wide = page.evaluate("() => document.documentElement.scrollWidth")
        assert wide <= support.PHONE["width"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_in_either_mode(browser, folder, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    address = html_of(small(), folder, "small") + "#a=c:2-7,3-8~Centre&q=c:2-7,3-8~Centre"
    with opened(browser, address, offline=True, color_scheme=scheme) as page:
        page.click("#table summary")
        found = axe.run(page).response["violations"]
    assert [(v["id"], [n["html"][:120] for n in v["nodes"]]) for v in found] == []


def pixels(page: Any) -> np.ndarray:
    from PIL import Image

    return np.asarray(Image.open(io.BytesIO(page.screenshot())).convert("RGB")).astype(int)


YLGNBU = (
    *("ffffd9", "edf8b1", "c7e9b4", "7fcdbb", "41b6c4"),
    *("1d91c0", "225ea8", "253494", "081d58"),
)

CITIES = {
    "UTM, 20 km": dpr.Grid(693000, 5366000, 1000, 20, 20, crs="EPSG:32632"),
    "UTM, 500 km": dpr.Grid(300000, 5100000, 25000, 20, 20, crs="EPSG:32632"),
    "LAEA, 500 km": dpr.Grid(4_300_000, 4_500_000, 25000, 20, 20, crs="EPSG:3035"),
    "British national grid": dpr.Grid(400_000, 300_000, 2000, 16, 20, crs="EPSG:27700"),
}


@pytest.mark.parametrize("city", CITIES)
def test_colours_at_projected_centres_are_those_of_the_cells(browser, folder, city):
    """The places come from the projection itself, the colours from the ramp, not from the page."""
    from pyproj import Transformer

    grid = CITIES[city]
    release = on_grid(grid, n=600)
    ramp = np.array([list(bytes.fromhex(colour)) for colour in YLGNBU])
    rng = np.random.default_rng(5)
    cells = np.stack([rng.integers(0, n, 60) for n in grid.shape])
    x, y = (
        grid.xmin + (cells[1] + 0.5) * grid.cell_size,
        grid.ymin + (cells[0] + 0.5) * grid.cell_size,
    )
    lonlat = np.stack(Transformer.from_crs(grid.crs, 4326, always_xy=True).transform(x, y), -1)
    with opened(browser, html_of(release, folder, "colours") + "#d=1&f=0", offline=True) as page:
        box = page.locator("#map").bounding_box()
        at = np.array(
            page.evaluate("(all) => all.map((p) => explorer.view.pixelOf(...p))", lonlat.tolist())
        )
        x, y = np.rint(at + np.array([box["x"], box["y"]])).astype(int).T
        shown = pixels(page)[y, x]
    faces = release.counts[::2, ::2]
    part = np.sqrt(faces[cells[0], cells[1]] / faces.max()) * 8
    low = np.clip(part.astype(int), 0, 7)
    expected = ramp[low] + (ramp[low + 1] - ramp[low]) * (part - low)[:, None]
    free = np.abs(shown - expected).max(axis=1) <= 3
    # A few lie below a panel or a line of the graticule.
    assert free.mean() > 0.75, (shown[~free][:5], expected[~free][:5])
    assert (np.abs(shown - expected).max(axis=1)[free]).max() <= 3


def test_a_plane_without_a_place_on_earth_has_axes_and_the_same_tools(browser, folder):
    with opened(browser, html_of(plane(), folder, "plane"), offline=True) as page:
        assert page.is_hidden("#locator")
        assert "units" in page.inner_html(".graticule")
        ask_rectangle(page, 1.2, 3.4, 2.2, 5.1)
        assert boxes_of(page) == (1, 3, 2, 5)
        assert answer_of(page) == count_of(plane(), (1, 3, 2, 5))


def test_areas_are_dropped_as_geojson_and_as_csv(page, tmp_path):
    ring = page.evaluate(
        "(corners) => corners.map((p) => explorer.release.mesh.toDegrees(...p))",
        [[3, 3], [3, 12], [14, 12], [14, 3], [3, 3]],
    )
    ring = np.round(ring, 6)
    district = {
        "type": "Feature",
        "properties": {"name": "West"},
        "geometry": {"type": "Polygon", "coordinates": [ring.tolist()]},
    }
    (tmp_path / "d.geojson").write_text(
        json.dumps({"type": "FeatureCollection", "features": [district]})
    )
    west, south = ring.min(axis=0)
    east, north = ring.max(axis=0)
    (tmp_path / "d.csv").write_text(
        f'name,west,south,east,north\n"Box, one",{west},{south},{east},{north}\n'
    )
    for name in ("d.geojson", "d.csv"):
        page.set_input_files("#areas-file", tmp_path / name)
    page.wait_for_selector(".saved-list li:nth-child(2)")
    said = page.inner_text(".saved-list")
    assert f"{tilted().count(shapely.Polygon(ring), crs='EPSG:4326'):,}" in said
    assert f"{tilted().count(shapely.box(west, south, east, north), crs='EPSG:4326'):,}" in said
    (tmp_path / "bad.geojson").write_text("{")
    page.set_input_files("#areas-file", tmp_path / "bad.geojson")
    page.wait_for_selector("#hint:has-text('cannot be read')")


def test_a_release_that_is_not_private_says_so_on_the_page(page):
    assert "NOT PRIVATE" in page.inner_text("#alarm")


def test_a_covert_release_shows_counts_alone(browser, folder):
    made = on_grid(small().grid, covert=True)
    with opened(browser, html_of(made, folder, "covert"), offline=True) as page:
        ask_rectangle(page, 2.2, 7.7, 3.1, 8.5)
        assert "counts only" in page.inner_text(".notes")
        assert page.locator("#fade").count() == 0 and page.is_hidden("#answer .bar")


def test_without_webgl_there_is_a_picture_and_the_same_numbers(browser, address):
    with opened(browser, address, offline=True, webgl=False) as page:
        assert "no WebGL 2" in page.inner_text("#hint")
        ask_rectangle(page, 4.3, 15.6, 6.2, 20.9)
        assert boxes_of(page) == (4, 15, 6, 20)
        assert answer_of(page) == count_of(tilted(), (4, 15, 6, 20))
