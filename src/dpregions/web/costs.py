"""What a shape would cost to answer, told before the work: a single one cannot be stopped.

Time goes with the cells that a shape's sides pass, as the bodies there are compared with them, and
far faster with the places where a polygon crosses itself, as it is repaired first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dpregions.crs import read_crs, reproject
from dpregions.geometry.grid import Grid
from dpregions.web.problems import Problem

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dpregions.releases.published import Release
    from dpregions.web.settings import Limits


def refuse_costly(release: Release, shape: Any, crs: str | None, limits: Limits) -> None:
    """Refuse a shape that would take far longer than a request may."""
    import shapely

    if not shapely.is_valid(shape):
        _refuse_crossings(shape, limits)
    xy = shapely.get_coordinates(shape)
    domain = release.rows
    if crs is not None and domain.crs is not None:
        xy = reproject(xy, read_crs(crs), domain.crs)
    if not np.isfinite(xy).all():
        return  # which is refused with better words
    low, high = np.reshape(domain.bounds, (2, 2))
    side = domain.cell_size if isinstance(domain, Grid) else _mean_side(domain)
    passed = np.abs(np.diff(np.clip(xy, low, high), axis=0)).sum() / side + len(xy)
    if passed > limits.passed:
        raise Problem(
            "too-large",
            422,
            f"the shape's sides pass about {passed:,.0f} cells, of at most {limits.passed:,}: "
            f"simplify it, or ask in parts",
        )


def _refuse_crossings(shape: Any, limits: Limits) -> None:
    import shapely

    n = int(shapely.get_num_coordinates(shape))
    crossed = n > limits.repaired
    if not crossed and (rings := _rings(shape)).size:
        lines = shapely.multilinestrings(rings)
        crossed = bool(shapely.get_num_coordinates(shapely.node(lines)) > 4 * n + 100)
    if crossed:
        raise Problem(
            "query",
            422,
            "the shape crosses itself, more often than is repaired here: repair it, for instance "
            "by shapely.make_valid",
        )


def _rings(shape: Any) -> NDArray[np.object_]:
    """Return the rings of all polygons in a shape as lines; GEOS crashes on empty ones."""
    import shapely

    parts = np.atleast_1d(shape)
    while (shapely.get_type_id(parts) >= shapely.GeometryType.MULTIPOINT).any():
        parts = shapely.get_parts(parts)
    rings = shapely.get_rings(parts)
    kept = rings[~shapely.is_empty(rings)]
    return np.array([shapely.LineString(ring) for ring in kept], dtype=object)


def _mean_side(domain: Any) -> float:
    xmin, ymin, xmax, ymax = domain.bounds
    return float(np.sqrt((xmax - xmin) * (ymax - ymin) / max(int((domain.kinds == 0).sum()), 1)))
