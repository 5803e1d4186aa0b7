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
from dpregions.cli_check import check
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
    """Count a synthetic city's regions, release them privately, and compare.

    Example: dpregions demo --out demo_output
    """
    from dpregions.demo import N_USERS, run

    made = run(out)
    if as_json:
        answers = [answer._asdict() for answer in made.answers]
        typer.echo(json.dumps({"answers": answers, "picture": str(made.picture)}))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"{N_USERS:,} synthetic users, one region each")
    table.add_column("query")
    columns = ("regions touching it", "sum of its cells", "released", "95 % interval")
    for column in columns:
        table.add_column(column, justify="right")
    for a in made.answers:
        interval = f"{a.low:,.0f} to {a.high:,.0f}"
        table.add_row(
            a.query, f"{a.touching:,}", f"{a.sum_of_cells:,}", f"{a.released:,}", interval
        )
    console = Console()
    console.print(table)
    console.print(
        "Summing cells counts a region once for every cell it covers. The first column is the "
        "truth; it may be shown because the city is made up. The last two are private, and count "
        "regions after the longest were shrunk to the bound:\n"
    )
    console.print(made.release.describe(), highlight=False)
    console.print(f"\nPicture: {made.picture}", soft_wrap=True)


app.command()(regions)
app.command()(check)


def main() -> None:
    """Run the command line; an expected error is one line, never a traceback."""
    try:
        app()
    except OSError as error:  # those of ours included: a source that fails
        typer.echo(f"dpregions: failed: {error}", err=True)
        sys.exit(1)
    except DPRegionsError as error:
        typer.echo(f"dpregions: error: {error}", err=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
