"""The command `export`: a saved release -> a file that GIS tools open."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from dpregions.choices import What
from dpregions.cli.options import AsJson, Group, Overwrite, refuse_output


def export(
    release: Annotated[
        Path, typer.Argument(help="A release file.", exists=True, dir_okay=False, metavar="RELEASE")
    ],
    out: Annotated[
        Path,
        typer.Argument(
            help="The file to write: .gpkg, .parquet, .fgb, .geojson, .tif or .html.", metavar="OUT"
        ),
    ],
    what: Annotated[
        What | None,
        typer.Option(
            "--what",
            help="Cells (faces), their inner edges or vertices, all three (components), or the "
            "synthetic regions. By default components; faces for .tif and for blocks.",
        ),
    ] = None,
    block: Annotated[
        int,
        typer.Option(
            "--block",
            metavar="CELLS",
            help="Of faces: blocks of so many cells in width and height instead of single ones. "
            "A block's count is that of its rectangle, not the sum of its cells.",
        ),
    ] = 1,
    confidence: Annotated[
        float, typer.Option(help="Of the intervals low to high of faces.")
    ] = 0.95,
    group: Group = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Write a release for QGIS and other tools; the suffix of OUT tells the format.

    GeoPackage (.gpkg), GeoParquet (.parquet), FlatGeobuf (.fgb), GeoJSON (.geojson, in WGS 84)
    or, for numbers by cell, Cloud-Optimised GeoTIFF (.tif). Or a map to explore as one HTML file
    (.html), which any browser opens, also offline. Each carries the privacy statement,
    and faces their count, estimate and interval; a GeoPackage has a style for QGIS.

    Example: dpregions export release.parquet release.gpkg
    """
    refuse_output(out, [release], overwrite=overwrite, named="OUT")
    from dpregions.io import exports
    from dpregions.releases.published import load

    loaded = load(release)
    loaded = loaded if group is None else loaded.group(group)
    exported = exports.export(
        loaded, out, what, block=block, confidence=confidence, name=release.stem
    )
    facts = {
        "output": str(out),
        "what": exported,
        "crs": exports.written_crs(loaded.grid, out),
        "private": loaded.private,
    }
    if as_json:
        typer.echo(json.dumps(facts))
        return
    typer.echo(f"Wrote {out}: {exported}, CRS {facts['crs']}.")
    if not loaded.private:
        typer.echo("NOT PRIVATE: do not publish.")
