"""How a release looks in Python: as a GeoDataFrame, as a map, as HTML in a notebook.

Shows what was published and nothing else: takes a `Release`, never an exact histogram. The methods
of `Release` are thin; their work is here, and what it needs is imported when it is asked for.
"""

from __future__ import annotations

import base64
import struct
import zlib
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from dpregions.crs import crs_label
from dpregions.errors import MissingExtraError
from dpregions.releases.statement import NOT_RECORDED

if TYPE_CHECKING:
    import geopandas
    from numpy.typing import NDArray

    from dpregions.choices import Kind
    from dpregions.geometry.grid import Grid
    from dpregions.releases.published import Release

KIND_NAMES: dict[Kind, str] = {"faces": "face", "edges": "edge", "vertices": "vertex"}
"""What one component of each kind is called, in tables and files."""

_WARNING = "NOT PRIVATE: do not publish"
_MAX_PIXELS = 128
_RAMP = ("ffffd9", "c7e9b4", "41b6c4", "225ea8", "081d58")  # ColorBrewer's YlGnBu, thinned


def components_frame(release: Release, kind: Kind) -> geopandas.GeoDataFrame:
    """Return the faces, edges or vertices with their published numbers."""
    frame = release.grid.to_geodataframe(kind)
    row, col = frame["row"].to_numpy(), frame["col"].to_numpy()
    frame.insert(0, "kind", KIND_NAMES[kind])
    frame.insert(1, "sign", 1 - 2 * ((row + col) % 2))
    frame.insert(4, "count", release.counts[row, col])
    if release.signed is not None:
        frame.insert(5, "estimate", release.signed[row, col].astype(np.float64))
    return frame


def draw_map(release: Release, ax: Any, style: dict[str, Any]) -> Any:
    """Draw the face counts on matplotlib axes, new ones where none are given; return them.

    Coordinates stay those of the CRS, so that other layers can be drawn on top; only the
    labels are in kilometres.
    """
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise MissingExtraError("matplotlib", "plot") from None

    grid = release.grid
    if ax is None:
        height = float(np.clip(1.0 + 4.3 * grid.n_rows / grid.n_cols, 2.4, 9))
        _, ax = plt.subplots(figsize=(6.4, height), layout="compressed")
    extent = (grid.xmin, grid.xmax, grid.ymin, grid.ymax)
    options = {"cmap": "YlGnBu", "interpolation": "nearest", "vmin": 0} | style
    if "norm" in style:
        del options["vmin"]
    faces = release.counts[::2, ::2]
    image = ax.imshow(faces, origin="lower", extent=extent, aspect="equal", **options)
    ax.figure.colorbar(image, ax=ax, label="regions touching the cell")
    _label_axes(ax, grid)
    title = f"ε = {release.budget}, {release.method}, unit {release.unit}"
    if release.private:
        ax.set_title(title)
    else:
        ax.set_title(f"{_WARNING}\n{title}", color="#b00020", fontweight="bold")
    return ax


def _label_axes(ax: Any, grid: Grid) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    crs = grid.crs
    unit = "" if crs is None else crs.axis_info[0].unit_name
    in_km = unit == "metre" and min(grid.xmax - grid.xmin, grid.ymax - grid.ymin) >= 2000
    unit = "km" if in_km else unit
    for axis, name in ((ax.xaxis, "x"), (ax.yaxis, "y")):
        axis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
        axis.set_major_formatter(
            FuncFormatter(lambda value, _: f"{value / 1000 if in_km else value:.10g}")
        )
        axis.set_label_text(f"{name}, {unit}" if unit else name)
    if crs is not None:
        ax.set_xlabel(f"x, {unit} ({crs_label(crs)})")


def release_html(release: Release) -> str:
    """Return a small table, a picture of the face counts, and the privacy statement."""
    grid = release.grid
    facts = {
        "method": release.method,
        "epsilon": release.budget,
        "neighbours": release.neighbours,
        "unit": release.unit,
        "max_diameter": f"{release.max_diameter:g}",
        "grid": f"{grid.n_rows} × {grid.n_cols} cells of {grid.cell_size:g}",
        "CRS": "none" if grid.crs is None else crs_label(grid.crs),
        "estimates": "left out (covert)" if release.signed is None else "yes",
        "ledger": release.ledger_entry or NOT_RECORDED,
    }
    rows = "".join(
        f'<tr><th style="text-align:left">{escape(name)}</th>'
        f'<td style="text-align:left">{escape(str(value))}</td></tr>'
        for name, value in facts.items()
    )
    mark = "" if release.private else f'<p style="color:#b00020"><strong>{_WARNING}</strong></p>'
    return (
        f"<div><strong>dpregions release</strong>{mark}"
        f'<div style="display:flex;gap:1.5em;align-items:flex-start"><table>{rows}</table>'
        f"{_thumbnail(release.counts[::2, ::2])}</div>"
        f"<details><summary>Privacy statement</summary>"
        f'<pre style="white-space:pre-wrap">{escape(release.describe())}</pre></details></div>'
    )


def _thumbnail(faces: NDArray[np.int64]) -> str:
    """Return face counts as an image element, north up, a pixel a cell or block of cells."""
    step = -(-max(faces.shape) // _MAX_PIXELS)
    means = _block_means(faces, step)
    top = max(float(means.max()), 1.0)
    levels = np.rint(means / top * 255).astype(np.uint8)[::-1]
    source = base64.b64encode(_png(levels)).decode()
    wide = levels.shape[1] >= levels.shape[0]
    size = "width:16em" if wide else "height:16em"
    said = "regions touching a cell" + (f", means of {step} × {step} cells" if step > 1 else "")
    return (
        f'<figure style="margin:0"><img src="data:image/png;base64,{source}" alt="{said}" '
        f'style="{size};image-rendering:pixelated">'
        f"<figcaption>{said}: 0 to {top:,.0f}</figcaption></figure>"
    )


def _block_means(faces: NDArray[np.int64], step: int) -> NDArray[np.float64]:
    """Return the mean of each block of `step` x `step` cells; the last blocks may be smaller."""
    sums, sizes = faces.astype(np.float64), np.ones(faces.shape)
    for axis, length in enumerate(faces.shape):
        starts = np.arange(0, length, step)
        sums, sizes = (np.add.reduceat(table, starts, axis=axis) for table in (sums, sizes))
    return sums / sizes


def _png(levels: NDArray[np.uint8]) -> bytes:
    """Return a PNG of 256 colours from light to dark; by hand, as matplotlib is an extra."""
    anchors = np.array([list(bytes.fromhex(colour)) for colour in _RAMP], float)
    at = np.linspace(0, len(anchors) - 1, 256)
    channels = [np.interp(at, np.arange(len(anchors)), channel) for channel in anchors.T]
    palette = np.rint(np.stack(channels, axis=-1)).astype(np.uint8)
    height, width = levels.shape
    lines = np.pad(levels, ((0, 0), (1, 0)))  # each line opens with its filter: 0, none
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    chunks = (
        (b"IHDR", header),
        (b"PLTE", palette.tobytes()),
        (b"IDAT", zlib.compress(lines.tobytes())),
        (b"IEND", b""),
    )
    packed = (
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
        for name, body in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(packed)
