"""Coordinate reference systems: read, named, checked, and points taken from one to another.

Every CRS question of the library is answered here; what a grid needs of one is in `grid.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dpregions.errors import Argument, CRSError, GridError, InPython, Part

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pyproj import CRS

    from dpregions.geometry.domain import Domain


def utm_zone(lon: float, lat: float) -> int:
    """Return the EPSG code of the WGS 84 / UTM zone of a place."""
    if not -80 <= lat <= 84:
        raise GridError(
            f"lat={lat} lies beyond UTM (-80..84): give a projected `crs` for the pole",
            argument="lat",
        )
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
    return {"metre": "m", "kilometre": "km", "foot": "ft", "US survey foot": "ftUS"}.get(name, name)


def read_crs(value: Any) -> CRS:
    """Return a `pyproj.CRS`, or raise our error with the value."""
    from pyproj import CRS
    from pyproj.exceptions import CRSError as UnreadableCRS

    try:
        return CRS.from_user_input(value)
    except UnreadableCRS as error:
        given = Argument("crs", repr(value))
        raise CRSError(given, f" is no CRS that pyproj reads: {error}") from None


def projected_crs(value: Any) -> CRS | None:
    """Return a projected `pyproj.CRS`, None for None; refuse degrees, with the remedy."""
    if value is None:
        return None
    crs = read_crs(value)
    if crs.is_geographic:
        raise CRSError(
            f"{crs_label(crs)} ({crs.name}) is geographic: its degrees are not lengths, so its "
            f"cells are not squares. Use Grid.around(lon, lat, side=..., cell_size=...), which "
            f"picks the UTM zone, or another projected CRS",
            argument="crs",
        )
    if not (crs.is_projected or crs.is_engineering):
        raise CRSError(f"{crs_label(crs)} ({crs.name}) is not a projected CRS", argument="crs")
    return crs


def degrees_remedy(crs: CRS | None, bounds: NDArray[np.float64]) -> tuple[Part, ...]:
    """Return what to do about rectangles outside a projected area that look like degrees.

    Empty where they do not. `bounds` are rows of xmin, ymin, xmax and ymax.
    """
    if crs is None or not crs.is_projected:
        return ()
    if not (np.abs(bounds) <= np.array([[180], [90], [180], [90]])).all():
        return ()
    remedy = "; the numbers look like degrees: if they are, longitude first, give "
    return remedy, Argument("crs", "'EPSG:4326'")


def degrees_of(bounds: tuple[float, float, float, float], crs: CRS) -> tuple[float, ...] | None:
    """Return the extent in degrees: west, south, east and north; None where there is no place.

    East is less than west where the antimeridian lies between them.
    """
    from pyproj import Transformer
    from pyproj.exceptions import ProjError

    try:
        transformer = Transformer.from_crs(crs, 4326, always_xy=True)
        found = transformer.transform_bounds(*bounds, densify_pts=21)
    except ProjError:
        return None
    return tuple(found) if np.isfinite(found).all() else None


def reached_from(
    bounds: tuple[float, float, float, float], crs: CRS, epsg: int | None = None
) -> tuple[tuple[float, float, float, float], CRS]:
    """Return bounds that hold a rectangle in degrees, and the projected CRS that they are in.

    Without an EPSG code it is the UTM zone of the middle. Bounds are on whole units, outwards.
    """
    from pyproj import Transformer

    xmin, ymin, xmax, ymax = bounds
    placed = np.abs([xmin, xmax]).max() <= 180 and np.abs([ymin, ymax]).max() <= 90
    if not (placed and xmin < xmax and ymin < ymax):
        exchanged = ymin < ymax and np.abs([xmin, xmax]).max() <= 90 < np.abs([ymin, ymax]).max()
        why = (
            "longitude comes first: exchange the axes"
            if exchanged
            else "give west,south,east,north"
        )
        raise GridError(
            Argument("bounds", f"{xmin:g},{ymin:g},{xmax:g},{ymax:g}"),
            f" is no rectangle of degrees on Earth: {why}",
        )
    target = read_crs(utm_zone((xmin + xmax) / 2, (ymin + ymax) / 2) if epsg is None else epsg)
    transformer = Transformer.from_crs(crs, target, always_xy=True)
    found = np.array(transformer.transform_bounds(*bounds, densify_pts=21))
    if not np.isfinite(found).all():
        raise GridError(
            Argument("bounds"), f" cannot be projected to {crs_label(target)}: give a smaller area"
        )
    west, south = np.floor(found[:2])
    east, north = np.ceil(found[2:])
    return (float(west), float(south), float(east), float(north)), target


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
    if same_crs(source, target):
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


def same_crs(one: CRS, other: CRS) -> bool:
    """Say whether two CRS are one: coordinates are x, y whatever order a CRS names its axes in."""
    return bool(one.equals(other, ignore_axis_order=True))


def one_crs(carried: CRS | None, stated: CRS | None, what: str) -> CRS | None:
    """Return the CRS that data carry or that was stated for them; refuse two that differ."""
    if carried is None or stated is None:
        return stated if carried is None else carried
    if not same_crs(carried, stated):
        raise CRSError(
            f"{what} carry {crs_label(carried)}, but ",
            Argument("crs", crs_label(stated)),
            " was given: leave ",
            Argument("crs"),
            " out, and they are reprojected to the grid's",
        )
    return carried


def match_crs(crs: CRS | None, grid: Domain, what: str) -> None:
    """Refuse a CRS on one side only, or made for another part of the Earth: nothing would meet.

    `what` carries the CRS: "regions" or "queries". It looks at what is declared, never at a
    record.
    """
    if crs is None and grid.crs is None:
        return
    if crs is not None and grid.crs is not None:
        xmin, ymin, xmax, ymax = grid.bounds
        middle = (xmin + xmax) / 2, (ymin + ymax) / 2
        if is_far(crs, *middle, of=grid.crs):
            raise CRSError(
                f"the {what} are in {crs_label(crs)}, made for a place far from the grid's area in "
                f"{crs_label(grid.crs)}: is the area where it should be, lon before lat?",
                argument="crs",
            )
        return
    if crs is None and grid.crs is not None:
        raise CRSError(
            f"the {what} carry no CRS, but the grid is in {crs_label(grid.crs)}: ",
            InPython(f"set theirs, {what}.set_crs(...), or "),
            "give ",
            Argument("crs", ""),
        )
    assert crs is not None
    raise CRSError(
        f"the {what} are in {crs_label(crs)}, but the grid has no CRS: give the grid one, "
        f"Grid(..., crs=...)",
        argument="crs",
    )
