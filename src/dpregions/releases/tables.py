"""A release as arrays and tables of its cells: intervals of all, frames, Arrow, xarray.

Shows what was published and nothing else: takes a `Release`, never an exact histogram. What is said
of a block of cells is what the release answers of its rectangle, never a sum over its cells: a
region is in every cell that it touches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dpregions import extras
from dpregions.errors import Argument, InputError
from dpregions.geometry.grid import Grid
from dpregions.geometry.layers import Layer
from dpregions.privacy.law import checked_confidence
from dpregions.releases.statement import NOT_PRIVATE

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow
    import xarray
    from numpy.typing import NDArray

    from dpregions.choices import Kind
    from dpregions.releases.answering import Answering
    from dpregions.releases.published import Release

_KIND_NAMES: dict[Kind, str] = {"faces": "face", "edges": "edge", "vertices": "vertex"}
"""What one component of each kind is called, in frames and exports."""

_AT_ONCE = 1 << 16
"""Blocks that are asked about together: it bounds the memory."""


def interval_arrays(
    release: Answering, block: int, confidence: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the ends of the intervals of all blocks; of a release that is not covert."""
    shape = release.grid.blocks_shape(block)
    found = [release.asked.bounds(part, confidence) for part in _selections(release, block)]
    low, high = (np.concatenate(ends).astype(np.float64) for ends in zip(*found, strict=True))
    return low.reshape(shape), high.reshape(shape)


def block_arrays(release: Answering, block: int, confidence: float) -> dict[str, NDArray[Any]]:
    """Return what is published of all blocks, an array for each column."""
    checked_confidence(confidence)  # also where a covert release has no use for it
    shape = release.grid.blocks_shape(block)
    found: dict[str, NDArray[Any]] = {"count": _counts(release, block).reshape(shape)}
    if not release.covert:
        found["estimate"] = _estimates(release, block).astype(np.float64).reshape(shape)
        found["low"], found["high"] = interval_arrays(release, block, confidence)
        found["may_be_empty"] = found["low"] == 0
    return found


def _selections(release: Answering, block: int) -> Iterator[Any]:
    """Yield all blocks, row by row, some at a time."""
    n = int(np.prod(release.grid.blocks_shape(block)))
    for start in range(0, n, _AT_ONCE):
        yield release.grid.select_blocks(block, start, min(start + _AT_ONCE, n))


def _counts(release: Answering, block: int) -> NDArray[np.int64]:
    if block == 1:
        return release.counts[release.grid.kinds == 0]
    return np.concatenate([release.asked.count(part) for part in _selections(release, block)])


def _estimates(release: Answering, block: int) -> NDArray[Any]:
    if block == 1 and release.asked.signed is not None:  # else they would be made for edges too
        return release.asked.signed[release.grid.kinds == 0]
    return np.concatenate([release.asked.estimate(part) for part in _selections(release, block)])


def components_layer(release: Release, kind: Kind, block: int, confidence: float) -> Layer:
    """Return the faces, edges or vertices, or blocks of faces, with their published numbers."""
    if kind == "faces":
        layer = _blocks_layer(release, block, confidence)
        if block != 1:
            return layer
    else:
        checked_confidence(confidence)
        layer = release.grid.layer(kind)
        _refuse_blocks_of(kind, block)
        which = release.grid.kinds == list(_KIND_NAMES).index(kind)
        layer = layer.with_columns(count=release.counts[which])
        if release.signed is not None:
            layer = layer.with_columns(estimate=release.signed[which].astype(np.float64))
    first = {
        "kind": np.full(len(layer), _KIND_NAMES[kind]),
        "sign": np.full(len(layer), -1 if kind == "edges" else 1),
    }
    return Layer(first | layer.columns, layer.shapes, layer.crs)


def _refuse_blocks_of(kind: Kind, block: int) -> None:
    if block != 1:
        raise InputError(
            Argument("block"), f" is for faces, got {block!r} for {kind}: leave it at 1"
        )


def _blocks_layer(release: Release, block: int, confidence: float) -> Layer:
    arrays = block_arrays(release, block, confidence)
    columns = {name: values.ravel() for name, values in arrays.items()}
    return release.grid.blocks_layer(block).with_columns(**columns)


def arrow_table(release: Release) -> pyarrow.Table:
    """Return the faces as an Arrow table, geometries as WKB, the statement in its metadata."""
    table = _blocks_layer(release, 1, 0.95).arrow()
    return table.replace_schema_metadata({release.STATEMENT_KEY: release.describe().encode()})


def to_dataset(release: Release, block: int, confidence: float) -> xarray.Dataset:
    """Return the blocks of a grid as an xarray Dataset, with its CRS and the statement."""
    with extras.named():
        import xarray as xr

    grid = Grid.needed(
        release.grid, "an xarray Dataset, which has rows and columns,", ": use to_geodataframe"
    )
    arrays = block_arrays(release, block, confidence)
    what = "the cell" if block == 1 else f"the block of {block} x {block} cells"
    interval = f"end of the interval that holds the true count with confidence {float(confidence)}"
    words = {
        "count": f"regions touching {what}",
        "estimate": f"signed estimate of the regions touching {what}",
        "low": f"lower {interval}",
        "high": f"upper {interval}",
        "may_be_empty": f"whether {what} may be empty: low is 0",
    }
    variables = {
        name: (("y", "x"), values, {"long_name": words[name]}) for name, values in arrays.items()
    }
    dataset = xr.Dataset(variables, _coordinates(grid, block), _facts(release, block, confidence))
    if grid.crs is not None:
        for name in arrays:  # where CF and rioxarray look for the name of the CRS's variable
            dataset[name].encoding["grid_mapping"] = "spatial_ref"
    return dataset


def _coordinates(grid: Grid, block: int) -> dict[str, Any]:
    """Return the centres of blocks, evenly spaced: those at the upper and right border too."""
    side, (rows, cols) = block * grid.cell_size, grid.blocks_shape(block)
    unit = {} if grid.crs is None else {"units": grid.crs.axis_info[0].unit_name}
    found: dict[str, Any] = {
        axis: (axis, low + side * (np.arange(n) + 0.5), said | unit)
        for axis, low, n, said in (
            ("y", grid.ymin, rows, {"axis": "Y", "standard_name": "projection_y_coordinate"}),
            ("x", grid.xmin, cols, {"axis": "X", "standard_name": "projection_x_coordinate"}),
        )
    }
    if grid.crs is not None:
        place = f"{grid.xmin!r} {side!r} 0.0 {grid.ymin!r} 0.0 {side!r}"
        words = {"spatial_ref": grid.crs.to_wkt(), "GeoTransform": place}
        found["spatial_ref"] = ((), 0, grid.crs.to_cf() | words)
    return found


def _facts(release: Release, block: int, confidence: float) -> dict[str, Any]:
    """Return the parameters of the promise as values that netCDF and Zarr can hold."""
    return {
        "privacy": "private" if release.private else NOT_PRIVATE,
        "epsilon": release.epsilon,
        "neighbours": release.neighbours,
        "unit": release.unit,
        "method": release.method,
        "max_diameter": float(release.max_diameter),
        "block": int(block),
        **({} if release.covert else {"confidence": float(confidence)}),
        "statement": release.describe(),
    }
