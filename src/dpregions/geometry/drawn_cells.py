"""Cells of partitions before they are integers: what callers give, and hexagons.

Owns what sites, areas, polygons and labels may be. Every refusal names the labels of what is
wrong, and stands before anything is counted or spent: all of this is public.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dpregions.crs import crs_label, projected_crs, read_crs, same_crs
from dpregions.errors import Argument, CRSError, GridError, InputTypeError
from dpregions.geometry.complexes import MOST_FACES, Complex
from dpregions.geometry.tilings import TOLERANCE, Lattice, named

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pyproj import CRS

APART = 256
"""The fewest lattice steps between two sites."""

LONGEST_LABEL = 200
"""The most characters of a label."""

GROWN = 64
"""Steps that cells reach beyond the area: rounding at its border then touches no body."""


def one_projected_crs(stated: Any, **given: Any) -> CRS | None:
    """Return the projected CRS that all inputs share; refuse two that differ, and degrees."""
    found: CRS | None = None if stated is None else read_crs(stated)
    origin = "crs"
    for name, value in given.items():
        if not hasattr(value, "crs"):
            continue
        if value.crs is None:
            continue
        carried = read_crs(value.crs)
        if found is not None and not same_crs(found, carried):
            raise CRSError(
                Argument(name),
                f" is in {crs_label(carried)}, but {origin} in {crs_label(found)}: reproject one "
                f"of them, to_crs(...)",
            )
        found, origin = carried if found is None else found, name
    for name, value in given.items():
        if found is not None and stated is None and hasattr(value, "crs") and value.crs is None:
            raise CRSError(
                Argument(name),
                f" carries no CRS, but {origin} is in {crs_label(found)}: set it, set_crs(...)",
            )
    if found is not None and found.is_geographic:
        raise CRSError(
            f"{crs_label(found)} ({found.name}) is geographic: its degrees are not lengths. "
            f"Reproject first, for example to_crs(frame.estimate_utm_crs())",
            argument="crs",
        )
    return projected_crs(found)


def shapes_of(given: Any, name: str, labels: Any) -> tuple[NDArray[np.object_], list[Any]]:
    """Return geometries and their labels: of a frame its index, or the column that is named."""
    import shapely

    if hasattr(given, "active_geometry_name") and given.active_geometry_name is None:
        raise InputTypeError(
            Argument(name), " is a GeoDataFrame without a geometry column: set_geometry(...)"
        )
    if isinstance(labels, str):
        if labels not in getattr(given, "columns", ()):
            raise GridError(Argument("labels", repr(labels)), f" is not a column of {name}")
        labels = list(given[labels])
    if hasattr(given, "geometry") and hasattr(given, "index"):
        shapes = np.asarray(given.geometry.array, dtype=object)
        labels = list(given.index) if labels is None else labels
    else:
        try:
            shapes = np.asarray(given, dtype=object)
            known = shapes.ndim == 1 and np.all(
                shapely.is_geometry(shapes) | shapely.is_missing(shapes)
            )
        except (TypeError, ValueError):
            known = np.False_
        if not known:
            raise InputTypeError(
                Argument(name),
                f" must be a GeoDataFrame, a GeoSeries or an array of geometries, got "
                f"{type(given).__name__}",
            )
    labels = list(range(len(shapes))) if labels is None else labels
    return shapes, checked_labels(labels, len(shapes))


def checked_labels(labels: Any, n: int) -> list[Any]:
    """Return one label for each of n cells: texts or whole numbers, no two the same.

    They reach terminals, files and their metadata: lines of printable text, numbers of 64 bits.
    """
    if isinstance(labels, str):
        raise GridError(Argument("labels", repr(labels)), " is not a column: there are none")
    if not isinstance(labels, Iterable):
        raise InputTypeError(Argument("labels"), f" must be a list, got {type(labels).__name__}")
    plain = [v.item() if isinstance(v, np.generic) else v for v in labels]
    if len(plain) != n:
        raise GridError(Argument("labels"), f" are {len(plain):,}, of {n:,} cells: give one each")
    odd = [v for v in plain if type(v) not in (int, str)]
    if odd:
        raise InputTypeError(
            Argument("labels"), f" must be texts or whole numbers, got {odd[0]!r}: name a column"
        )
    for v in plain:
        if isinstance(v, str) and not (v.isprintable() and len(v) <= LONGEST_LABEL):
            short = ascii(v[:40]) + "..." * (len(v) > 40)
            raise GridError(
                Argument("labels", short),
                f" is not a line of at most {LONGEST_LABEL} printable characters: use a short name",
            )
        if isinstance(v, int) and not -(1 << 63) <= v < 1 << 63:
            raise GridError(
                Argument("labels", f"{v:#x}"[:40] + "..." * (v.bit_length() > 140)),
                " is beyond whole numbers of 64 bits: use text instead, str(...)",
            )
    if len(set(plain)) < n:
        seen: set[Any] = set()
        again = [v for v in plain if v in seen or seen.add(v)]  # type: ignore[func-returns-value]
        raise GridError(f"labels are there more than once: {named(again, range(len(again)))}")
    return plain


def places_of(sites: Any, labels: Any) -> tuple[NDArray[np.float64], list[Any]]:
    """Return sites as coordinates, and their labels."""
    import shapely

    plain = isinstance(sites, Sequence | np.ndarray) and not any(
        isinstance(site, shapely.Geometry) for site in sites
    )
    if plain:
        try:
            xy = np.asarray(sites, dtype=np.float64)
        except (TypeError, ValueError):
            xy = np.zeros(0)
        xy = xy.reshape(0, 2) if len(sites) == 0 else xy
        if xy.ndim != 2 or xy.shape[1] != 2:
            raise InputTypeError(
                Argument("sites"), " must be points: an array of shape (n, 2) or geometries"
            )
        labels = checked_labels(range(len(xy)) if labels is None else labels, len(xy))
    else:
        shapes, labels = shapes_of(sites, "sites", labels)
        # A null has the type -1: it is not a point either.
        odd = np.flatnonzero((shapely.get_type_id(shapes) != 0) | shapely.is_empty(shapes))
        if odd.size:
            raise GridError(Argument("sites"), f" that are not points: {named(labels, odd)}")
        xy = shapely.get_coordinates(shapes)
    odd = np.flatnonzero(~np.isfinite(xy).all(axis=1))
    if odd.size:
        raise GridError(Argument("sites"), f" that are not finite: {named(labels, odd)}")
    if len(xy) < 2:
        raise GridError(Argument("sites"), f" are {len(xy)}: two or more make a partition")
    return xy, labels


def convex_area(area: Any) -> tuple[Lattice, NDArray[np.int64]]:
    """Return the lattice over an area, and its ring of steps; refuse one that is not convex."""
    import shapely

    if hasattr(area, "bounds") and hasattr(area, "cell_size"):
        area = shapely.box(*area.bounds)
    elif hasattr(area, "area") and hasattr(area, "n_faces"):
        area = area.area
    elif hasattr(area, "geometry") and hasattr(area, "index"):
        if len(area) != 1:
            raise GridError(Argument("area"), f" holds {len(area)} geometries: give one polygon")
        area = np.asarray(area.geometry.array, dtype=object)[0]
    elif isinstance(area, tuple | list | np.ndarray) and np.shape(area) == (4,):
        area = _box_of(area)
    if getattr(area, "geom_type", None) == "MultiPolygon" and len(area.geoms) == 1:
        area = area.geoms[0]
    if getattr(area, "geom_type", None) != "Polygon":
        raise InputTypeError(
            Argument("area"), " must be one polygon, or its bounds (xmin, ymin, xmax, ymax)"
        )
    xy = shapely.get_coordinates(area)
    if not np.isfinite(xy).all() or not area.is_valid or not area.area > 0:
        raise GridError(Argument("area"), " is not a valid polygon with an area: make_valid(...)")
    lattice = Lattice.over(*area.bounds)
    steps = shapely.Polygon(lattice.nearest(shapely.get_coordinates(area.exterior)))
    hull = steps.convex_hull
    corners = shapely.points(shapely.get_coordinates(steps))
    off = np.max(shapely.distance(corners, shapely.get_exterior_ring(hull)))
    if off > TOLERANCE or area.interiors:
        raise GridError(
            Argument("area"),
            " is not convex: cells cut by such a border are not either, and counts over several "
            "of them would be approximations. Use its hull, area.convex_hull, or cut the cells "
            "yourself and use Partition.from_polygons(..., convex=False)",
        )
    return lattice, convex_ring(hull)


def _box_of(bounds: Any) -> Any:
    """Return bounds as a rectangle; refuse what are not, or are in another order."""
    import shapely

    try:
        xmin, ymin, xmax, ymax = (float(v) for v in bounds)
    except (TypeError, ValueError):
        raise InputTypeError(
            Argument("area"), f" must have four numbers as bounds, got {bounds!r}"
        ) from None
    if not (-math.inf < xmin < xmax < math.inf and -math.inf < ymin < ymax < math.inf):
        raise GridError(
            Argument("area"),
            f" must have finite bounds xmin < xmax and ymin < ymax, got xmin={xmin}, ymin={ymin}, "
            f"xmax={xmax}, ymax={ymax}",
        )
    return shapely.box(xmin, ymin, xmax, ymax)


def convex_ring(hull: Any) -> NDArray[np.int64]:
    """Return a convex polygon in steps as a ring: counter-clockwise, no three on a line."""
    import shapely

    from dpregions.geometry.hull_kernel import hull as strict_hull

    x, y = np.rint(shapely.get_coordinates(hull)).astype(np.int64).T.copy()
    hx, hy = np.empty(x.size + 2, np.int64), np.empty(x.size + 2, np.int64)
    n = strict_hull(x, y, x.size, hx, hy)
    if n < 3:
        raise GridError(Argument("area"), " is a line on its lattice: give one with an area")
    return np.stack([hx[:n], hy[:n]], axis=-1)


def grown(ring: NDArray[np.int64], steps: float) -> Any:
    """Return a convex ring grown by some steps, as a polygon in steps; shrunk where negative."""
    import shapely

    return shapely.buffer(shapely.Polygon(ring), steps, join_style="mitre", mitre_limit=2.0)


def checked_sites(
    xy: NDArray[np.float64], labels: Sequence[Any], lattice: Lattice, area: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return sites in steps; refuse those outside the area and those too near, by their labels."""
    import shapely

    steps = lattice.steps(xy)
    sites = np.asarray(shapely.points(steps))
    odd = np.flatnonzero(shapely.distance(sites, shapely.Polygon(area)) > 1)
    if odd.size:
        raise GridError(f"sites outside the area: {named(labels, odd)}. Leave them out, or grow it")
    one, other = shapely.STRtree(np.asarray(sites)).query(
        sites, predicate="dwithin", distance=APART
    )
    pairs = np.stack([one, other], axis=-1)[one < other]
    if len(pairs):
        near = " and ".join(repr(labels[i]) for i in pairs[0])
        more = f" (and {len(pairs) - 1:,} more pairs)" if len(pairs) > 1 else ""
        raise GridError(
            f"sites {near} are the same or nearer than {APART * lattice.step:g}{more}: keep one "
            f"of each"
        )
    return steps


def cut(cells: NDArray[np.object_], whole: Any) -> NDArray[np.object_]:
    """Return convex cells cut to a convex polygon."""
    import shapely

    shapely.prepare(whole)
    across = ~shapely.contains_properly(whole, cells)
    cells = cells.copy()
    cells[across] = shapely.intersection(cells[across], whole)
    return cells


def in_units(shapes: NDArray[np.object_], lattice: Lattice) -> NDArray[np.object_]:
    """Return geometries in steps as geometries in CRS units."""
    import shapely

    origin = np.array(lattice.origin)
    return np.asarray(shapely.transform(shapes, lambda xy: xy * lattice.step + origin))


def hexagon_cells(
    size: float, lattice: Lattice, area: NDArray[np.int64]
) -> tuple[NDArray[np.object_], NDArray[np.int64]]:
    """Return hexagons over an area, row by row, and the ring that bodies are to be cut to.

    One hexagon is centred on the middle of the area's bounds.
    """
    import shapely

    side = size / lattice.step
    low, high = area.min(axis=0), area.max(axis=0)
    middle, half = (low + high) / 2, (high - low) / 2 + GROWN
    up = side * math.sqrt(3) / 2
    if 4 * (half[0] / side + 2) * (half[1] / up + 2) > MOST_FACES or side < APART:
        raise GridError(
            Argument("size", f"{size:g}"),
            f" makes more than {MOST_FACES:,} hexagons of this area: use a larger size",
        )
    rows = np.arange(-math.ceil(half[1] / up) - 1, math.ceil(half[1] / up) + 2)
    cols = np.arange(-math.ceil(half[0] / side) - 1, math.ceil(half[0] / side) + 2)
    row, col = (v.ravel() for v in np.meshgrid(rows, cols, indexing="ij"))
    # Corners from whole numbers of half sides and of thirds of a row: neighbours share them.
    around = np.array([[1, 1], [0, 2], [-1, 1], [-1, -1], [0, -2], [1, -1]])
    halves = (2 * col + row % 2)[:, None] + around[:, 0]
    thirds = 3 * row[:, None] + around[:, 1]
    corners = np.stack([halves * (side / 2), thirds * (up / 3)], axis=-1) + middle
    cells = shapely.polygons(corners)
    inside, margin = shapely.Polygon(area), 2 * TOLERANCE
    # A strip along the border thinner than the margin is not a cell: bodies keep off it.
    core = grown(area, -margin)
    kept = cells[shapely.intersects(cells, core) if not core.is_empty else slice(0, 0)]
    slim = shapely.intersects(cells, inside) & ~shapely.intersects(cells, core)
    near = shapely.dwithin(cells, inside, margin) & ~shapely.intersects(cells, core)
    if len(kept) < 1:
        raise GridError(Argument("area"), " is too thin for hexagons: give one with an area")
    ring = convex_ring(core) if (slim | near).any() else area
    return in_units(cut(kept, grown(area, GROWN)), lattice), ring


def checked_polygons(polygons: Any, labels: Any) -> tuple[NDArray[np.object_], list[Any]]:
    """Return cells as polygons without holes, and their labels; refuse others by them."""
    import shapely

    shapes, labels = shapes_of(polygons, "polygons", labels)
    if not len(shapes):
        raise GridError(Argument("polygons"), " are none: give one for each cell")
    single = (shapely.get_type_id(shapes) == 6) & (shapely.get_num_geometries(shapes) == 1)
    shapes = np.where(single, shapely.get_geometry(shapes, 0), shapes)
    coords, owner = shapely.get_coordinates(shapes, return_index=True)
    problems = {
        "that are null or empty": shapely.is_missing(shapes) | shapely.is_empty(shapes),
        "that are several polygons or something else (explode them into cells of their own)": (
            shapely.get_type_id(shapes) != 3
        ),
        "with a coordinate that is not finite": np.isin(
            np.arange(len(shapes)), owner[~np.isfinite(coords).all(axis=1)]
        ),
        "with a hole (cut them in two)": shapely.get_num_interior_rings(shapes) > 0,
        "that are not valid (shapely.is_valid_reason tells why)": ~shapely.is_valid(shapes),
        "without an area": ~(shapely.area(shapes) > 0),
    }
    for problem, found in problems.items():
        if found.any():
            raise GridError(f"polygons {problem}: {named(labels, np.flatnonzero(found))}")
    return shapes, labels


def cut_inside(made: Complex) -> Complex:
    """Return a complex whose bodies are cut to its hull, less the steps that its border is off."""
    import shapely

    xy = np.stack([made.x[made.border], made.y[made.border]], axis=-1)
    hull = shapely.MultiPoint(xy).convex_hull
    inside = grown(convex_ring(hull), -2.0 * (made.slack + 4))
    fields = {name: getattr(made, name) for name in made.__dataclass_fields__}
    cut = Complex(**fields | {"area": convex_ring(inside)})
    cut.check()
    return cut
