"""How a release looks in Python: as a map, as HTML in a notebook.

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

from dpregions import extras
from dpregions.crs import crs_label
from dpregions.geometry.grid import Grid
from dpregions.releases.statement import NOT_PRIVATE, NOT_RECORDED

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dpregions.geometry.domain import Domain
    from dpregions.releases.published import Release

_MAX_PIXELS = 128
_POWER = 0.5
"""Of counts, by which colours go, unless the caller has another scale."""
_RAMP = ("ffffd9", "c7e9b4", "41b6c4", "225ea8", "081d58")  # ColorBrewer's YlGnBu, thinned


def draw_map(release: Release, ax: Any, style: dict[str, Any]) -> Any:
    """Draw the face counts on matplotlib axes, new ones where none are given; return them.

    Coordinates stay those of the CRS, so that other layers can be drawn on top; only the
    labels are in kilometres.
    """
    with extras.named():
        import matplotlib.pyplot as plt
        from matplotlib.colors import PowerNorm
    grid = release.grid
    if ax is None:
        xmin, ymin, xmax, ymax = grid.bounds
        height = float(np.clip(1.0 + 4.3 * (ymax - ymin) / (xmax - xmin), 2.4, 9))
        _, ax = plt.subplots(figsize=(6.4, height), layout="compressed")
    counts = release.counts[grid.kinds == 0]
    options = {"cmap": "YlGnBu"} | style
    if "norm" not in style:
        # Most cells have few regions beside the busiest: their differences are to be seen as well.
        low, high = options.pop("vmin", 0), options.pop("vmax", max(int(counts.max()), 1))
        options["norm"] = PowerNorm(_POWER, low, high)
    image = grid.draw(ax, counts, options)
    ax.figure.colorbar(image, ax=ax, label="regions touching the cell")
    _label_axes(ax, grid)
    title = f"ε = {release.budget}, {release.method}, unit {release.unit}"
    if release.private:
        ax.set_title(title)
    else:
        ax.set_title(f"{NOT_PRIVATE}\n{title}", color="#b00020", fontweight="bold")
    return ax


def _label_axes(ax: Any, grid: Domain) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    crs = grid.crs
    unit = "" if crs is None else crs.axis_info[0].unit_name
    xmin, ymin, xmax, ymax = grid.bounds
    in_km = unit == "metre" and min(xmax - xmin, ymax - ymin) >= 2000
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
        "grid": grid.cells_in_words,
        "CRS": "none" if grid.crs is None else crs_label(grid.crs),
        "estimates": "left out (covert)" if release.covert else "yes",
        "ledger": release.ledger_entry or NOT_RECORDED,
    }
    rows = "".join(
        f'<tr><th style="text-align:left">{escape(name)}</th>'
        f'<td style="text-align:left">{escape(str(value))}</td></tr>'
        for name, value in facts.items()
    )
    mark = "" if release.private else f'<p style="color:#b00020"><strong>{NOT_PRIVATE}</strong></p>'
    return (
        f"<div><strong>dpregions release</strong>{mark}"
        f'<div style="display:flex;gap:1.5em;align-items:flex-start"><table>{rows}</table>'
        f"{_picture(release)}</div>"
        f"<details><summary>Privacy statement</summary>"
        f'<pre style="white-space:pre-wrap">{escape(release.describe())}</pre></details></div>'
    )


def _picture(release: Release) -> str:
    """Return the face counts as an image element; nothing where cells are of any shape."""
    grid = release.grid
    return _thumbnail(release.counts[::2, ::2]) if isinstance(grid, Grid) else ""


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
