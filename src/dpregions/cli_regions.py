"""`dpregions regions`: files of GPS fixes -> a GeoParquet file of regions.

Owns the command and the file it writes. The regions are as secret as the fixes: the file is
written whole or not at all, readable by its owner alone, and the command prints nothing that
was counted in the data, except in the curator's report that is asked for by name.
"""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpregions.errors import InputError

if TYPE_CHECKING:
    import geopandas


class Format(StrEnum):
    """How the fixes are stored."""

    auto = "auto"
    tdrive = "tdrive"
    geolife = "geolife"
    cabspotting = "cabspotting"
    table = "table"


class RegionUnit(StrEnum):
    """Whose fixes make one region."""

    user = "user"
    trajectory = "trajectory"


def regions(
    fixes: Annotated[list[Path], typer.Argument(help="Files or folders of GPS fixes.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="GeoParquet file to write.")],
    k: Annotated[int, typer.Option("--k", help="Fixes nearest the mode that make a region.")],
    max_diameter: Annotated[
        str,
        typer.Option(help="Largest diameter of a region: 2km, or a number in units of the CRS."),
    ],
    crs: Annotated[
        str | None, typer.Option(help="Projected CRS to measure in, for example EPSG:32650.")
    ] = None,
    around: Annotated[
        str | None,
        typer.Option(metavar="LON,LAT", help="Instead of --crs: the UTM zone of this place."),
    ] = None,
    format: Annotated[Format, typer.Option(help="Format of the fixes.")] = Format.auto,
    unit: Annotated[
        RegionUnit, typer.Option(help="One region for each user, or each trajectory.")
    ] = RegionUnit.user,
    gap: Annotated[
        str | None,
        typer.Option(help="A longer time without a fix starts a trajectory, e.g. 20min."),
    ] = None,
    user_id: Annotated[str, typer.Option(help="Column of users, in tables.")] = "user_id",
    lon: Annotated[str, typer.Option(help="Column of longitudes, in tables.")] = "lon",
    lat: Annotated[str, typer.Option(help="Column of latitudes, in tables.")] = "lat",
    time: Annotated[str, typer.Option(help="Column of times, in tables.")] = "t",
    report: Annotated[
        bool, typer.Option("--report", help="Show exact figures of skipped lines: not private.")
    ] = False,
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
    from dpregions.fixes import regions_from_batches
    from dpregions.io.traces import read_fixes

    target = read_crs(_one_crs(crs, around), "--crs")
    _refuse_output(output, fixes)
    with _progress_bar() as progress:
        reader = read_fixes(
            fixes,
            format=format.value,
            user_id=user_id,
            lon=lon,
            lat=lat,
            time=time,
            progress=progress,
        )
        found = regions_from_batches(
            reader, k=k, max_diameter=_length(max_diameter), crs=target, unit=unit.value, gap=gap
        )
    save_regions(found, output)
    facts = {
        "output": str(output),
        "unit": unit.value,
        "k": k,
        "max_diameter": max_diameter,
        "crs": crs_label(target),
    }
    _print_result(facts, reader.report if report else None, as_json)


def save_regions(regions: geopandas.GeoDataFrame, path: Path) -> None:
    """Write regions as GeoParquet, with their unit, whole or not at all.

    The file is for its owner's eyes (mode 600). The unit is in the schema's metadata, so that
    it lasts where a tool drops what pandas knows about a frame.
    """
    import pyarrow.parquet as pq

    from dpregions.fixes import UNIT_ATTRIBUTE

    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    os.close(handle)
    try:
        regions.to_parquet(name, index=False)
        table = pq.read_table(name)
        unit = str(regions.attrs.get(UNIT_ATTRIBUTE, "user"))
        metadata = {**(table.schema.metadata or {}), UNIT_ATTRIBUTE.encode(): unit.encode()}
        pq.write_table(table.replace_schema_metadata(metadata), name, compression="zstd")
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def load_regions(path: Path) -> geopandas.GeoDataFrame:
    """Read a GeoParquet file of regions; ``attrs["dpregions_unit"]`` says what one stands for.

    A file that does not say, but has a column `trajectory`, holds trajectories.
    """
    import geopandas
    import pyarrow.parquet as pq

    from dpregions.fixes import UNIT_ATTRIBUTE

    regions = geopandas.read_parquet(path)
    stated = (pq.read_schema(path).metadata or {}).get(UNIT_ATTRIBUTE.encode())
    guess = "trajectory" if "trajectory" in regions.columns else "user"
    regions.attrs[UNIT_ATTRIBUTE] = stated.decode() if stated else guess
    return regions


def _one_crs(crs: str | None, around: str | None) -> Any:
    if (crs is None) == (around is None):
        raise InputError(
            "give one of --crs and --around: for example --crs EPSG:32650, or --around 116.4,39.9"
        )
    if around is None:
        return crs
    from dpregions.crs import utm_zone

    try:
        lon, lat = (float(part) for part in around.split(","))
    except ValueError:
        lon = lat = math.nan
    if not (abs(lon) <= 180 and abs(lat) <= 90):
        raise InputError(
            f"--around {around!r} is no place on Earth: write LON,LAT in degrees, for example "
            f"116.4,39.9"
        )
    return utm_zone(lon, lat)


def _length(text: str) -> float | str:
    """Return a bare number, in units of the CRS, as one; other text as it is."""
    try:
        return float(text)
    except ValueError:
        return text


def _refuse_output(output: Path, inputs: list[Path]) -> None:
    """Complain about the output before the work, not after it."""
    if output.is_dir() or not output.absolute().parent.is_dir():
        raise InputError(f"--output {output}: give a file in a folder that exists")
    if output.exists() and any(path.exists() and output.samefile(path) for path in inputs):
        raise InputError(f"--output {output} is one of the inputs: choose another name")


@contextmanager
def _progress_bar() -> Iterator[Callable[[float], None] | None]:
    """Show the share done on a terminal; nothing else, as sizes and counts are secret."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("fixes to regions", total=1.0)
        yield lambda done: bar.update(task, completed=done)


def _print_result(facts: dict[str, Any], report: Any, as_json: bool) -> None:
    if as_json:
        if report is not None:
            facts = {**facts, "report": report.as_dict()}
        typer.echo(json.dumps(facts))
        return
    bare = isinstance(_length(facts["max_diameter"]), float)
    typer.echo(
        f"Wrote {facts['output']}: one region a {facts['unit']}, at most {facts['max_diameter']}"
        f"{' units' if bare else ''} across, in {facts['crs']}. Keep it as secret as the fixes."
    )
    if report is not None:
        typer.echo(str(report))
