"""The pictures of the docs: each is drawn, and shows what its page says."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from dpregions import paper
from dpregions.privacy.seeded import StudyNoise
from dpregions.releases.make import release_with

pytest.importorskip("matplotlib")
from docs.pictures import adaptive_tree, footprint_steps, running_example
from docs.pictures.__main__ import IMAGES, PICTURES

DOCS = Path(__file__).parents[2] / "docs"
NONE_BROKEN = {"C1": 0, "C2": 0, "C3": 0}


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """The folder of all pictures, and what drawing them gave."""
    folder = tmp_path_factory.mktemp("pictures")
    return folder, {name: draw(folder / f"{name}.png") for name, draw in PICTURES.items()}


def test_every_picture_is_drawn_and_small(drawn):
    folder, _ = drawn
    for name in PICTURES:
        path = folder / f"{name}.png"
        assert path.read_bytes()[:4] == b"\x89PNG", name
        assert path.stat().st_size < 400_000, name


def test_every_image_of_the_docs_is_drawn_here_or_by_its_page():
    by_pages = {"plan", "release_map", "utility"}
    by_pages |= {"explorer", "explorer_dark", "explorer_phone"}  # docs/pictures/explorer.py
    assert {path.stem for path in IMAGES.glob("*.png")} == {*PICTURES, *by_pages}
    pages = "".join(page.read_text() for page in DOCS.rglob("*.md"))
    assert set(re.findall(r"images/(\w+)\.png", pages)) == {*PICTURES, *by_pages}


def test_the_running_example_shows_what_its_page_says(drawn):
    steps = drawn[1]["running_example"]
    assert paper.violations(steps.noisy) == {"C1": 12, "C2": 5, "C3": 2}
    assert paper.violations(steps.consistent) == NONE_BROKEN
    np.testing.assert_array_equal(steps.counts, steps.consistent)  # nothing left to round
    row0, row1, col0, col1 = running_example.QUERY
    part = steps.counts[2 * row0 : 2 * row1 + 1, 2 * col0 : 2 * col1 + 1]
    edges = part[::2, 1::2].sum() + part[1::2, ::2].sum()
    assert (part[::2, ::2].sum(), edges, part[1::2, 1::2].sum()) == (10, 6, 1)


def test_the_steps_of_footprints_show_what_their_page_says(drawn):
    picture = drawn[1]["footprint_steps"]
    assert not picture.release.private
    assert picture.exact.sum() == len(picture.regions) == 160  # each region in one bucket
    assert (picture.exact == 0).any() and (picture.noisy < 0).any()
    assert (picture.fitted >= 0).all()
    assert (picture.true_answer, picture.release.count(1, 1, 4, 3)) == (135, picture.answer)


def test_counts_of_few_regions_lean_and_estimates_do_not(drawn):
    """As the footprint page says: 135 is true, the mean count is 129, the mean estimate 135."""
    picture, grid = drawn[1]["footprint_steps"], footprint_steps.GRID
    asked = grid.cell_bounds(*footprint_steps.QUERY)
    terms = {"epsilon": footprint_steps.EPSILON, "max_diameter": footprint_steps.MAX_DIAMETER}
    draws = [
        release_with(StudyNoise(seed), picture.regions, grid, user_id=None, **terms)
        for seed in range(40)
    ]
    assert abs(np.mean([draw.estimate(*asked) for draw in draws]) - 135) < 3
    assert np.mean([draw.count(*asked) for draw in draws]) < 132


def test_the_tree_opens_where_its_page_shows_a_crowd(drawn):
    picture = drawn[1]["adaptive_tree"]
    assert not picture.tree.private and not picture.plan.private
    row, col, side, held = picture.leaves
    assert (side**2).sum() == 64 * 64  # every cell is in one block
    town = (abs(row - 43) < 4) & (abs(col - 19) < 4)
    assert (side[town] == 1).all() and side.max() == 8
    assert len(row) > len(picture.blocks.row) == (64 // adaptive_tree.UNIFORM) ** 2
    for found in (held, picture.blocks.held):
        assert abs(found.sum() - len(picture.regions)) < 250
