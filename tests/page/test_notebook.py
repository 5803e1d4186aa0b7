"""The explorer in a notebook: in its HTML without a kernel, and with one that answers."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
import shapely

import dpregions as dpr
from dpregions.errors import MissingExtraError
from support.browser import DESKTOP, files_served
from support.pages import plane, small, tilted


def test_a_page_in_a_notebook_is_a_frame_that_can_reach_nothing():
    made = small().explore("A & B")
    said = made._repr_html_()
    assert said.startswith("<iframe srcdoc=") and 'title="Map of A &amp; B"' in said
    assert 'sandbox="allow-scripts allow-downloads"' in said


def test_html_that_nbconvert_makes_of_a_notebook_shows_the_map_offline(browser, tmp_path):
    nbformat = pytest.importorskip("nbformat")
    nbconvert = pytest.importorskip("nbconvert")
    output = nbformat.v4.new_output(
        "execute_result", {"text/html": small().explore("Town")._repr_html_()}, execution_count=1
    )
    cell = nbformat.v4.new_code_cell("release.explore()", outputs=[output], execution_count=1)
    html, _ = nbconvert.HTMLExporter().from_notebook_node(nbformat.v4.new_notebook(cells=[cell]))
    (tmp_path / "notebook.html").write_text(html)
    page = browser.new_context(viewport=DESKTOP, offline=True).new_page()
    page.goto((tmp_path / "notebook.html").as_uri(), wait_until="commit")
    frame = page.frame_locator("iframe")
    frame.locator("body.settled").wait_for(timeout=30_000)
    assert frame.locator("#name").inner_text() == "Town"
    for key, value in zip(("r0", "r1", "c0", "c1"), (2, 7, 3, 8), strict=True):
        frame.locator(f"#box-{key}").fill(str(value))
    frame.locator("#box-c1").press("Enter")
    count = small().count(*small().grid.cell_bounds(2, 7, 3, 8))
    assert frame.locator(".count").inner_text() == f"{count:,}"
    page.context.close()


def live(release: dpr.Release) -> Any:
    pytest.importorskip("anywidget")
    return release.explore("live", live=True)


_HOST = """async ([page, address]) => {
  const { default: widget } = await import(address);
  document.body.replaceChildren(); // a frame that nobody sees is not drawn
  const heard = [];
  window.model = {
    get: () => page,
    set: (name, value) => window.selected(JSON.stringify(value)),
    save_changes: () => {},
    on: (name, then) => heard.push(then),
    send: async (question) => {
      const answer = JSON.parse(await window.kernel(JSON.stringify(question)));
      heard.forEach((then) => then(answer));
    },
  };
  widget.render({ model: window.model, el: document.body });
}"""


def test_the_kernel_answers_and_gets_what_was_selected(browser):
    widget = live(tilted())
    sent: list[Any] = []
    widget.send = sent.append

    def kernel(question: str) -> str:
        widget._reply(widget, json.loads(question), [])
        return json.dumps(sent.pop())

    with files_served() as address:
        page = browser.new_context(viewport=DESKTOP).new_page()
        page.expose_function("kernel", kernel)
        page.expose_function("selected", lambda text: widget.set_trait("asked", json.loads(text)))
        page.goto(f"{address}/vendor/vendor.json")
        page.evaluate(_HOST, [widget.page, "/live.js"])
        frame = page.frame_locator("iframe")
        frame.locator("body.settled").wait_for(timeout=30_000)
        for key, value in zip(("r0", "r1", "c0", "c1"), (2, 12, 3, 17), strict=True):
            frame.locator(f"#box-{key}").fill(str(value))
        frame.locator("#box-c1").press("Enter")
        frame.locator("#answer .bar").wait_for()
        bounds = tilted().grid.cell_bounds(2, 12, 3, 17)
        low, high = tilted().interval(*bounds)
        said = frame.locator(".ends").inner_text().replace(",", "").splitlines()
        assert (int(said[0]), int(said[2])) == (math.floor(low), math.ceil(high))
        page.context.close()
    (row,) = widget.selection.itertuples()
    assert (row.count_ if hasattr(row, "count_") else row[2]) == tilted().count(*bounds)
    assert (row.low, row.high) == (low, high)
    assert row.geometry.buffer(-1e-3).within(shapely.box(*bounds).buffer(5))
    assert widget.selection.crs == tilted().grid.crs


def test_a_selected_area_is_answered_as_drawn():
    widget = live(plane())
    ring = [[1.2, 1.1], [5.6, 1.4], [3.1, 4.8], [1.2, 1.1]]
    feature = {
        "type": "Feature",
        "properties": {"name": "Three corners"},
        "geometry": {"type": "Polygon", "coordinates": [ring]},
    }
    widget.asked = {"features": [feature], "plain": True}
    frame = widget.selection
    assert frame["count"].tolist() == [plane().count(shapely.Polygon(ring))]
    assert frame["name"].tolist() == ["Three corners"] and frame["within"].tolist() == ["shape"]


def test_nothing_selected_is_an_empty_frame():
    assert len(live(small()).selection) == 0


def test_without_anywidget_the_extra_is_named(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "anywidget", None)
    monkeypatch.delitem(sys.modules, "dpregions.page.live", raising=False)
    with pytest.raises(MissingExtraError, match=r"dpregions\[notebook\]"):
        small().explore(live=True)
