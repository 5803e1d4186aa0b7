"""Exports: a release as files that GIS tools open, in its CRS and at its place.

Takes a `Release` and nothing else: what is exact and secret never leaves by this door. The suffix
tells the format. Every file carries the privacy statement, and is written whole or not at all.
"""

from __future__ import annotations

import io
import os
import sqlite3
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from dpregions.atomic_files import PUBLIC, replacing
from dpregions.choices import Kind, What
from dpregions.crs import crs_label
from dpregions.errors import (
    Argument,
    CRSError,
    InputError,
    InputTypeError,
    MissingExtraError,
    OutputError,
)
from dpregions.geometry.grid import Grid
from dpregions.geometry.partition import Partition
from dpregions.io.qgis_style import add_style
from dpregions.releases.published import Release

if TYPE_CHECKING:
    import geopandas

    from dpregions.geometry.domain import Domain


DRIVERS = {
    ".gpkg": "GPKG",
    ".parquet": "GeoParquet",
    ".fgb": "FlatGeobuf",
    ".geojson": "GeoJSON",
    ".tif": "COG",
    ".tiff": "COG",
    ".html": "HTML",
}
"""The formats by suffix; COG is a Cloud-Optimised GeoTIFF, HTML the explorer as one file."""

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
        The file to write or replace: GeoPackage (.gpkg), GeoParquet (.parquet), FlatGeobuf
        (.fgb), GeoJSON (.geojson: reprojected to WGS 84, as RFC 7946 wants) or
        Cloud-Optimised GeoTIFF (.tif: bands of faces, `count`, `estimate`, `low` and `high`;
        needs rasterio, extra `raster`). Or a map to explore (.html): one file with all counts,
        which any browser opens, also offline; it takes neither `what` nor `block`.
    what : {"components", "faces", "edges", "vertices", "regions"}, optional
        Faces as polygons, edges as lines, vertices as points, or all three, the components
        (in a GeoPackage a layer each); or the synthetic regions of `Release.to_regions`. By
        default what the format can hold of the release: components, or the faces for a GeoTIFF
        and for blocks.
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
    if driver == "HTML":
        page = release.explore(name or path.stem, confidence=confidence).html
        content = memoryview(page.encode())
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
        return "faces" if driver == "COG" or block != 1 else "components"
    if what not in get_args(What):
        known = ", ".join(map(repr, get_args(What)))
        raise InputError(Argument("what", repr(what)), f" is unknown: use {known}")
    if driver == "COG" and what != "faces":
        raise InputError(
            f"a GeoTIFF holds a number a cell, so it cannot hold {what}: export faces, or choose "
            f".gpkg or .parquet",
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


def _layers(release: Release, order: _Order) -> dict[str, geopandas.GeoDataFrame]:
    if order.what == "regions":
        return {"regions": release.to_regions()}
    kinds: tuple[Kind, ...] = get_args(Kind) if order.what == "components" else (order.what,)
    named = {order.layer if order.what == "faces" else kind: kind for kind in kinds}
    layers = {name: _frame(release, kind, order) for name, kind in named.items()}
    if isinstance(release.grid, Partition):
        written = dict(zip(release.grid.labels, release.grid.written_labels, strict=True))
        for frame in layers.values():
            for name in {"label", "other"} & set(frame.columns):
                frame[name] = [written[label] for label in frame[name]]
    return layers


def _as_one(layers: list[geopandas.GeoDataFrame]) -> geopandas.GeoDataFrame:
    """Return layers below each other; whole numbers stay whole where a layer has none.

    Pandas fills such gaps with NaN otherwise, and a label beyond 2**53 becomes another one.
    """
    import pandas as pd

    shared = set.intersection(*(set(layer.columns) for layer in layers))
    whole = [
        layer.astype(
            {
                name: "Int64"
                for name in layer.columns
                if name not in shared and pd.api.types.is_integer_dtype(layer[name])
            }
        )
        for layer in layers
    ]
    return pd.concat(whole, ignore_index=True)


def _frame(release: Release, kind: Kind, order: _Order) -> geopandas.GeoDataFrame:
    return release.to_geodataframe(kind, block=order.block, confidence=order.confidence)


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
        for name, frame in layers.items():
            _write_layer(frame, whole, name, "GPKG", order.statement(release, name))
        _refuse_unfinished(whole, {name: len(frame) for name, frame in layers.items()}, path)
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


def _add_style(whole: Path, name: str, faces: geopandas.GeoDataFrame, path: Path) -> None:
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


def _one_table(release: Release, order: _Order, driver: str) -> memoryview:
    """Return a file of one table. Made in memory: GDAL hides that a disk was full at the end."""
    layers = list(_layers(release, order).values())
    if len(layers) > 1 and "may_be_empty" in layers[0].columns:
        # Edges and vertices have no intervals, and a plain column of bools has no nulls.
        layers[0]["may_be_empty"] = layers[0]["may_be_empty"].astype("boolean")
    frame = layers[0] if len(layers) == 1 else _as_one(layers)
    statement = order.statement(release, order.layer)
    if driver == "GeoParquet":
        return _parquet(frame, statement)
    content = io.BytesIO()
    _write_layer(frame, content, order.layer, driver, statement)
    return content.getbuffer()


def _write_layer(
    frame: geopandas.GeoDataFrame, target: Any, name: str, driver: str, statement: str
) -> None:
    import pyogrio

    options = {"DESCRIPTION": statement}
    if driver == "GeoJSON":
        options |= {"RFC7946": "YES", "COORDINATE_PRECISION": str(_DECIMALS.get(name, 7))}
    with warnings.catch_warnings():
        # A grid without CRS is a plane by choice.
        warnings.filterwarnings("ignore", "'crs' was not provided", UserWarning)
        try:
            pyogrio.write_dataframe(
                frame,
                target,
                layer=name,
                driver=driver,
                geometry_type=_GEOMETRY.get(name, "Unknown"),
                use_arrow=True,
                layer_options=options,
            )
        except (pyogrio.errors.DataSourceError, pyogrio.errors.DataLayerError) as error:
            raise OutputError(
                f"{name} could not be written as {driver}: is the disk full, or the folder closed "
                f"to you?"
            ) from error


def _parquet(frame: geopandas.GeoDataFrame, statement: str) -> memoryview:
    import pyarrow.parquet as pq

    content = io.BytesIO()
    frame.to_parquet(content, index=False)
    table = pq.read_table(content)
    metadata = {**table.schema.metadata, STATEMENT_KEY: statement.encode()}
    content = io.BytesIO()
    pq.write_table(table.replace_schema_metadata(metadata), content, compression="zstd")
    return content.getbuffer()


def _cog(release: Release, order: _Order) -> memoryview:
    """Return what is published of the faces as bands of a Cloud-Optimised GeoTIFF."""
    try:
        import rasterio
        from rasterio.io import MemoryFile
    except ImportError:
        raise MissingExtraError("rasterio", "raster") from None

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
