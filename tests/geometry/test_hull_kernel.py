"""Hulls and the bound against big integers: exact, whatever the positions."""

from __future__ import annotations

import importlib.util
import math
from itertools import combinations

import numba
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dpregions.geometry import hull_kernel as _kernel
from dpregions.geometry import lattice
from support import oracle, strategies
from support.kernels import outlines_of_steps, patterns
from support.oracle import UNIT

QUARTER = UNIT // 4


@st.composite
def near_zero_products(draw):
    """Return a, b with a tiny or zero cross product: near multiples of one direction."""
    x, y = draw(st.integers(-(2**30), 2**30)), draw(st.integers(-(2**30), 2**30))
    s, t = draw(st.integers(-(2**19), 2**19)), draw(st.integers(-(2**19), 2**19))
    nudge = st.integers(-1, 1)
    return s * x + draw(nudge), s * y + draw(nudge), t * x + draw(nudge), t * y + draw(nudge)


ENTRY = st.integers(-(2**52) + 1, 2**52 - 1)


class TestIntegerArithmetic:
    @given(st.one_of(st.tuples(ENTRY, ENTRY, ENTRY, ENTRY), near_zero_products()))
    def test_turn_is_the_sign_of_the_cross_product(self, entries):
        ax, ay, bx, by = entries
        cross = ax * by - ay * bx
        assert _kernel.turn(*map(np.int64, entries)) == (cross > 0) - (cross < 0)

    def test_turn_is_exact_at_the_ends_of_its_range(self):
        top = 2**52 - 1
        for signs in np.ndindex(3, 3, 3, 3):
            for less in np.ndindex(2, 2, 2, 2):
                ax, ay, bx, by = ((s - 1) * (top - d) for s, d in zip(signs, less, strict=True))
                cross = ax * by - ay * bx
                found = _kernel.turn(*map(np.int64, (ax, ay, bx, by)))
                assert found == (cross > 0) - (cross < 0)

    def test_turn_is_exact_where_the_product_is_one(self):
        """Neighbouring Fibonacci numbers: cross products of 1, far below a float's rounding."""
        a, b, c, sign = 1, 1, 2, 1
        while c < 2**50:
            assert _kernel.turn(*map(np.int64, (a, b, b, c))) == sign
            assert _kernel.turn(*map(np.int64, (-b, -c, a, b))) == sign
            assert _kernel.turn(*map(np.int64, (a, b, -a, -b))) == 0
            a, b, c, sign = b, c, b + c, -sign

    @given(st.integers(-(2**49), 2**49), st.integers(1, 2**50), st.data())
    def test_floor_muldiv_is_exact_between_the_ends_of_a_side(self, a, c, data):
        b = data.draw(st.integers(0, c))
        assert _kernel.floor_muldiv(np.int64(a), np.int64(b), np.int64(c)) == a * b // c

    @given(st.integers(-(2**60), 2**60), st.integers(-(2**60), 2**60), st.integers(1, 2**60))
    def test_floor_muldiv_is_exact_while_the_result_stays_below_2_to_the_50(self, a, b, c):
        c = max(c, abs(a * b) >> 50)
        if abs(a * b // c) < 2**50 and c < 2**61:
            assert _kernel.floor_muldiv(np.int64(a), np.int64(b), np.int64(c)) == a * b // c

    @pytest.mark.parametrize("c", [1, 2, 3, 2**25 - 1, 2**49, 2**50 - 1, 2**60])
    @pytest.mark.parametrize("q", [0, 1, -1, 2**49, -(2**49), 2**50 - 1, -(2**50) + 1])
    def test_floor_muldiv_is_exact_about_whole_quotients(self, q, c):
        if abs(q) * c < 2**62:
            for near in (q * c - 1, q * c, q * c + 1):
                if abs(near // c) < 2**50:
                    assert _kernel.floor_muldiv(np.int64(near), np.int64(1), np.int64(c)) == (
                        near // c
                    )

    @given(strategies.grids(), st.data())
    def test_the_compiled_snap_is_the_grids(self, grid, data):
        axis = strategies.axis_floats(grid.xmin, grid.cell_size, grid.n_cols)
        x = np.array(data.draw(st.lists(axis, min_size=1, max_size=8)))
        compiled = [_kernel.snap(v, grid.xmin, grid.cell_size) for v in x]
        assert compiled == grid.snap(x, np.full(x.size, grid.ymin))[:, 0].tolist()


class TestOutlines:
    @given(strategies.dyadic_worlds())
    def test_an_outline_is_the_hull_counter_clockwise_from_its_leftmost_lowest_point(self, world):
        grid, bodies = world
        # Everything is near: an outline is empty beside the area only.
        xy, offsets = outlines_of_steps(bodies, grid.shape)
        for i, body in enumerate(bodies):
            found = list(map(tuple, xy[offsets[i] : offsets[i + 1]].tolist()))
            assert found in ([], oracle.wrap(body))

    @given(st.permutations(range(6)), st.booleans())
    def test_order_repetition_and_closing_of_points_change_no_outline(self, order, closed):
        hexagon = [(1, 0), (3, 0), (4, 1), (3, 2), (1, 2), (0, 1)]
        points = [(x * UNIT // 2 + 7, y * UNIT // 2 + 5) for x, y in hexagon]
        mixed = [points[i] for i in order] + [points[0]] * 2 + [(UNIT, UNIT)]
        ring = points + points[:1] * closed
        xy, offsets = outlines_of_steps([points, mixed, ring, ring[::-1]])
        outlines = np.split(xy, offsets[1:-1])
        assert all(np.array_equal(outlines[0], other) for other in outlines)
        assert outlines[0].tolist() == list(map(list, oracle.wrap(points)))

    def test_a_ring_that_turns_one_way_but_goes_round_twice_is_no_hull_yet(self):
        pentagon = [(0, 2), (2, 0), (5, 0), (7, 3), (3, 5)]
        star = [pentagon[i % 5] for i in (0, 2, 4, 1, 3, 0)]
        body = [(x * QUARTER, y * QUARTER) for x, y in star]
        xy, _ = outlines_of_steps([body])
        assert xy.tolist() == list(map(list, oracle.wrap(body)))
        assert len(xy) == 5

    @pytest.mark.parametrize(
        ("points", "outline"),
        [
            ([(5, 5)], [(5, 5)]),
            ([(5, 5)] * 4, [(5, 5)]),
            ([(9, 1), (3, 7)], [(3, 7), (9, 1)]),
            ([(0, 0), (4, 4), (2, 2), (1, 1), (0, 0)], [(0, 0), (4, 4)]),
            ([(0, 0), (0, 9), (0, 3)], [(0, 0), (0, 9)]),
            ([(0, 0), (4, 0), (8, 0), (8, 8), (0, 8), (0, 4)], [(0, 0), (8, 0), (8, 8), (0, 8)]),
        ],
    )
    def test_degenerate_and_collinear_points_leave_the_corners(self, points, outline):
        xy, _ = outlines_of_steps([points])
        assert list(map(tuple, xy.tolist())) == outline

    def test_a_record_that_is_no_place_has_the_empty_outline(self):
        far = float(2**29)
        records = [[np.nan, 1], [1, np.inf], [-np.inf, 1], [far, 1], [1, -far], [1e300, 1e300]]
        coords = np.array([[0.5, 0.5], *records, [0.5, 0.5]])
        starts = np.array([0, 1, *range(2, len(coords) + 1)])
        xy, offsets = _kernel.outlines(coords, starts, 0.0, 0.0, 1.0, 2, 2, -1, False)
        assert np.diff(offsets).tolist() == [1, 0, 0, 0, 0, 0, 0, 1]
        assert xy.tolist() == [[UNIT // 2, UNIT // 2]] * 2

    def test_one_wild_point_spoils_its_record_only(self):
        coords = np.array([[0.5, 0.5], [np.nan, 0.5], [1.5, 1.5]])
        starts = np.array([0, 2, 3])
        _, offsets = _kernel.outlines(coords, starts, 0.0, 0.0, 1.0, 2, 2, -1, False)
        assert np.diff(offsets).tolist() == [0, 1]

    @given(strategies.dyadic_worlds(max_bodies=6))
    def test_keys_depend_on_the_outline_alone(self, world):
        grid, bodies = world
        xy, offsets = outlines_of_steps(bodies, grid.shape)
        forward = _kernel.outline_keys(xy, offsets)
        xy, offsets = outlines_of_steps(bodies[::-1], grid.shape)
        backward = _kernel.outline_keys(xy, offsets)[::-1]
        assert np.array_equal(forward, backward)
        keys = {tuple(k) for k in forward.tolist()}
        shown = {tuple(oracle.wrap(b)) for b in bodies}
        assert len(keys) <= len(shown) + 1  # and one for bodies beside the area

    def test_outlines_that_differ_in_one_coordinate_differ_in_both_keys(self):
        """Ties in the key would leave the choice of a user's region to row order."""
        square = [(0, 0), (8, 0), (8, 8), (0, 8)]
        bodies = [square, square[:3], square[:2], square[:1], [(0, 0), (0, 8)]]
        for corner, axis, by in np.ndindex(4, 2, 3):
            moved = [list(p) for p in square]
            moved[corner][axis] += by + 1
            bodies.append(moved)
        assert len({tuple(oracle.wrap(b)) for b in bodies}) == len(bodies)
        keys = _kernel.outline_keys(*outlines_of_steps(bodies))
        assert np.unique(keys[:, 0]).size == np.unique(keys[:, 1]).size == len(bodies)


@pytest.fixture
def coarse_kernel(monkeypatch):
    """Return the kernel's own code on a lattice of two steps a cell, as plain Python."""
    monkeypatch.setattr(numba.config, "DISABLE_JIT", True)
    monkeypatch.setattr(lattice, "LATTICE_BITS", 1)
    monkeypatch.setattr(lattice, "STEPS", 2)
    spec = importlib.util.spec_from_file_location("coarse_kernel", _kernel.__file__)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class TestBound:
    """No outline is longer than the bound: this, in integers, is what the sensitivity rests on."""

    @pytest.mark.parametrize("bound", [0, 1, 2, 3, 4, 6])
    @pytest.mark.parametrize("drop", [False, True])
    def test_every_small_body_on_a_coarse_lattice_is_bounded(self, coarse_kernel, bound, drop):
        """Two steps a cell: every triangle with a corner in one cell and sides up to 2 cells."""
        assert coarse_kernel.STEPS == 2
        first = [(x, y) for x in (4, 5) for y in (4, 5)]
        reach = [(x, y) for x in range(1, 9) for y in range(1, 9)]
        bodies = [(p, q, r) for p in first for q, r in combinations(reach, 2)]
        bodies = bodies[:: 1 if bound == 2 and not drop else 7]  # one whole cell: all of them
        coords = np.array(bodies, dtype=np.float64).reshape(-1, 2) / 2
        starts = np.arange(len(bodies) + 1) * 3
        xy, offsets = coarse_kernel.outlines(coords, starts, 0.0, 0.0, 1.0, 6, 6, bound, drop)
        k = -(-bound // 2)
        assert_bounded(xy, offsets, bound, k, unit=2)
        if not drop:
            assert (np.diff(offsets) > 0).all()  # shrunk, never lost: the area holds them all

    def test_the_last_check_stands_by_itself(self, coarse_kernel, monkeypatch):
        """Were the shrink wrong, a region that is still too long would be left out."""
        monkeypatch.setattr(coarse_kernel, "shrink", lambda *_: None)
        coords = np.array([[1.0, 1.0], [3.0, 1.0], [1.0, 1.0], [2.0, 1.0]])
        xy, offsets = coarse_kernel.outlines(
            coords, np.array([0, 2, 4]), 0.0, 0.0, 1.0, 6, 6, 2, False
        )
        assert np.diff(offsets).tolist() == [0, 2]
        assert xy.tolist() == [[2, 2], [4, 2]]

    @pytest.mark.parametrize("k", [1, 2, 3])
    @pytest.mark.parametrize("less", [0, 1, UNIT // 3])
    def test_every_triangle_one_step_from_the_lines_is_bounded(self, k, less):
        """Bounds of whole cells and a little less; corners within a step of lines k+1 apart."""
        ends = [i * UNIT + e for i in (0, k, k + 1) for e in (-1, 0, 1)]
        points = [(x + 3 * UNIT, y + 3 * UNIT) for x in ends for y in ends]
        bodies = list(combinations(points, 3))[:: 1 if less == 0 else 5]
        bound = k * UNIT - less
        shape = (k + 8, k + 8)
        xy, offsets = outlines_of_steps(bodies, shape, bound)
        assert (np.diff(offsets) > 0).all()
        assert_bounded(xy, offsets, bound, k)
        assert sizes_of_some(xy, offsets, shape, 2000).max() <= (2 * k + 1) ** 2

    @given(st.data(), st.integers(0, 3 * UNIT), st.booleans())
    def test_no_outline_is_longer_than_any_bound(self, data, bound, drop):
        grid, bodies = data.draw(strategies.dyadic_worlds())
        xy, offsets = outlines_of_steps(bodies, grid.shape, bound, drop)
        assert_bounded(xy, offsets, bound, -(-bound // UNIT))

    @given(st.data(), st.integers(2**31 - 2, 2**31 + 2) | st.integers(2**31, 2**48))
    def test_bounds_beyond_32_bits_hold_too(self, data, bound):
        far = st.integers(-(2**48), 2**48)
        around = st.tuples(far, far)
        bodies = data.draw(st.lists(st.lists(around, min_size=1, max_size=5), min_size=1))
        xy, offsets = outlines_of_steps(bodies, bound=bound)
        assert_bounded(xy, offsets, bound, -(-bound // UNIT))

    @given(st.data(), st.integers(0, 4 * UNIT))
    def test_a_body_within_the_bound_is_left_as_it_is(self, data, bound):
        grid, bodies = data.draw(strategies.dyadic_worlds())
        free, bounded = (outlines_of_steps(bodies, grid.shape, b) for b in (-1, bound))
        for i, body in enumerate(bodies):
            if squared_diameter(body) <= bound**2:
                for xy, offsets in (free, bounded):
                    kept = list(map(tuple, xy[offsets[i] : offsets[i + 1]].tolist()))
                    assert kept in ([], oracle.wrap(body))
                assert np.diff(free[1])[i] == np.diff(bounded[1])[i]

    @given(st.data(), st.integers(8, 4 * UNIT))
    def test_a_shrunk_body_stays_in_its_place_and_is_as_long_as_allowed(self, data, bound):
        near = st.integers(0, 2**26 * UNIT)
        body = data.draw(st.lists(st.tuples(near, near), min_size=2, max_size=6, unique=True))
        xy, _ = outlines_of_steps([body], (2**27, 2**27), bound)
        before, after = np.array(oracle.wrap(body)), xy
        if squared_diameter(body) <= bound**2:
            assert np.array_equal(before, after)
        else:
            assert (before.min(axis=0) - 1 <= after.min(axis=0)).all()
            assert (after.max(axis=0) <= before.max(axis=0) + 1).all()
            assert squared_diameter(after.tolist()) >= max(bound - 6, 0) ** 2

    @given(st.data(), st.integers(8, 4 * UNIT))
    def test_a_shrunk_body_is_the_body_scaled_about_its_centroid(self, data, bound):
        near = st.integers(0, 2**10 * UNIT)
        body = data.draw(st.lists(st.tuples(near, near), min_size=3, max_size=6, unique=True))
        length = squared_diameter(body) ** 0.5
        hull = np.array(oracle.wrap(body))
        assume(length > bound)
        assume(abs(twice_area(hull)) > length**2 / 64)  # slivers: anywhere along them
        xy, _ = outlines_of_steps([body], (2**11, 2**11), bound)
        scaled = centroid(hull) + (hull - centroid(hull)) * (bound / length)
        gaps = np.linalg.norm(xy[:, None] - scaled, axis=2).min(axis=1)
        assert gaps.max() <= 8  # steps: two of aim, the rest of rounding

    @pytest.mark.parametrize("more", [0, 1, 2])
    def test_drop_forgives_two_steps_of_rounding(self, more):
        body = [[(0, 0), (UNIT + more, 0)]]
        xy, _ = outlines_of_steps(body, bound=UNIT, drop=True)
        assert len(xy) == 2
        assert xy[1, 0] - xy[0, 0] <= UNIT

    def test_drop_leaves_out_what_is_longer(self):
        bodies = [[(0, 0), (UNIT + 3, 0)], [(0, 0), (UNIT, 0)], [(0, 0), (UNIT, UNIT)]]
        _, offsets = outlines_of_steps(bodies, bound=UNIT, drop=True)
        assert np.diff(offsets).tolist() == [0, 2, 0]


FAR = 2**48
"""Lattice steps from the grid's corner to the farthest place there is."""


@st.composite
def hulls(draw):
    """Return a hull in steps: anything, from points and slivers to rings of many vertices."""
    reach = draw(st.sampled_from([3, 40, UNIT, 2**30, 2**31, FAR]))
    form = draw(st.sampled_from(["any", "round", "parallel", "line"]))
    near = st.integers(-reach, reach)
    points = draw(st.lists(st.tuples(near, near), min_size=1, max_size=12))
    if form == "round":
        rng = np.random.default_rng(draw(st.integers(0, 99)))
        angles = rng.uniform(0, 2 * np.pi, draw(st.integers(3, 90)))
        points = [(round(reach * np.cos(a)), round(reach * np.sin(a))) for a in angles]
    elif form == "parallel":  # symmetric about the origin: each side has one parallel to it
        points += [(-x, -y) for x, y in points]
    elif form == "line":  # nearly: slivers, whose ends differ by a step
        (x, y), nudge = points[0], st.integers(-1, 1)
        points = [(x * k // 8 + draw(nudge), y * k // 8 + draw(nudge)) for k in range(-8, 9)]
        points = [(max(-FAR, min(FAR, x)), max(-FAR, min(FAR, y))) for x, y in points]
    return oracle.wrap(points)


class TestDiameter:
    """Against all pairs in big integers."""

    @given(hulls())
    def test_the_calipers_find_the_two_vertices_farthest_apart(self, hull):
        x, y = np.array(hull, dtype=np.int64).T.copy()
        dx, dy = map(int, _kernel._diameter_by_calipers(x, y, len(hull)))
        assert dx**2 + dy**2 == squared_diameter(hull)

    @given(hulls(), st.integers(-2, 2))
    def test_a_hull_is_longer_than_a_bound_or_not_to_the_step(self, hull, more):
        x, y = np.array(hull, dtype=np.int64).T.copy()
        squared = squared_diameter(hull)
        bound = max(math.isqrt(squared) + more, 0)
        assert _kernel.is_longer_than(x, y, len(hull), bound) == (squared > bound**2)

    @given(hulls())
    def test_the_squared_diameter_is_right_but_for_a_floats_rounding(self, hull):
        x, y = np.array(hull, dtype=np.int64).T.copy()
        found = _kernel._squared_diameter(x, y, len(hull))
        assert found == pytest.approx(squared_diameter(hull), rel=2**-51)

    def test_every_hull_of_a_few_lattice_points_has_its_diameter_found(self):
        places = [(x, y) for x in range(4) for y in range(3)]
        for n in (1, 2, 3, 4, 5):
            for points in combinations(places, n):
                hull = oracle.wrap(points)
                x, y = np.array(hull, dtype=np.int64).T.copy()
                dx, dy = _kernel._diameter_by_calipers(x, y, len(hull))
                assert dx**2 + dy**2 == squared_diameter(hull)

    @pytest.mark.parametrize("points", [100, 300_000])
    def test_a_ring_of_any_number_of_vertices_is_shrunk_to_the_bound(self, points):
        """All pairs of the larger one would take minutes."""
        angles = np.linspace(0, 2 * np.pi, points, endpoint=False)
        ring = np.stack([np.cos(angles), np.sin(angles)], axis=1) * 2.0**20 + 2.0**20
        starts, size = np.array([0, points]), 2**21
        xy, _ = _kernel.outlines(ring, starts, 0.0, 0.0, 1.0, size, size, 2**20 * UNIT, False)
        across = np.ptp(xy, axis=0)
        assert len(xy) > points / 2
        assert (across <= 2**20 * UNIT).all() and (across > 0.999 * 2**20 * UNIT).all()


class TestSort:
    @given(st.integers(0, 400), st.integers(0, 9), st.sampled_from([1, 5, 10**6]))
    def test_points_are_sorted_by_x_then_y(self, n, seed, spread):
        points = np.random.default_rng(seed).integers(-spread, spread, (n, 2), endpoint=True)
        x, y = points.T.copy()
        _kernel._sort_points(x, y, n, np.empty_like(x), np.empty_like(y))
        assert list(zip(x.tolist(), y.tolist(), strict=True)) == sorted(map(tuple, points.tolist()))


def squared_diameter(points):
    return max((p[0] - q[0]) ** 2 + (p[1] - q[1]) ** 2 for p in points for q in points)


def twice_area(ring):
    x, y = (ring - ring[0]).T.astype(float)
    return (x * np.roll(y, -1) - np.roll(x, -1) * y).sum()


def centroid(ring):
    x, y = (ring - ring[0]).T.astype(float)
    cross = x * np.roll(y, -1) - np.roll(x, -1) * y
    sums = [((v + np.roll(v, -1)) * cross).sum() for v in (x, y)]
    return ring[0] + np.array(sums) / (3 * cross.sum())


def assert_bounded(xy, offsets, bound, k, unit=UNIT):
    """Assert diameter <= bound, exactly, and so at most k+1 rows and k+1 columns of cells."""
    if np.abs(xy).max(initial=0) >= 1 << 30:
        xy = xy.astype(object)
    owner = np.repeat(np.arange(offsets.size - 1), np.diff(offsets))
    for apart in range(1, np.diff(offsets).max()):
        same = owner[apart:] == owner[:-apart]
        p, q = xy[apart:][same], xy[:-apart][same]
        squared = ((p - q) ** 2).sum(axis=1)
        assert (squared <= bound**2).all(), (bound, p[squared > bound**2], q[squared > bound**2])
        assert (np.abs(p // unit - q // unit) <= k).all()


def sizes_of_some(xy, offsets, shape, n):
    """Return how many components each of about n outlines touches."""
    which = np.unique(np.linspace(0, offsets.size - 2, n).astype(int))
    sizes = [patterns(xy, offsets[i : i + 2], shape).sum() for i in which]
    return np.array(sizes)
