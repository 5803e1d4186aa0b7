"""What the lemmas say of unions of cells, on small partitions and every union of them."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import shapely

from support.small_partitions import SmallPartition, squares, voronoi


def is_convex(cells: list[shapely.Polygon]) -> bool:
    """Whether the union is one piece without a hole and without a reflex turn, in integers."""
    union = shapely.union_all(cells)
    if union.geom_type != "Polygon" or union.interiors:
        return False
    corners = shapely.get_coordinates(shapely.normalize(union)).astype(np.int64)[:-1]
    out, back = np.roll(corners, -1, 0) - corners, corners - np.roll(corners, 1, 0)
    turns = back[:, 0] * out[:, 1] - back[:, 1] * out[:, 0]
    return bool((turns >= 0).all() or (turns <= 0).all())


def convex_unions(partition: SmallPartition) -> list[list[int]]:
    """Every set of cells whose union is convex."""
    polygons = [shapely.Polygon(ring) for ring in partition.rings]
    sets = [np.flatnonzero(chosen).tolist() for chosen in product((0, 1), repeat=len(polygons))]
    return [cells for cells in sets if cells and is_convex([polygons[cell] for cell in cells])]


@pytest.mark.parametrize("seed", range(6))
def test_no_two_cells_of_a_convex_union_meet_at_a_vertex_on_its_boundary(seed):
    partition = voronoi(np.random.default_rng(seed).random((9, 2)), 1 << 24)
    at = [
        {cell for edge in edges for cell in partition.edge_faces[edge]}
        for edges in partition.edges_at
    ]
    assert all(len(cells) == 3 for cells in at)
    unions = convex_unions(partition)
    assert len(unions) >= 10  # each cell alone, and all together
    for union in unions:
        assert all(len(cells & set(union)) != 2 for cells in at)


@pytest.mark.parametrize("seed", range(4))
def test_of_two_neighbours_among_random_sites_only_cells_between_borders_make_a_convex_union(seed):
    partition = voronoi(np.random.default_rng(seed).random((300, 2)), 1 << 24)
    inner = set(partition.vertices)
    polygons = [shapely.Polygon(ring) for ring in partition.rings]
    convex = [
        edge
        for edge, pair in zip(partition.edges, partition.edge_faces, strict=True)
        if is_convex([polygons[cell] for cell in pair])
    ]
    assert not any(inner & set(edge) for edge in convex)


def test_vertices_of_four_cells_and_strips_do_have_convex_unions():
    assert [0, 1] in convex_unions(squares(2, 2, 8))
    assert len(convex_unions(squares(1, 4, 8))) == 4 + 3 + 2 + 1
