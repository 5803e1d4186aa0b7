"""`dpregions budget`: open accounts in a ledger, change their totals, show their history.

Owns these commands and how an account is printed. Every figure here is public: totals, debits,
what they paid for. The commands never read data, and nothing they do takes a debit back.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpregions.choices import Every, Neighbours, Unit
from dpregions.cli.options import AllowEpsilon, AsJson, read_epsilon
from dpregions.errors import InputError, printable
from dpregions.lengths import short_text
from dpregions.privacy.budget import Budget
from dpregions.privacy.ledger import Ledger

if TYPE_CHECKING:
    from dpregions.privacy.ledger import Account, Entry

budget = typer.Typer(
    name="budget",
    help="Keep account of the epsilon that releases of a data set cost together.\n\n"
    "Example: dpregions budget create city.ledger --dataset taxis --epsilon 3",
    no_args_is_help=True,
)


LedgerFile = Annotated[Path, typer.Argument(metavar="LEDGER", help="The ledger's file.")]
Dataset = Annotated[
    str, typer.Option("--dataset", help="Name of the data set. It is published with releases.")
]
Total = Annotated[
    str, typer.Option("--epsilon", help="What all releases may cost together: 3, 0.5 or 1/3.")
]


@budget.command()
def create(
    ledger: LedgerFile,
    dataset: Dataset,
    epsilon: Total,
    unit: Annotated[Unit, typer.Option(help="Whose data is protected together.")] = "user",
    neighbours: Annotated[Neighbours, typer.Option(help="What epsilon is about.")] = "add-remove",
    source: Annotated[
        str | None, typer.Option(help="Where the data are from; published with releases.")
    ] = None,
    period: Annotated[
        str | None, typer.Option(help="Of which time the data are; published with releases.")
    ] = None,
    owner: Annotated[
        str | None, typer.Option(help="Who answers for the data; published with releases.")
    ] = None,
    allow_epsilon: AllowEpsilon = False,
    as_json: AsJson = False,
) -> None:
    """Give a data set a total epsilon; make the ledger if there is none.

    The unit, the neighbours and what the data are declared to be are fixed for
    good: losses of different promises do not add up, so releases with others
    are refused, and so is a second account of one source and period.

    Example: dpregions budget create city.ledger --dataset taxis --epsilon 3
    """
    book = Ledger(ledger)
    total = read_epsilon(epsilon)
    book.create(
        dataset,
        total,
        unit=unit,
        neighbours=neighbours,
        source=source,
        period=period,
        owner=owner,
        allow_epsilon=allow_epsilon,
    )
    _print(book, [book.account(dataset)], as_json)


@budget.command()
def show(
    ledger: LedgerFile,
    dataset: Annotated[
        str | None, typer.Option("--dataset", help="This one only; by default all.")
    ] = None,
    at: Annotated[
        str | None, typer.Option("--at", help="Plan ahead: how many releases are left at so much.")
    ] = None,
    every: Annotated[
        Every | None, typer.Option("--every", help="With --at: one release for each of these.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show totals, what was spent, what remains, and every debit with its file.

    A debit that was interrupted is spent: noise was drawn, or may have been.
    --at 0.04 --every week tells how many weeks are left at epsilon 0.04 each:
    what releases of the same people cost adds up over time.

    Example: dpregions budget show city.ledger --dataset taxis
    """
    book = Ledger(ledger)
    if every is not None and at is None:
        raise InputError("--every needs --at: what one release costs, for example --at 0.04")
    each = None if at is None else Budget(read_epsilon(at))
    accounts = book.accounts() if dataset is None else [book.account(dataset)]
    _print(book, accounts, as_json, each, every or "release")


@budget.command()
def set_total(
    ledger: LedgerFile,
    dataset: Dataset,
    epsilon: Total,
    allow_epsilon: AllowEpsilon = False,
    as_json: AsJson = False,
) -> None:
    """Change the total of a data set, to what was spent at least.

    The history keeps every total. A higher one weakens what people were
    promised under the old one.

    Example: dpregions budget set-total city.ledger --dataset taxis --epsilon 4
    """
    book = Ledger(ledger)
    book.set_total(dataset, read_epsilon(epsilon), allow_epsilon=allow_epsilon)
    _print(book, [book.account(dataset)], as_json)


@budget.command()
def verify(
    ledger: LedgerFile,
    releases: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[RELEASE]...", help="Release files that were paid from it."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Find out whether a ledger and the releases it paid for tell one story.

    Rows that were changed, and with the releases also a ledger that is older
    than they are, or was written anew. The exit code is 1 if anything is found.
    Keep the last digest elsewhere: it vouches for all rows before it.

    Example: dpregions budget verify city.ledger june.parquet july.parquet
    """
    from dpregions.releases.published import load

    files = {str(path): path for path in releases or []}
    sums = {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items()}
    found = Ledger(ledger).verify({name: load(path) for name, path in files.items()}, sums)
    if as_json:
        facts = {"ledger": str(ledger), "releases": len(files), **asdict(found)}
        typer.echo(json.dumps(facts))
    elif found.problems:
        typer.echo("\n".join(printable(problem) for problem in found.problems))
    else:
        typer.echo(
            f"{ledger}: {found.rows} rows and {len(files)} releases tell one story.\n"
            f"Last digest: {found.last}"
        )
    if found.migrated is not None and not as_json:
        typer.echo(f"Its chain was made on {found.migrated}: nothing vouches for what was before.")
    if found.problems:
        raise typer.Exit(1)


@budget.command()
def migrate(ledger: LedgerFile, as_json: AsJson = False) -> None:
    """Give a ledger from before the chain its chain, in place.

    All or nothing. It keeps its id, its accounts and what they spent.

    Example: dpregions budget migrate city.ledger
    """
    rows = Ledger(ledger).migrate()
    if as_json:
        typer.echo(json.dumps({"ledger": str(ledger), "rows": rows}))
        return
    typer.echo(
        f"{ledger}: {rows} rows are linked now. The chain vouches for what comes, not for what was "
        f"before: keep the old releases."
    )


def _print(
    ledger: Ledger,
    accounts: list[Account],
    as_json: bool,
    each: Budget | None = None,
    every: str = "release",
) -> None:
    """Print accounts; with `each`, how many releases at that price are left."""
    if as_json:
        facts = {
            "ledger": str(ledger.path),
            "id": ledger.id,
            "datasets": [
                _facts(account) | ({} if each is None else _left(account, each, every))
                for account in accounts
            ],
        }
        typer.echo(json.dumps(facts))
        return
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 1000  # lines in a file or a pipe are not folded
    console.print(f"Ledger {ledger.path}, id {ledger.id}", soft_wrap=True, markup=False)
    for account in accounts:
        promise = account.privacy_unit
        console.print(
            f"\n{account.dataset}: total epsilon {short_text(account.total)}, spent "
            f"{short_text(account.spent)}, remaining {short_text(account.remaining)} "
            f"(unit {promise.unit}, {promise.neighbours})",
            soft_wrap=True,
            markup=False,
        )
        if each is not None:
            left = account.releases_left(each)
            words = f"{left} {every}{'' if left == 1 else 's'} left at {each}"
            console.print(words, soft_wrap=True, markup=False)
        for name, said in account.declared:
            console.print(f"{name}: {said}", soft_wrap=True, markup=False)
        table = Table("entry", "time (UTC)", "epsilon", "what", "state", box=None)
        for entry in account.entries:
            time = entry.time.replace("T", " ").rstrip("Z")
            cells = (str(entry.number), time, short_text(entry.epsilon), entry.what, entry.state)
            table.add_row(*(_plain(cell) for cell in cells))
        console.print(table)
        for entry in account.entries:
            for file in entry.files:  # in a table a terminal would break paths
                said = f"entry {entry.number} is saved in {file.path}"
                console.print(said, soft_wrap=True, markup=False)


def _plain(text: str) -> Any:
    """Return text that rich prints as it is: a name may hold what looks like markup."""
    from rich.text import Text

    return Text(text, overflow="fold")


def _left(account: Account, each: Budget, every: str) -> dict[str, Any]:
    return {"at": str(each), "every": every, "left": account.releases_left(each)}


def _facts(account: Account) -> dict[str, Any]:
    """Return an account as JSON's values; epsilons are exact, as text."""
    return {
        "dataset": account.dataset,
        "unit": account.privacy_unit.unit,
        "neighbours": account.privacy_unit.neighbours,
        "declared": dict(account.declared),
        "total": short_text(account.total),
        "spent": short_text(account.spent),
        "remaining": short_text(account.remaining),
        "entries": [_entry_facts(entry) for entry in account.entries],
    }


def _entry_facts(entry: Entry) -> dict[str, Any]:
    return {
        "entry": entry.number,
        "time": entry.time,
        "kind": entry.kind,
        "epsilon": short_text(entry.epsilon),
        "what": entry.what,
        "state": entry.state,
        "files": [file._asdict() for file in entry.files],
    }
