"""Coordinate reference systems: read, named, checked, and points taken from one to another.

Every CRS question of the library is answered here; what a grid needs of one is in `grid.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dpregions.errors import CRSError, GridError

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pyproj import CRS

    from dpregions.geometry.grid import Grid


def utm_zone(lon: float, lat: float) -> int:
    """Return the EPSG code of the WGS 84 / UTM zone of a place."""
    if not -80 <= lat <= 84:
        raise GridError(f"lat={lat} lies beyond UTM (-80..84): give a projected `crs` for the pole")
    zone = min(int((lon + 180) // 6) + 1, 60)
    return (32600 if lat >= 0 else 32700) + zone


def crs_label(crs: CRS) -> str:
    """Return the short name of a CRS: its authority code where it has one."""
    authority = crs.to_authority()
    return ":".join(authority) if authority else crs.name


def unit_label(crs: CRS | None) -> str:
    """Return the short name of the unit of a CRS's coordinates."""
    if crs is None:
        return "units"
    name: str = crs.axis_info[0].unit_name
    return {"metre": "m", "kilometre": "km", "foot": "ft"}.get(name, name)


def read_crs(value: Any, name: str = "crs") -> CRS:
    """Return a `pyproj.CRS`, or raise our error with the value."""
    from pyproj import CRS
    from pyproj.exceptions import CRSError as UnreadableCRS

    try:
        return CRS.from_user_input(value)
    except UnreadableCRS as error:
        raise CRSError(f"{name}={value!r} is no CRS that pyproj reads: {error}") from None


def projected_crs(value: Any) -> CRS | None:
    """Return a projected `pyproj.CRS`, None for None; refuse degrees, with the remedy."""
    if value is None:
        return None
    crs = read_crs(value)
    if crs.is_geographic:
        raise CRSError(
            f"{crs_label(crs)} ({crs.name}) is geographic: its degrees are not lengths, so its "
            f"cells are not squares. Use Grid.around(lon, lat, side=..., cell_size=...), which "
            f"picks the UTM zone, or another projected CRS"
        )
    if not (crs.is_projected or crs.is_engineering):
        raise CRSError(f"{crs_label(crs)} ({crs.name}) is not a projected CRS")
    return crs


def degrees_remedy(crs: CRS | None, bounds: NDArray[np.float64]) -> str:
    """Return what to do about rectangles outside a projected area that look like degrees.

    Empty where they do not. `bounds` are rows of xmin, ymin, xmax and ymax.
    """
    if crs is None or not crs.is_projected:
        return ""
    if not (np.abs(bounds) <= np.array([[180], [90], [180], [90]])).all():
        return ""
    return "; the numbers look like degrees: if they are, longitude first, give crs='EPSG:4326'"


FAR = 20.0
"""Degrees beyond the area that a CRS is made for, where it is surely another place."""


def is_far(crs: CRS, x: float, y: float, of: CRS) -> bool:
    """Say whether a place, in the CRS `of`, lies far from where a CRS is made for."""
    area = crs.area_of_use
    if area is None:
        return False
    lon, lat = reproject(np.array([[x, y]]), of, read_crs(4326))[0]
    if not (np.isfinite(lon) and np.isfinite(lat)):
        return False
    width = (area.east - area.west) % 360 or 360.0
    past_west = (lon - area.west) % 360
    across = 0.0 if past_west <= width else min(past_west - width, 360 - past_west)
    return bool(across > FAR or lat < area.south - FAR or lat > area.north + FAR)


def on_the_globe(lon: NDArray[np.float64], lat: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Say which places exist: latitude within -90..90, longitude within -180..360."""
    return (np.abs(lat) <= 90) & (lon >= -180) & (lon <= 360)


def reproject(coords: NDArray[np.float64], source: CRS, target: CRS) -> NDArray[np.float64]:
    """Return points in another CRS (x, y order); infinite where there is no such place."""
    if source.equals(target, ignore_axis_order=True):
        return coords
    from pyproj import Transformer
    from pyproj.exceptions import ProjError

    try:
        transformer = Transformer.from_crs(source, target, always_xy=True)
    except ProjError:
        raise CRSError(
            f"{crs_label(source)} cannot be transformed to {crs_label(target)}"
        ) from None
    return np.stack(transformer.transform(coords[:, 0], coords[:, 1]), axis=-1)


def match_crs(crs: CRS | None, grid: Grid, what: str, remedy: str) -> None:
    """Refuse a CRS on one side only, or made for another part of the Earth: nothing would meet.

    It looks at what is declared, never at a record.
    """
    if crs is None and grid.crs is None:
        return
    if crs is not None and grid.crs is not None:
        middle = (grid.xmin + grid.xmax) / 2, (grid.ymin + grid.ymax) / 2
        if is_far(crs, *middle, of=grid.crs):
            raise CRSError(
                f"{what} are in {crs_label(crs)}, made for a place far from the grid's area in "
                f"{crs_label(grid.crs)}: is the area where it should be, lon before lat?"
            )
        return
    if crs is None and grid.crs is not None:
        raise CRSError(f"{what} carry no CRS, but the grid is in {crs_label(grid.crs)}: {remedy}")
    assert crs is not None
    raise CRSError(
        f"{what} are in {crs_label(crs)}, but the grid has no CRS: "
        f"give the grid one, Grid(..., crs=...)"
    )
