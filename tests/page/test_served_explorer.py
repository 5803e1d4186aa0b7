"""The explorer as the server hands it out: intervals of anything, two releases, its own policy."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import shapely

import dpregions as dpr
from support.browser import DESKTOP, answer_of, boxes_of, draw_with, ends_of, opened, place_of
from support.footprint_releases import study, town
from support.pages import tilted
from support.releases_on_cells import study_on, voronoi

pytest.importorskip("uvicorn")


def later() -> dpr.Release:
    """The tilted town with fewer people in it."""
    grid = tilted().grid
    return study(town(grid, 1000, n=1200, seed=9), grid, max_diameter=1000, epsilon=1)


@contextmanager
def served(releases: dict[str, dpr.Release]) -> Iterator[tuple[str, dict[str, str], Any]]:
    """A server on loopback: its address, the ids of its releases by name, and itself."""
    import uvicorn

    from dpregions.web.app import make_app

    app = make_app(releases)
    config = uvicorn.Config(app, port=0, log_level="error", access_log=False)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        shelf = app.state.serving.shelf
        yield f"http://127.0.0.1:{port}", {one.name: one.id for one in shelf.values()}, server
    finally:
        server.should_exit = True
        thread.join(10)


@pytest.fixture(scope="module")
def server(browser: Any) -> Iterator[tuple[str, dict[str, str], Any]]:
    cells = {"city": tilted(), "later": later(), "masts": study_on(voronoi())}
    with served(cells) as running:
        yield running


def at(server: Any, name: str, fragment: str = "") -> str:
    address, ids, _ = server
    return f"{address}/r/{ids[name]}{fragment}"


@pytest.fixture(scope="module")
def shared(browser: Any, server: Any) -> Iterator[Any]:
    with opened(browser, at(server, "city"), home=(server[0],)) as page:
        yield page


@pytest.fixture
def page(shared: Any) -> Any:
    shared.evaluate("() => explorer.reset()")
    shared.mouse.move(640, 30)
    return shared


def test_a_rectangle_gets_its_interval_from_the_server(page):
    page.click("#tools >> text=Rectangle")
    page.mouse.move(*place_of(page, 4.3, 6.2))
    page.mouse.down()
    page.mouse.move(*place_of(page, 15.6, 20.9))
    page.mouse.up()
    page.wait_for_selector("#answer .bar:visible")
    bounds = tilted().grid.cell_bounds(*boxes_of(page))
    low, high = tilted().interval(*bounds)
    assert answer_of(page) == tilted().count(*bounds)
    assert ends_of(page) == (math.floor(low), math.ceil(high))


def test_a_polygon_is_answered_as_drawn_with_its_interval(page):
    draw_with(page, "Polygon")
    corners = [place_of(page, *p) for p in ((5, 5), (7, 22), (18, 20), (16, 8))]
    for corner in [*corners, corners[0]]:
        page.mouse.click(*corner)
        page.wait_for_timeout(60)
    page.wait_for_selector("#answer .bar:visible")
    (ring,) = page.evaluate("() => explorer.state.values.current.parts[0]")
    drawn = shapely.Polygon(ring)
    low, high = tilted().interval(drawn, crs="EPSG:4326")
    assert answer_of(page) == tilted().count(drawn, crs="EPSG:4326")
    assert ends_of(page) == (math.floor(low), math.ceil(high))
    assert "as drawn" in page.inner_text(".notes")


def test_two_releases_are_swiped_and_their_difference_is_the_library_s(browser, server):
    fragment = f"#d=2&a=c:4-15,6-20&vs={server[1]['later']}&with=difference"
    with opened(browser, at(server, "city", fragment), home=(server[0],)) as page:
        page.wait_for_selector(".notes .versus")
        said = page.inner_text(".notes")
        bounds = tilted().grid.cell_bounds(4, 15, 6, 20)
        there = page.evaluate("() => explorer.compare.other.counts.rectangle(4, 15, 6, 20)")
        difference = there - tilted().count(*bounds)
        assert f"Difference: \u2212{-difference:,}" in said and "at least 95 % sure" in said
        assert "Difference for each block" in page.inner_text("#legend")
        # Both intervals that the map fades by hold with 95 %, so both of them together with 90 %.
        assert "Elsewhere there is one, at least 90 % sure." in page.inner_text("#legend")
        page.click("#tools button:has-text('Swipe')")
        page.wait_for_selector("#swipe:visible")
        page.focus("#swipe")
        page.keyboard.press("Home")
        assert page.evaluate("() => explorer.view.other.side") == [0, 1]


def test_a_partition_is_drawn_and_a_cell_chosen_by_a_click(browser, server):
    release = study_on(voronoi())
    frame = release.to_geodataframe()
    inside = frame.to_crs(4326).geometry.representative_point()
    busiest = int(np.argmax(frame["count"]))
    with opened(browser, at(server, "masts"), home=(server[0],)) as page:
        box = page.locator("#map").bounding_box()
        place = [inside.x[busiest], inside.y[busiest]]
        x, y = page.evaluate("(p) => explorer.view.pixelOf(...p)", place)
        page.mouse.click(box["x"] + x, box["y"] + y)
        assert answer_of(page) == frame["count"][busiest]
        low, high = frame["low"][busiest], frame["high"][busiest]
        assert ends_of(page) == (math.floor(low), math.ceil(high))
        assert frame["label"][busiest] in page.inner_text(".size")


def test_when_the_server_is_gone_counts_go_on_and_the_page_says_so(browser):
    with served({"city": tilted()}) as (address, ids, server):
        context = browser.new_context(viewport=DESKTOP)
        page = context.new_page()
        page.goto(f"{address}/r/{ids['city']}")
        page.wait_for_selector("body.settled")
        server.should_exit = True
        time.sleep(0.6)
        for key, value in zip(("r0", "r1", "c0", "c1"), (2, 9, 3, 11), strict=True):
            page.fill(f"#box-{key}", str(value))
        page.keyboard.press("Enter")
        assert answer_of(page) == tilted().count(*tilted().grid.cell_bounds(2, 9, 3, 11))
        page.wait_for_selector("#banner:has-text('Intervals are paused')")
        assert page.is_hidden("#answer .bar")
        context.close()
