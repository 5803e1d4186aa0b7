"""Fits and constraints by lists: against linear programs, the grid's own path, and by hand."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import linprog

from dpregions.errors import InputError, InputTypeError, PrivacyError
from dpregions.mechanisms.paper import pipeline as paper
from dpregions.mechanisms.paper.consistency import n_constraints
from dpregions.mechanisms.paper.order import DOUBLED, ListedOrder
from dpregions.mechanisms.paper.sensitivity import partition_sensitivity
from dpregions.privacy.seeded import StudyNoise
from support.small_partitions import SmallPartition, discs, triangles, voronoi
from support.watched_noise import Spy

NONE_BROKEN = {"C1": 0, "C2": 0, "C3": 0}
STAR = ListedOrder.of(3, [[0, 1], [1, 2], [2, 0]], ([0, 3], [0, 1, 2]))
"""Three faces and three edges about one vertex."""


@dataclass
class Incidence:
    """What bounds what, as plain lists."""

    n_faces: int
    edge_faces: list[tuple[int, int]]
    edges_at: list[list[int]]
    faces_at: list[list[int]]

    @property
    def order(self) -> ListedOrder:
        offsets = np.cumsum([0, *map(len, self.edges_at)])
        return ListedOrder.of(self.n_faces, self.edge_faces, (offsets, [*chain(*self.edges_at)]))

    @property
    def constraints(self) -> dict[str, sparse.csr_array]:
        """Matrices of C1, C2 and C3, each meaning ``A @ x <= 0``, straight from the words."""
        edge, vertex = self.n_faces, self.n_faces + len(self.edge_faces)
        n = vertex + len(self.edges_at)
        c1 = [{edge + e: 1, f: -1} for e, pair in enumerate(self.edge_faces) for f in pair]
        c2 = [{vertex + v: 1, edge + e: -1} for v, at in enumerate(self.edges_at) for e in at]
        c3 = [
            dict.fromkeys(self.faces_at[v], -1) | {edge + e: 1 for e in at} | {vertex + v: -1}
            for v, at in enumerate(self.edges_at)
        ]

        def matrix(rows: list[dict[int, int]]) -> sparse.csr_array:
            made = sparse.lil_array((len(rows), n))
            for i, row in enumerate(rows):
                for column, sign in row.items():
                    made[i, column] = sign
            return made.tocsr()

        return {"C1": matrix(c1), "C2": matrix(c2), "C3": matrix(c3)}

    def broken(self, counts: np.ndarray) -> dict[str, int]:
        return {name: int((a @ counts > 0).sum()) for name, a in self.constraints.items()}

    def program(self, noisy: np.ndarray, norm: str, *, total: float | None = None, sign: int = 0):
        """Minimise the change; or, with `total` allowed as L1 change, sign * sum of x."""
        n = noisy.size
        rows = [a for a in self.constraints.values() if a.shape[0]]
        one = sparse.eye_array(n)
        h = one if norm == "l1" else sparse.csr_array(np.ones((n, 1)))
        order = sparse.vstack(rows) if rows else sparse.csr_array((0, n))
        blocks = [[one, -h], [-one, -h], [order, sparse.csr_array((order.shape[0], h.shape[1]))]]
        bound = [noisy, -noisy, np.zeros(order.shape[0])]
        cost = np.concatenate([np.zeros(n), np.ones(h.shape[1])])
        if total is not None:
            blocks.append([sparse.csr_array((1, n)), sparse.csr_array(np.ones((1, n)))])
            bound.append(np.array([total]))
            cost = np.concatenate([sign * np.ones(n), np.zeros(n)])
        result = linprog(
            cost, A_ub=sparse.block_array(blocks).tocsr(), b_ub=np.concatenate(bound),
            bounds=(0, None), method="highs-ds",
        )  # fmt: skip
        assert result.status == 0, result.message
        return result.fun


def incidence(partition: SmallPartition) -> Incidence:
    """The same of rings: a face is at a vertex where its ring goes through it."""
    faces_at = [
        [f for f, ring in enumerate(partition.rings) if v in ring] for v in partition.vertices
    ]
    return Incidence(len(partition.rings), partition.edge_faces, partition.edges_at, faces_at)


def random_partition(seed: int, most: int = 25) -> Incidence:
    """Voronoi cells (every vertex of degree 3) or triangles (of any degree)."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, most))
    if seed % 2:
        return incidence(voronoi(rng.random((n, 2))))
    return incidence(triangles([*map(tuple, rng.integers(0, 400, (n + 2, 2)).tolist())]))


def random_counts(n: int, seed: int) -> np.ndarray:
    """From many ties to none, from all above 0 to half below."""
    rng = np.random.default_rng(seed)
    spread = int(rng.choice([1, 3, 30, 1000]))
    return rng.integers(-spread, spread + 1, n) + int(rng.choice([0, spread]))


def of_grid(n_rows: int, n_cols: int) -> tuple[ListedOrder, np.ndarray]:
    """A grid's order as lists, and where each component stands in the flat doubled array."""
    at = np.arange((2 * n_rows - 1) * (2 * n_cols - 1)).reshape(2 * n_rows - 1, -1)
    upright = [(i, j) for i in range(0, at.shape[0], 2) for j in range(1, at.shape[1], 2)]
    level = [(i, j) for i in range(1, at.shape[0], 2) for j in range(0, at.shape[1], 2)]
    face = {(i, j): k for k, (i, j) in enumerate(np.ndindex(n_rows, n_cols))}
    edges = upright + level
    edge = {place: k for k, place in enumerate(edges)}
    edge_faces = [
        (face[(i - i % 2) // 2, (j - j % 2) // 2], face[(i + i % 2) // 2, (j + j % 2) // 2])
        for i, j in edges
    ]
    vertices = [(i, j) for i in range(1, at.shape[0], 2) for j in range(1, at.shape[1], 2)]
    around = [
        edge[i + a, j + b] for i, j in vertices for a, b in ((-1, 0), (1, 0), (0, -1), (0, 1))
    ]
    offsets = np.arange(0, 4 * len(vertices) + 1, 4)
    places = np.array(
        [at[2 * i, 2 * j] for i, j in face] + [at[place] for place in edges + vertices]
    )
    return ListedOrder.of(len(face), edge_faces, (offsets, around)), places


# By hand


def test_a_low_face_rises_to_its_two_edges_and_a_high_vertex_gives_way():
    np.testing.assert_array_equal(STAR.fit_l1([0, 9, 9, 5, 9, 5, 1]), [5, 9, 9, 5, 9, 5, 1])
    np.testing.assert_array_equal(STAR.fit_l1([9, 9, 9, 5, 4, 5, 8]), [9, 9, 9, 5, 4, 5, 4])


def test_a_conflict_between_a_vertex_and_a_face_alone_is_seen():
    # Edges lie between the two, and fit both: the vertex must still not exceed the far face.
    lowest, highest = STAR.l1_range([9, 9, 2, 9, 9, 9, 9])
    assert highest[6] <= highest[:3].min()
    assert lowest[6] <= lowest[:3].min()
    np.testing.assert_array_equal(STAR.fit_linf([4, 9, 9, 6, 9, 6, 8])[[0, 3, 6]], [6, 6, 6])


def test_a_partition_of_one_face_and_one_without_vertices_fit_too():
    alone = ListedOrder.of(1, np.zeros((0, 2), int), ([0], []))
    assert alone.fit_l1([-7]).tolist() == alone.fit_linf([-7]).tolist() == [0]
    assert alone.violations([3]) == NONE_BROKEN
    strips = ListedOrder.of(3, [[0, 1], [1, 2]], ([0], []))
    assert strips.n_constraints == {"C1": 4, "C2": 0, "C3": 0}
    assert strips.fit_l1([4, 0, 7, 3, 0]).tolist() == [4, 1, 7, 1, 0]
    assert strips.violations([4, 0, 7, 3, 0], percent=True) == {"C1": 25.0, "C2": 0, "C3": 0}


def test_a_face_that_meets_a_vertex_twice_counts_twice_about_it():
    # Two islands in one face touch at a point: around it A, B, A, C and the two loops' four ends.
    order = ListedOrder.of(3, [[0, 1], [0, 1], [0, 2], [0, 2]], ([0, 4], [0, 1, 2, 3]))
    assert order.violations([1, 1, 1, 1, 1, 1, 1, 0]) == NONE_BROKEN
    assert order.violations([1, 1, 1, 2, 1, 1, 1, 1])["C3"] == 0
    assert order.violations([1, 1, 1, 2, 2, 1, 1, 1])["C3"] == 1


# Against linear programs


@pytest.mark.parametrize("seed", range(40))
def test_objectives_equal_the_linear_programs_on_random_partitions(seed):
    case = random_partition(seed)
    order = case.order
    noisy = random_counts(order.n_components, seed)
    optimum = round(case.program(noisy, "l1"))
    lowest, highest = order.l1_range(noisy)
    for fit in (lowest, order.fit_l1(noisy), highest):
        assert fit.dtype == np.int64
        assert np.abs(fit - noisy).sum() == optimum
        assert case.broken(fit) == NONE_BROKEN
        assert fit.min() >= 0
    widest = np.abs(order.fit_linf(noisy) - noisy).max()
    assert widest == round(2 * case.program(noisy, "linf")) / 2


@pytest.mark.parametrize("seed", range(8))
def test_no_fit_has_a_lower_sum_than_the_lowest_or_a_higher_than_the_highest(seed):
    case = random_partition(seed, most=12)
    noisy = random_counts(case.order.n_components, seed)
    optimum = round(case.program(noisy, "l1"))
    lowest, highest = case.order.l1_range(noisy)
    assert lowest.sum() == round(case.program(noisy, "l1", total=optimum, sign=1))
    assert highest.sum() == -round(case.program(noisy, "l1", total=optimum, sign=-1))


@given(st.integers(0, 10**6), st.integers(0, 10**6))
@settings(deadline=None, max_examples=60)
def test_every_constraint_holds_after_each_norm_and_round(which, seed):
    case = random_partition(which)
    order = case.order
    noisy = random_counts(order.n_components, seed) / 4
    for norm in paper.NORMS:
        fit = paper.lin_prog(noisy, norm, order)
        rounded = paper.round_counts(fit, order)
        assert case.broken(fit) == case.broken(rounded) == NONE_BROKEN
        assert order.violations(fit) == order.violations(rounded) == NONE_BROKEN
        np.testing.assert_array_equal(paper.lin_prog(fit, norm, order), fit)


@given(st.integers(0, 10**6), st.integers(0, 10**6))
@settings(deadline=None)
def test_violations_and_constraints_are_those_of_the_words(which, seed):
    case = random_partition(which)
    order = case.order
    counts = np.abs(random_counts(order.n_components, seed))
    assert order.violations(counts) == case.broken(counts)
    total = {name: a.shape[0] for name, a in case.constraints.items()}
    assert order.n_constraints == total
    share = {name: 100 * n / max(total[name], 1) for name, n in case.broken(counts).items()}
    assert order.violations(counts, percent=True) == share


@pytest.mark.parametrize("degree", [3, 5, 64])
def test_c3_about_a_vertex_of_any_degree_follows_from_c1_and_v_above_0(degree):
    ring = np.arange(degree)
    wheel = ListedOrder.of(
        degree, np.column_stack([ring, (ring + 1) % degree]), ([0, degree], ring)
    )
    rng = np.random.default_rng(degree)
    for _ in range(50):
        face = rng.random(degree) * 1e6
        edge = np.minimum(face, np.roll(face, -1))  # as large as C1 allows, in floats
        assert wheel.violations([*face, *edge, 0.0]) == NONE_BROKEN
    assert wheel.violations([*np.ones(degree), *np.full(degree, 2), 0])["C3"] == 1


@given(st.integers(0, 10**6))
@settings(deadline=None, max_examples=30)
def test_exact_histograms_break_nothing_and_stay_as_they_are(seed):
    rng = np.random.default_rng(seed)
    partition = voronoi(rng.random((12, 2)))
    bodies = discs(rng.random((40, 2)) * (1 << 20), rng.random() * (1 << 19))
    tree = shapely.STRtree(partition.components())
    counts = np.bincount(
        tree.query(bodies, predicate="intersects")[1], minlength=len(tree.geometries)
    )
    order = incidence(partition).order
    assert order.violations(counts) == NONE_BROKEN
    np.testing.assert_array_equal(order.fit_l1(counts), counts)
    np.testing.assert_array_equal(order.fit_linf(counts), counts)


# The grid's own path


cells = st.integers(1, 7)


@given(cells, cells, st.integers(0, 10**6), st.booleans())
@settings(deadline=None)
def test_a_grid_by_lists_has_the_fits_of_the_doubled_array(n_rows, n_cols, seed, whole):
    order, places = of_grid(n_rows, n_cols)
    flat = random_counts(places.size, seed) if whole else random_counts(places.size, seed) / 8
    doubled = flat.reshape(2 * n_rows - 1, 2 * n_cols - 1)
    listed = flat[places]
    for ours, grids in zip(order.l1_range(listed), DOUBLED.l1_range(doubled), strict=True):
        np.testing.assert_array_equal(ours, grids.ravel()[places], strict=True)
    for name in ("fit_l1", "fit_linf", "checked"):
        ours, grids = getattr(order, name)(listed), getattr(DOUBLED, name)(doubled)
        np.testing.assert_array_equal(ours, grids.ravel()[places], strict=True)
    for percent in (False, True):
        assert order.violations(listed, percent=percent) == DOUBLED.violations(
            doubled, percent=percent
        )
    assert order.n_constraints == n_constraints(n_rows, n_cols)


@pytest.mark.parametrize("norm", paper.NORMS)
def test_the_pipeline_is_the_same_on_both_orders_of_a_large_grid(norm):
    order, places = of_grid(40, 30)
    signed = StudyNoise(3).add(np.zeros((79, 59), np.int64), epsilon=1, sensitivity=25)
    by_lists = paper.post_process(signed.ravel()[places], norm, order)
    by_places = paper.post_process(signed, norm)
    for name, value in by_places._asdict().items():
        np.testing.assert_array_equal(getattr(by_lists, name), value.ravel()[places])


def test_the_pipeline_noises_every_component_of_a_partition_once():
    exact, spy = np.arange(7)[::-1].copy(), Spy(1)
    steps = paper.run(exact, epsilon=0.5, sensitivity=7, noise=spy, order=STAR)
    ((values, *calibration, _),) = spy.asked
    np.testing.assert_array_equal(values, exact)
    assert calibration == [0.5, 7]
    signed = StudyNoise(1).add(exact, epsilon=0.5, sensitivity=7)
    for name, value in paper.post_process(signed, order=STAR)._asdict().items():
        np.testing.assert_array_equal(getattr(steps, name), value)
    assert STAR.violations(steps.counts) == NONE_BROKEN


# What is refused


@pytest.mark.parametrize(
    "use", [STAR.fit_l1, STAR.fit_linf, STAR.violations, lambda c: paper.diff_priv(c, 1, 7, STAR)]
)
@pytest.mark.parametrize(
    ("counts", "error", "words"),
    [
        (np.zeros(6, int), InputError, r"\(7,\).*not \(6,\)"),
        (np.zeros((7, 1), int), InputError, r"not \(7, 1\)"),
        ([np.nan] * 7, InputError, "finite"),
        ([2**63] * 7, InputError, "between"),
        (["1"] * 7, InputTypeError, "numbers"),
    ],
)
def test_counts_of_another_partition_are_refused(use, counts, error, words):
    with pytest.raises(error, match=words):
        use(counts)


@pytest.mark.parametrize(
    ("n_faces", "edge_faces", "vertex_edges", "words"),
    [
        (2, [[0, 2]], ([0], []), "edge_faces must be between 0 and 1"),
        (2, [[-1, 0]], ([0], []), "edge_faces must be between 0 and 1"),
        (2, [[0, 1], [1, 1]], ([0], []), "edge 1 has face 1 on both sides"),
        (2, [[0, 1]], ([0, 1], [1]), "vertex_edges must be between 0 and 0"),
        (2, [[0, 1]], ([0, 2], [0]), "offsets of vertex_edges must run from 0 to 1"),
        (2, [[0, 1]], ([], []), "offsets of vertex_edges must run from 0 to 0"),
        (2, [[0, 1]], ([0, 0, 1], [0]), "vertex 0 has no edges"),
    ],
)
def test_lists_that_no_partition_has_are_refused(n_faces, edge_faces, vertex_edges, words):
    with pytest.raises(InputError, match=words):
        ListedOrder.of(n_faces, edge_faces, vertex_edges)


def test_replace_one_has_twice_the_sensitivity_and_an_unbounded_one_is_refused():
    assert partition_sensitivity(31) == 31
    assert partition_sensitivity(31, "replace-one") == 62
    for touched, neighbours in [(0, "add-remove"), (None, "add-remove"), (9, "swap")]:
        with pytest.raises(PrivacyError):
            partition_sensitivity(touched, neighbours)
