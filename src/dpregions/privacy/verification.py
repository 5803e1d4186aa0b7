"""Whether a ledger and the releases that name it tell the same story.

Owns what is compared: the chain within the ledger, and what releases published of their debits. The
chain alone finds a changed row; with the releases, also a ledger that was made anew or is an older
copy. Reads public figures only, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from dpregions.errors import LedgerError
from dpregions.privacy.chain import digest_at
from dpregions.privacy.ledger_file import faults, is_empty, unchecked

if TYPE_CHECKING:
    from dpregions.privacy.budget import Budget
    from dpregions.privacy.ledger import Account, Ledger


class Paid(Protocol):
    """What a release says of the debit that paid for it."""

    @property
    def ledger_entry(self) -> str | None:
        """The debit: the ledger's id, the data set, the entry's number."""

    @property
    def ledger_digest(self) -> str | None:
        """The debit's link in the chain."""

    @property
    def budget(self) -> Budget:
        """What it cost."""

    @property
    def may_be_part(self) -> bool:
        """Whether it may be taken out of what was saved: one of its groups, or asked elsewhere."""


@dataclass(frozen=True)
class Verification:
    """What was found: nothing wrong where `problems` is empty."""

    problems: tuple[str, ...]
    rows: int
    """Links of the chain."""
    last: str
    """The digest of the last link: to keep elsewhere, where nobody changes it."""
    migrated: str | None
    """When a ledger from before the chain got one; until then nothing vouches for its rows."""


def verified(
    ledger: Ledger, releases: Mapping[str, Paid], checksums: Mapping[str, str]
) -> Verification:
    """Return what is wrong with a ledger, by itself and beside releases; see `Ledger.verify`."""
    with unchecked(ledger.path) as db:
        if is_empty(db):
            raise LedgerError(f"{ledger.path} is empty, no ledger yet", argument="path")
        wrong = faults(db, ledger.path)
        if wrong:
            return Verification(tuple(wrong), 0, "", None)
        own, migrated = db.execute("SELECT id, migrated FROM ledger").fetchone()
        rows, last = db.execute(
            "SELECT number, digest FROM link ORDER BY number DESC LIMIT 1"
        ).fetchone()
        digests = {
            str(number): digest_at(db, "entry", number)
            for (number,) in db.execute("SELECT number FROM entry")
        }
    accounts = {account.dataset: account for account in ledger.accounts()}
    whole: dict[str, tuple[str, str]] = {}
    for name, release in releases.items():
        sha256 = checksums.get(name)
        found = _compared(release, sha256, str(own), accounts, digests)
        entry = release.ledger_entry
        if entry is not None and sha256 is not None and not release.may_be_part:
            first, same = whole.setdefault(entry, (name, sha256))
            if sha256 != same:
                found.append(
                    f"{first} is another release, under the same entry: one of them was not paid"
                )
        wrong += [f"{name}: {problem}" for problem in found]
    return Verification(tuple(wrong), int(rows), str(last), migrated)


def _compared(
    release: Paid,
    sha256: str | None,
    own: str,
    accounts: dict[str, Account],
    digests: dict[str, str | None],
) -> list[str]:
    """Return what does not agree between a release and the ledger."""
    if release.ledger_entry is None:
        return ["no ledger paid for it"]
    of, _, rest = release.ledger_entry.partition("/")
    dataset, _, number = rest.rpartition("/")
    if of != own:
        return [f"it was paid from another ledger, {of}"]
    if number not in digests:
        return [
            f"its entry {number} is not in the ledger, which is older than the release: a copy "
            f"from before it. Count what was debited since"
        ]
    if release.ledger_digest != digests[number]:
        return [
            f"entry {number} is not the one that paid for it: the ledger was changed, or restored "
            f"from an older copy and used since"
        ]
    account = accounts.get(dataset)
    entries = {} if account is None else {str(entry.number): entry for entry in account.entries}
    entry = entries.get(number)
    cost = release.budget.epsilon
    other = entry is None or entry.kind != "debit" or entry.epsilon < cost
    if entry is None or other or (entry.epsilon != cost and not release.may_be_part):
        return [f"entry {number} is of another data set or another epsilon"]
    saved = {file.sha256 for file in entry.files}
    if sha256 is not None and saved and sha256 not in saved and not release.may_be_part:
        return [f"the file is none that was saved under entry {number}"]
    return []
