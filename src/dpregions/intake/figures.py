"""What becomes of each row of regions, in exact figures: for the curator's check alone.

Exact, not private. It reads rows as the intake does, so that the figures tell what a release
would do with them; nothing that makes a release imports it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from dpregions.intake.arrow import plain_column
from dpregions.intake.geometries import coordinates, decoded, outlines_of
from dpregions.intake.ids import IdColumns, id_text, number_text, one_column, user_numbers
from dpregions.unforeseen import READING, foreseen, foreseen_items

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pyproj import CRS

    from dpregions.geometry.domain import Domain
    from dpregions.geometry.outlines import Bound
    from dpregions.intake.arrow import RegionStream

_OF_ROWS = (
    *("rows", "null", "unreadable", "empty", "not_finite", "outside", "invalid", "not_convex"),
    *("inside_if_swapped", "beyond_degrees"),
)


def figures_of(
    regions: RegionStream, grid: Domain, bound: Bound | None, user_id: str | None
) -> dict[str, Any]:
    """Return how many rows count, how many do not and why, and how many users there are."""
    import pyarrow as pa

    if user_id is not None:
        one_column(user_id, regions.columns, "user_id")
    met: Counter[str] = Counter()
    ids = []
    for batch in foreseen_items(iter(regions), READING):
        column = plain_column(batch.column("geometry"))
        met.update(foreseen(partial(_figures, column, regions.crs, grid, bound), READING))
        if user_id is not None:
            ids.append(batch.drop_columns(["geometry"]))
    held = pa.Table.from_batches(ids) if ids else None
    users = [] if user_id is None else [name for name in regions.columns if name != "geometry"]
    return {
        **{figure: met[figure] for figure in _OF_ROWS},
        "oversized": None if bound is None else met["oversized"],
        "skipped": regions.skipped_rows(),
        **_users(held, users, met["rows"]),
    }


@np.errstate(all="ignore")  # GEOS overflows on places far off; numpy would warn of it
def _figures(column: Any, crs: CRS | None, grid: Domain, bound: Bound | None) -> dict[str, int]:
    """Return the figures of one chunk of WKB."""
    import shapely

    null = np.asarray(column.is_null())
    shapes = decoded(column)
    there = ~null & shapely.is_geometry(shapes)
    empty = there & shapely.is_empty(shapes)
    coords, starts = coordinates(shapes)
    owner = np.repeat(np.arange(len(shapes)), np.diff(starts))
    finite = there & ~empty
    finite[owner[~np.isfinite(coords).all(axis=1)]] = False
    sound = shapes[finite]
    touching = _touching(sound, crs, grid)
    astray = sound[~touching]
    figures = {
        "rows": len(column),
        "null": int(null.sum()),
        "unreadable": int((~null & ~there).sum()),
        "empty": int(empty.sum()),
        "not_finite": int((there & ~empty & ~finite).sum()),
        "outside": int((~touching).sum()),
        "invalid": int((~_answers(shapely.is_valid, sound)).sum()),
        "not_convex": int(_answers(_not_convex, sound).sum()),
        "inside_if_swapped": int(_touching(_swapped(astray), crs, grid).sum()),
        "beyond_degrees": 0,
    }
    if crs is not None and crs.is_geographic:
        latitudes = shapely.bounds(sound)[:, [1, 3]]
        figures["beyond_degrees"] = int((np.abs(latitudes) > 90).any(axis=1).sum())
    if bound is not None:
        figures["oversized"] = int(_oversized(sound, crs, grid, bound).sum())
    return figures


def _answers(
    question: Callable[[NDArray[np.object_]], NDArray[np.bool_]], shapes: NDArray[np.object_]
) -> NDArray[np.bool_]:
    """Return GEOS's answer for each shape; no where it gives up on one, whatever the others."""
    import shapely

    try:
        return question(shapes)
    except shapely.GEOSException:
        if len(shapes) == 1:
            return np.zeros(1, dtype=np.bool_)
    half = len(shapes) // 2
    return np.concatenate([_answers(question, shapes[:half]), _answers(question, shapes[half:])])


def _touching(shapes: NDArray[np.object_], crs: CRS | None, grid: Domain) -> NDArray[np.bool_]:
    """Say which shapes touch a cell of the area."""
    return grid.touching(outlines_of(shapes, crs, grid, None))


def _oversized(
    shapes: NDArray[np.object_], crs: CRS | None, grid: Domain, bound: Bound
) -> NDArray[np.bool_]:
    """Say which shapes the bound changes: those that it drops, and would shrink."""
    kept = np.diff(outlines_of(shapes, crs, grid, bound).offsets) > 0
    there = np.diff(outlines_of(shapes, crs, grid, None).offsets) > 0
    return there & ~kept


def _users(held: Any, names: list[str], rows: int) -> dict[str, Any]:
    """Return the figures of users, out of the columns of their ids."""
    figures = ("users", "rows_without_user", "users_with_several_rows", "most_rows_of_a_user")
    if not names:
        return dict.fromkeys(figures)
    if held is None:
        return dict.fromkeys(figures, 0)
    numbers = user_numbers(IdColumns(names), names, held.column)
    assert numbers is not None
    times = np.bincount(numbers[numbers >= 0])
    counts = ((times > 0).sum(), rows - times.sum(), (times > 1).sum(), times.max(initial=0))
    return dict(zip(figures, map(int, counts), strict=True))


def _swapped(shapes: NDArray[np.object_]) -> NDArray[np.object_]:
    import shapely

    return shapely.transform(shapes, lambda xy: xy[:, ::-1])


def _not_convex(shapes: NDArray[np.object_]) -> NDArray[np.bool_]:
    """Say which shapes are not their own convex hull, but for rounding."""
    import shapely

    hulls = shapely.convex_hull(shapes)
    larger = shapely.area(hulls) > shapely.area(shapes) * (1 + 1e-9)
    several = (shapely.get_num_geometries(shapes) > 1) & (shapely.get_dimensions(hulls) > 0)
    return larger | (several & (shapely.get_dimensions(shapes) < 2))


def written_ids(regions: RegionStream, user_id: str) -> set[str]:
    """Return the ids of a source as people write them, whatever types the source has."""
    one_column(user_id, regions.columns, "user_id")
    found: set[str] = set()
    for batch in foreseen_items(iter(regions), READING):
        values = foreseen(batch.column(user_id).to_pylist, READING)
        found.update(text for text in map(_written, set(values)) if text)
    return found


def _written(value: Any) -> str | None:
    """Return an id as it is written; text of a source without types is written as JSON there."""
    if isinstance(value, str) and value.startswith('"') and value.endswith('"'):
        try:
            value = json.loads(value)
        except ValueError:
            return value
    text = value if isinstance(value, str) else id_text(value)
    return (number_text(text) or text) if text else None
