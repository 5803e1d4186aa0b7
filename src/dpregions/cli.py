"""The command line: a thin shell around the library. Results on stdout, talk on stderr.

Exit codes: 0 done; 1 failed on the way; 2 wrong usage or input. Heavy imports stay inside
the commands, so that `dpregions --help` answers at once.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from dpregions._version import __version__
from dpregions.cli_regions import regions
from dpregions.errors import DPRegionsError

app = typer.Typer(
    name="dpregions",
    help="Differentially private counting of users' spatial regions.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"dpregions {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Count the users' regions that touch an area, each once."""


@app.command()
def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the picture.")] = Path(
        "demo_output"
    ),
    as_json: Annotated[bool, typer.Option("--json", help="Answers as JSON.")] = False,
) -> None:
    """Count a synthetic city's regions and show why cell counts will not do.

    Example: dpregions demo --out demo_output
    """
    from dpregions.demo import N_USERS, run

    answers, picture = run(out)
    if as_json:
        typer.echo(json.dumps({"answers": [a._asdict() for a in answers], "picture": str(picture)}))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"{N_USERS:,} synthetic users, one region each: exact counts")
    table.add_column("query")
    for column in ("cells", "regions touching it", "sum of its cell counts", "counted"):
        table.add_column(column, justify="right")
    for a in answers:
        times = f"{a.sum_of_cells / a.touching:.2f} x" if a.touching else ""
        table.add_row(a.query, f"{a.cells}", f"{a.touching:,}", f"{a.sum_of_cells:,}", times)
    console = Console()
    console.print(table)
    console.print(
        "A region over several cells is in each of their counts. Faces - edges + vertices counts "
        "it once.\nThese figures are exact and not private: they may be shown because the city "
        "is made up."
    )
    console.print(f"Picture: {picture}", soft_wrap=True)


app.command()(regions)


def main() -> None:
    """Run the command line; an expected error is one line, never a traceback."""
    try:
        app()
    except DPRegionsError as error:
        typer.echo(f"dpregions: error: {error}", err=True)
        sys.exit(2)
    except OSError as error:
        typer.echo(f"dpregions: failed: {error}", err=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
