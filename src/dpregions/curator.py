"""The curator's check: what is wrong with regions, in exact figures.

Exact, not private, not to be published: for the eyes of whoever holds the data. It spends no
budget, and nothing that makes a release calls it or reads what it found.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dpregions import extras
from dpregions.crs import crs_label, match_crs
from dpregions.errors import Argument, InputError
from dpregions.geometry.domain import check_domain
from dpregions.intake.figures import figures_of, written_ids

if TYPE_CHECKING:
    import geopandas
    import pandas as pd
    from pyproj import CRS

    from dpregions.arrays import Bools, Floats
    from dpregions.geometry.domain import Domain
    from dpregions.intake.arrow import RegionStream

extras.need("curator")

FIX_FIGURES = ("fixes", "outside_zone", "inside_if_swapped", "users", "below_k")
"""What is told of fixes on their way to regions."""

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
        shown = ", ".join(f"{k}={v!r}" for k, v in self.as_dict().items() if k != "label")
        return f"<Check, {LABEL}: {shown}>"


class Shared(NamedTuple):
    """How many ids two sources share. Exact, not private: do not publish."""

    ids: int
    other_ids: int
    shared: int


def shared_ids(
    regions: RegionStream, other: RegionStream, *, user_id: str | None = "user_id"
) -> Shared:
    """Return how many ids two sources have and share, for the curator only.

    Ids are compared as people write them: 7 and "7" are one here, as one source may have types
    and the other none. A release is stricter.

    Parameters
    ----------
    regions, other : RegionStream
        As `open_regions` makes them.
    user_id : str
        The column of users, in both.
    """
    if user_id is None:
        raise InputError(
            Argument("user_id", "None"), " leaves no ids to compare: name the column of users"
        )
    mine, theirs = (written_ids(stream, user_id) for stream in (regions, other))
    return Shared(len(mine), len(theirs), len(mine & theirs))


class WatchedFixes:
    """Batches of fixes on their way to regions, with figures of them. Not private: do not publish.

    Parameters
    ----------
    batches : iterable of DataFrame
        As `regions_from_batches` takes them.
    crs : pyproj.CRS
        In which regions are measured: the zone is the area that it is made for.
    k : int
        How many fixes make a region.
    """

    def __init__(self, batches: Iterable[pd.DataFrame], crs: CRS, k: int) -> None:
        self._batches, self._crs, self._k = batches, crs, k
        self._met: Counter[str] = Counter()

    def __iter__(self) -> Iterator[pd.DataFrame]:
        for batch in self._batches:
            self._met.update(_fix_figures(batch, self._crs, self._k))
            yield batch

    def figures(self, regions: geopandas.GeoDataFrame) -> dict[str, int]:
        """Return what was met, and how many of the regions are points or lines."""
        import shapely

        dimensions = np.asarray(shapely.get_dimensions(regions.geometry.array))
        made = {
            "regions": len(dimensions),
            "points": int((dimensions == 0).sum()),
            "lines": int((dimensions == 1).sum()),
        }
        return {name: self._met[name] for name in FIX_FIGURES} | made

    def in_words(self, regions: geopandas.GeoDataFrame) -> str:
        """Return the figures as sentences."""
        met = self.figures(regions)
        return (
            f"{met['outside_zone']:,} of {met['fixes']:,} fixes outside the zone of "
            f"{crs_label(self._crs)}; with axes exchanged {met['inside_if_swapped']:,} inside.\n"
            f"{met['below_k']:,} of {met['users']:,} users with fewer than {self._k:,} fixes.\n"
            f"Of {met['regions']:,} regions {met['points']:,} are points and {met['lines']:,} "
            f"lines."
        )


def check_regions(
    regions: RegionStream,
    grid: Domain,
    *,
    max_diameter: float | str | None = None,
    user_id: str | None = "user_id",
) -> Check:
    """Return exact figures about regions, for the curator only.

    Parameters
    ----------
    regions : RegionStream
        As `open_regions` makes it; read in chunks.
    grid : Grid or Partition
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
    check_domain(grid)
    bound = None if max_diameter is None else grid.bound(max_diameter, "drop")
    match_crs(regions.crs, grid, "regions")
    return Check(
        **figures_of(regions, grid, bound, user_id),
        crs=None if regions.crs is None else crs_label(regions.crs),
        grid_crs=None if grid.crs is None else crs_label(grid.crs),
        unit="record" if user_id is None else regions.unit or "user",
    )


def _fix_figures(batch: pd.DataFrame, crs: CRS, k: int) -> dict[str, int]:
    """Return figures of fixes in degrees, of whole users; see `FIX_FIGURES`."""
    lon, lat = (batch[name].to_numpy(np.float64, na_value=np.nan) for name in ("lon", "lat"))
    sound = np.isfinite(lon) & np.isfinite(lat)
    here, there = _in_zone(lon, lat, crs), _in_zone(lat, lon, crs)
    times = batch["user_id"][sound].value_counts()
    return {
        "fixes": int(sound.sum()),
        "outside_zone": int((sound & ~here).sum()),
        "inside_if_swapped": int((sound & ~here & there).sum()),
        "users": len(times),
        "below_k": int((times < k).sum()),
    }


def _in_zone(lon: Floats, lat: Floats, crs: CRS) -> Bools:
    """Say which places lie in the area that a CRS is made for; all, where it names none."""
    area = crs.area_of_use
    if area is None:
        return np.ones(len(lon), np.bool_)
    width = (area.east - area.west) % 360 or 360.0
    inside = ((lon - area.west) % 360 <= width) & (lat >= area.south) & (lat <= area.north)
    return np.asarray(inside & (np.abs(lon) <= 360), np.bool_)
