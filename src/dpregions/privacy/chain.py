"""The chain of a ledger: each row linked to the row before it, by digests that releases publish.

Owns how a row becomes a digest, and what is wrong with a chain. A link holds the SHA-256 of the
link before and of its row; so whoever changes a row must make all later links anew, and then the
digests that releases were published with no longer agree. Nothing here opens a file.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator
from typing import NamedTuple

START = ""
"""What stands in for the digest before the first link."""


class Link(NamedTuple):
    """A link of the chain: which row of which table it is of, and its digest."""

    number: int
    of: str
    row: int
    digest: str


def digest_of(before: str, table: str, row: dict[str, object]) -> str:
    """Return a row's digest: SHA-256 of the JSON ``[digest before, table, {column: value}]``."""
    # Whoever alters a ledger may write values of any type: they have a digest too, another one.
    said = json.dumps([before, table, row], sort_keys=True, separators=(",", ":"), default=repr)
    return hashlib.sha256(said.encode()).hexdigest()


def next_link(db: sqlite3.Connection, table: str, number: int) -> dict[str, object]:
    """Return the link of a row that was just inserted, as the columns it is to have."""
    last = db.execute("SELECT digest FROM link ORDER BY number DESC LIMIT 1").fetchone()
    row = next(_rows(db, f"SELECT * FROM {table} WHERE number = ?", number))
    digest = digest_of(START if last is None else last[0], table, row)
    return {"of": table, "row": number, "digest": digest}


def digest_at(db: sqlite3.Connection, table: str, number: int) -> str | None:
    """Return the digest of a row's link, None where it has none."""
    wanted = "SELECT digest FROM link WHERE of = ? AND row = ?"
    found = db.execute(wanted, (table, number)).fetchone()
    return None if found is None else str(found[0])


def broken(db: sqlite3.Connection, tables: tuple[str, ...]) -> list[str]:
    """Return what is wrong with a chain over these tables, in words; nothing where it is whole."""
    rows = {table: dict(_numbered(db, table)) for table in tables}
    wrong, before = [], START
    linked: set[tuple[str, int]] = set()
    for link in map(Link._make, db.execute("SELECT * FROM link ORDER BY number")):
        row = rows.get(link.of, {}).get(link.row)
        if row is None or (link.of, link.row) in linked:
            wrong.append(f"link {link.number} is of no row, or of one that has a link already")
        elif digest_of(before, link.of, row) != link.digest:
            wrong.append(f"{link.of} {link.row} is not what it was, or a link before it")
        linked.add((link.of, link.row))
        before = link.digest
    for table, held in rows.items():
        wrong += [f"{table} {n} has no link" for n in held if (table, n) not in linked]
    return wrong


def _numbered(db: sqlite3.Connection, table: str) -> Iterator[tuple[int, dict[str, object]]]:
    for row in _rows(db, f"SELECT * FROM {table} ORDER BY number"):
        yield int(str(row["number"])), row


def _rows(db: sqlite3.Connection, query: str, *values: object) -> Iterator[dict[str, object]]:
    found = db.execute(query, values)
    names = [column[0] for column in found.description]
    return (dict(zip(names, row, strict=True)) for row in found)
