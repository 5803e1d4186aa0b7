"""The budget ledger: how much epsilon a data set has, what was spent, and on what.

Owns the account of a data set and the rule that a release pays before its first draw of noise.
Epsilons are exact fractions, added up in Python, never in SQL. Nothing is taken back: a debit
stays whatever becomes of the release. Everything here is public figures; nothing sees regions.
"""

from __future__ import annotations

import hashlib
import os
import re
import sqlite3
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from dpregions.errors import (
    InputTypeError,
    LedgerError,
    LedgerUnavailableError,
    LedgerWarning,
    OverBudgetError,
    printable,
)
from dpregions.lengths import short_text
from dpregions.privacy.account_names import account_name, fact, look_alike
from dpregions.privacy.budget import Budget, PrivacyUnit
from dpregions.privacy.chain import digest_at
from dpregions.privacy.ledger_file import insert, now, transaction

if TYPE_CHECKING:
    from dpregions.choices import Neighbours, Unit
    from dpregions.privacy.budget import BudgetLike
    from dpregions.privacy.noise import MeteredNoise, NoiseSource
    from dpregions.privacy.verification import Paid, Verification

Kind = Literal["total", "debit"]

FACTS = ("source", "period", "owner")
"""What an account may be declared to be of."""

MOST_SUM_DIGITS = 3000
"""Digits that a sum of debits may have. Odd fractions have denominators that multiply, and the
ledger is to add up and print what it holds, exactly, for good."""

_DIGITS = rf"[0-9]{{1,{Budget.MOST_GIVEN_DIGITS}}}"
_FRACTION = re.compile(rf"{_DIGITS}(/{_DIGITS})?")
_ENTRY = re.compile(r"(?P<ledger>[0-9a-f]{16})/(?P<dataset>[^/]+)/(?P<number>[1-9][0-9]*)")


class SavedFile(NamedTuple):
    """A file that a release was saved to."""

    path: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a data set's history: its total set, or a debit and what became of it."""

    number: int
    kind: Kind
    epsilon: Fraction
    what: str
    time: str
    """UTC, to the second."""
    released: bool
    """Whether the release of a debit was handed over. If not it was interrupted, or is running."""
    files: tuple[SavedFile, ...]

    @property
    def state(self) -> str:
        """What became of it, in words."""
        if self.kind == "total":
            return "total set"
        if self.files:
            return "saved"
        return "released" if self.released else "interrupted or running: the budget is spent"


@dataclass(frozen=True, slots=True)
class Account:
    """A data set's budget at one moment."""

    dataset: str
    privacy_unit: PrivacyUnit
    total: Fraction
    entries: tuple[Entry, ...]
    declared: tuple[tuple[str, str], ...] = ()
    """Its source, period and owner, those that were said when it was opened."""

    @property
    def spent(self) -> Fraction:
        """The sum of all debits, also of releases that were interrupted."""
        return sum((e.epsilon for e in self.entries if e.kind == "debit"), Fraction(0))

    @property
    def remaining(self) -> Fraction:
        """What is left to spend."""
        return self.total - self.spent

    def releases_left(self, each: BudgetLike) -> int:
        """Return how many more releases the account pays for that cost so much each."""
        return int(self.remaining // Budget(each).epsilon)


class Receipt(str):
    """A debit as a release publishes it: the ledger's random id, data set, entry's number."""

    digest: str
    """Of the debit's link in the ledger's chain."""
    declared: tuple[tuple[str, str], ...]
    """What the account was declared to be of."""

    def __new__(cls, entry: str, digest: str, declared: tuple[tuple[str, str], ...]) -> Receipt:
        """Make one of an entry."""
        made = super().__new__(cls, entry)
        made.digest, made.declared = digest, declared
        return made


class Ledger:
    """The budgets of data sets, in one SQLite file that many processes may share.

    Parameters
    ----------
    path : str or Path
        The file. `create` makes it; everything else needs it to be there.

    Examples
    --------
    >>> import tempfile
    >>> ledger = Ledger(tempfile.mkdtemp() + "/budget.ledger")
    >>> ledger.create("taxis", 3)
    >>> entry = ledger.debit("taxis", 0.5, PrivacyUnit(), "footprint")
    >>> ledger.account("taxis").remaining
    Fraction(5, 2)
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        if not isinstance(path, str | os.PathLike):
            raise InputTypeError(f"a ledger is a path, got {type(path).__name__}", argument="path")
        self.path = Path(path)

    def __repr__(self) -> str:
        return f"Ledger({str(self.path)!r})"

    @property
    def id(self) -> str:
        """The ledger's random id, with which its entries begin."""
        with transaction(self.path) as db:
            return _id(db)

    def create(
        self,
        dataset: str,
        total: BudgetLike,
        *,
        unit: Unit = "user",
        neighbours: Neighbours = "add-remove",
        source: str | None = None,
        period: str | None = None,
        owner: str | None = None,
        allow_epsilon: bool = False,
    ) -> None:
        """Open an account, and the ledger's file if there is none.

        Parameters
        ----------
        dataset : str
            Its name. It is published with every release, so it must give nothing away. Two
            accounts of a ledger never have names that differ in case or spelling alone.
        total : number, Fraction, Decimal or Budget
            The epsilon that all its releases may cost together.
        unit, neighbours
            The promise that epsilon is about, for good: losses of different promises do not
            add up, so releases with another one are refused.
        source, period, owner : str, optional
            Where the data are from, of which time, and who answers for them: public, published
            with every release, and for good. No two accounts have one source and one period.
        allow_epsilon : bool
            Take a total above 20, which protects next to nothing.
        """
        name, promise, budget = account_name(dataset), PrivacyUnit(neighbours, unit), _given(total)
        budget.refuse_large(allowed=allow_epsilon)
        given = zip(FACTS, (source, period, owner), strict=True)
        facts = {of: None if said is None else fact(said, of) for of, said in given}
        with transaction(self.path, write=True, new=True) as db:
            self._refuse_taken(db, name)
            self._refuse_same_data(db, facts)
            row = {"unit": promise.unit, "neighbours": promise.neighbours, **facts}
            insert(db, "dataset", name=name, **row, created=now())
            _insert(db, name, "total", budget, "account opened")

    def set_total(self, dataset: str, total: BudgetLike, *, allow_epsilon: bool = False) -> None:
        """Change the total, to what was spent at least. The history keeps the old one."""
        budget = _given(total)
        budget.refuse_large(allowed=allow_epsilon)
        with transaction(self.path, write=True) as db:
            account = self._account(db, dataset)
            if budget.epsilon < account.spent:
                raise OverBudgetError(
                    f"data set {dataset!r} has spent epsilon {short_text(account.spent)} already: "
                    f"its total cannot become {budget}. Nothing spent can be taken back",
                    argument="total",
                )
            _insert(db, account.dataset, "total", budget, "total changed")

    def check(self, dataset: str, epsilon: BudgetLike, promise: PrivacyUnit) -> None:
        """Refuse what `debit` would refuse now, and spend nothing."""
        with transaction(self.path) as db:
            _refuse(self._account(db, dataset), _given(epsilon), promise)

    def debit(self, dataset: str, epsilon: BudgetLike, promise: PrivacyUnit, what: str) -> Receipt:
        """Spend epsilon, or refuse to, in one transaction; on disk when this returns.

        Returns
        -------
        Receipt
            The entry, as a release publishes it: the ledger's random id, the data set's name
            and the entry's number; with its digest.
        """
        budget = _given(epsilon)
        with transaction(self.path, write=True) as db:
            account = self._account(db, dataset)
            _refuse(account, budget, promise)
            number = _insert(db, account.dataset, "debit", budget, what)
            entry = f"{_id(db)}/{account.dataset}/{number}"
            return Receipt(entry, str(digest_at(db, "entry", number)), account.declared)

    def mark_released(self, entry: str) -> None:
        """Note that the release paid for by an entry was handed over."""
        with transaction(self.path, write=True) as db:
            insert(db, "event", entry=self._number(db, entry), kind="released", time=now())

    def mark_saved(
        self, entry: str, file: str | os.PathLike[str], sha256: str | None = None
    ) -> str:
        """Note where the release of an entry was saved; return the file's SHA-256.

        Without a `sha256` it is that of what is there now.
        """
        checksum = sha256
        if checksum is None:
            with open(file, "rb") as saved:
                checksum = hashlib.file_digest(saved, "sha256").hexdigest()
        with transaction(self.path, write=True) as db:
            where = {"file": os.path.abspath(file), "sha256": checksum}
            insert(db, "event", entry=self._number(db, entry), kind="saved", **where, time=now())
        return checksum

    def account(self, dataset: str) -> Account:
        """Return a data set's total, what is left of it, and its history."""
        with transaction(self.path) as db:
            return self._account(db, dataset)

    def accounts(self) -> list[Account]:
        """Return the accounts of all data sets, oldest first."""
        with transaction(self.path) as db:
            return [self._account(db, name) for name in _names(db)]

    def verify(
        self, releases: Mapping[str, Paid] | None = None, checksums: Mapping[str, str] | None = None
    ) -> Verification:
        """Return what is wrong with the ledger, by itself and beside releases.

        The chain alone finds rows that were changed; with releases also a ledger that was written
        anew, or is an older copy.

        Parameters
        ----------
        releases : dict of Release, optional
            By the names that problems are to say.
        checksums : dict of str, optional
            The SHA-256 of the releases' files, by the same names.

        Examples
        --------
        >>> import tempfile
        >>> ledger = Ledger(tempfile.mkdtemp() + "/budget.ledger")
        >>> ledger.create("taxis", 3)
        >>> ledger.verify().problems
        ()
        """
        from dpregions.privacy.verification import verified

        return verified(self, releases or {}, checksums or {})

    def migrate(self) -> int:
        """Give a ledger from before the chain its chain, in place; return how many rows it has.

        All or nothing: whenever it is stopped, the ledger is the old one or the new one.
        """
        from dpregions.privacy.migration import migrated

        return migrated(self.path)

    @contextmanager
    def paying(
        self,
        noise: NoiseSource,
        dataset: str,
        budget: Budget,
        promise: PrivacyUnit,
        what: str,
    ) -> Iterator[MeteredNoise]:
        """Give noise that this ledger pays for, to make one release with.

        What fails before the first draw costs nothing; what fails after it leaves the debit
        standing, and the error says so.
        """
        from dpregions.privacy.noise import MeteredNoise

        self.check(dataset, budget, promise)  # the debit decides; this saves a long wait for it
        debit = partial(self.debit, dataset, budget, promise, what)
        metered = MeteredNoise(noise, budget, debit)
        try:
            yield metered
        except BaseException as error:
            if metered.entry is not None:
                error.add_note(
                    f"epsilon {budget} was debited before this and stays spent, as noise was "
                    f"drawn: ledger entry {metered.entry}"
                )
            raise
        if metered.entry is None:
            return
        try:
            self.mark_released(metered.entry)
        except (LedgerError, LedgerUnavailableError) as error:
            # What was paid for is handed over in any case, also where warnings are errors.
            with warnings.catch_warnings():
                warnings.simplefilter("always", LedgerWarning)
                warnings.warn(
                    "the release is made and paid for, but its ledger will say interrupted: "
                    f"{error}",
                    LedgerWarning,
                    stacklevel=5,
                )

    def _refuse_taken(self, db: sqlite3.Connection, name: str) -> None:
        """Refuse the name of an account, and one that people would take for it."""
        for other in _names(db):
            if name == other:
                raise LedgerError(
                    f"data set {name!r} is in the ledger {self.path} already: choose another "
                    f"name, or change its total with 'dpregions budget set-total'",
                    argument="dataset",
                )
            if look_alike(name) == look_alike(other):
                raise LedgerError(
                    f"data set {name!r} would look like {other!r}, which is in the ledger "
                    f"{self.path} already: choose another name, or use that account",
                    argument="dataset",
                )

    def _refuse_same_data(self, db: sqlite3.Connection, facts: dict[str, str | None]) -> None:
        """Refuse a second account of one source and one period: their losses would add up.

        An account without a period is of all of them.
        """
        if facts["source"] is None:
            return
        wanted = (
            "SELECT name FROM dataset WHERE source IS ?1 "
            "AND (period IS ?2 OR period IS NULL OR ?2 IS NULL)"
        )
        same = db.execute(wanted, (facts["source"], facts["period"])).fetchone()
        if same is not None:
            raise LedgerError(
                f"data set {same[0]!r} is declared to be of this source and period already: use "
                f"that account, as losses of the same people add up, or say what differs",
                argument="source",
            )

    def _account(self, db: sqlite3.Connection, dataset: str) -> Account:
        name = account_name(dataset)
        wanted = f"SELECT neighbours, unit, {', '.join(FACTS)} FROM dataset WHERE name = ?"
        found = db.execute(wanted, (name,)).fetchone()
        if found is None:
            known = ", ".join(map(repr, _names(db)))
            raise LedgerError(
                f"data set {name!r} is not in the ledger {self.path}: "
                f"it has {known or 'none'}. Add one with 'dpregions budget create'",
                argument="dataset",
            )
        entries = tuple(_entries(db, name, self.path))
        totals = [entry.epsilon for entry in entries if entry.kind == "total"]
        facts = zip(FACTS, found[2:], strict=True)
        declared = tuple((of, printable(str(said))) for of, said in facts if said is not None)
        return Account(name, PrivacyUnit(*found[:2]), totals[-1], entries, declared)

    def _number(self, db: sqlite3.Connection, entry: str) -> int:
        """Return the number of a debit of this ledger."""
        parts = _ENTRY.fullmatch(entry)
        if parts is not None and parts["ledger"] == _id(db):
            number = int(parts["number"])
            wanted = "SELECT 1 FROM entry WHERE number = ? AND dataset = ? AND kind = 'debit'"
            if db.execute(wanted, (number, account_name(parts["dataset"]))).fetchone():
                return number
        raise LedgerError(f"{entry!r} is no debit in the ledger {self.path}", argument="entry")


def _refuse(account: Account, budget: Budget, promise: PrivacyUnit) -> None:
    """Refuse a debit of another promise, of more than is left, or that cannot be added up."""
    kept = account.privacy_unit
    if promise != kept:
        raise LedgerError(
            f"data set {account.dataset!r} keeps account of unit {kept.unit!r}, neighbours "
            f"{kept.neighbours!r}; this release is for unit {promise.unit!r}, neighbours "
            f"{promise.neighbours!r}, and losses of different promises do not add up: release "
            f"with the account's, or open another account with 'dpregions budget create'",
            argument="unit" if promise.unit != kept.unit else "neighbours",
        )
    if budget.epsilon > account.remaining:
        raise OverBudgetError(
            f"over budget: data set {account.dataset!r} has a total epsilon of "
            f"{short_text(account.total)}, of which {short_text(account.spent)} is spent and "
            f"{short_text(account.remaining)} remains; {budget} was asked for: ask for less, "
            f"or raise the total if you can answer for it ('dpregions budget set-total')",
            argument="epsilon",
        )
    if (account.spent + budget.epsilon).denominator >= 10**MOST_SUM_DIGITS:
        raise LedgerError(
            f"with this epsilon, what data set {account.dataset!r} has spent would be a fraction "
            f"of more than {MOST_SUM_DIGITS} digits: ask for a rounder one, such as 0.1 or 1",
            argument="epsilon",
        )


def _given(epsilon: BudgetLike) -> Budget:
    """Return a budget that the ledger can write, or refuse it."""
    budget = Budget(epsilon)
    budget.refuse_long()
    return budget


def _names(db: sqlite3.Connection) -> list[str]:
    return [name for (name,) in db.execute("SELECT name FROM dataset ORDER BY number")]


def _insert(db: sqlite3.Connection, dataset: str, kind: Kind, budget: Budget, what: str) -> int:
    row = {"epsilon": str(budget.epsilon), "what": what}
    return insert(db, "entry", dataset=dataset, kind=kind, **row, time=now())


def _entries(db: sqlite3.Connection, dataset: str, path: Path) -> list[Entry]:
    released, files = set(), dict[int, list[SavedFile]]()
    for number, kind, file, checksum in db.execute(
        "SELECT entry, kind, file, sha256 FROM event WHERE entry IN "
        "(SELECT number FROM entry WHERE dataset = ?) ORDER BY number",
        (dataset,),
    ):
        released.add(number)
        if kind == "saved":
            # Whoever alters a ledger may write anything, also what a terminal would act on.
            saved = SavedFile(printable(str(file)), printable(str(checksum)))
            files.setdefault(number, []).append(saved)
    rows = db.execute(
        "SELECT number, kind, epsilon, what, time FROM entry WHERE dataset = ? ORDER BY number",
        (dataset,),
    ).fetchall()
    if not rows or rows[0][1] != "total" or not all(_sound(*row[1:3]) for row in rows):
        raise LedgerError(f"the ledger {path} was altered: an entry of {dataset!r} is no epsilon")
    return [
        Entry(
            number=n,
            kind=kind,
            epsilon=Fraction(epsilon),
            what=printable(str(what)),
            time=printable(str(time)),
            released=n in released,
            files=tuple(files.get(n, ())),
        )
        for n, kind, epsilon, what, time in rows
    ]


def _sound(kind: str, epsilon: str) -> bool:
    if kind not in get_args(Kind) or _FRACTION.fullmatch(epsilon) is None:
        return False
    top, _, bottom = epsilon.partition("/")
    return int(top) > 0 and int(bottom or 1) > 0


def _id(db: sqlite3.Connection) -> str:
    return str(db.execute("SELECT id FROM ledger").fetchone()[0])
