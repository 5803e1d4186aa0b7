"""The picture of region extraction: one user's fixes, their density, the nearest k, the hull.

Draws every fix, so what it draws of a real user is secret; `synthetic.example_user` makes one up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dpregions.errors import InputError
from dpregions.plots import blank_figure, write

if TYPE_CHECKING:
    import geopandas
    import pandas as pd
    from matplotlib.figure import Figure

    from dpregions.arrays import Floats

    Window = tuple[float, float, float]  # centre and half the side

_INK, _FIX, _NEAR, _MODE, _HULL = "#22303c", "#5b6b79", "#2a7f9e", "#d1495b", "#edae49"
_LEFT_OUT = "#cfd6db"
_USER = "the one user"


def plot_extraction(
    fixes: pd.DataFrame | geopandas.GeoDataFrame,
    *,
    k: int,
    max_diameter: float | str,
    crs: Any,
    lon: str = "lon",
    lat: str = "lat",
) -> Figure:
    """Draw how one user's fixes become a region, in four panels.

    Parameters
    ----------
    fixes : DataFrame or GeoDataFrame
        One user's, as `regions_from_fixes` takes them; a column of users is not needed.
    k, max_diameter, crs, lon, lat
        As in `regions_from_fixes`.

    Returns
    -------
    matplotlib.figure.Figure
        To be saved with its `savefig`. Shows each fix: not private.
    """
    import shapely

    from dpregions.crs import read_crs
    from dpregions.extraction.density import nearest_the_mode
    from dpregions.extraction.fixes import regions_from_fixes
    from dpregions.lengths import positive_length

    figure = blank_figure(figsize=(13.6, 3.95), layout="constrained")
    alone = fixes.assign(**{_USER: 0})
    found = regions_from_fixes(
        alone, k=k, max_diameter=max_diameter, crs=crs, user_id=_USER, lon=lon, lat=lat
    )
    if found.empty:
        raise InputError("fixes hold no row that can be used: nothing to draw")
    xy = _projected(fixes, found.crs, lon, lat)
    radius = float(positive_length(max_diameter, name="max_diameter", crs=read_crs(crs))) / 2
    centre, around = nearest_the_mode(xy, k)
    kilometres = found.crs.axis_info[0].unit_conversion_factor / 1000

    panels = figure.subplots(1, 4)
    place = (xy - centre) * kilometres
    nearest = (around - centre) * kilometres
    far, near = _window(place), (0.0, 0.0, 1.55 * radius * kilometres)
    _draw_fixes(panels[0], place)
    _draw_density(panels[1], place, far, near)
    _draw_nearest(panels[2], place, nearest, radius * kilometres, k)
    hull = (shapely.get_coordinates(found.geometry.iloc[0]) - centre) * kilometres
    _draw_hull(panels[3], place, nearest, hull, radius * kilometres)
    for axes, window in zip(panels, (far, far, near, near), strict=True):
        _frame(axes, window)
    panels[0].set_ylabel("km north of the mode", size=8.5, color=_FIX)
    return figure


def _projected(fixes: Any, crs: Any, lon: str, lat: str) -> Floats:
    import geopandas

    if not isinstance(fixes, geopandas.GeoDataFrame):
        points = geopandas.points_from_xy(fixes[lon], fixes[lat], crs=4326)
        fixes = geopandas.GeoDataFrame(geometry=points)
    there = fixes.geometry.to_crs(crs)
    xy = np.column_stack([there.x, there.y])
    return xy[np.isfinite(xy).all(axis=1)]


def _draw_fixes(axes: Any, place: Floats) -> None:
    axes.scatter(*place.T, s=5, color=_FIX, alpha=0.6, linewidth=0)
    axes.set_title("1  Fixes of one user")


def _draw_density(axes: Any, place: Floats, far: Window, near: Window) -> None:
    from matplotlib.patches import Rectangle
    from scipy.stats import gaussian_kde

    axes.set_title("2  Their density and its mode")
    x, y, half = far
    ticks = np.linspace(-half, half, 160)
    grid = np.stack(np.meshgrid(x + ticks, y + ticks))
    try:
        density = gaussian_kde(place.T)(grid.reshape(2, -1)).reshape(grid.shape[1:])
        levels = np.linspace(0.02, 1.0, 11) * density.max()
        axes.contourf(*grid, density, levels=levels, cmap="GnBu")
        axes.contour(*grid, density, levels=levels, colors="white", linewidths=0.4)
    except (np.linalg.LinAlgError, ValueError):  # on a line or in one place: no contours
        axes.scatter(*place.T, s=5, color=_FIX, alpha=0.6, linewidth=0)
    _draw_mode(axes)
    side = 2 * near[2]
    axes.add_patch(Rectangle((-near[2], -near[2]), side, side, fill=False, lw=1, color=_MODE))
    write(axes, "panels 3 and 4", (-near[2], -near[2]), (0, -4), va="top", color=_MODE)


def _draw_mode(axes: Any) -> None:
    axes.scatter(0, 0, s=75, marker="X", color=_MODE, edgecolor="white", linewidth=0.9, zorder=5)


def _circle(axes: Any, radius: float) -> None:
    from matplotlib.patches import Circle

    axes.add_patch(Circle((0, 0), radius, fill=False, ls=(0, (4, 3)), lw=1.1, color=_INK))


def _draw_nearest(axes: Any, place: Floats, nearest: Floats, radius: float, k: int) -> None:
    inside = np.hypot(*nearest.T) <= radius
    axes.scatter(*place.T, s=7, color=_LEFT_OUT, linewidth=0)
    axes.scatter(*nearest[inside].T, s=9, color=_NEAR, linewidth=0)
    axes.scatter(*nearest[~inside].T, s=17, facecolor="white", edgecolor=_NEAR, linewidth=0.9)
    _circle(axes, radius)
    _draw_mode(axes)
    behind = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1}
    style = {"ha": "center", "va": "top", "color": _INK, "bbox": behind}
    write(axes, "farther than B/2: let go", (0, -radius), (0, -5), **style)
    axes.set_title(f"3  The k = {k} fixes nearest it")


def _draw_hull(axes: Any, place: Floats, nearest: Floats, hull: Floats, radius: float) -> None:
    kept = nearest[np.hypot(*nearest.T) <= radius]
    axes.scatter(*place.T, s=7, color=_LEFT_OUT, linewidth=0)
    axes.fill(*hull.T, facecolor=_HULL, alpha=0.35, zorder=2)
    axes.plot(*hull.T, color=_HULL, lw=2, zorder=3)
    axes.scatter(*kept.T, s=9, color=_NEAR, linewidth=0, zorder=4)
    _draw_mode(axes)
    axes.set_title("4  Their hull: the region")


def _window(place: Floats) -> Window:
    """Return what to show: nearly all fixes, and at least a little."""
    low, high = np.percentile(place, [0.5, 99.5], axis=0)
    (x, y), half = (low + high) / 2, max(float((high - low).max()) * 0.54, 1e-3)
    return float(x), float(y), half


def _frame(axes: Any, window: Window) -> None:
    x, y, half = window
    axes.set_xlim(x - half, x + half)
    axes.set_ylim(y - half, y + half)
    axes.set_aspect("equal")
    axes.locator_params(nbins=6)
    axes.tick_params(labelsize=8, color=_LEFT_OUT, labelcolor=_FIX)
    axes.title.set_color(_INK)
    axes.set_xlabel("km east of the mode", size=8.5, color=_FIX)
    for side in axes.spines.values():
        side.set_color(_LEFT_OUT)
