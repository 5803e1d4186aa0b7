"""Hypothesis strategies: grids, convex bodies, rectangles of cells and query polygons.

Exactness needs care about numbers. On a *dyadic* grid (cell size a power of two, corner a whole
number of cells) every lattice step is a float, so a body given in steps reaches the library
unrounded and an oracle can use the same integers. On any other grid the oracle starts from
`Grid.snap`, which has tests of its own against rational arithmetic.
"""

from __future__ import annotations

import math

import numpy as np
import shapely
from hypothesis import assume
from hypothesis import strategies as st

from dpregions import Grid

UNIT = 1 << 20
SHAPES = st.one_of(
    st.just((1, 1)),
    st.tuples(st.just(1), st.integers(2, 7)),
    st.tuples(st.integers(2, 7), st.just(1)),
    st.tuples(st.integers(2, 4), st.integers(2, 5)),
)
DYADIC_SIZES = st.sampled_from([1.0, 1.0, 0.5, 2.0**-30, 1024.0, 2.0**40])
DYADIC_CORNERS = st.sampled_from([0, 0, -3, 12345, 2**30, -(2**31) + 1])
SIZES = st.sampled_from([0.1, 2 / 3, 0.16, 1.0, 1000.0, 0.7, 1e-6, 1 / 3, 111.32])
CORNERS = st.sampled_from([0.0, 0.1, -0.3, -1234.56, 447_915.3, 4_417_000.1, -0.05, 1e-9, 2 / 3])
HUGE_CORNERS = st.sampled_from([1e9 + 0.1, -7e9, 123_456_789.123])


@st.composite
def dyadic_grids(draw):
    """Return a grid on which lattice steps are floats."""
    (n_rows, n_cols), size = draw(SHAPES), draw(DYADIC_SIZES)
    col, row = draw(DYADIC_CORNERS), draw(DYADIC_CORNERS)
    return Grid(col * size, row * size, size, n_rows, n_cols)


@st.composite
def rough_grids(draw):
    """Return a grid whose lines are rounded floats."""
    (n_rows, n_cols), size = draw(SHAPES), draw(SIZES)
    corners = CORNERS if size < 0.01 else st.one_of(CORNERS, HUGE_CORNERS)
    return Grid(draw(corners), draw(corners), size, n_rows, n_cols)


def grids():
    """Return any grid."""
    return st.one_of(dyadic_grids(), rough_grids())


def steps(n):
    """Return one coordinate in lattice steps, about an axis of n cells: lines first of all."""
    line = st.integers(-1, n + 1).map(lambda i: i * UNIT)
    return st.one_of(
        line,
        st.tuples(line, st.sampled_from([-1, 1])).map(sum),
        st.tuples(line, st.sampled_from([UNIT // 2, UNIT // 4, 3 * UNIT // 4])).map(sum),
        st.integers(-2 * UNIT, (n + 2) * UNIT),
        st.sampled_from([-(2**27) * UNIT, 2**27 * UNIT, -1000 * UNIT, 1000 * UNIT + 1]),
    )


@st.composite
def bodies(draw, shape):
    """Return the points of one body in lattice steps: a point, a segment, a sliver, a box, ..."""
    n_rows, n_cols = shape
    point = st.tuples(steps(n_cols), steps(n_rows))
    kind = draw(st.sampled_from(["points", "points", "points", "box", "sliver", "larger"]))
    if kind == "points":
        return draw(st.lists(point, min_size=1, max_size=6))
    if kind == "box":
        (x0, y0), (x1, y1) = draw(point), draw(point)
        return [(x0, y0), (x1, y0), (x1, y1), (x0, y1)]
    if kind == "sliver":
        (x0, y0), (x1, y1) = draw(point), draw(point)
        nudge = st.integers(-1, 1)
        return [
            (x0, y0),
            (x1, y1),
            (x1 + draw(nudge), y1 + draw(nudge)),
            (x0 + draw(nudge), y0 + draw(nudge)),
        ]
    margin = st.integers(0, 3 * UNIT)
    x0, y0, x1, y1 = -draw(margin), -draw(margin), draw(margin), draw(margin)
    x1, y1 = x1 + n_cols * UNIT, y1 + n_rows * UNIT
    cut = draw(st.integers(0, UNIT))
    return [(x0 + cut, y0), (x1, y0), (x1, y1 - cut), (x1 - cut, y1), (x0, y1), (x0, y0 + cut)]


@st.composite
def dyadic_worlds(draw, max_bodies=4):
    """Return a dyadic grid and some bodies in steps."""
    grid = draw(dyadic_grids())
    return grid, draw(st.lists(bodies(grid.shape), min_size=1, max_size=max_bodies))


@st.composite
def axis_floats(draw, origin, size, n):
    """Return one float about an axis: on lines, one ulp from them, or anywhere."""
    line = origin + draw(st.integers(-1, n + 1)) * size
    kind = draw(st.sampled_from(["on", "below", "above", "within", "anywhere"]))
    if kind == "on":
        return line
    if kind in ("below", "above"):
        return math.nextafter(line, -math.inf if kind == "below" else math.inf)
    if kind == "within":
        return line + size * draw(st.floats(0, 1))
    return draw(st.floats(origin - 3 * size, origin + (n + 3) * size))


@st.composite
def float_bodies(draw, grid):
    """Return the points of one body in the grid's own floats."""
    x = axis_floats(grid.xmin, grid.cell_size, grid.n_cols)
    y = axis_floats(grid.ymin, grid.cell_size, grid.n_rows)
    if draw(st.booleans()):
        (x0, x1), (y0, y1) = sorted([draw(x), draw(x)]), sorted([draw(y), draw(y)])
        return [(x0, y0), (x1, y0), (x1, y1), (x0, y1)]
    return draw(st.lists(st.tuples(x, y), min_size=1, max_size=5))


@st.composite
def rough_worlds(draw, max_bodies=4):
    """Return any grid and some bodies in floats."""
    grid = draw(grids())
    return grid, draw(st.lists(float_bodies(grid), min_size=1, max_size=max_bodies))


@st.composite
def cell_rectangles(draw, shape):
    """Return row0, row1, col0, col1 of a rectangle of cells, ends included."""
    n_rows, n_cols = shape
    rows = sorted([draw(st.integers(0, n_rows - 1)), draw(st.integers(0, n_rows - 1))])
    cols = sorted([draw(st.integers(0, n_cols - 1)), draw(st.integers(0, n_cols - 1))])
    return (*rows, *cols)


@st.composite
def query_polygons(draw, shape):
    """Return a valid polygon in quarters of a cell, on a grid of unit cells: rings of points.

    Convex or not, with or without a hole, its corners and sides often on lines.
    """
    n_rows, n_cols = shape
    quarter = st.tuples(st.integers(-3, 4 * n_cols + 3), st.integers(-3, 4 * n_rows + 3))
    points = draw(st.lists(quarter, min_size=3, max_size=7, unique=True))
    if draw(st.booleans()):
        hull = shapely.convex_hull(shapely.multipoints(points))
        shell = shapely.get_coordinates(hull)[:-1].tolist()
    else:
        # Sorted about a middle, points make a star-shaped ring: simple, seldom convex.
        middle = np.mean(points, axis=0) + 0.01
        shell = sorted(points, key=lambda p: math.atan2(p[1] - middle[1], p[0] - middle[0]))
    assume(len(shell) > 2)
    polygon = shapely.Polygon(shell)
    assume(polygon.is_valid and polygon.area > 0)
    rings = [shell]
    for x, y in draw(st.lists(quarter, max_size=2)):
        w, h = draw(st.integers(1, 6)), draw(st.integers(1, 6))
        hole = [(x, y), (x + w, y), (x + w, y + h), (x, y + h)]
        if len(rings) == 1 and shapely.Polygon(shell, [hole]).is_valid:
            rings.append(hole)
    return [[(int(x) * UNIT // 4, int(y) * UNIT // 4) for x, y in ring] for ring in rings]


def to_floats(points, grid):
    """Return points in steps as coordinates, exact on a dyadic grid."""
    step = grid.cell_size / UNIT
    return [(grid.xmin + x * step, grid.ymin + y * step) for x, y in points]


def geometry(points, form=0):
    """Return a geometry whose convex hull is that of the points; `form` picks its type."""
    points = [tuple(map(float, p)) for p in points]
    if len(points) == 1:
        return [shapely.Point(points[0]), shapely.MultiPoint(points)][form % 2]
    if len(points) == 2 or form % 4 == 1:
        return shapely.LineString(points)
    if form % 4 == 2:
        return shapely.MultiPoint(points)
    if form % 4 == 3:
        parts = [shapely.Point(points[0]), shapely.LineString(points[1:] + points[:1])]
        return shapely.GeometryCollection(parts)
    return shapely.Polygon(points)


def geometries(bodies):
    """Return bodies given as points as geometries of mixed types."""
    return [geometry(points, form) for form, points in enumerate(bodies)]
