"""The curator's check: what is wrong with regions, in exact figures.

Exact, not private, not to be published: for the eyes of whoever holds the data. It spends no
budget, and nothing that makes a release calls it or reads what it found.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from dpregions.crs import crs_label, match_crs
from dpregions.geometry.grid import Grid, check_grid
from dpregions.geometry.outlines import Bound
from dpregions.intake.arrow import RegionStream, geometry_field, plain_column
from dpregions.intake.geometries import coordinates, decoded
from dpregions.intake.ids import IdColumns, one_column, user_numbers
from dpregions.intake.regions import outlines_of
from dpregions.intake.units import UNIT_ATTRIBUTE
from dpregions.unforeseen import READING, foreseen, foreseen_items

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pyproj import CRS

_OF_ROWS = (
    *("rows", "null", "unreadable", "empty", "not_finite", "outside", "invalid", "not_convex"),
    *("inside_if_swapped", "beyond_degrees"),
)

LABEL = "exact, not private, do not publish"


@dataclass(frozen=True)
class Check:
    """Exact figures about regions. Not private: do not publish.

    Rows that count nowhere are `null`, `unreadable`, `empty`, `not_finite` or `outside`, each
    row under the first that fits. The other figures may overlap. Lines of a CSV file with more
    or fewer fields than its first are `skipped`, and not among the `rows`.
    """

    rows: int
    null: int
    unreadable: int
    empty: int
    not_finite: int
    outside: int
    invalid: int
    not_convex: int
    oversized: int | None
    inside_if_swapped: int
    beyond_degrees: int
    skipped: int
    users: int | None
    rows_without_user: int | None
    users_with_several_rows: int | None
    most_rows_of_a_user: int | None
    crs: str | None
    grid_crs: str | None
    unit: str

    @property
    def counted_rows(self) -> int:
        """Rows that touch the area."""
        nowhere = self.null + self.unreadable + self.empty + self.not_finite + self.outside
        return self.rows - nowhere

    @property
    def swapped_axes_suspected(self) -> bool:
        """Whether most rows outside would lie in the area with x and y exchanged.

        Or most rows have latitudes beyond the poles.
        """
        placed = self.counted_rows + self.outside
        swapped = 2 * self.inside_if_swapped > max(1, self.outside)
        return swapped or 2 * self.beyond_degrees > placed

    def as_dict(self) -> dict[str, Any]:
        """Return all figures, with their label first."""
        more = {
            "counted_rows": self.counted_rows,
            "swapped_axes_suspected": self.swapped_axes_suspected,
        }
        return {"label": LABEL, **asdict(self), **more}

    def __repr__(self) -> str:
        """Return the label and every figure."""
        figures = ", ".join(f"{k}={v!r}" for k, v in self.as_dict().items() if k != "label")
        return f"<Check, {LABEL}: {figures}>"


def check_regions(
    regions: RegionStream,
    grid: Grid,
    *,
    max_diameter: float | str | None = None,
    user_id: str | None = "user_id",
) -> Check:
    """Return exact figures about regions, for the curator only.

    Parameters
    ----------
    regions : RegionStream
        As `open_regions` makes it; read in chunks.
    grid : Grid
        The area. Regions in another CRS are reprojected to the grid's.
    max_diameter : float, str or None
        The bound of a release: longer regions are `oversized`.
    user_id : str or None
        The column of users; None: each row is its own.

    Examples
    --------
    >>> import dpregions as dpr
    >>> from dpregions.curator import check_regions
    >>> dpr.synthetic.regions(50).to_parquet("city.parquet")
    >>> found = check_regions(dpr.open_regions("city.parquet"), dpr.synthetic.grid())
    >>> found.rows, found.users, found.null
    (50, 50, 0)
    """
    import pyarrow as pa

    check_grid(grid)
    bound = None if max_diameter is None else Bound.of(grid, max_diameter, "drop")
    name, crs = geometry_field(regions.schema)
    match_crs(crs, grid, "regions")
    if user_id is not None:
        one_column(user_id, regions.columns, "user_id")
    met: Counter[str] = Counter()
    ids = []
    for batch in foreseen_items(iter(regions), READING):
        column = plain_column(batch.column(name))
        met.update(foreseen(partial(_figures, column, crs, grid, bound), READING))
        if user_id is not None:
            ids.append(batch.drop_columns([name]))
    held = pa.Table.from_batches(ids) if ids else None
    users = [] if user_id is None else [c for c in regions.columns if c != name]
    unit = regions.attrs.get(UNIT_ATTRIBUTE, "user")
    return Check(
        **{figure: met[figure] for figure in _OF_ROWS},
        oversized=None if bound is None else met["oversized"],
        skipped=regions.skipped_rows(),
        **_users(held, users, met["rows"]),
        crs=None if crs is None else crs_label(crs),
        grid_crs=None if grid.crs is None else crs_label(grid.crs),
        unit="record" if user_id is None else unit,
    )


@np.errstate(all="ignore")  # GEOS overflows on places far off; numpy would warn of it
def _figures(column: Any, crs: CRS | None, grid: Grid, bound: Bound | None) -> dict[str, int]:
    """Return the figures of one chunk of WKB."""
    import shapely

    null = np.asarray(column.is_null())
    shapes = decoded(column)
    there = ~null & shapely.is_geometry(shapes)
    empty = there & shapely.is_empty(shapes)
    coords, owner = coordinates(shapes)
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


def _touching(shapes: NDArray[np.object_], crs: CRS | None, grid: Grid) -> NDArray[np.bool_]:
    """Say which shapes touch a cell of the area."""
    from dpregions.geometry import kernel as _kernel

    outlines = outlines_of(shapes, crs, grid, None)
    touched: NDArray[np.bool_] = _kernel.touching(outlines.xy, outlines.offsets, *grid.shape)
    return touched


def _oversized(
    shapes: NDArray[np.object_], crs: CRS | None, grid: Grid, bound: Bound
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
