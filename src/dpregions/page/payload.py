"""What the page gets of a release: its description, all its counts, and its intervals.

Public values only, as JSON and as little-endian bytes that the same release always gives alike, so
that whoever serves them may keep them. `grid_math.js` reads them. Ends of intervals are rounded
outwards to whole regions: what the page shows still holds the true count.
"""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from dpregions.crs import crs_label, read_crs, reproject, unit_label
from dpregions.geometry.grid import Grid
from dpregions.page.card import card_of

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pyproj import CRS

    from dpregions.geometry.domain import Domain
    from dpregions.releases.published import Release

FORMAT = 1
_STEPS_A_WIDTH = 8
MOST_RECTANGLES = 50_000
"""Up to here the intervals of all rectangles of cells are given, not only those of blocks."""

_FINE_MESH = 100_000.0
"""Metres from which on a mesh of 64 x 64 patches is sent: a patch's middle is then still within
a few metres of its place (0.006 of a cell at 500 km and 1000 x 1000 cells)."""
_FEWEST_BLOCKS = 4
"""Along the longer side, at the coarsest detail."""
_FRAME = 1000
_PLAIN_SIDE = 1.0
"""Degrees that a plane without a place on Earth is drawn at, around 0, 0."""
_MERCATOR_LIMIT = 85.0


def described(
    release: Release, *, name: str, checksum: str | None = None, confidence: float = 0.95
) -> dict[str, Any]:
    """Return what the page says of a release, and where its cells lie, as JSON's values.

    Parameters
    ----------
    release : Release
    name : str
        What the page calls it.
    checksum : str, optional
        The SHA-256 of the release's file, where there is one.
    confidence : float
        Of the intervals that the page will show.
    """
    domain = release.grid
    said: dict[str, Any] = {
        "format": FORMAT,
        "name": name,
        "checksum": checksum,
        "confidence": confidence,
        "epsilon": str(release.budget).removesuffix(".0"),
        "unit": release.unit,
        "neighbours": release.neighbours,
        "method": release.method,
        "private": release.private,
        "covert": release.covert,
        "ledger": release.ledger_entry,
        "version": release.version,
        "shapes": release.asked.answers_shapes,
        "card": card_of(release, checksum),
        "statement": release.describe(),
        "crs": None if domain.crs is None else crs_label(domain.crs),
        "length_unit": unit_label(domain.crs),
        "metres": _metres(domain.crs),
        "bounds": list(domain.bounds),
        "frame": frame_of(domain),
    }
    if isinstance(domain, Grid):
        said["grid"] = said["frame"]
        said["blocks"] = _blocks(domain)
        said["every_rectangle"] = not release.covert and _n_rectangles(domain) <= MOST_RECTANGLES
    return said | {"mesh": _mesh(domain)}


def frame_of(domain: Domain) -> dict[str, float]:
    """Return what the page's rows and columns are: a grid's own, or a thousand to a longer side."""
    xmin, ymin, xmax, ymax = domain.bounds
    if isinstance(domain, Grid):
        cell, rows, cols = domain.cell_size, float(domain.n_rows), float(domain.n_cols)
    else:
        cell = max(xmax - xmin, ymax - ymin) / _FRAME
        rows, cols = (ymax - ymin) / cell, (xmax - xmin) / cell
    return {"xmin": xmin, "ymin": ymin, "cell": cell, "rows": rows, "cols": cols}


def _blocks(grid: Grid) -> list[int]:
    """Return the sizes of blocks that the map can show: 1, 2, 4, ... cells."""
    longer, sizes = max(grid.n_rows, grid.n_cols), [1]
    while -(-longer // (2 * sizes[-1])) >= _FEWEST_BLOCKS:
        sizes.append(2 * sizes[-1])
    return sizes


def _n_rectangles(grid: Grid) -> int:
    return grid.n_rows * (grid.n_rows + 1) // 2 * (grid.n_cols * (grid.n_cols + 1) // 2)


def _metres(crs: CRS | None) -> float | None:
    """Return how many metres a unit of the CRS is."""
    return None if crs is None else float(crs.axis_info[0].unit_conversion_factor)


def _mesh(domain: Domain) -> dict[str, Any]:
    """Return longitudes and latitudes of a mesh over the extent, row by row from `ymin`.

    A plane without a place on Earth gets one around 0, 0 that keeps its squares square, and
    `plain` says so.
    """
    xmin, ymin, xmax, ymax = domain.bounds
    metres = _metres(domain.crs)
    fine = metres is not None and max(xmax - xmin, ymax - ymin) * metres > _FINE_MESH
    n = 64 if fine else 32
    x, y = np.meshgrid(np.linspace(xmin, xmax, n + 1), np.linspace(ymin, ymax, n + 1))
    flat = np.stack([x.ravel(), y.ravel()], axis=-1)
    places, plain = None, True
    if domain.crs is not None and domain.crs.is_projected:
        places = reproject(flat, domain.crs, read_crs(4326))
        plain = not (np.isfinite(places).all() and np.abs(places[:, 1]).max() < _MERCATOR_LIMIT)
    if places is None or plain:
        places = _plain_places(domain)(flat)
    lon, lat = places.reshape(n + 1, n + 1, 2).transpose(2, 0, 1)
    lon = np.unwrap(np.unwrap(lon, period=360, axis=1), period=360, axis=0)
    return {"plain": plain, "patches": n, "lon": _text(lon), "lat": _text(lat)}


def _text(values: NDArray[np.float64]) -> str:
    """Return numbers as base64 of little-endian doubles."""
    return base64.b64encode(np.ascontiguousarray(values, "<f8").tobytes()).decode("ascii")


def components(release: Release) -> bytes:
    """Return the counts of all faces, edges and vertices of a release on a grid.

    As differences along the columns and then along the rows of the doubled array, which are small
    or 0 where regions are few or many alike: two thirds of the bytes, once they are compressed.
    """
    steps = np.diff(np.diff(release.counts, axis=1, prepend=0), axis=0, prepend=0)
    return packed(_unsigned(steps))


def intervals(
    release: Release, block: int, confidence: float = 0.95, *, coarse: bool = False
) -> bytes:
    """Return the intervals of all blocks of cells, ends rounded outwards to whole regions.

    How far `low` is below the count, then how far `high` is above `low`. Where they are to be
    `coarse`, wide intervals are rounded outwards further, by less than a quarter of their width.
    """
    low, high = release.cell_intervals(block, confidence)
    return _ends(_block_counts(release, block), low, high, coarse)


def _block_counts(release: Release, block: int) -> NDArray[np.int64]:
    return release.cell_arrays(block)["count"] if block > 1 else release.counts[::2, ::2]


def rectangle_intervals(release: Release, confidence: float = 0.95) -> bytes:
    """Return the intervals of all rectangles of cells, as `intervals` does.

    In the order of first row, last row, first column, last column.
    """
    grid = Grid.needed(release.grid, "all rectangles of cells")
    row0, row1 = np.triu_indices(grid.n_rows)
    col0, col1 = np.triu_indices(grid.n_cols)
    n = len(row0), len(col0)
    rows = (np.repeat(end, n[1]) for end in (row0, row1))
    cols = (np.tile(end, n[0]) for end in (col0, col1))
    ends: Any = (*rows, *cols)
    bounds = grid.cell_bounds(*ends)
    counts = release.count(*bounds, within="cells")
    low, high = release.interval(*bounds, within="cells", confidence=confidence)
    return _ends(counts, low, high)


def _ends(
    counts: NDArray[Any], low: NDArray[Any], high: NDArray[Any], coarse: bool = False
) -> bytes:
    first, last = (ends.astype(np.int64) for ends in (np.floor(low), np.ceil(high)))
    if coarse:
        # Steps are powers of two up to an eighth of the width. What is not empty stays so.
        step = np.maximum(last - first, _STEPS_A_WIDTH) // _STEPS_A_WIDTH
        step = 1 << np.log2(step).astype(np.int64)
        moved = counts - -(-(counts - first) // step) * step
        first = np.where(first > 0, np.maximum(moved, 1), first)
        last = first - -(-(last - first) // step) * step
    below, width = counts - first, last - first
    return packed(_unsigned(below)) + packed(width)


def _unsigned(values: NDArray[Any]) -> NDArray[Any]:
    """Return whole numbers as ones >= 0: 0, -1, 1, -2, 2 as 0, 1, 2, 3, 4."""
    return 2 * np.abs(values) - (values < 0)


def packed(values: NDArray[Any]) -> bytes:
    """Return whole numbers >= 0: how many bytes each has, how many there are, then the bytes.

    First the lowest byte of all, then the next: high bytes are alike, and shrink to nothing.
    """
    flat = np.ascontiguousarray(values, "<u8").ravel()
    size = max((int(flat.max(initial=0)).bit_length() + 7) // 8, 1)
    planes = flat.view(np.uint8).reshape(-1, 8)[:, :size].T
    return size.to_bytes(4, "little") + len(flat).to_bytes(4, "little") + planes.tobytes()


def cells(release: Release, confidence: float = 0.95) -> dict[str, Any]:
    """Return the cells of a partition as GeoJSON in the page's degrees, with their counts."""
    import shapely

    domain, layer = release.grid, release.layer(confidence=confidence)
    crs, degrees = domain.crs, read_crs(4326)
    place: Any = _plain_places(domain)
    if crs is not None and crs.is_projected:
        place = partial(reproject, source=crs, target=degrees)
    columns: dict[str, Any] = {
        name: layer.columns[name]
        for name in ("label", "count", "low", "high")
        if name in layer.columns
    }
    if "low" in columns:
        columns |= {"low": np.floor(columns["low"]), "high": np.ceil(columns["high"])}
    if "label" in columns:
        columns["label"] = [str(label) for label in columns["label"]]
    shapes = shapely.to_geojson(shapely.transform(layer.shapes, place))
    rows = replace(layer, columns=columns).rows()
    features = [
        {"type": "Feature", "properties": row, "geometry": json.loads(shape)}
        for row, shape in zip(rows, shapes, strict=True)
    ]
    return {"type": "FeatureCollection", "features": features}


def _plain_places(domain: Domain) -> Any:
    xmin, ymin, xmax, ymax = domain.bounds
    scale = _PLAIN_SIDE / max(xmax - xmin, ymax - ymin)

    def place(xy: NDArray[np.float64]) -> NDArray[np.float64]:
        lon, height = ((xy[:, :2] - [(xmin + xmax) / 2, (ymin + ymax) / 2]) * scale).T
        return np.stack([lon, np.degrees(np.arctan(np.sinh(np.radians(height))))], axis=-1)

    return place
