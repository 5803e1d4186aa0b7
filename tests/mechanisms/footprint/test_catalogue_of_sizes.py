"""Catalogues of some sizes: as sound as whole ones, whichever sizes are asked for together."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import subprocess
import sys
from functools import cache

import numpy as np
import pytest
import shapely

from dpregions.errors import ReleaseFileError
from dpregions.geometry.grid import Grid
from dpregions.geometry.outlines import Bound, Outlines
from dpregions.mechanisms.footprint.bodies import make_bodies
from dpregions.mechanisms.footprint.buckets import Buckets
from dpregions.mechanisms.footprint.catalogue import Catalogue, catalogue
from dpregions.mechanisms.footprint.catalogue_of_sizes import catalogue_of_sizes
from dpregions.mechanisms.footprint.catalogue_text import catalogue_from_text, catalogue_to_text
from dpregions.mechanisms.footprint.ellipses import ellipses_of_size, size_prior
from dpregions.mechanisms.footprint.sizes import MOST_SIDE, patterns_kept
from dpregions.mechanisms.footprint.tuning import TUNING, Tuning
from dpregions.mechanisms.footprint.witnesses import CLEAR

STEPS = 1 << 20
LAW = TUNING.least_aspect, TUNING.length_power

WIDE = (
    (1, 1), (1, 2), (1, 65), (2, 2), (2, 65), (3, 3), (5, 4), (8, 8), (10, 60), (16, 16), (17, 17),
    (20, 64), (33, 40), (48, 48), (60, 18), (64, 64), (65, 1), (65, 65),
)  # fmt: skip
# Where all of a bound leaves little room, or none but for diamonds.
CASES = {
    "65 cells": (65, 64 * STEPS, WIDE),
    "a part of a cell above 63": (65, 63 * STEPS + STEPS // 9, WIDE),
    "a few steps above 49": (51, 49 * STEPS + 40, ((1, 1), (51, 51), (51, 3), (50, 50), (30, 31))),
    "less than a cell": (2, STEPS // 1000, ((1, 1), (1, 2), (2, 1), (2, 2))),
    "few cells": (4, 3 * STEPS, tuple((h, w) for h in range(1, 5) for w in range(1, 5))),
    "a small grid": (6, 50 * STEPS, ((1, 6), (6, 6), (3, 2))),
}


@cache
def made(case: str) -> Catalogue:
    return catalogue_of_sizes(*CASES[case])


def pattern_of_witness(c: Catalogue) -> np.ndarray:
    return np.repeat(np.arange(len(c)), np.diff(c.starts))


def witness(c: Catalogue, i: int) -> np.ndarray:
    return c.xy[c.offsets[i] : c.offsets[i + 1]]


# What is drawn of a size


@pytest.mark.parametrize("size", [(1, 1), (2, 3), (6, 6), (7, 20), (50, 50), (2, 50), (44, 30)])
def test_ellipses_of_a_size_have_it(size):
    xy = ellipses_of_size(*size, 200, 12, 50.0, *LAW)
    assert xy.shape == (200, 12, 2)
    cells = np.floor(xy)
    np.testing.assert_array_equal(cells.min(axis=1), np.zeros((200, 2)))
    np.testing.assert_array_equal(cells.max(axis=1) + 1, np.tile([size[1], size[0]], (200, 1)))
    assert np.ptp(np.linalg.norm(xy - xy.mean(axis=1, keepdims=True), axis=2), axis=1).max() <= 25


@pytest.mark.parametrize("size", [(2, 2), (3, 2), (3, 3), (4, 3)])
def test_patterns_of_a_size_are_as_frequent_as_in_a_whole_catalogue(size):
    whole, few = catalogue(4, 3 * STEPS), made("few cells")
    parts = [slice(c.first[size], c.last[size]) for c in (whole, few)]
    one, other = (
        {c.spans[i].tobytes(): c.weights[i] for i in range(part.start, part.stop)}
        for c, part in zip((whole, few), parts, strict=True)
    )
    apart = sum(abs(one.get(key, 0) - other.get(key, 0)) for key in one | other) / 2
    n = whole.times[parts[0]].sum()
    # Two samples, of n and of 2,000: what chance does to each pattern, half as much again.
    expected = sum(np.sqrt(v * (1 / n + 1 / 2000) / np.pi * 2) for v in one.values()) / 2
    assert apart < 1.5 * expected


# What each size gets


@pytest.mark.parametrize("case", CASES)
def test_just_the_sizes_that_are_asked_for_have_patterns(case):
    side, _, sizes = CASES[case]
    c = made(case)
    assert c.side == side
    assert c.spans.shape == (len(c), 2 * side - 1, 2)
    found = {(int(h), int(w)) for h, w in np.argwhere(c.last > c.first)}
    assert found == set(sizes)
    assert (c.prior > 0).sum() == len(sizes)
    for h, w in sizes:
        assert c.has(h, w)
        part = slice(c.first[h, w], c.last[h, w])
        assert (c.heights[part] == h).all() and (c.widths[part] == w).all()
        assert part.stop - part.start <= patterns_kept(h, w)
        assert c.weights[part].sum() == pytest.approx(1, abs=1e-12)
        assert len({spans.tobytes() for spans in c.spans[part]}) == part.stop - part.start
    assert c.prior.sum() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("case", CASES)
def test_sizes_are_as_likely_among_themselves_as_in_the_prior(case):
    side, bound, sizes = CASES[case]
    h, w = np.array(sizes).T
    prior = size_prior(side, bound, *LAW)[h, w]
    np.testing.assert_allclose(made(case).prior[h, w], prior / prior.sum(), rtol=1e-3)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("move", [(x, y) for x in (-1, 0, 1) for y in (-1, 0, 1)])
def test_a_witness_has_its_footprint_and_spans_also_after_a_move(case, move):
    c = made(case)
    of = pattern_of_witness(c)
    n = c.side + 4
    xy = c.xy + np.array([2, 1]) * STEPS + np.array(move) * CLEAR
    places, spans = Outlines(xy, c.offsets).footprints(n, n, c.side)
    np.testing.assert_array_equal(places[:, :2], np.tile([1, 2], (len(of), 1)))
    np.testing.assert_array_equal(places[:, 2], c.heights[of])
    np.testing.assert_array_equal(places[:, 3], c.widths[of])
    np.testing.assert_array_equal(spans, c.spans[of])


@pytest.mark.parametrize("case", CASES)
def test_shapely_sees_the_same_cells(case):
    c = made(case)
    of = pattern_of_witness(c)
    for i in np.random.default_rng(1).permutation(len(of))[:40]:
        h, w = int(c.heights[of[i]]), int(c.widths[of[i]])
        body = shapely.Polygon(witness(c, i))
        assert body.is_valid and body.equals(body.convex_hull)
        shapely.prepare(body)
        row, col = np.indices((h, w)) * STEPS
        cells = shapely.box(col, row, col + STEPS, row + STEPS)
        first, last = c.spans[of[i], : 2 * h - 1 : 2].T[:, :, None]
        at = np.arange(w)
        np.testing.assert_array_equal(shapely.intersects(body, cells), (first <= at) & (at <= last))
        # The lines between cells, and between two of them the vertices.
        row, col = np.indices((h - 1, w)) * STEPS
        lines = shapely.linestrings(
            np.stack([col, col + STEPS], axis=-1), np.stack([row + STEPS, row + STEPS], axis=-1)
        )
        first, last = c.spans[of[i], 1 : 2 * h - 1 : 2].T[:, :, None]
        np.testing.assert_array_equal(shapely.intersects(body, lines), (first <= at) & (at <= last))


@pytest.mark.parametrize("case", CASES)
def test_a_witness_is_strictly_convex_and_shorter_than_the_bound(case):
    c, bound = made(case), CASES[case][1]
    for i in np.random.default_rng(2).permutation(c.starts[-1])[:2000]:
        xy = witness(c, i)
        apart = ((xy[:, None] - xy[None]) ** 2).sum(axis=-1)
        assert apart.max() ** 0.5 + 3 < bound
        side = np.diff(xy, axis=0, append=xy[:1])
        after = np.roll(side, -1, axis=0)
        assert len(xy) >= 3 and (side[:, 0] * after[:, 1] > side[:, 1] * after[:, 0]).all()


@pytest.mark.parametrize("case", CASES)
def test_a_pattern_has_sixteen_witnesses_or_one_where_it_has_many_cells(case):
    c = made(case)
    n, cells = np.diff(c.starts), c.heights * c.widths
    assert n[cells <= 256].min() >= 16
    assert (n[cells > 256] == 1).all()
    for h, w in CASES[case][2]:
        of_size = n[c.first[h, w] : c.last[h, w]].sum()
        assert h * w > 256 or of_size >= 64


def test_large_footprints_have_a_dozen_patterns_that_lean_both_ways():
    c = made("65 cells")
    for h, w in ((33, 40), (48, 48), (20, 64), (64, 64)):
        part = slice(c.first[h, w], c.last[h, w])
        assert part.stop - part.start >= 12
        # Further right at the bottom than at the top, or less so.
        middles = c.spans[part][:, [0, 2 * h - 2]].sum(axis=2)
        lean = np.sign(middles[:, 0] - middles[:, 1])
        assert (lean > 0).sum() >= 3 and (lean < 0).sum() >= 3


def of_one_size(c: Catalogue, h: int, w: int) -> list[bytes]:
    part = slice(c.first[h, w], c.last[h, w])
    starts = c.starts[part.start : part.stop + 1]
    offsets = c.offsets[starts[0] : starts[-1] + 1]
    xy = c.xy[offsets[0] : offsets[-1]]
    arrays = c.spans[part], c.times[part], c.weights[part], np.diff(starts), np.diff(offsets), xy
    return [array.tobytes() for array in arrays]


@pytest.mark.parametrize("size", [(1, 1), (5, 4), (33, 40), (65, 65), (2, 65)])
def test_a_size_gets_the_same_whichever_others_are_asked_for(size):
    side, bound, _ = CASES["65 cells"]
    together = of_one_size(made("65 cells"), *size)
    assert of_one_size(catalogue_of_sizes(side, bound, [size]), *size) == together
    backwards = catalogue_of_sizes(side, bound, [(9, 9), size, (7, 8), size])
    assert of_one_size(backwards, *size) == together


def digest(c: Catalogue) -> str:
    return hashlib.sha256(catalogue_to_text(c).encode()).hexdigest()


def test_every_process_makes_the_same():
    sizes = [(1, 1), (3, 4), (20, 33), (51, 51)]
    code = (
        "import hashlib\n"
        "from dpregions.mechanisms.footprint.catalogue_of_sizes import catalogue_of_sizes\n"
        "from dpregions.mechanisms.footprint.catalogue_text import catalogue_to_text\n"
        f"c = catalogue_of_sizes(51, {50 * STEPS}, {sizes[::-1]})\n"
        "print(hashlib.sha256(catalogue_to_text(c).encode()).hexdigest())\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == digest(catalogue_of_sizes(51, 50 * STEPS, sizes))


def test_a_tuning_changes_the_shapes():
    slim = dataclasses.replace(TUNING, least_aspect=0.9)
    one, other = (catalogue_of_sizes(12, 11 * STEPS, [(8, 8)], tuning) for tuning in (TUNING, slim))
    assert isinstance(slim, Tuning) and digest(one) != digest(other)


def test_no_size_at_all_gives_the_size_of_one_cell():
    c = catalogue_of_sizes(65, 64 * STEPS, [])
    assert len(c) == 1 and c.has(1, 1)


@pytest.mark.parametrize("sizes", [[(0, 1)], [(1, 5)], [(-1, 2)], [(4, 4)]])
def test_a_size_that_no_body_has_is_refused(sizes):
    with pytest.raises(ValueError, match="no body"):
        catalogue_of_sizes(4, 2 * STEPS + 8, sizes)


def test_wider_than_the_widest_is_refused():
    with pytest.raises(ValueError, match="wider"):
        catalogue_of_sizes(MOST_SIDE + 1, 64 * STEPS, [(1, 1)])


# What is read off it


def test_means_of_some_sizes_are_those_of_all():
    c = made("few cells")
    for h, w in ((1, 1), (4, 3)):
        np.testing.assert_array_equal(c.mean_of(h, w), c.size_means[h, w])
    wide = made("65 cells")
    h, w = np.array([1, 65]), np.array([65, 65])
    means = wide.means_of(h, w)
    assert means.shape == (2, 129, 129)
    np.testing.assert_array_equal(means[1], wide.mean_of(65, 65))
    assert means[0].sum() == 129


def test_bodies_of_a_catalogue_of_sizes_have_the_counts_of_their_polygons():
    c = made("65 cells")
    grid = Grid(0, 0, 1, 70, 80)
    sizes = Buckets.of(c, "sizes", *grid.shape)
    assert len(sizes.heights) == len(WIDE)
    fitted = np.zeros(len(sizes))
    fitted[np.random.default_rng(0).permutation(len(sizes))[:300]] = 1.7
    bodies = make_bodies(sizes, fitted)
    assert bodies.times.sum() == pytest.approx(510, abs=1)
    shapes = bodies.to_regions(grid).shapes
    xy, offsets = shapely.to_ragged_array(shapes)[1:]
    outlines = Outlines.of(xy, offsets[0], grid, Bound(64, 64 * STEPS, True))
    places, _ = outlines.footprints(*grid.shape, 65)
    assert len(places) == bodies.times.sum()  # none is longer than the bound
    counts = bodies.counts_on(*grid.shape)
    row, col = np.indices(grid.shape)
    boxes = shapely.box(col, row, col + 1, row + 1)
    tree = shapely.STRtree(shapes)
    query, _ = tree.query(boxes.ravel(), predicate="intersects")
    np.testing.assert_array_equal(counts[::2, ::2].ravel(), np.bincount(query, minlength=5600))


def test_patterns_of_a_catalogue_of_sizes_can_be_letters():
    c = made("few cells")
    letters = Buckets.of(c, "patterns", 6, 6)
    row, col = np.zeros((2, len(c)), np.int64)
    places = np.stack([row, col, c.heights, c.widths], axis=-1)
    np.testing.assert_array_equal(
        letters.numbers(places, c.spans), letters.of_bodies(np.arange(len(c)), row, col)
    )


# As text


@pytest.mark.parametrize("case", CASES)
def test_its_text_reads_back_to_the_last_bit(case):
    c = made(case)
    text = catalogue_to_text(c)
    other = catalogue_from_text(text, CASES[case][1])
    assert catalogue_to_text(other) == text
    for field in dataclasses.fields(c):
        mine, theirs = getattr(c, field.name), getattr(other, field.name)
        np.testing.assert_array_equal(mine, theirs)
        assert np.asarray(mine).dtype == np.asarray(theirs).dtype


@pytest.mark.parametrize(
    "change",
    [
        lambda f: f | {"side": 66},
        lambda f: f | {"side": 64},
        lambda f: f | {"side": "65"},
        lambda f: f | {"patterns": 10**9},
        lambda f: f | {"patterns": 0},
        lambda f: f | {"patterns": f["patterns"] - 1},
        lambda f: f | {"xy": "AAAA"},
        lambda f: f | {"xy": "not base64"},
        lambda f: f | {"xy": 7},
        lambda f: f | {"heights": f["widths"]},
        lambda f: f | {"heights": f["corners"]},
        lambda f: f | {"times": f["xy"]},
        lambda f: f | {"witnesses": f["heights"]},
        lambda f: {k: v for k, v in f.items() if k != "times"},
        lambda f: [],
    ],
)
def test_a_text_that_cannot_be_is_refused(change):
    fields = json.loads(catalogue_to_text(made("65 cells")))
    with pytest.raises(ReleaseFileError, match="catalogue"):
        catalogue_from_text(json.dumps(change(fields)), 64 * STEPS)


def altered(c: Catalogue, name: str, change) -> Catalogue:
    values = getattr(c, name).copy()
    change(values)
    return dataclasses.replace(c, **{name: values})


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("spans", lambda v: v.__setitem__((-1, 0, 1), v[-1, 0, 1] + 1)),
        ("spans", lambda v: v.__setitem__((0, 100), (0, 0))),
        ("times", lambda v: v.__setitem__(3, 0)),
        ("xy", lambda v: v.__setitem__(-1, v[-1] + [3 * STEPS, 0])),
        ("xy", lambda v: v.__setitem__(0, v[1])),
        ("xy", lambda v: v.__setitem__(slice(None), v[::-1].copy())),
        ("widths", lambda v: v.__setitem__(-1, 64)),
        ("heights", lambda v: v.__setitem__(-1, 66)),
    ],
)
def test_one_wrong_number_is_refused(name, change):
    text = catalogue_to_text(altered(made("65 cells"), name, change))
    with pytest.raises(ReleaseFileError, match="catalogue"):
        catalogue_from_text(text, 64 * STEPS)


def test_a_witness_longer_than_the_bound_is_refused():
    text = catalogue_to_text(made("65 cells"))
    with pytest.raises(ReleaseFileError, match="witnesses"):
        catalogue_from_text(text, 63 * STEPS)


def test_more_patterns_of_a_size_than_are_kept_are_refused():
    """Twice the dozen of one large size: as many as small ones have, but too many here."""
    c = catalogue_of_sizes(65, 64 * STEPS, [(60, 60)])
    twice = Catalogue.of(
        65,
        *(np.tile(v, 2) for v in (c.heights, c.widths)),
        spans=np.tile(c.spans, (2, 1, 1)),
        times=np.tile(c.times, 2),
        witnesses=np.tile(np.diff(c.starts), 2),
        xy=np.tile(c.xy, (2, 1)),
        corners=np.tile(np.diff(c.offsets), 2),
    )
    with pytest.raises(ReleaseFileError, match="values that none has"):
        catalogue_from_text(catalogue_to_text(twice), 64 * STEPS)


def test_more_witnesses_than_any_has_are_refused_before_they_are_unpacked():
    side, n = 24, 24**2 * 64
    rng = np.random.default_rng(0)
    h, w = (v.ravel() for v in np.indices((side, side)) + 1)
    spans = np.zeros((n, 2 * side - 1, 2), np.int16)
    c = Catalogue.of(
        side,
        np.repeat(h, 64),
        np.repeat(w, 64),
        spans=spans,
        times=np.ones(n, np.int64),
        witnesses=np.full(n, 64),
        xy=rng.integers(0, 2, (3, 2)),
        corners=np.array([3]),
    )
    with pytest.raises(ReleaseFileError, match="more witnesses"):
        catalogue_from_text(catalogue_to_text(c), 23 * STEPS)
