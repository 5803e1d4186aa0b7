"""Sites -> the complex of their Voronoi cells, however the sites lie.

Three ways of drawing the cells are tried, the fastest first, and the exact certificate of the
complex decides. The last one makes cells of any sites that are apart: it rounds all borders at
once, so that borders which lie within a few steps of each other never cross.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dpregions.errors import GridError
from dpregions.geometry.drawn_cells import GROWN, cut, grown, in_units
from dpregions.geometry.tilings import TOLERANCE, Lattice, refuse_too_many, tiled

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dpregions.geometry.complexes import Complex

PIXEL = 2 * TOLERANCE
"""Steps between the places that borders are rounded to: corners are then never taken for one."""

BENT = 8 * PIXEL
"""Steps by which a corner may lie inside the hull of a cell whose borders were rounded.

A border moves by less than a pixel, and a cell may take in pieces of cells beside it, each thinner
than a pixel or two: 23 steps were the most in a hundred diagrams that needed rounding.
"""


def voronoi_complex(
    steps: NDArray[np.float64], labels: Sequence[Any], lattice: Lattice, area: NDArray[np.int64]
) -> Complex:
    """Return the Voronoi cells of sites, in steps, in a convex ring, in the order of the sites."""
    import shapely

    refuse_too_many(len(steps))  # no way of drawing helps
    whole = grown(area, GROWN)
    ways: list[tuple[Callable[..., NDArray[np.object_]], int | None]] = [
        (_cells_at_once, None),
        (_cells_by_half_planes, None),
        (_rounded_cells, BENT),
    ]
    for draw, slack in ways:
        try:
            cells = in_units(draw(steps, whole), lattice)
            made = tiled(cells, labels, lattice, area=area, slack=slack)
        except (GridError, shapely.GEOSException):
            continue
        if made.is_convex:
            return made
    raise GridError(
        f"the Voronoi cells of these {len(steps):,} sites have corners too near to each other to "
        f"be told apart at steps of {lattice.step:g}: leave out sites that lie almost on one "
        f"circle, or use a smaller area"
    )


def _cells_at_once(steps: NDArray[np.float64], whole: Any) -> NDArray[np.object_]:
    """Return the cells by GEOS; those that it gets wrong are cut out of the area."""
    import shapely

    try:
        found = shapely.voronoi_polygons(shapely.MultiPoint(steps), extend_to=whole, ordered=True)
        cells = cut(shapely.get_parts(found), whole)
    except shapely.GEOSException:
        cells = np.zeros(0, object)
    if len(cells) != len(steps):
        return _cells_by_half_planes(steps, whole)
    wrong = np.flatnonzero(_are_not_nearest(cells, steps))
    cells[wrong] = _cells_by_half_planes(steps, whole, wrong)
    return cells


def _are_not_nearest(cells: NDArray[np.object_], steps: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Say which cells are no polygons, or have a corner that is nearer to another site."""
    import shapely

    wrong = (shapely.get_type_id(cells) != 3) | ~shapely.is_valid(cells)
    corners, owner = shapely.get_coordinates(cells, return_index=True)
    sites = np.asarray(shapely.points(steps))
    nearest = shapely.STRtree(sites).nearest(shapely.points(corners))
    own, other = (np.hypot(*(corners - steps[site]).T) for site in (owner, nearest))
    wrong[owner[own > other + 1]] = True
    return wrong


def _cells_by_half_planes(
    steps: NDArray[np.float64], whole: Any, which: NDArray[np.int64] | None = None
) -> NDArray[np.object_]:
    """Return the cells of some sites, by default all, each cut out of the area."""
    import shapely

    from dpregions.geometry.tiling_kernel import half_plane_cells

    which = np.arange(len(steps)) if which is None else which
    if not which.size:
        return np.zeros(0, object)
    ring = shapely.get_coordinates(shapely.orient_polygons(whole))[:-1]
    corners, offsets = half_plane_cells(steps, which, ring)
    owner = np.repeat(np.arange(which.size), np.diff(offsets))
    return np.asarray(shapely.polygons(shapely.linearrings(corners, indices=owner)))


def _rounded_cells(steps: NDArray[np.float64], whole: Any) -> NDArray[np.object_]:
    """Return the cells with all borders rounded together, to pixels, so that none cross.

    About the centre of sites that lie almost on one circle, many corners are a few steps apart and
    cells are thinner than a step: corners rounded one by one, or made one where they are near, give
    borders that cross. Snap rounding lets every border that passes a corner's pixel pass the corner
    itself. Thin ends of cells then fall apart into pieces; a piece without a site goes to the cell
    that it has most border with.
    """
    import shapely

    rings = shapely.get_exterior_ring(_cells_by_half_planes(steps, whole))
    borders = shapely.union_all(rings, grid_size=PIXEL)
    pieces = shapely.get_parts(shapely.polygonize(shapely.get_parts(borders)))
    tree = shapely.STRtree(pieces)
    site, piece = tree.query(shapely.points(steps), predicate="within")
    if not np.array_equal(np.sort(site), np.arange(len(steps))):
        raise GridError("a site is in no cell of its own")
    cell = np.full(len(pieces), -1)
    cell[piece] = site
    while (left := np.flatnonzero(cell < 0)).size:
        one, other = tree.query(pieces[left], predicate="touches")
        one, other = left[one[cell[other] >= 0]], other[cell[other] >= 0]
        shared = shapely.length(shapely.intersection(pieces[one], pieces[other]))
        order = np.lexsort((shared, one))
        one, other, shared = one[order], other[order], shared[order]
        most = np.append(np.diff(one) != 0, True)[: one.size] & (shared > 0)
        if not most.any():
            raise GridError("a piece lies beside no cell")
        cell[one[most]] = cell[other[most]]
    order = np.argsort(cell, kind="stable")
    parts = np.split(pieces[order], np.cumsum(np.bincount(cell))[:-1])
    return np.array([shapely.coverage_union_all(some) for some in parts], object)
