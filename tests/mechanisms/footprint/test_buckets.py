"""Buckets: every region in the area is in exactly one; counts of them expand to an Euler array."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from dpregions import EulerHistogram, Grid
from dpregions.errors import PrivacyError
from dpregions.geometry.cells import Selection
from dpregions.geometry.doubled import SignedTable
from dpregions.geometry.outlines import Bound
from dpregions.intake.regions import outlines_of
from dpregions.mechanisms.footprint.bodies import Bodies, make_bodies
from dpregions.mechanisms.footprint.buckets import (
    LIMIT,
    MOST_CELLS_WIDE,
    Buckets,
    refuse_too_many,
)
from dpregions.mechanisms.footprint.catalogue import catalogue
from support.oracle import padded, touched
from support.strategies import bodies, geometries

STEPS = 1 << 20
SHAPES = st.sampled_from([(1, 1), (1, 2), (1, 6), (5, 1), (2, 2), (3, 4), (4, 3), (6, 6)])
RATIOS = st.sampled_from([0.5, 1.0, 1.0000038, 2.0, 2.5, 4.0, 9.0])
ALPHABETS = ["sizes", "patterns"]
remembered = cache(catalogue)  # the catalogue's own memory holds fewer than there are here


def public(shape, ratio):
    """The grid, the bound and the catalogue of a release with these parameters."""
    grid = Grid(0, 0, 1, *shape)
    bound = Bound.of(grid, ratio, "shrink")
    return grid, bound, remembered(min(bound.k + 1, max(shape)), bound.steps)


def footprints(regions, grid, bound, side):
    outlines = outlines_of(np.array(regions, dtype=object), None, grid, bound)
    return outlines, outlines.footprints(*grid.shape, side)


def drawn_regions(data):
    """Public parameters of a release and regions for it, as hypothesis draws them."""
    shape, ratio = data.draw(SHAPES), data.draw(RATIOS)
    drawn = data.draw(st.lists(bodies(shape), min_size=1, max_size=5))
    regions = geometries([[(x / STEPS, y / STEPS) for x, y in body] for body in drawn])
    return *public(shape, ratio), regions


def whole_grid(shape):
    return Selection(np.array([[0], [shape[0] - 1], [0], [shape[1] - 1]]))


@settings(max_examples=60)
@given(st.data())
def test_a_region_that_touches_the_area_is_in_exactly_one_bucket_and_others_in_none(data):
    grid, bound, known, regions = drawn_regions(data)
    outlines, found = footprints(regions, grid, bound, known.side)
    ends = zip(outlines.offsets, outlines.offsets[1:], strict=False)
    rings = [outlines.xy[a:b].tolist() for a, b in ends if a < b]
    arrays = touched(padded(rings), *grid.shape) if rings else np.zeros((0, 1, 1))
    inside = [array for array in arrays if array.any()]
    assert len(found[0]) == len(inside)
    for alphabet in ALPHABETS:
        buckets = Buckets.of(known, alphabet, *grid.shape)
        numbers = buckets.numbers(*found)
        assert numbers.shape == (len(inside),)
        assert ((numbers >= 0) & (numbers < len(buckets))).all()
        row, col = (place[numbers] for place in buckets.places)
        height, width = (
            size[buckets.letters[numbers]] for size in (buckets.heights, buckets.widths)
        )
        for i, array in enumerate(inside):
            # Its own footprint, where the catalogue has a witness for it.
            rows, cols = np.flatnonzero(array.any(1)) // 2, np.flatnonzero(array.any(0)) // 2
            own = (rows[0], cols[0], rows[-1] - rows[0] + 1, cols[-1] - cols[0] + 1)
            assert (row[i], col[i]) == own[:2]
            if known.has(*own[2:]):
                assert (height[i], width[i]) == own[2:]
            else:
                assert height[i] <= own[2] and width[i] <= own[3]


@settings(max_examples=40)
@given(st.data())
def test_the_bucket_of_a_region_depends_on_that_region_alone(data):
    grid, bound, known, regions = drawn_regions(data)
    for alphabet in ALPHABETS:
        buckets = Buckets.of(known, alphabet, *grid.shape)
        together = buckets.numbers(*footprints(regions, grid, bound, known.side)[1])
        apart = [buckets.numbers(*footprints([r], grid, bound, known.side)[1]) for r in regions]
        assert all(len(numbers) <= 1 for numbers in apart)
        np.testing.assert_array_equal(together, np.concatenate(apart))


@given(SHAPES, RATIOS, st.sampled_from(ALPHABETS))
def test_a_bucket_has_one_number_and_a_number_one_bucket(shape, ratio, alphabet):
    *_, known = public(shape, ratio)
    buckets = Buckets.of(known, alphabet, *shape)
    row, col = buckets.places
    everyone = np.arange(len(buckets))
    np.testing.assert_array_equal(buckets.number(buckets.letters, row, col), everyone)
    assert len(set(zip(buckets.letters.tolist(), row.tolist(), col.tolist(), strict=True))) == len(
        buckets
    )
    height, width = buckets.heights[buckets.letters], buckets.widths[buckets.letters]
    assert (row >= 0).all() and (row + height <= shape[0]).all()
    assert (col >= 0).all() and (col + width <= shape[1]).all()
    middle_row, middle_col = buckets.centres
    assert ((middle_row >= row) & (middle_row < row + height)).all()
    assert ((middle_col >= col) & (middle_col < col + width)).all()


def test_there_is_a_bucket_for_every_footprint_at_every_place():
    *_, known = public((3, 4), 1)
    buckets = Buckets.of(known, "sizes", 3, 4)
    # 1 x 1 at 12 places, 1 x 2 at 9, 2 x 1 at 8, 2 x 2 at 6.
    assert len(buckets) == 12 + 9 + 8 + 6
    assert len(Buckets.of(known, "patterns", 3, 4)) == 12 + 9 + 8 + 5 * 6


@pytest.mark.parametrize(("shape", "ratio"), [((4, 5), 2), ((1, 6), 3), ((3, 3), 9)])
def test_one_body_of_a_pattern_expands_to_the_euler_histogram_of_its_witness(shape, ratio):
    grid, bound, known = public(shape, ratio)
    buckets = Buckets.of(known, "patterns", *shape)
    fits = np.flatnonzero((known.heights <= shape[0]) & (known.widths <= shape[1]))
    rng = np.random.default_rng(0)
    for number in rng.permutation(len(buckets))[:80]:
        one = np.zeros(len(buckets))
        one[number] = 1
        pattern = fits[buckets.letters[number]]
        row, col = (place[number] for place in buckets.places)
        witness = rng.integers(known.starts[pattern], known.starts[pattern + 1])
        xy = known.xy[known.offsets[witness] : known.offsets[witness + 1]] / STEPS
        region = shapely.Polygon(xy + np.array([col, row]))
        exact = EulerHistogram.from_regions([region], grid, max_diameter=ratio, oversize="drop")
        np.testing.assert_array_equal(buckets.expand(one), exact.counts)
        # And the region is filed there: the alphabet tells it from all others.
        _, found = footprints([region], grid, bound, known.side)
        assert buckets.numbers(*found).tolist() == [number]
        made = make_bodies(buckets, one)
        np.testing.assert_array_equal(made.counts_on(*shape), exact.counts)


def test_one_body_of_a_size_expands_to_the_mean_of_its_patterns():
    grid, _, known = public((4, 4), 1)
    buckets = Buckets.of(known, "sizes", 4, 4)
    letter = buckets.letter_of_size[2, 2]
    one = np.zeros(len(buckets))
    one[buckets.number(letter, np.int64(1), np.int64(2))] = 1
    wanted = np.zeros(grid.doubled_shape)
    for i in range(known.first[2, 2], known.last[2, 2]):
        place = np.array([1]), np.array([2]), np.array([1])
        wanted += known.weights[i] * Bodies.of_patterns(known, np.array([i]), *place).counts_on(
            4, 4
        )
    np.testing.assert_allclose(buckets.expand(one), wanted, atol=1e-12)
    assert wanted[2:5, 4:7].min() > 0.5


@given(st.data())
def test_weighing_a_query_is_the_adjoint_of_expanding(data):
    shape, ratio = data.draw(SHAPES), data.draw(RATIOS)
    grid, _, known = public(shape, ratio)
    buckets = Buckets.of(known, data.draw(st.sampled_from(ALPHABETS)), *shape)
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    values = rng.normal(size=len(buckets)) * (rng.random(len(buckets)) < 0.5)
    rows = sorted(rng.integers(0, shape[0], 2))
    cols = sorted(rng.integers(0, shape[1], 2))
    signs = Selection(np.array([*rows, *cols])[:, None]).signs(0, grid)
    weighed = buckets.weigh(signs)
    assert (weighed > -1e-9).all() and (weighed < 1 + 1e-9).all()
    assert values @ weighed == pytest.approx((buckets.expand(values) * signs).sum(), abs=1e-9)
    answer = SignedTable(buckets.expand(values)).rectangle(*rows, *cols)
    assert values @ weighed == pytest.approx(answer, abs=1e-9)


@given(SHAPES, RATIOS, st.sampled_from(ALPHABETS))
def test_every_bucket_counts_once_on_the_whole_area(shape, ratio, alphabet):
    grid, _, known = public(shape, ratio)
    buckets = Buckets.of(known, alphabet, *shape)
    weighed = buckets.weigh(whole_grid(shape).signs(0, grid))
    np.testing.assert_allclose(weighed, 1, atol=1e-12)


@given(st.data())
def test_bodies_follow_fitted_counts_and_are_rounded_by_less_than_one_in_all(data):
    shape, ratio = data.draw(SHAPES), data.draw(RATIOS)
    *_, known = public(shape, ratio)
    buckets = Buckets.of(known, data.draw(st.sampled_from(ALPHABETS)), *shape)
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    fitted = rng.exponential(1, len(buckets)) * (rng.random(len(buckets)) < 0.3)
    made = make_bodies(buckets, fitted)
    assert (made.times > 0).all()
    assert abs(made.times.sum() - fitted.sum()) <= 0.5 + 1e-6
    height, width = known.heights[made.pattern], known.widths[made.pattern]
    assert ((made.row >= 0) & (made.row + height <= shape[0])).all()
    assert ((made.col >= 0) & (made.col + width <= shape[1])).all()
    # A bucket holds its count, give or take one.
    letter = (
        buckets.letter_of_pattern[made.pattern]
        if buckets.alphabet == "patterns"
        else buckets.letter_of_size[height, width]
    )
    numbers = buckets.number(letter, made.row, made.col)
    held = np.bincount(numbers, made.times, minlength=len(buckets))
    assert (np.abs(held - fitted) < 1 + 1e-6).all()


def test_whole_counts_become_just_that_many_bodies():
    *_, known = public((4, 4), 2)
    buckets = Buckets.of(known, "sizes", 4, 4)
    whole = np.random.default_rng(0).poisson(3, len(buckets)).astype(float)
    made = make_bodies(buckets, whole)
    letter = buckets.letter_of_size[known.heights[made.pattern], known.widths[made.pattern]]
    numbers = buckets.number(letter, made.row, made.col)
    held = np.bincount(numbers, made.times, minlength=len(buckets))
    np.testing.assert_array_equal(held, whole)


def test_shapes_are_dealt_out_in_the_proportions_of_the_catalogue():
    *_, known = public((6, 6), 2)
    buckets = Buckets.of(known, "sizes", 6, 6)
    made = make_bodies(buckets, np.full(len(buckets), 200.0))
    for h, w in ((2, 2), (3, 3), (3, 2)):
        part = slice(known.first[h, w], known.last[h, w])
        seen = np.bincount(made.pattern, made.times, minlength=len(known))[part]
        np.testing.assert_allclose(seen / seen.sum(), known.weights[part], atol=0.005)


def test_too_many_buckets_are_refused_with_their_number_and_the_remedy():
    refuse_too_many(3, 512, 512)
    refuse_too_many(14, 20, 20)
    n_rows, side = 4000, 3
    n = sum((n_rows - h) * (n_rows - w) for h in range(side) for w in range(side))
    assert n > LIMIT
    with pytest.raises(PrivacyError, match=r"larger cells.*smaller max_diameter") as refused:
        refuse_too_many(side, n_rows, n_rows)
    assert f"{n:,} buckets" in str(refused.value)
    with pytest.raises(PrivacyError, match=f"more than {MOST_CELLS_WIDE} cells wide"):
        refuse_too_many(MOST_CELLS_WIDE + 1, 30, 30)
    with pytest.raises(PrivacyError, match="buckets"):
        refuse_too_many(10**12, 10**6, 10**6)


def test_the_number_of_buckets_in_a_refusal_is_what_there_would_be():
    for shape, side in (((5, 7), 3), ((1, 6), 4), ((3, 3), 3), ((6, 6), 1)):
        known = catalogue(side, side * STEPS)
        n = len(Buckets.of(known, "sizes", *shape))
        tall, wide = (sum(max(length - h, 0) for h in range(side)) for length in shape)
        assert n == tall * wide
