"""Groups of shapes, and the catalogue's patterns weighed by noisy counts of them."""

from __future__ import annotations

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

import dpregions as dpr
from dpregions.geometry.outlines import Bound
from dpregions.intake.regions import outlines_of
from dpregions.mechanisms.footprint.catalogue import catalogue
from dpregions.mechanisms.footprint.kernel import shape_groups, size_family
from dpregions.mechanisms.footprint.mechanism import Footprint
from dpregions.mechanisms.footprint.shape_mix import reshaped
from dpregions.mechanisms.footprint.shapes import (
    CLASSES,
    groups_of_patterns,
    n_groups,
)
from dpregions.mechanisms.footprint.sizes import filed_under
from dpregions.planning.exact_data import ExactData
from dpregions.privacy.budget import Budget
from dpregions.privacy.seeded import StudyNoise

GRID = dpr.Grid(0, 0, 1, 12, 12)
BOUND = Bound.of(GRID, 2, "shrink")
SIDE = BOUND.k + 1
KNOWN = catalogue(SIDE, BOUND.steps)
LEFT, NEITHER, RIGHT = range(3)


def groups(*shapes) -> list[int]:
    outlines = outlines_of(np.array(shapes, object), None, GRID, BOUND)
    places, spans = outlines.footprints(*GRID.shape, SIDE)
    filed = filed_under(KNOWN.last > KNOWN.first)
    return shape_groups(filed, *places[:, 2:].T, spans).tolist()


@pytest.mark.parametrize("cells", [1, 2, 3, 6, 13])
def test_patterns_are_grouped_as_the_compiled_loop_groups_bodies(cells):
    bound = Bound.of(GRID, cells, "shrink")
    known = catalogue(bound.k + 1, bound.steps)
    itself = np.indices((known.side + 1, known.side + 1)).transpose(1, 2, 0)
    expected = shape_groups(itself, known.heights, known.widths, known.spans)
    np.testing.assert_array_equal(groups_of_patterns(known), expected)


def of(family: int, full: int, lean: int) -> int:
    return 1 + CLASSES * family + 3 * full + lean


@pytest.mark.parametrize(
    ("shape", "group"),
    [
        ("POINT (3.5 3.5)", 0),
        ("LINESTRING (3.5 3.5, 5.2 3.6)", 0),
        ("LINESTRING (3.5 3.9, 3.6 5.2)", 0),
        ("LINESTRING (3.5 3.4, 4.5 4.6)", of(0, 2, RIGHT)),  # three of 2 x 2 cells
        ("LINESTRING (3.5 4.6, 4.5 3.4)", of(0, 2, LEFT)),
        ("POLYGON ((3.6 3.6, 4.4 3.6, 4.4 4.4, 3.6 4.4, 3.6 3.6))", of(0, 4, NEITHER)),
        ("POLYGON ((3.9 3.1, 5.1 3.1, 5.1 4.1, 3.9 4.1, 3.9 3.1))", of(1, 4, NEITHER)),
        ("LINESTRING (3.8 3.7, 5.2 5.3)", of(2, 1, RIGHT)),  # five of 3 x 3 cells
    ],
)  # fmt: skip
def test_a_region_has_the_group_of_what_it_touches(shape, group):
    assert groups(shapely.from_wkt(shape)) == [group]


def test_a_region_that_touches_no_cell_has_no_group():
    assert groups(shapely.Point(-5, -5), shapely.Point(1, 1)) == [0]


@pytest.mark.parametrize("side", [1, 2, 3, 4, 6, 7, 12, 13, 65])
def test_every_size_has_a_family_that_the_side_allows(side):
    sizes = [(h, w) for h in range(1, side + 1) for w in range(1, side + 1)]
    found = {size: size_family(*size) for size in sizes}
    assert {size for size, family in found.items() if family < 0} == {
        size for size in sizes if min(size) == 1
    }
    assert set(found.values()) == set(range(-1, max(found.values()) + 1))
    assert 1 + CLASSES * (max(found.values()) + 1) == n_groups(side)


@given(st.integers(0, 2**32 - 1), st.integers(1, 60))
def test_a_region_more_moves_one_count_by_one(seed, n):
    rng = np.random.default_rng(seed)
    middle, reach = rng.uniform(-1, 13, (n, 1, 2)), rng.uniform(0, 1.2, (n, 1, 1))
    shapes = shapely.convex_hull(shapely.multipoints(middle + reach * rng.normal(size=(n, 5, 2))))
    prepared = Footprint().prepare(GRID, BOUND, Budget(1), "add-remove")
    with_all, without = prepared.tally(), prepared.tally()
    with_all.add(outlines_of(shapes, None, GRID, BOUND))
    without.add(outlines_of(shapes[:-1], None, GRID, BOUND))
    more = with_all.shapes - without.shapes
    assert sorted(more.tolist())[:-1] == [0] * (len(more) - 1)
    assert more.sum() == with_all.total - without.total
    assert with_all.shapes.sum() == with_all.total


def sizes_of(n: float) -> np.ndarray:
    return n * KNOWN.prior / KNOWN.prior.sum()


def counts_by(weights: np.ndarray, n: float) -> np.ndarray:
    size = sizes_of(n)[KNOWN.heights, KNOWN.widths]
    return np.bincount(groups_of_patterns(KNOWN), weights * size, n_groups(SIDE))


def test_counts_without_noise_are_followed():
    group = groups_of_patterns(KNOWN)
    leaning = KNOWN.weights * np.where((group > 0) & ((group - 1) % 3 == RIGHT), 5.0, 1.0)
    size = KNOWN.heights * (SIDE + 1) + KNOWN.widths
    leaning /= np.bincount(size, leaning)[size]
    found = reshaped(KNOWN, sizes_of(1e6), counts_by(leaning, 1e6), 1e-6)
    np.testing.assert_allclose(counts_by(found.weights, 1e6), counts_by(leaning, 1e6), rtol=1e-3)
    np.testing.assert_allclose(np.bincount(size, found.weights)[np.unique(size)], 1)


def test_counts_drowned_in_noise_leave_the_catalogue_as_it_was():
    noisy = counts_by(KNOWN.weights, 100) + 10_000 * np.random.default_rng(0).laplace(
        size=n_groups(SIDE)
    )
    found = reshaped(KNOWN, sizes_of(100), noisy, 2 * 10_000.0**2)
    assert np.abs(found.weights - KNOWN.weights).max() < 0.05


def diagonals(n: int = 3000) -> np.ndarray:
    middle = np.random.default_rng(1).normal(6, 1.5, (n, 2))
    return shapely.linestrings(np.stack([middle - 0.46, middle + 0.46], axis=1))


@pytest.mark.parametrize("epsilon", [1, 5])
def test_thin_diagonals_are_answered_within_their_intervals(epsilon):
    data = ExactData.of(diagonals(), GRID, 2, user_id=None)
    cells = np.indices(GRID.shape).reshape(2, -1)
    ranges = np.stack([cells[0], cells[0], cells[1], cells[1]])
    truth = data.truth.answers(ranges)
    busy = truth >= np.quantile(truth, 0.9)
    held, off = [], []
    for seed in range(8):
        made = data.outcome(Footprint(), Budget(epsilon), "add-remove", StudyNoise(seed))
        for at in np.flatnonzero(busy):
            _, low, high = made.reading_of(tuple(ranges[:, at].tolist()), 0.95)
            held.append(low <= truth[at] <= high)
            off.append(made.count_table.rectangle(*ranges[:, at].tolist()) / truth[at] - 1)
    assert np.mean(held) > 0.93
    assert abs(np.mean(off)) < 0.03
