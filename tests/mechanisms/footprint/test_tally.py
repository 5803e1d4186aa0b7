"""The tally of footprints: sparse, of few parts, the same by sizes and by patterns."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shapely import LineString, Point, box

from dpregions import EulerHistogram, Grid
from dpregions.geometry.outlines import Bound
from dpregions.intake.regions import outlines_of
from dpregions.mechanisms.footprint.buckets import Buckets
from dpregions.mechanisms.footprint.catalogue import catalogue
from dpregions.mechanisms.footprint.levels import MIX, WHOLE, Hierarchy, Level
from dpregions.mechanisms.footprint.shapes import n_groups
from dpregions.mechanisms.footprint.tally import FootprintTally
from support.footprint_releases import town


def terms(shape, ratio):
    """A grid of unit cells, the bound on it, and the buckets of both alphabets."""
    grid = Grid(0, 0, 1, *shape)
    bound = Bound.of(grid, ratio, "shrink")
    known = catalogue(min(bound.k + 1, max(shape)), bound.steps)
    return grid, bound, *(Buckets.of(known, name, *shape) for name in ("sizes", "patterns"))


def tally_of(regions, grid, bound, buckets) -> FootprintTally:
    tally = FootprintTally(buckets)
    tally.add(outlines_of(np.asarray(regions, object), None, grid, bound))
    return tally


@settings(max_examples=30)
@given(
    st.sampled_from([(1, 1), (1, 6), (5, 1), (3, 4), (6, 6)]),
    st.sampled_from([0.5, 1.0, 1.0000038, 2.0, 2.5]),
    st.integers(0, 1000),
)
def test_a_tally_of_patterns_gives_the_counts_of_sizes_that_one_of_sizes_does(shape, ratio, seed):
    grid, bound, sizes, patterns = terms(shape, ratio)
    regions = town(grid, ratio, n=150, seed=seed)
    fine, coarse = (tally_of(regions, grid, bound, b) for b in (patterns, sizes))
    np.testing.assert_array_equal(fine.counts(sizes), coarse.counts(sizes))
    inside = EulerHistogram.from_regions(regions, grid, max_diameter=ratio).count(*grid.bounds)
    assert fine.total == coarse.total == inside
    assert fine.counts(patterns).sum() == inside


def test_a_region_is_one_count_of_every_level_wherever_it_lies():
    """And one that is replaced moves every level by 2, but for the total: the lemma's bound."""
    grid, bound, *alphabets = terms((8, 8), 2)
    levels = (WHOLE, Level(4, "all"), Level(2, "classes"), Level(1, "letters"))
    one, other = box(1.9, 1.9, 3.1, 3.1), box(4.9, 5.9, 6.1, 6.4)
    thin, half_out = LineString([(1, 1), (2.4, 2.4)]), Point(0, 0).buffer(1)
    too_long, outside = box(0, 0, 7, 7), box(9, 9, 10, 10)
    for buckets in alphabets:
        tree = Hierarchy.of(buckets, levels)

        def counts(region, tree=tree):
            exact = tally_of([region], grid, bound, tree.buckets).counts(tree.buckets)
            return [tree.sums(level, exact) for level in (*levels, MIX)]

        for region in (one, other, thin, half_out, too_long):
            assert [c.sum() for c in counts(region)] == [1, 1, 1, 1, 1]
            assert [c.max() for c in counts(region)] == [1, 1, 1, 1, 1]
        assert [c.sum() for c in counts(outside)] == [0, 0, 0, 0, 0]
        moved = zip(counts(one), counts(other), strict=True)
        assert [int(np.abs(a - b).sum()) for a, b in moved] == [0, 2, 2, 2, 2]


def test_a_bucket_of_patterns_is_within_the_bucket_of_its_size_at_its_place():
    _, _, sizes, patterns = terms((4, 5), 2)
    everyone = np.arange(len(patterns))
    coarse = patterns.within(sizes, everyone)
    for mine, theirs in zip(patterns.places, sizes.places, strict=True):
        np.testing.assert_array_equal(mine, theirs[coarse])
    for name in ("heights", "widths"):
        mine = getattr(patterns, name)[patterns.letters]
        np.testing.assert_array_equal(mine, getattr(sizes, name)[sizes.letters[coarse]])
    np.testing.assert_array_equal(patterns.within(patterns, everyone), everyone)


def test_a_tally_holds_buckets_that_somebody_is_in_however_large_the_grid_is():
    near = town(Grid(0, 0, 1, 6, 6), 2, n=300)
    held = []
    for side in (12, 60, 240):
        # Regions a few cells inside, so that the same are in the area of every grid.
        grid = Grid(-2, -2, 1, side, side)
        bound = Bound.of(grid, 2, "shrink")
        buckets = Buckets.of(catalogue(bound.k + 1, bound.steps), "sizes", side, side)
        tally = tally_of(near, grid, bound, buckets)
        n_used = np.count_nonzero(tally.counts(buckets))
        # Regions of one bucket are told apart by their shapes, where these differ.
        assert n_used <= n_held(tally) < min(2 * n_used, 300)
        most = n_groups(buckets.side) * len(buckets)
        assert tally.nbytes == 32 * min(most, 1 << 23)  # the most that it may come to
        held.append(n_held(tally))
    assert held[0] == held[1] == held[2] < 300
    assert n_held(FootprintTally(buckets)) == 0


def n_held(tally):
    """How many numbers of buckets a tally holds."""
    return sum(len(number) for number, _ in tally._parts)


@pytest.mark.parametrize("seed", range(3))
def test_its_parts_stay_few_and_short_over_many_batches(seed):
    grid, bound, sizes, _ = terms((30, 30), 2)
    rng = np.random.default_rng(seed)
    regions = town(grid, 2, n=3000, seed=seed)
    tally, done = FootprintTally(sizes), 0
    while done < len(regions):
        batch = regions[done : done + int(rng.integers(0, 40))]
        tally.add(outlines_of(batch, None, grid, bound))
        done += len(batch)
        lengths = [len(number) for number, _ in tally._parts]
        assert len(lengths) <= 2 + math.log2(max(lengths) + 1)
        assert all(2 * after < before for before, after in pairwise(lengths))
    for number, n in tally._parts:
        assert (np.diff(number) > 0).all() and (n > 0).all()
    whole = tally_of(regions, grid, bound, sizes)
    np.testing.assert_array_equal(tally.counts(sizes), whole.counts(sizes))
    assert n_held(whole) <= n_held(tally) <= 2 * n_held(whole)
    assert tally.total == whole.total


def test_so_many_times_a_tally_is_that_many_of_each():
    grid, bound, sizes, _ = terms((4, 5), 2)
    tally = tally_of(town(grid, 2), grid, bound, sizes)
    before = tally.counts(sizes)
    assert before.any()
    np.testing.assert_array_equal((tally * 7).counts(sizes), 7 * before)
    assert (tally * 7).total == 7 * tally.total
    np.testing.assert_array_equal(tally.counts(sizes), before)
