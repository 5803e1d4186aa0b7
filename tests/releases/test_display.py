"""A release in Python: its frames, its map, and its HTML in a notebook."""

from __future__ import annotations

import base64
import io
import re
import sys
from html.parser import HTMLParser

import geopandas
import matplotlib as mpl
import matplotlib.image
import numpy as np
import pytest

import dpregions as dpr
from dpregions.errors import InputError, MissingExtraError
from support.fresh_interpreter import imported_by
from support.handmade import EPSILON, published

UTM = dpr.Grid(490_000, 5_361_875, 1000, n_rows=3, n_cols=5, crs=32632)
PLANE = dpr.Grid(0, 0, 1, n_rows=4, n_cols=2)


@pytest.fixture(autouse=True)
def no_windows():
    """Draw without a display, and close what was drawn."""
    import matplotlib.pyplot as plt

    with mpl.rc_context():
        plt.switch_backend("agg")
        yield
        plt.close("all")


# --- frames ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["faces", "edges", "vertices"])
def test_a_frame_has_the_published_numbers_at_their_places(kind):
    release = published(UTM)
    frame = release.to_geodataframe(kind)
    intervals = ["low", "high", "may_be_empty"] if kind == "faces" else []
    plain = ["kind", "sign", "row", "col", "count", "estimate"]
    assert list(frame.columns) == [*plain, *intervals, "geometry"]
    assert (frame["count"] == release.counts[frame["row"], frame["col"]]).all()
    assert (frame["estimate"] == release.signed[frame["row"], frame["col"]]).all()
    assert (frame["sign"] == (-1) ** (frame["row"] + frame["col"])).all()
    assert frame.geometry.geom_equals(UTM.to_geodataframe(kind).geometry).all()
    assert frame.crs == UTM.crs


def test_a_frame_is_of_faces_unless_told_otherwise():
    release = published(UTM)
    frame = release.to_geodataframe()
    assert isinstance(frame, geopandas.GeoDataFrame)
    assert (release.count(frame) == frame["count"]).all()


def test_all_frames_together_are_the_histogram():
    release = published(PLANE)
    table = np.full(PLANE.doubled_shape, -1)
    for kind in ("faces", "edges", "vertices"):
        frame = release.to_geodataframe(kind)
        table[frame["row"], frame["col"]] = frame["count"]
    assert (table == release.counts).all()


def test_a_covert_release_has_no_column_of_estimates():
    columns = published(UTM, covert=True).to_geodataframe().columns
    assert list(columns) == ["kind", "sign", "row", "col", "count", "geometry"]


def test_an_unknown_kind_is_refused():
    with pytest.raises(InputError, match="kind='cells' is unknown"):
        published(UTM).to_geodataframe("cells")


def test_changing_a_frame_leaves_the_release_alone():
    release = published(UTM)
    before = release.counts.copy()
    release.to_geodataframe()["count"] *= 2
    assert (release.counts == before).all()


# --- the map --------------------------------------------------------------------------------------


@pytest.mark.parametrize("grid", [UTM, PLANE], ids=["utm", "plane"])
def test_the_map_shows_each_cells_count_at_its_place(grid):
    release = published(grid)
    ax = release.plot()
    (image,) = ax.images
    assert (image.get_array() == release.counts[::2, ::2]).all()
    assert image.origin == "lower"
    assert image.get_extent() == [grid.xmin, grid.xmax, grid.ymin, grid.ymax]
    assert ax.get_xlim() == (grid.xmin, grid.xmax) and ax.get_ylim() == (grid.ymin, grid.ymax)
    # What the picture says under the cursor, which is how matplotlib itself places the pixels.
    for row, col in np.ndindex(grid.shape):
        x0, y0, x1, y1 = grid.cell_bounds(row, row, col, col)
        x, y = ax.transData.transform(((x0 + x1) / 2, (y0 + y1) / 2))
        event = mpl.backend_bases.MouseEvent("motion_notify_event", ax.figure.canvas, x, y)
        assert image.get_cursor_data(event) == release.count(x0, y0, x1, y1)


def test_the_map_says_epsilon_and_what_the_colours_mean():
    ax = published(UTM).plot()
    assert f"ε = {EPSILON}" in ax.get_title()
    bar = next(other for other in ax.figure.axes if other is not ax)
    assert bar.get_ylabel() == "regions touching the cell"


def test_axes_are_labelled_in_kilometres_and_stay_in_units_of_the_crs():
    ax = published(UTM).plot()
    ax.figure.canvas.draw()
    labels = {tick.get_position()[0]: tick.get_text() for tick in ax.get_xticklabels()}
    assert labels[492_000] == "492"
    assert ax.get_xlabel() == "x, km (EPSG:32632)"
    assert published(PLANE).plot().get_xlabel() == "x"


def test_the_map_is_drawn_where_and_how_it_is_told():
    import matplotlib.pyplot as plt
    from matplotlib.colors import LogNorm

    _, (left, right) = plt.subplots(1, 2)
    release = published(UTM)
    assert release.plot(right, cmap="magma", vmax=9) is right
    assert not left.images
    assert right.images[0].get_cmap().name == "magma"
    assert right.images[0].get_clim() == (0, 9)
    assert release.plot(left, norm=LogNorm(1, 50)).images[0].norm.vmax == 50
    usual = release.plot(left).images[-1].norm
    assert (usual.gamma, usual.vmin, usual.vmax) == (0.5, 0, release.counts[::2, ::2].max())
    assert "ε = " in left.get_title()


@pytest.mark.parametrize(("n_rows", "n_cols", "top"), [(20, 20, 760), (4, 9, 70), (22, 20, 760)])
def test_nothing_of_the_map_is_cut_off(n_rows, n_cols, top):
    grid = dpr.Grid(490_000, 5_361_875.5, 1000, n_rows, n_cols, crs=32632)
    counts = np.zeros(grid.doubled_shape, int)
    counts[0, 0] = top
    figure = published(grid, counts=counts, private=top > 70).plot().figure
    figure.canvas.draw()
    width, height = figure.canvas.get_width_height()
    for axes in figure.axes:
        x0, y0, x1, y1 = axes.get_tightbbox().extents
        assert -0.5 < x0 < x1 < width + 0.5
        assert -0.5 < y0 < y1 < height + 0.5


def test_a_map_that_is_not_private_shouts():
    title = published(UTM, private=False).plot().title
    assert title.get_text().startswith("NOT PRIVATE: do not publish")
    assert "NOT PRIVATE" not in published(UTM).plot().get_title()


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingExtraError, match=r"dpregions\[plot\]"):
        published(UTM).plot()


# --- HTML -----------------------------------------------------------------------------------------


class Page(HTMLParser):
    """Collects text and pictures, and whether every element that opens also closes."""

    def __init__(self, html):
        super().__init__()
        self.open, self.text, self.pictures, self.tags = [], "", [], set()
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        if tag == "img":
            self.pictures.append(dict(attrs)["src"])
        else:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data + "\n"


def picture(page):
    (source,) = page.pictures
    png = base64.b64decode(source.removeprefix("data:image/png;base64,"), validate=True)
    return matplotlib.image.imread(io.BytesIO(png))


def test_the_html_is_well_formed_and_has_the_statement():
    release = published(UTM)
    page = Page(release._repr_html_())
    assert page.open == []
    assert release.describe() in page.text
    for fact in ("footprint", str(EPSILON), "add-remove", "user", "2000", "3 x 5", "EPSG:32632"):
        assert fact in page.text


def test_text_from_outside_is_escaped():
    hostile = '<script>alert("x")</script> & <b>'
    html = published(UTM, noise=hostile, version=hostile)._repr_html_()
    page = Page(html)
    assert "script" not in page.tags and "b" not in page.tags
    assert page.text.count(hostile) == 2
    named = 'LOCAL_CS["<img src=x>",UNIT["metre",1]]'
    grid = dpr.Grid(0, 0, 1000, n_rows=2, n_cols=2, crs=named)
    page = Page(published(grid)._repr_html_())
    assert page.text.count("<img src=x>") == 2  # in the table and in the statement
    assert len(page.pictures) == 1


def test_html_that_is_not_private_shouts():
    assert "NOT PRIVATE: do not publish" in Page(published(UTM, private=False)._repr_html_()).text
    assert "NOT PRIVATE" not in Page(published(UTM)._repr_html_()).text


def test_the_picture_has_a_pixel_a_cell_north_up_darker_for_more():
    release = published(UTM)
    pixels = picture(Page(release._repr_html_()))
    assert pixels.shape[:2] == UTM.shape
    darkness = -pixels[..., :3].sum(axis=-1)[::-1]
    faces = release.counts[::2, ::2]
    order = np.argsort(faces, axis=None)
    assert (np.diff(darkness.ravel()[order]) > 0).all()


def test_the_picture_of_a_large_grid_has_means_of_blocks():
    grid = dpr.Grid(0, 0, 1, n_rows=130, n_cols=300)
    counts = np.zeros(grid.doubled_shape, int)
    counts[2 * 129, 2 * 299] = 9
    page = Page(published(grid, counts=counts, covert=True)._repr_html_())
    assert picture(page).shape[:2] == (44, 100)
    assert "means of 3 × 3 cells" in page.text
    # The last block of rows has one row: 9 among 3 cells.
    assert "0 to 3" in page.text
    pixels = picture(page)[..., :3].sum(axis=-1)
    assert np.unravel_index(pixels.argmin(), pixels.shape) == (0, 99)


def test_a_release_of_zeros_has_html_and_a_map():
    release = published(UTM, counts=np.zeros(UTM.doubled_shape, int))
    assert "0 to 1" in Page(release._repr_html_()).text
    release.plot().figure.canvas.draw()


def test_the_html_says_whether_there_are_estimates():
    assert "left out (covert)" in Page(published(UTM, covert=True)._repr_html_()).text
    assert "covert" not in re.sub("<details>.*", "", published(UTM)._repr_html_(), flags=re.S)


def test_the_html_says_what_paid_for_the_release():
    assert "budget not recorded" in Page(published(UTM)._repr_html_()).text
    assert "entry 7" in Page(published(UTM, ledger_entry="entry 7")._repr_html_()).text


def test_the_html_needs_nothing_heavy():
    code = (
        "import dpregions as dpr\n"
        "from handmade import published\n"
        "assert '<table>' in published(dpr.Grid(0, 0, 1, 2, 2))._repr_html_()"
    )
    assert imported_by(code, ("matplotlib", "geopandas", "pandas", "numba")) == []
