"""Exports: a release as files that GIS tools open, in its CRS and at its place.

Takes a `Release` and nothing else: what is exact and secret never leaves by this door. The suffix
tells the format. Every file carries the privacy statement, and is written whole or not at all.
"""

from __future__ import annotations

import io
import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from dpregions import extras
from dpregions.atomic_files import PUBLIC, replacing
from dpregions.choices import Kind, What
from dpregions.crs import crs_label
from dpregions.errors import (
    Argument,
    CRSError,
    InputError,
    InputTypeError,
    OutputError,
)
from dpregions.geometry.grid import Grid
from dpregions.geometry.layers import Layer
from dpregions.geometry.partition import Partition
from dpregions.io import layer_files
from dpregions.io.qgis_style import add_style
from dpregions.page.single_file import page_html
from dpregions.releases.published import Release
from dpregions.releases.statement import NOT_PRIVATE

if TYPE_CHECKING:
    from dpregions.geometry.domain import Domain


DRIVERS = {
    ".gpkg": "GPKG",
    ".parquet": "GeoParquet",
    ".fgb": "FlatGeobuf",
    ".geojson": "GeoJSON",
    ".csv": "CSV",
    ".tif": "COG",
    ".tiff": "COG",
    ".html": "HTML",
}
"""The formats by suffix; COG is a Cloud-Optimised GeoTIFF, HTML the explorer as one file."""

_IN_CELLS = ("COG", "CSV")
"""Formats that hold the faces unless told otherwise: a number for each cell."""

STATEMENT_KEY = Release.STATEMENT_KEY
"""Where a GeoParquet file has its privacy statement, among its key-value metadata."""

_GEOMETRY = {
    "faces": "Polygon",
    "blocks": "Polygon",
    "edges": "LineString",
    "vertices": "Point",
    "regions": "Polygon",
}

_SUM_RULE = (
    "Counts of faces do not add up, as a region is in every cell it touches: over a rectangle of "
    "cells, add up sign * count of the faces, edges and vertices inside it."
)
_NOTES = {
    "faces": f"count: released number of regions touching the cell. {_SUM_RULE}",
    "edges": f"count: released number of regions crossing the edge between two cells. {_SUM_RULE}",
    "vertices": f"count: released number of regions covering the corner of four cells. {_SUM_RULE}",
    "components": f"count: released number of regions touching the component. {_SUM_RULE}",
    "blocks": "count: released number of regions touching the block. Counts of blocks do not add "
    "up, as a region is in every block it touches.",
    "regions": "Synthetic regions, made up to fit the released counts: none is anybody's.",
}

# A region's vertex is in the middle of a lattice step, a 2**20th of a cell: half a micrometre is
# near enough to find it again in cells of 2 m and more. Of a cell's corner, a centimetre will do.
_DECIMALS = {"regions": 11}


@dataclass(frozen=True)
class _Order:
    """What is to be written of a release: which part, of which blocks, how sure its intervals."""

    what: What
    block: int
    confidence: float

    @property
    def layer(self) -> str:
        """What one table of it is called."""
        return self.what if self.block == 1 else "blocks"

    def statement(self, release: Release, layer: str) -> str:
        """Return the privacy statement, with what the columns of a layer mean."""
        said = f"{release.describe()}\n{_NOTES[layer]}"
        if layer == "blocks":
            said += f" A block is {self.block} x {self.block} cells, less at the border."
        if layer in ("faces", "blocks", "components") and not release.covert:
            said += (
                f" low, high: of faces, an interval that holds the true count with confidence "
                f"{float(self.confidence)}; may_be_empty: low is 0."
            )
        return said


def export(
    release: Release,
    path: Path | str,
    what: What | None = None,
    *,
    block: int = 1,
    confidence: float = 0.95,
    name: str | None = None,
) -> What:
    """Write a release, or its synthetic regions, for GIS tools.

    Faces have the columns `count`, `estimate`, `low`, `high` and `may_be_empty` of
    `Release.to_geodataframe` (a covert release: `count` alone); in a GeoPackage they come with a
    style that QGIS draws them by.

    Parameters
    ----------
    release : Release
    path : path
        The file to write or replace: GeoParquet (.parquet), GeoJSON (.geojson: reprojected to
        WGS 84, as RFC 7946 wants), CSV (.csv: the columns, and the bounds of each cell);
        GeoPackage (.gpkg) or FlatGeobuf (.fgb; both need pyogrio, extra `curator`); or
        Cloud-Optimised GeoTIFF (.tif: bands of faces, `count`, `estimate`, `low` and `high`;
        needs rasterio, extra `raster`). Or a map to explore (.html): one file with all counts,
        which any browser opens, also offline; it takes neither `what` nor `block`.
    what : {"components", "faces", "edges", "vertices", "regions"}, optional
        Faces as polygons, edges as lines, vertices as points, or all three, the components
        (in a GeoPackage a layer each); or the synthetic regions of `Release.to_regions`. By
        default what the format can hold of the release: components, or the faces for a GeoTIFF,
        for CSV and for blocks.
    block : int
        Of faces: blocks of so many cells in width and height instead of single ones, cut at the
        upper and right border. The count of a block is that of its rectangle.
    confidence : float
        Of the intervals, between 0 and 1.
    name : str, optional
        What the map in an HTML file calls the release; by default the file's name.

    Returns
    -------
    str
        What was written.
    """
    if not isinstance(release, Release):
        raise InputTypeError(
            f"only a Release can be exported, got {type(release).__name__}: an exact histogram "
            f"is secret; dpregions.release(...) makes what may be published",
            argument="release",
        )
    path = Path(path)
    driver = _driver(path)
    order = _Order(_wanted(what, driver, block), block, confidence)
    if driver == "GeoJSON":
        _refuse_without_degrees(release.grid)
    if driver == "GPKG":
        _write_geopackage(release, order, path)
        return order.what
    content: bytes | memoryview
    if driver == "HTML":
        content = page_html(release, name=name or path.stem, confidence=confidence).encode()
    elif driver == "COG":
        content = _cog(release, order)
    else:
        content = _one_table(release, order, driver)
    with replacing(path, mode=PUBLIC) as part:
        part.write_bytes(content)
    return order.what


def written_crs(grid: Domain, path: Path | str) -> str:
    """Return the short name of the CRS that an export of this grid to `path` is in."""
    if _driver(Path(path)) == "GeoJSON":
        return "EPSG:4326"
    return "none" if grid.crs is None else crs_label(grid.crs)


def _driver(path: Path) -> str:
    if path.is_dir():
        raise InputError(f"{path} is a folder: give a file", argument="path")
    if not path.absolute().parent.is_dir():
        raise InputError(f"{path}: there is no folder {path.absolute().parent}", argument="path")
    try:
        return DRIVERS[path.suffix.lower()]
    except KeyError:
        raise InputError(
            f"{path}: the suffix {path.suffix!r} tells no format; use {', '.join(DRIVERS)}",
            argument="path",
        ) from None


def _wanted(what: What | None, driver: str, block: int) -> What:
    if driver == "HTML" and (what not in (None, "components") or block != 1):
        raise InputError(
            *("an HTML file has all counts, of blocks too: leave ", Argument("what"), " and "),
            *(Argument("block"), " out"),
        )
    if what is None:
        return "faces" if driver in _IN_CELLS or block != 1 else "components"
    if what not in get_args(What):
        known = ", ".join(map(repr, get_args(What)))
        raise InputError(Argument("what", repr(what)), f" is unknown: use {known}")
    if driver == "COG" and what != "faces":
        raise InputError(
            f"a GeoTIFF holds a number a cell, so it cannot hold {what}: export faces, or choose "
            f".gpkg or .parquet",
            argument="what",
        )
    if driver == "CSV" and what == "regions":
        raise InputError(
            "a CSV file has no geometries, so it cannot hold regions: choose .parquet or .geojson",
            argument="what",
        )
    if block != 1 and what != "faces":
        raise InputError(
            *(Argument("block"), " is of faces, got ", Argument("what", repr(what))),
            ": leave one of them out",
        )
    return what


def _refuse_without_degrees(grid: Domain) -> None:
    remedy = "export to .gpkg, .parquet or .fgb, or make the release on a grid with a projected CRS"
    if grid.crs is None:
        raise CRSError(
            f"GeoJSON is in WGS 84 degrees, and the grid has no CRS: {remedy}", argument="path"
        )
    if not grid.crs.is_projected:
        raise CRSError(
            f"GeoJSON is in WGS 84 degrees, to which {crs_label(grid.crs)} does not lead: {remedy}",
            argument="path",
        )


def _layers(release: Release, order: _Order) -> dict[str, Layer]:
    if order.what == "regions":
        return {"regions": release.outcome.to_regions()}
    kinds: tuple[Kind, ...] = get_args(Kind) if order.what == "components" else (order.what,)
    named = {order.layer if order.what == "faces" else kind: kind for kind in kinds}
    layers = {
        name: release.layer(kind, block=order.block, confidence=order.confidence)
        for name, kind in named.items()
    }
    if isinstance(release.grid, Partition):
        written = dict(zip(release.grid.labels, release.grid.written_labels, strict=True))
        for name, layer in layers.items():
            labels = {
                column: [written[label] for label in layer.columns[column]]
                for column in ("label", "other")
                if column in layer.columns
            }
            layers[name] = layer.with_columns(**labels)
    return layers


def _write_geopackage(release: Release, order: _Order, path: Path) -> None:
    """Write a layer after another, in a hidden folder of their own: SQLite leaves side files."""
    # SQLite would play another program's changes to the old file into the new one.
    if any(path.with_name(f"{path.name}-{side}").exists() for side in ("wal", "journal")):
        raise InputError(
            f"{path} is open in another program: close it there, or choose another name",
            argument="path",
        )
    layers = _layers(release, order)
    with (
        replacing(path, mode=PUBLIC) as part,
        tempfile.TemporaryDirectory(dir=part.parent, prefix=f".{path.name}.") as folder,
    ):
        whole = Path(folder) / "whole.gpkg"
        for name, layer in layers.items():
            _by_gdal(layer, whole, name, "GPKG", order.statement(release, name))
        _refuse_unfinished(whole, {name: len(layer) for name, layer in layers.items()}, path)
        if order.what in ("components", "faces"):
            name = next(iter(layers))  # the faces, or their blocks
            _add_style(whole, name, layers[name], path)
        os.replace(whole, part)


def _refuse_unfinished(whole: Path, sizes: dict[str, int], path: Path) -> None:
    """Look for all rows and index entries: a disk that fills up at the very end, GDAL hides."""
    with _opened(whole, path) as database:
        for name, size in sizes.items():
            for table in (name, f"rtree_{name}_geom_rowid"):
                if database.execute(f"SELECT count(*) FROM {table}").fetchone() != (size,):
                    raise OutputError(f"{path} could not be written whole: is the disk full?")


def _add_style(whole: Path, name: str, faces: Layer, path: Path) -> None:
    with _opened(whole, path) as database:
        add_style(database, name, faces)


@contextmanager
def _opened(whole: Path, path: Path) -> Iterator[sqlite3.Connection]:
    """Open what will be `path`, which an error names."""
    with closing(sqlite3.connect(whole)) as database:
        try:
            yield database
        except sqlite3.Error as error:
            raise OutputError(f"{path} could not be written whole: is the disk full?") from error


def _one_table(release: Release, order: _Order, driver: str) -> bytes | memoryview:
    """Return a file of one table. Made in memory: GDAL hides that a disk was full at the end."""
    layer = Layer.joined(list(_layers(release, order).values()))
    statement = order.statement(release, order.layer)
    if driver == "GeoParquet":
        return layer_files.geoparquet(layer, {STATEMENT_KEY: statement.encode()})
    if driver == "GeoJSON":
        return layer_files.geojson(layer, order.layer, statement, _DECIMALS.get(order.layer, 7))
    if driver == "CSV":
        return layer_files.table_csv(_stated(layer_files.with_bounds(layer), release, order))
    content = io.BytesIO()
    _by_gdal(layer, content, order.layer, driver, statement)
    return content.getbuffer()


def _stated(layer: Layer, release: Release, order: _Order) -> Layer:
    """Return a layer with what the statement says in short: a CSV file has no other place."""
    facts = {
        "crs": "" if release.grid.crs is None else crs_label(release.grid.crs),
        "epsilon": release.epsilon,
        "neighbours": release.neighbours,
        "unit": release.unit,
        "privacy": "private" if release.private else NOT_PRIVATE,
        **({} if release.covert else {"confidence": float(order.confidence)}),
    }
    return layer.with_columns(**{name: [value] * len(layer) for name, value in facts.items()})


def _by_gdal(layer: Layer, target: Any, name: str, driver: str, statement: str) -> None:
    kind = _GEOMETRY.get(name, "Unknown")
    layer_files.write_by_gdal(layer, target, name, driver, kind, DESCRIPTION=statement)


def _cog(release: Release, order: _Order) -> memoryview:
    """Return what is published of the faces as bands of a Cloud-Optimised GeoTIFF."""
    with extras.named():
        import rasterio
        from rasterio.io import MemoryFile

    what = "a GeoTIFF, which has a number for each square cell,"
    grid = Grid.needed(release.grid, what, ": export to .gpkg or .parquet")
    bands = release.cell_arrays(order.block, order.confidence)
    bands.pop("may_be_empty", None)  # where low is 0
    rows, cols = bands["count"].shape
    side = order.block * grid.cell_size
    profile: dict[str, Any] = {
        "driver": "COG",
        "height": rows,
        "width": cols,
        "count": len(bands),
        "dtype": _band_type(bands),
        "crs": None if grid.crs is None else rasterio.CRS.from_wkt(grid.crs.to_wkt()),
        # Blocks that are cut at the border are pixels as large as all others.
        "transform": rasterio.Affine(side, 0, grid.xmin, 0, -side, grid.ymin + rows * side),
        "compress": "DEFLATE",
        "predictor": "YES",
        # Overviews too show published numbers only: other resamplings make numbers up.
        "overview_resampling": "NEAREST",
    }
    with MemoryFile(ext=".tif") as memory:
        with memory.open(**profile) as raster:
            for number, (name, values) in enumerate(bands.items(), start=1):
                north_up = values[::-1]  # row 0 of a grid is at ymin, of a raster at ymax
                raster.write(north_up.astype(profile["dtype"]), number)
                raster.set_band_description(number, name)
            raster.units = ("regions",) * len(bands)
            said = order.statement(release, order.layer)
            raster.update_tags(TIFFTAG_IMAGEDESCRIPTION=said)
        content = bytes(memory.getbuffer())
    with MemoryFile(content) as memory, memory.open() as raster:
        if raster.crs != profile["crs"]:
            raise CRSError(
                "a GeoTIFF has no words for the CRS of the grid: export to .gpkg or .parquet"
            )
    return memoryview(content)


def _band_type(bands: dict[str, Any]) -> str:
    """Return the type of all bands, which a GeoTIFF has one of: it holds every count exactly."""
    if len(bands) > 1:
        return "float64"
    return "int32" if bands["count"].max() <= np.iinfo(np.int32).max else "int64"
