"""A ledger from before the chain, brought over to one with it: in place, in one transaction.

Owns how the older tables looked. What the rows say stays as it was; the chain vouches for them
from now on, and the ledger says since when.
"""

from __future__ import annotations

from pathlib import Path

from dpregions.errors import LedgerError
from dpregions.privacy.ledger_file import (
    APPLICATION,
    TABLES,
    as_made,
    insert,
    now,
    set_up,
    unchecked,
    version_of,
)

OLD_VERSION = 2
_NEW = {"ledger": ", migrated TEXT", "dataset": "source TEXT, period TEXT, owner TEXT, "}
OLD_TABLES = {
    table: columns.replace(_NEW.get(table, ""), "")
    for table, columns in TABLES.items()
    if table != "link"
}


def migrated(path: Path) -> int:
    """Give a ledger from before the chain its links; return how many rows it has."""
    with unchecked(path, write=True) as db:
        application, version = version_of(db)
        if (application, version) != (APPLICATION, OLD_VERSION):
            raise LedgerError(
                f"{path} is not a ledger from before the chain, of version {OLD_VERSION}: there "
                f"is nothing to migrate",
                argument="path",
            )
        if db.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok" or not as_made(db, OLD_TABLES):
            raise LedgerError(
                f"the ledger {path} is damaged or was altered: restore it from a copy, and count "
                f"the debits made since",
                argument="path",
            )
        held = {}
        for table in OLD_TABLES:
            found = db.execute(f"SELECT * FROM {table} ORDER BY number")
            names = [column[0] for column in found.description]
            held[table] = [dict(zip(names, row, strict=True)) for row in found]
        # Those that refer to others first: dropping a table that is referred to is refused.
        for table in reversed(OLD_TABLES):
            db.execute(f"DROP TABLE {table}")
        (ledger,) = held.pop("ledger")
        set_up(db, id=ledger["id"], created=ledger["created"], migrated=now())
        for table, rows in held.items():
            for row in rows:
                insert(db, table, **{name: v for name, v in row.items() if name != "number"})
        return 1 + sum(map(len, held.values()))
