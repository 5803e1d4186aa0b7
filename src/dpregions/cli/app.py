"""The command line: a thin shell around the library. Results on stdout, talk on stderr.

Exit codes: 0 done; 1 failed on the way; 2 wrong usage or input. Heavy imports stay inside
the commands, so that `dpregions --help` answers at once.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from dpregions import extras
from dpregions._version import __version__
from dpregions.cli.budget import budget
from dpregions.cli.check import check
from dpregions.cli.compare import compare
from dpregions.cli.demo import demo
from dpregions.cli.describe import describe
from dpregions.cli.export import export
from dpregions.cli.options import in_options
from dpregions.cli.plan import plan
from dpregions.cli.query import query
from dpregions.cli.regions import regions
from dpregions.cli.release import release
from dpregions.cli.serve import serve
from dpregions.cli.sign_off import sign_off
from dpregions.cli.study import study
from dpregions.errors import (
    DPRegionsError,
    InputError,
    InputTypeError,
    MissingExtraError,
    printable,
)
from dpregions.unforeseen import stopped_by

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


app.command()(demo)
app.command()(regions)
app.command()(check)
app.add_typer(budget)
app.command()(sign_off)
app.command()(release)
# Negative coordinates look like options; `query` itself tells the two apart.
app.command(context_settings={"ignore_unknown_options": True})(query)
app.command(context_settings={"ignore_unknown_options": True})(compare)
app.command()(describe)
app.command()(export)
app.command()(serve)
app.command()(plan)
app.command()(study)


def main() -> None:
    """Run the command line; an error is one line, never a traceback.

    A traceback would show what other libraries say, which may quote a record.
    """
    try:
        app()
    except (InputError, InputTypeError, MissingExtraError) as error:
        typer.echo(printable(f"dpregions: error: {in_options(error)}"), err=True)
        sys.exit(2)
    except ImportError as error:
        missing = extras.missing(error)
        said = _in_short(error) if missing is None else f"{missing}"
        typer.echo(printable(f"dpregions: error: {said}"), err=True)
        sys.exit(1 if missing is None else 2)
    except DPRegionsError as error:  # a ledger or a source that fails
        typer.echo(printable(f"dpregions: failed: {in_options(error)}"), err=True)
        sys.exit(1)
    except Exception as error:
        if stopped := stopped_by(error):
            raise stopped from None
        typer.echo(printable(f"dpregions: failed: {_in_short(error)}"), err=True)
        sys.exit(1)


def _in_short(error: Exception) -> str:
    """Return what is certain to quote no record: the system's own words, or a type's name."""
    if isinstance(error, OSError) and error.strerror and not isinstance(error, DPRegionsError):
        where = "" if error.filename is None else f": {error.filename!r}"
        return f"{os.strerror(error.errno)}{where}" if error.errno else type(error).__name__
    return f"unforeseen {type(error).__name__}; what it said is not shown, as it may quote a record"


if __name__ == "__main__":
    main()
