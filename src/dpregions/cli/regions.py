"""`dpregions regions`: files of GPS fixes -> a GeoParquet file of regions.

Owns the command and the file it writes. The regions are as secret as the fixes: the file is
written whole or not at all, readable by its owner alone, and the command prints nothing that
was counted in the data, except in the curator's report that is asked for by name.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from dpregions.choices import FixUnit, TraceFormat
from dpregions.cli.areas import read_place
from dpregions.cli.options import Overwrite, progress_bar, read_length, refuse_output, say
from dpregions.errors import InputError

GEOPARQUET = (".parquet", ".pq", ".geoparquet")


def regions(
    fixes: Annotated[list[Path], typer.Argument(help="Files or folders of GPS fixes.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="GeoParquet file to write.")],
    k: Annotated[int, typer.Option("--k", help="Fixes nearest the mode that make a region.")],
    max_diameter: Annotated[
        str,
        typer.Option(help="Largest diameter of a region, with its unit: 2km."),
    ],
    crs: Annotated[
        str | None, typer.Option(help="Projected CRS to measure in, for example EPSG:32650.")
    ] = None,
    around: Annotated[
        str | None,
        typer.Option(metavar="LON,LAT", help="Instead of --crs: the UTM zone of this place."),
    ] = None,
    format: Annotated[TraceFormat, typer.Option(help="Format of the fixes.")] = "auto",
    unit: Annotated[
        FixUnit, typer.Option(help="One region for each user, or each trajectory.")
    ] = "user",
    gap: Annotated[
        str | None,
        typer.Option(help="A longer time without a fix starts a trajectory, e.g. 20min."),
    ] = None,
    user_id: Annotated[str, typer.Option(help="Column of users, in tables.")] = "user_id",
    lon: Annotated[str, typer.Option(help="Column of longitudes, in tables.")] = "lon",
    lat: Annotated[str, typer.Option(help="Column of latitudes, in tables.")] = "lat",
    time: Annotated[str, typer.Option(help="Column of times, in tables.")] = "t",
    report: Annotated[
        bool, typer.Option("--report", help="Show exact figures of fixes and regions: not private.")
    ] = False,
    overwrite: Overwrite = False,
    as_json: Annotated[bool, typer.Option("--json", help="Result as JSON.")] = False,
) -> None:
    """Turn GPS fixes into one convex region a user, where the user mostly is.

    FIXES are T-Drive, GeoLife or Cabspotting files as their owners ship
    them, or Parquet and CSV tables with a user, a longitude and a latitude
    (WGS 84) in each row. The file written is as secret as the fixes.

    Example: dpregions regions taxis/ -o regions.parquet --k 163
    --max-diameter 2km --around 116.4,39.9
    """
    from dpregions.crs import crs_label, read_crs
    from dpregions.curator import WatchedFixes
    from dpregions.extraction.fixes import regions_from_batches
    from dpregions.intake.sources.traces import read_fixes
    from dpregions.io.region_files import save_regions

    _say_exchanged(lon, lat)
    target = read_crs(_one_crs(crs, around))
    length = read_length(max_diameter, "--max-diameter")
    refuse_output(output, fixes, overwrite=overwrite)
    if output.suffix.lower() not in GEOPARQUET:
        raise InputError(
            f"--output {output}: GeoParquet is written, so give a name that ends in .parquet"
        )
    with progress_bar("fixes to regions") as progress:
        reader = read_fixes(
            fixes,
            format=format,
            user_id=user_id,
            lon=lon,
            lat=lat,
            time=time,
            progress=progress,
        )
        watched = WatchedFixes(reader, target, k)
        found = regions_from_batches(
            watched if report else reader,
            k=k,
            max_diameter=length,
            crs=target,
            unit=unit,
            gap=gap,
        )
    save_regions(found, output, fresh=not overwrite)
    facts: dict[str, Any] = {
        "output": str(output),
        "unit": unit,
        "k": k,
        "max_diameter": max_diameter,
        "crs": crs_label(target),
    }
    told = ""
    if report:
        facts["report"] = reader.report.as_dict() | watched.figures(found)
        told = f"{reader.report}\n{watched.in_words(found)}"
    typer.echo(json.dumps(facts) if as_json else _in_words(facts, told))


def _one_crs(crs: str | None, around: str | None) -> Any:
    if (crs is None) == (around is None):
        raise InputError(
            "give one of --crs and --around: for example --crs EPSG:32650, or --around 116.4,39.9"
        )
    if around is None:
        return crs
    from dpregions.crs import utm_zone

    return utm_zone(*read_place(around, "--crs"))


def _in_words(facts: dict[str, Any], report: str) -> str:
    """Return what was written, and the curator's report below it."""
    return (
        f"Wrote {facts['output']}: one region a {facts['unit']}, at most {facts['max_diameter']} "
        f"across, in {facts['crs']}. Keep it as secret as the fixes.\n{report}"
    ).rstrip()


def _say_exchanged(lon: str, lat: str) -> None:
    """Say where the names of columns look exchanged: names are public, what is in them is not."""
    if lon.lower().startswith("lat") and lat.lower().startswith(("lon", "lng")):
        say(f"--lon {lon} and --lat {lat} look exchanged: longitude is east to west")
