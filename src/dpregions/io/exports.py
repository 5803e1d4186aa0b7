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
from contextlib import closing
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
from dpregions.releases.published import Release

if TYPE_CHECKING:
    import geopandas

    from dpregions.geometry.grid import Grid


DRIVERS = {
    ".gpkg": "GPKG",
    ".parquet": "GeoParquet",
    ".fgb": "FlatGeobuf",
    ".geojson": "GeoJSON",
    ".tif": "COG",
    ".tiff": "COG",
}
"""The formats by suffix; COG is a Cloud-Optimised GeoTIFF."""

STATEMENT_KEY = b"dpregions_statement"
"""Where a GeoParquet file has its privacy statement, among its key-value metadata."""

_GEOMETRY = {"faces": "Polygon", "edges": "LineString", "vertices": "Point", "regions": "Polygon"}

_SUM_RULE = (
    "Counts of faces do not add up, as a region is in every cell it touches: over a rectangle of "
    "cells, add up sign * count of the faces, edges and vertices inside it."
)
_NOTES = {
    "faces": f"count: released number of regions touching the cell. {_SUM_RULE}",
    "edges": f"count: released number of regions crossing the edge between two cells. {_SUM_RULE}",
    "vertices": f"count: released number of regions covering the corner of four cells. {_SUM_RULE}",
    "components": f"count: released number of regions touching the component. {_SUM_RULE}",
    "regions": "Synthetic regions, made up to fit the released counts: none is anybody's.",
}

# A region's vertex is in the middle of a lattice step, a 2**20th of a cell: half a micrometre is
# near enough to find it again in cells of 2 m and more. Of a cell's corner, a centimetre will do.
_DECIMALS = {"regions": 11}


def export(release: Release, path: Path | str, what: What | None = None) -> What:
    """Write a release, or its synthetic regions, for GIS tools.

    Parameters
    ----------
    release : Release
    path : path
        The file to write or replace: GeoPackage (.gpkg), GeoParquet (.parquet), FlatGeobuf
        (.fgb), GeoJSON (.geojson: reprojected to WGS 84, as RFC 7946 wants) or
        Cloud-Optimised GeoTIFF (.tif: counts of faces; needs rasterio, extra `raster`).
    what : {"components", "faces", "edges", "vertices", "regions"}, optional
        Faces as polygons, edges as lines, vertices as points, or all three, the components
        (in a GeoPackage a layer each); or the synthetic regions of `Release.to_regions`. By
        default what the format can hold of the release: components, or the faces for a GeoTIFF.

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
    what = _wanted(what, driver)
    if driver == "GeoJSON":
        _refuse_without_degrees(release.grid)
    if driver == "GPKG":
        _write_geopackage(release, what, path)
        return what
    content = _cog(release) if driver == "COG" else _one_table(release, what, driver)
    with replacing(path, mode=PUBLIC) as part:
        part.write_bytes(content)
    return what


def written_crs(grid: Grid, path: Path | str) -> str:
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


def _wanted(what: What | None, driver: str) -> What:
    if what is None:
        return "faces" if driver == "COG" else "components"
    if what not in get_args(What):
        known = ", ".join(map(repr, get_args(What)))
        raise InputError(Argument("what", repr(what)), f" is unknown: use {known}")
    if driver == "COG" and what != "faces":
        raise InputError(
            f"a GeoTIFF holds a number a cell, so it cannot hold {what}: export faces, or choose "
            f".gpkg or .parquet",
            argument="what",
        )
    return what


def _refuse_without_degrees(grid: Grid) -> None:
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


def _statement(release: Release, name: str) -> str:
    return f"{release.describe()}\n{_NOTES[name]}"


def _layers(release: Release, what: What) -> dict[str, geopandas.GeoDataFrame]:
    if what == "regions":
        return {"regions": release.to_regions()}
    kinds: tuple[Kind, ...] = get_args(Kind) if what == "components" else (what,)
    return {kind: release.to_geodataframe(kind) for kind in kinds}


def _write_geopackage(release: Release, what: What, path: Path) -> None:
    """Write a layer after another, in a hidden folder of their own: SQLite leaves side files."""
    # SQLite would play another program's changes to the old file into the new one.
    if any(path.with_name(f"{path.name}-{side}").exists() for side in ("wal", "journal")):
        raise InputError(
            f"{path} is open in another program: close it there, or choose another name",
            argument="path",
        )
    layers = _layers(release, what)
    with (
        replacing(path, mode=PUBLIC) as part,
        tempfile.TemporaryDirectory(dir=part.parent, prefix=f".{path.name}.") as folder,
    ):
        whole = Path(folder) / "whole.gpkg"
        for name, frame in layers.items():
            _write_layer(frame, whole, name, "GPKG", _statement(release, name))
        _refuse_unfinished(whole, {name: len(frame) for name, frame in layers.items()}, path)
        os.replace(whole, part)


def _refuse_unfinished(whole: Path, sizes: dict[str, int], path: Path) -> None:
    """Look for all rows and index entries: a disk that fills up at the very end, GDAL hides."""
    with closing(sqlite3.connect(whole)) as database:
        try:
            for name, size in sizes.items():
                for table in (name, f"rtree_{name}_geom_rowid"):
                    if database.execute(f"SELECT count(*) FROM {table}").fetchone() != (size,):
                        raise OutputError(f"{path} could not be written whole: is the disk full?")
        except sqlite3.Error as error:
            raise OutputError(f"{path} could not be written whole: is the disk full?") from error


def _one_table(release: Release, what: What, driver: str) -> memoryview:
    """Return a file of one table. Made in memory: GDAL hides that a disk was full at the end."""
    import pandas as pd

    layers = list(_layers(release, what).values())
    frame = layers[0] if len(layers) == 1 else pd.concat(layers, ignore_index=True)
    statement = _statement(release, what)
    if driver == "GeoParquet":
        return _parquet(frame, statement)
    content = io.BytesIO()
    _write_layer(frame, content, what, driver, statement)
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


def _cog(release: Release) -> memoryview:
    """Return the counts of the faces as a Cloud-Optimised GeoTIFF."""
    try:
        import rasterio
        from rasterio.io import MemoryFile
    except ImportError:
        raise MissingExtraError("rasterio", "raster") from None

    grid = release.grid
    faces = release.counts[::2, ::2]
    fits = faces.max() <= np.iinfo(np.int32).max
    profile: dict[str, Any] = {
        "driver": "COG",
        "height": grid.n_rows,
        "width": grid.n_cols,
        "count": 1,
        "dtype": "int32" if fits else "int64",
        "crs": None if grid.crs is None else rasterio.CRS.from_wkt(grid.crs.to_wkt()),
        "transform": rasterio.Affine(grid.cell_size, 0, grid.xmin, 0, -grid.cell_size, grid.ymax),
        "compress": "DEFLATE",
        # Overviews too show published counts only: other resamplings make numbers up.
        "overview_resampling": "NEAREST",
    }
    with MemoryFile(ext=".tif") as memory:
        with memory.open(**profile) as raster:
            north_up = faces[::-1]  # row 0 of a grid is at ymin, of a raster at ymax
            raster.write(north_up.astype(profile["dtype"]), 1)
            raster.set_band_description(1, "count")
            raster.units = ("regions",)
            raster.update_tags(TIFFTAG_IMAGEDESCRIPTION=_statement(release, "faces"))
        content = bytes(memory.getbuffer())
    with MemoryFile(content) as memory, memory.open() as raster:
        if raster.crs != profile["crs"]:
            raise CRSError(
                "a GeoTIFF has no words for the CRS of the grid: export to .gpkg or .parquet"
            )
    return memoryview(content)
