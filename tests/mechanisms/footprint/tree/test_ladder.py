"""The levels of an adaptive tree: keys, nodes and weights, beside counting them one by one."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
import shapely

import dpregions as dpr
from dpregions.errors import PrivacyError
from dpregions.geometry.outlines import Bound
from dpregions.intake.regions import outlines_of
from dpregions.mechanisms.footprint.tally import FootprintTally
from dpregions.mechanisms.footprint.tree.keyed import KeyedCounts
from dpregions.mechanisms.footprint.tree.ladder import ladder_of
from support.footprint_releases import town
from support.tree_growth import DIAMETERS, SHAPES, every_key, every_point, ladder_on

LADDERS = list(product(SHAPES, DIAMETERS))


def nodes_of(ladder, level) -> np.ndarray:
    """All numbers that a node of a level may have, whether any region can be there or not."""
    return np.arange(len(ladder) >> ladder.rungs[level].shift)


@pytest.mark.parametrize(("shape", "diameter"), LADDERS)
def test_every_centre_and_size_has_a_key_of_its_own_and_is_found_by_it(shape, diameter):
    ladder = ladder_on(shape, diameter)
    points, keys = every_point(ladder), every_key(ladder)
    assert len(points) and len(np.unique(keys)) == len(keys)
    assert (keys >= 0).all() and (keys < len(ladder)).all()
    row, col, tall, wide = ladder.points(keys)
    np.testing.assert_array_equal(np.stack([row, col, tall + 1, wide + 1], axis=-1), points)


@pytest.mark.parametrize(("shape", "diameter"), LADDERS)
def test_a_node_is_a_block_of_cells_and_a_class_of_sizes_and_its_keys_are_one_range(
    shape, diameter
):
    """The points of a node, by their blocks and classes, are those whose keys begin alike."""
    ladder = ladder_on(shape, diameter)
    points, keys = every_point(ladder), every_key(ladder)
    for level, rung in enumerate(ladder.rungs):
        block, wide = rung.block, rung.wide
        by_place = np.stack(
            [*(points[:, :2] // block).T, *((points[:, 2:] - 1) // wide).T], axis=-1
        )
        node = keys >> rung.shift
        np.testing.assert_array_equal(np.stack(ladder.points(node, level), axis=-1), by_place)
        _, which = np.unique(by_place, axis=0, return_inverse=True)
        pairs = np.unique(np.stack([which, node]), axis=1)
        assert len(np.unique(pairs[0])) == len(np.unique(pairs[1])) == pairs.shape[1]


@pytest.mark.parametrize(("shape", "diameter"), LADDERS)
def test_levels_begin_with_all_regions_and_end_with_single_sizes_in_single_cells(shape, diameter):
    ladder = ladder_on(shape, diameter)
    first, last = ladder.rungs[0], ladder.rungs[-1]
    assert not (every_key(ladder) >> first.shift).any()
    assert (last.block, last.wide, last.shift) == (1, 1, 0)
    for above, below in pairwise(ladder.rungs):
        assert (above.block, above.wide) != (below.block, below.wide)
        assert above.block in (below.block, 2 * below.block)
        assert above.wide in (below.wide, 2 * below.wide)


@pytest.mark.parametrize(("shape", "diameter"), LADDERS)
def test_a_node_is_there_just_where_some_region_can_be_in_it(shape, diameter):
    ladder = ladder_on(shape, diameter)
    for level, rung in enumerate(ladder.rungs):
        nodes = nodes_of(ladder, level)
        wanted = np.isin(nodes, every_key(ladder) >> rung.shift)
        np.testing.assert_array_equal(ladder.there(level, nodes), wanted)


@pytest.mark.parametrize(("shape", "diameter"), LADDERS)
def test_children_are_a_partition_of_their_node_at_every_lower_level(shape, diameter):
    ladder, keys = ladder_on(shape, diameter), every_key(ladder_on(shape, diameter))
    for level, rung in enumerate(ladder.rungs):
        nodes = np.unique(keys >> rung.shift)
        for below in range(level + 1, len(ladder.rungs)):
            made, up = ladder.children(level, nodes, below)
            low = ladder.rungs[below].shift
            assert (np.diff(made) > 0).all()
            np.testing.assert_array_equal(made >> (rung.shift - low), nodes[up])
            # Every region that is in a node is in one of its children, and in no other's.
            at = np.searchsorted(made, keys >> low)
            np.testing.assert_array_equal(made[at], keys >> low)
            np.testing.assert_array_equal(nodes[up[at]], keys >> rung.shift)
            widest = np.bincount(up).max()
            assert widest <= ladder.n_children(level, below)


@pytest.mark.parametrize(("shape", "diameter"), LADDERS)
def test_weights_are_the_sums_of_sizes_over_their_places(shape, diameter):
    ladder = ladder_on(shape, diameter)
    points, keys = every_point(ladder), every_key(ladder)
    rng = np.random.default_rng(0)
    mix = rng.random(ladder.prior.shape) * (ladder.prior > 0)
    h, w = points[:, 2], points[:, 3]
    n_places = (shape[0] - h + 1) * (shape[1] - w + 1)
    each = mix[h, w] / n_places
    for level, rung in enumerate(ladder.rungs):
        nodes, which = np.unique(keys >> rung.shift, return_inverse=True)
        np.testing.assert_allclose(
            ladder.weights(level, nodes, mix), np.bincount(which, each), rtol=1e-12, atol=1e-15
        )
    assert ladder.weights(0, np.zeros(1, np.int64), mix) == pytest.approx(mix.sum())


@pytest.mark.parametrize(("shape", "diameter"), [((3, 4), 2), ((5, 5), 1.5), ((8, 8), 3)])
def test_regions_have_the_keys_of_their_footprints_and_are_counted_in_every_node_above(
    shape, diameter
):
    ladder = ladder_on(shape, diameter)
    grid = dpr.Grid(0, 0, 1, *shape)
    bound = Bound.of(grid, diameter, "shrink")
    regions = town(grid, diameter, n=300)
    outlines = outlines_of(regions, None, grid, bound)
    places, _ = outlines.footprints(*shape, ladder.side)
    tally = FootprintTally(ladder)
    tally.add(outlines)
    keys, n = tally.keyed(ladder)
    row, col, height, width = places.T
    wanted = ladder.keys(row + (height - 1) // 2, col + (width - 1) // 2, height, width)
    assert np.repeat(keys, n).tolist() == np.sort(wanted).tolist()
    assert np.isin(keys, every_key(ladder)).all()
    counted = KeyedCounts(ladder, keys, n)
    for level, rung in enumerate(ladder.rungs):
        nodes = nodes_of(ladder, level)
        found = counted.of_nodes(level, nodes)
        np.testing.assert_array_equal(
            found, np.bincount(wanted >> rung.shift, minlength=len(nodes))
        )
        assert found.sum() == tally.total == len(places)


def test_a_footprint_of_no_known_size_is_filed_under_one_where_it_is_still_on_the_grid():
    """Just above a whole number of cells the widest footprints have no witness."""
    grid = dpr.Grid(0, 0, 1, 6, 6)
    bound = Bound.of(grid, 1 + 1e-6, "shrink")
    ladder = ladder_of((6, 6), bound.k + 1, bound.steps)
    assert ladder.side == 3 and not ladder.prior[3, 3]
    assert ladder.filed[3, 3].tolist() != [3, 3]
    ends = np.array([(r, c, h, w) for h in (1, 2, 3) for w in (1, 2, 3)
                     for r in range(7 - h) for c in range(7 - w)])  # fmt: skip
    assert np.isin(ladder.numbers(ends, None), every_key(ladder)).all()


def test_counts_of_sizes_are_those_of_all_regions_in_their_groups():
    ladder = ladder_on((5, 5), 3)
    points, keys = every_point(ladder), every_key(ladder)
    order = np.argsort(keys)
    n = np.arange(len(keys)) % 5
    counted = KeyedCounts(ladder, keys[order], n[order])
    tall, wide = np.array([0, 0, 1, 1, 2])[: ladder.side + 1], np.arange(ladder.side + 1) % 2
    wanted = np.zeros((tall.max() + 1, 2), np.int64)
    np.add.at(wanted, (tall[points[:, 2]], wide[points[:, 3]]), n)
    assert counted.of_sizes(tall, wide).tolist() == wanted.ravel().tolist()


def test_a_grid_whose_keys_would_not_fit_is_refused():
    with pytest.raises(PrivacyError, match="too large"):
        _ = ladder_of((1 << 31, 1 << 31), 2, 1 << 20).rungs


def test_a_region_outside_of_the_area_has_no_key():
    grid = dpr.Grid(0, 0, 1, 3, 3)
    tally = FootprintTally(ladder_on((3, 4), 2))
    bound = Bound.of(grid, 2, "shrink")
    outside = np.array([shapely.Point(99, 99)], object)
    tally.add(outlines_of(outside, None, grid, bound))
    assert tally.total == 0
