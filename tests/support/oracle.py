"""Brute force, and nothing shared with the kernel: what a body or a query touches.

The boundary rule is one sentence: the grid's lines lie an infinitesimal to the left of and
below where they are drawn, the horizontal ones far closer than the vertical ones. A body (a
closed convex set) then meets no line in a special position, and what it touches is plain.

- `touched_by_clipping` takes the sentence literally: it moves the lines by small fractions and
  cuts the body, in exact rational arithmetic, to one face, edge or vertex at a time.
- `touches` keeps the shift symbolic and looks for a separating axis, in integers, for many
  bodies and boxes at once. It needs no hull. The tests hold the two equal.
- `touched_by_shapely` knows no boundary rule at all: for bodies in general position.
- `cells_met_by` is for queries: cells whose interior shares area with a polygon's.

Coordinates are integers (lattice steps from the grid's corner), `unit` of them a cell.
Components are places (i, j) of the doubled array: entry i lies between the lines
``lines_of(i)``, which coincide for an odd i.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import shapely

UNIT = 1 << 20


def lines_of(i):
    """Return the numbers of the two lines that bound place i of the doubled array."""
    return (i + 1) // 2, i // 2 + 1


def component_boxes(n_rows, n_cols, unit=UNIT):
    """Return x0, y0, x1, y1 of every face, edge and vertex, in the order of the doubled array."""
    rows = [lines_of(i) for i in range(2 * n_rows - 1)]
    cols = [lines_of(j) for j in range(2 * n_cols - 1)]
    return [[c0 * unit, r0 * unit, c1 * unit, r1 * unit] for r0, r1 in rows for c0, c1 in cols]


def cells_box(row0, row1, col0, col1, unit=UNIT):
    """Return the rectangle of the cells row0..row1 x col0..col1, ends included."""
    return [col0 * unit, row0 * unit, (col1 + 1) * unit, (row1 + 1) * unit]


def wrap(points):
    """Return the convex hull, counter-clockwise from the leftmost lowest point (gift wrapping)."""
    points = sorted({(int(x), int(y)) for x, y in points})
    hull = [points[0]]
    while True:
        here = hull[-1]
        following = None
        for p in points:
            if p == here:
                continue
            if following is None:
                following = p
                continue
            ax, ay = following[0] - here[0], following[1] - here[1]
            bx, by = p[0] - here[0], p[1] - here[1]
            cross = ax * by - ay * bx
            if cross < 0 or (cross == 0 and abs(bx) + abs(by) > abs(ax) + abs(ay)):
                following = p
        if following is None or following == hull[0]:
            return hull
        hull.append(following)


def clip(ring, axis, bound, above):
    """Cut a closed ring of points to a half plane (Sutherland and Hodgman), exactly."""
    kept = []
    for k, q in enumerate(ring):
        p = ring[k - 1]
        p_in, q_in = (v[axis] >= bound if above else v[axis] <= bound for v in (p, q))
        if p_in != q_in:
            t = Fraction(bound - p[axis]) / (q[axis] - p[axis])
            cut = [a + t * (b - a) for a, b in zip(p, q, strict=True)]
            cut[axis] = bound
            kept.append(tuple(cut))
        if q_in:
            kept.append(q)
    return kept


def clip_to_box(ring, x0, y0, x1, y1):
    """Cut a closed ring to a closed box; an empty list where they do not meet."""
    for axis, bound, above in ((0, x0, True), (1, y0, True), (0, x1, False), (1, y1, False)):
        ring = clip(ring, axis, bound, above)
    return ring


def touched_by_clipping(points, n_rows, n_cols, unit=UNIT):
    """Return the doubled array of what one body touches, lines shifted by actual fractions.

    Why actual fractions do: with integer points no further than D apart, what a convex body
    meets is decided by (a) whether a point is left of or below a line: a coordinate that is
    not on the line is at least 1 away from it; and (b) on which side of the line through two
    points a grid vertex lies: the sign of C + dy * delta - dx * epsilon, with an integer C and
    abs(dx), abs(dy) <= D. For delta = 1/(4D) and epsilon = 1/(16 D**2) the shift cannot
    overturn a C that is not 0, and dx * epsilon cannot overturn dy * delta: as for
    infinitesimals.
    """
    hull = wrap(points)
    extent = max(max(abs(p[0] - q[0]), abs(p[1] - q[1])) for p in hull for q in hull) or 1
    delta = Fraction(1, 4 * extent)
    epsilon = Fraction(1, 16 * extent * extent)
    touched = [
        bool(clip_to_box(hull, x0 - delta, y0 - epsilon, x1 - delta, y1 - epsilon))
        for x0, y0, x1, y1 in component_boxes(n_rows, n_cols, unit)
    ]
    return np.array(touched, dtype=np.int64).reshape(2 * n_rows - 1, 2 * n_cols - 1)


def touches(points, boxes):
    """Return which bodies touch which boxes (of cells, or components): bool (bodies, boxes).

    Two closed convex figures are apart when one of these directions separates them: x, y, or
    across an edge of the body. Taking every pair of points for an edge adds directions, which
    does no harm. A grid corner (X, Y) stands for (X - delta, Y - epsilon), so across the pair
    (p, q) it measures C + dy * delta - dx * epsilon: where C ties, the sign of dy decides, and
    that of -dx where dy is 0.

    Parameters
    ----------
    points : int (bodies, points a body, 2)
        Repeat a point for bodies of fewer.
    boxes : int (boxes, 4)
    """
    points, boxes = np.asarray(points), np.asarray(boxes)
    if max(np.abs(points).max(), np.abs(boxes).max()) >= 1 << 29:  # products beyond 2**62
        points, boxes = points.astype(object), boxes.astype(object)
    x, y = points[..., 0], points[..., 1]
    x0, y0, x1, y1 = boxes.T
    apart = (
        (x.max(axis=1)[:, None] < x0)
        | (x.min(axis=1)[:, None] >= x1)
        | (y.max(axis=1)[:, None] < y0)
        | (y.min(axis=1)[:, None] >= y1)
    )
    for a, b in combinations(range(points.shape[1]), 2):
        dx, dy = x[:, b] - x[:, a], y[:, b] - y[:, a]
        body = dx[:, None] * y - dy[:, None] * x
        low, high = body.min(axis=1)[:, None], body.max(axis=1)[:, None]
        across_y = dx[:, None, None] * np.stack([y0, y1])
        across_x = dy[:, None, None] * np.stack([x0, x1])
        first = across_y.min(axis=1) - across_x.max(axis=1)
        last = across_y.max(axis=1) - across_x.min(axis=1)
        shift = np.where(dy != 0, dy, -dx)[:, None]
        apart |= (first > high) | ((first == high) & (shift > 0))
        apart |= (last < low) | ((last == low) & (shift < 0))
    return ~apart.astype(bool)


def touched(points, n_rows, n_cols, unit=UNIT):
    """Return doubled arrays of what bodies touch, by `touches`: (bodies, 2R-1, 2C-1)."""
    found = touches(points, component_boxes(n_rows, n_cols, unit))
    return found.astype(np.int64).reshape(-1, 2 * n_rows - 1, 2 * n_cols - 1)


def padded(bodies):
    """Return ragged lists of points as one array, the last point of each repeated."""
    longest = max(len(b) for b in bodies)
    return np.array([list(b) + [b[-1]] * (longest - len(b)) for b in bodies])


def euler_sum(counts, cells=None):
    """Return faces - edges + vertices inside a set of cells (bool, default all), one by one."""
    n_rows, n_cols = (counts.shape[0] + 1) // 2, (counts.shape[1] + 1) // 2
    if cells is None:
        cells = np.ones((n_rows, n_cols), bool)
    total = 0
    for i in range(counts.shape[0]):
        for j in range(counts.shape[1]):
            # A component is inside when every cell around it is.
            around = [(r, c) for r in {i // 2, (i + 1) // 2} for c in {j // 2, (j + 1) // 2}]
            if all(cells[r, c] for r, c in around):
                total += (-1) ** (i + j) * int(counts[i, j])
    return total


def cells_met_by(rings, n_rows, n_cols, unit=UNIT):
    """Return the cells (bool) whose interior meets that of a polygon: they share area, exactly.

    `rings` are the shell and then the holes, as points; simple, and nested as in a valid polygon.
    """
    met = np.zeros((n_rows, n_cols), bool)
    for r in range(n_rows):
        for c in range(n_cols):
            box = cells_box(r, r, c, c, unit)
            shell, *holes = (abs(_twice_area(clip_to_box(list(ring), *box))) for ring in rings)
            met[r, c] = shell > sum(holes)
    return met


def _twice_area(ring):
    return sum(ring[k - 1][0] * ring[k][1] - ring[k - 1][1] * ring[k][0] for k in range(len(ring)))


def touched_by_shapely(bodies, grid):
    """Return doubled arrays of what geometries in general position touch, by `intersects`."""
    frames = [grid.to_geodataframe(kind) for kind in ("faces", "edges", "vertices")]
    found = np.zeros((len(bodies), *grid.doubled_shape), np.int64)
    hulls = shapely.convex_hull(np.asarray(bodies, dtype=object))
    for frame in frames:
        parts = frame.geometry.to_numpy()
        meets = shapely.intersects(hulls[:, None], parts[None, :])
        found[:, frame["row"], frame["col"]] = meets
    return found


def holes_and_pieces(body, cells):
    """Return the Euler characteristic of a body's part inside an open union of cells, by shapely.

    The union is drawn in a little, so that cells which meet at a corner only stay apart.
    """
    union = shapely.union_all(cells).buffer(-1e-7, join_style="mitre")
    parts = shapely.get_parts(shapely.intersection(body, union))
    parts = parts[shapely.area(parts) > 0]
    return len(parts) - int(shapely.get_num_interior_rings(parts).sum())
