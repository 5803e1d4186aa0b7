"""`dpregions release`: a source of regions -> a release file, paid for from a ledger.

Owns the command: everything that can be refused is refused before any budget is spent, and what
is spent is said, also when the rest fails. A release that was paid for is saved somewhere, if need
be under another name. Prints nothing that was counted in the data.
"""

from __future__ import annotations

import json
import shlex
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpregions.choices import Engine, Favour, Method, Neighbours, Oversize
from dpregions.cli import areas, options
from dpregions.errors import InputError, LedgerError, LedgerUnavailableError

if TYPE_CHECKING:
    from dpregions.geometry.domain import Domain
    from dpregions.privacy.ledger import Ledger
    from dpregions.releases.make import Terms
    from dpregions.releases.published import Release

START_SECONDS, DRAW_SECONDS, MILLION_SECONDS = 4.0, 8e-6, 1.0
"""Of one core: a first release, a draw of noise, and reading and counting a million regions."""
START_BYTES = 600_000_000
"""Of a process that reads and releases, whatever the grid: Python, packages, kernels, batches."""
MARKS_BYTES, OUTLINE_BYTES = 50, 170
"""What is held of each user while counting: what a tally keeps of a region, or its outline."""
_FILES = (".parquet", ".geoparquet", ".pq", ".gpkg", ".geojson", ".json", ".shp", ".fgb")


def release(
    source: options.Source,
    output: Annotated[Path, typer.Option("--output", "-o", help="Release file to write.")],
    epsilon: Annotated[str, typer.Option(help="The privacy loss: 1, 0.5 or 1/3.")],
    max_diameter: Annotated[
        str,
        typer.Option(help="Largest diameter of a region, with its unit: 2km."),
    ],
    grid: areas.GridFile = None,
    partition: areas.PartitionFile = None,
    around: areas.Around = None,
    side: areas.Side = None,
    cell: areas.Cell = None,
    bounds: areas.Bounds = None,
    bounds_crs: areas.BoundsCrs = None,
    align: areas.Aligned = None,
    ledger: Annotated[
        Path | None, typer.Option(help="The budget ledger that pays, see 'dpregions budget'.")
    ] = None,
    dataset: Annotated[
        str | None, typer.Option(help="Name of the data set in the ledger; published.")
    ] = None,
    period: Annotated[
        str | None,
        typer.Option(help="A label for the ledger's entry, 2026-W23; debits add up all the same."),
    ] = None,
    method: Annotated[Method, typer.Option(help="The mechanism.")] = "footprint",
    neighbours: Annotated[Neighbours, typer.Option(help="What epsilon is about.")] = "add-remove",
    user_id: options.UserId = None,
    each_row: options.EachRow = False,
    unit: options.ReleaseUnit = None,
    crs: options.SourceCrs = None,
    sql: options.Sql = None,
    layer: options.Layer = None,
    geometry: options.Geometry = None,
    lon: options.Lon = None,
    lat: options.Lat = None,
    oversize: Annotated[Oversize, typer.Option(help="What becomes of longer regions.")] = "shrink",
    workload: Annotated[
        str | None,
        typer.Option(
            metavar="SIZES|FILE",
            help="Sizes of the rectangles that matter: 1km,2kmx4km; or a file of districts, public "
            "ones. By default all sizes.",
        ),
    ] = None,
    favour: Annotated[
        Favour | None,
        typer.Option(help="Lay the budget out for where people are as well, or all places alike."),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Release each of --groups, values of this column."),
    ] = None,
    groups: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,C",
            help="With --by: the groups, a public list. Each is released; other values count "
            "nowhere.",
        ),
    ] = None,
    covert: Annotated[
        bool, typer.Option("--covert", help="Whole counts only: no estimates, no intervals.")
    ] = False,
    sign_off: Annotated[
        Path | None,
        typer.Option(help="A sheet of 'dpregions sign-off', filled in; published."),
    ] = None,
    allow_epsilon: options.AllowEpsilon = False,
    overwrite: options.Overwrite = False,
    engine: Annotated[
        Engine, typer.Option(help="Where regions are counted: on this machine, or on Spark.")
    ] = "local",
    master: Annotated[
        str | None, typer.Option(help="Spark's master: local[2], spark://host:7077, yarn.")
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Say what the release would take, and do nothing."),
    ] = False,
    as_json: options.AsJson = False,
) -> None:
    """Publish regions once, under differential privacy.

    Choose the area, --max-diameter and --epsilon without looking at the data.
    With --ledger and --dataset, epsilon is debited before noise is drawn, and
    over budget is refused. A release that cannot be saved to --output after
    that is saved under another name, and the exit code is 1. --dry-run opens
    no source and spends nothing.

    Example: dpregions release regions.parquet -o city.parquet --epsilon 1
    --max-diameter 2km --around 9.0,48.5 --side 20km --cell 1km
    --ledger city.ledger --dataset taxis
    """
    from dpregions.privacy.ledger import Ledger

    place = areas.Asked(grid, partition, around, side, cell, bounds, bounds_crs, align)
    area = place.read()
    terms: dict[str, Any] = {
        "epsilon": options.read_epsilon(epsilon),
        "max_diameter": options.read_length(max_diameter, "--max-diameter", bare=area.crs is None),
        "method": method,
        "neighbours": neighbours,
        "oversize": oversize,
        "workload": None if workload is None else _read_workload(workload, area),
        "favour": favour,
        "covert": covert,
        "by": by,
        "period": period,
        "groups": None if groups is None else [label.strip() for label in groups.split(",")],
        "sign_off": sign_off,
        "allow_epsilon": allow_epsilon,
    }
    asked = {
        "user_id": options.read_users(user_id, each_row),
        "unit": unit,
        "crs": crs,
        "sql": sql,
        "layer": layer,
        "geometry": geometry,
        "lon": lon,
        "lat": lat,
        "by": by,
    }
    inputs = [
        path for path in (Path(source), grid, partition, ledger, sign_off) if path is not None
    ]
    _refuse_output(output, inputs, overwrite)
    if (ledger is None) != (dataset is None):
        raise InputError("--ledger and --dataset go together: give both, or neither")
    if (engine == "spark") != (master is not None):
        raise InputError("--engine spark and --master go together: give both, or neither")
    from dpregions.releases.make import Terms

    with options.notes():
        stated = Terms(grid=area, **terms)  # refuses what it can before the source is opened
    stated.held_to_policy(unit or ("record" if each_row else None), ledger)
    if dry_run:
        _print_cost(stated, as_json)
        return
    typer.echo(f"dpregions: area: {areas.area_in_words(area)}", err=True)
    asked["master"] = master
    try:
        with options.notes():
            made, path, checksum = _publish(
                source, asked, area, terms, partial(_save, output, overwrite), ledger, dataset
            )
    except Exception as error:
        for note in getattr(error, "__notes__", ()):
            typer.echo(f"dpregions: {note}", err=True)
        raise
    if ledger is None:
        typer.echo("budget not recorded: give --ledger and --dataset to keep account", err=True)
    elif made.ledger_entry is not None:
        _tell_saved(Ledger(ledger), made.ledger_entry, path, checksum)
    _print_result(made, path, checksum, as_json)
    if path != output:
        raise typer.Exit(1)


def _publish(
    source: str,
    asked: dict[str, Any],
    area: Domain,
    terms: dict[str, Any],
    save: Callable[[Release], tuple[Path, str]],
    ledger: Path | None,
    dataset: str | None,
) -> tuple[Release, Path, str]:
    """Return the release, once it is saved, where that is, and its file's SHA-256."""
    from dpregions.intake.sources.opening import open_regions
    from dpregions.privacy.ledger import Ledger
    from dpregions.releases import make

    book = None if ledger is None else Ledger(ledger)
    paid = {name: asked[name] for name in ("user_id", "unit")}
    paid |= {"ledger": book, "dataset": dataset}
    with options.stages() as stage:
        stage("opening the source")

        def progress(done: float) -> None:
            stage(f"reading, {done:.0%}" if done < 1 else "counting, noise and fit")

        if asked.get("master") is not None:
            stage("starting Spark, counting, noise and fit")
        with open_regions(source, progress=progress, **asked) as regions:
            if regions.note is not None:
                options.say(options.in_options(regions.note))
            made = make.release(regions, area, **terms, **paid)
        stage("saving")
        return made, *save(made)


def _print_cost(terms: Terms, as_json: bool) -> None:
    """Print what a release takes at most, from public values; rows are not known beforehand."""
    cost = terms.most()
    seconds = START_SECONDS + cost.draws * DRAW_SECONDS
    memory = START_BYTES + cost.memory
    has_marks = hasattr(terms.prepared.tally(), "add_marks")
    each = MARKS_BYTES if has_marks else OUTLINE_BYTES
    if as_json:
        facts = {**cost._asdict(), "memory": memory, "bytes_per_user": each}
        facts |= {"seconds": seconds, "seconds_per_million": MILLION_SECONDS}
        typer.echo(json.dumps(facts | {"area": areas.area_in_words(terms.grid)}))
        return
    typer.echo(
        f"Area: {areas.area_in_words(terms.grid)}.\n"
        f"This release takes at most about\n"
        f"  {cost.draws:,} draws of noise\n"
        f"  {memory / 1e6:,.0f} MB of memory, and {each} bytes for each user while counting\n"
        f"  {cost.file / 1e6:,.1f} MB for its file\n"
        f"  {seconds:,.0f} s, and {MILLION_SECONDS:g} s for each million regions in GeoParquet, on "
        f"one core\n"
        f"Nothing was read, spent or written."
    )


def _save(output: Path, overwrite: bool, made: Release) -> tuple[Path, str]:
    """Return where the release was saved, and its file's SHA-256: it is paid for by now."""
    try:
        return output, made.save(output, fresh=not overwrite)
    except BaseException as error:
        saved = _save_elsewhere(made, output) if isinstance(error, Exception) else None
        if saved is None:
            error.add_note(
                f"epsilon {made.budget} is spent, and the release was not saved to {output}"
            )
            raise
        why = "is there by now" if isinstance(error, FileExistsError) else f"failed: {error}"
    typer.echo(f"dpregions: --output {output} {why}; the release is in {saved[0]}", err=True)
    return saved


def _save_elsewhere(made: Release, output: Path) -> tuple[Path, str] | None:
    """Save under the first free name beside the output, here, or among temporary files."""
    for folder in (output.parent, Path(), Path(tempfile.gettempdir())):
        for number in range(2, 100):
            spare = folder / f"{output.stem}-{number}{output.suffix}"
            try:
                return spare, made.save(spare, fresh=True)
            except FileExistsError:
                continue
            except Exception:  # whatever it is, another folder may do
                break
    return None


def _tell_saved(ledger: Ledger, entry: str, path: Path, checksum: str) -> None:
    """Record the file in the ledger; it is saved and paid for even if that fails."""
    try:
        ledger.mark_saved(entry, path, checksum)
    except (LedgerError, LedgerUnavailableError) as error:
        typer.echo(f"dpregions: {path} is saved, but not noted in its ledger: {error}", err=True)


def _read_workload(text: str, area: Domain) -> Any:
    """Return the sizes of --workload: sides, or pairs of a width and a height; or its districts."""
    if Path(text).suffix.lower() in _FILES or Path(text).is_file():
        from dpregions.io.area_files import read_areas

        frame = read_areas(Path(text), "--workload").frame()
        if frame.crs is None and area.crs is not None:
            raise InputError(f"--workload {text} names no CRS: save it with one")
        return frame
    sizes: list[Any] = []
    for size in text.split(","):
        bare = area.crs is None
        parts = map(str.strip, size.split("x"))
        sides = [options.read_length(part, "--workload", bare=bare) for part in parts]
        if len(sides) > 2 or "" in sides:
            raise InputError(
                f"--workload {text} is no list of sizes: write sides, or widths and heights, for "
                f"example 1km,2kmx4km, or name a file of districts that is there"
            )
        sizes.append(sides[0] if len(sides) == 1 else tuple(sides))
    return sizes


def _refuse_output(output: Path, inputs: list[Path], overwrite: bool) -> None:
    """Refuse an output that cannot be written, before any budget is spent on it."""
    what = ", and may be a release that budget was spent on"
    options.refuse_output(output, inputs, overwrite=overwrite, what=what)
    if output.suffix.lower() not in (".parquet", ".pq"):
        raise InputError(f"--output {output}: a release is a Parquet file, name it so: x.parquet")


def _print_result(made: Release, output: Path, checksum: str, as_json: bool) -> None:
    if as_json:
        facts = {
            "output": str(output),
            "method": made.method,
            "epsilon": str(made.budget),
            "unit": made.unit,
            "neighbours": made.neighbours,
            "max_diameter": made.max_diameter,
            "covert": made.covert,
            "groups": [] if made.groups is None else list(made.groups.labels),
            "ledger_entry": made.ledger_entry,
            "sha256": None if made.ledger_entry is None else checksum,
            "statement": made.describe(),
        }
        typer.echo(json.dumps(facts))
        return
    wanted = ("Privacy:", "Enforced:", "Groups:", "Ledger:")
    lines = [line for line in made.describe().splitlines() if line.startswith(wanted)]
    typer.echo("\n".join([f"Wrote {output}, which may be published.", *lines]))
    file, area = shlex.quote(str(output)), " ".join(map(repr, made.grid.bounds))
    typer.echo(f"Next: dpregions describe {file}\nNext: dpregions query {file} {area}")
