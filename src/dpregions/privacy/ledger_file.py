"""The ledger's file: SQLite opened, checked, locked and closed again, one transaction at a time.

Owns the schema, durability and the words for what may be wrong with the file. Everything in it is
only ever inserted, each row with the number after the last and with a link in the chain; triggers
refuse the rest, and a file without them, or with a broken chain, is refused. No connection outlives
its transaction, so processes share nothing but the file, and a process that forks or dies takes
nobody's lock along.

The journal is the rollback journal, not WAL: WAL needs memory shared by all processes, which
network disks do not give, and leaves committed debits in a second file that a copy of the
first would miss. Writes are few, so its speed would gain nothing. `synchronous = EXTRA` also
syncs the folder after the journal is deleted; with FULL, a power cut just after a commit may
bring the journal back and undo the debit.
"""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

from dpregions.atomic_files import SECRET, replacing
from dpregions.errors import LedgerError, LedgerUnavailableError
from dpregions.privacy.chain import broken, next_link

APPLICATION = int.from_bytes(b"dprl", "big")
"""The number in the file's header that tells a ledger from other SQLite files."""
VERSION = 3
PATIENCE = 60.0
"""Seconds to wait for the other processes that use the ledger."""

_NUMBER = "number INTEGER PRIMARY KEY CHECK (number > 0)"
TABLES = {
    # `migrated` is when a ledger from before the chain got one.
    "ledger": f"{_NUMBER}, id TEXT NOT NULL, created TEXT NOT NULL, migrated TEXT",
    "dataset": (
        f"{_NUMBER}, name TEXT NOT NULL UNIQUE CHECK (typeof(name) = 'text'), "
        "unit TEXT NOT NULL, neighbours TEXT NOT NULL, "
        "source TEXT, period TEXT, owner TEXT, created TEXT NOT NULL"
    ),
    # epsilon is text, a fraction: SQLite's numbers are floats.
    "entry": (
        f"{_NUMBER}, dataset TEXT NOT NULL REFERENCES dataset (name), "
        "kind TEXT NOT NULL CHECK (kind IN ('total', 'debit')), "
        "epsilon TEXT NOT NULL CHECK (typeof(epsilon) = 'text'), "
        "what TEXT NOT NULL, time TEXT NOT NULL"
    ),
    "event": (
        f"{_NUMBER}, entry INTEGER NOT NULL REFERENCES entry (number), "
        "kind TEXT NOT NULL CHECK (kind IN ('released', 'saved')), "
        "file TEXT, sha256 TEXT, time TEXT NOT NULL"
    ),
    "link": (
        f"{_NUMBER}, of TEXT NOT NULL, row INTEGER NOT NULL, "
        "digest TEXT NOT NULL CHECK (typeof(digest) = 'text')"
    ),
}
LINKED = tuple(table for table in TABLES if table != "link")
"""The tables whose rows the chain links."""

# Why an insertion is refused. INSERT OR REPLACE deletes the rows it collides with, and fires no
# trigger for them: so whatever might collide, by its number or by a name, is stopped before.
_ALSO_TAKEN = {
    "ledger": " OR NEW.number IS NOT 1",
    "dataset": " OR EXISTS (SELECT 1 FROM dataset WHERE name = NEW.name)",
}


def schema(tables: dict[str, str]) -> dict[str, str]:
    """Return the statements that make a ledger's tables and triggers, by name."""
    made = {}
    for table, columns in tables.items():
        made[table] = f"CREATE TABLE {table} ({columns})"
        taken = f"NEW.number IS NOT (SELECT coalesce(max(number), 0) + 1 FROM {table})"
        taken += _ALSO_TAKEN.get(table, "")
        for change, when in {"INSERT": taken, "UPDATE": "1", "DELETE": "1"}.items():
            made[f"{table}_no_{change.lower()}"] = (
                f"CREATE TRIGGER {table}_no_{change.lower()} BEFORE {change} ON {table} "
                f"WHEN {when} BEGIN SELECT RAISE(ABORT, 'a ledger only grows'); END"
            )
    return made


@contextmanager
def transaction(
    path: Path, *, write: bool = False, new: bool = False
) -> Iterator[sqlite3.Connection]:
    """Give one transaction on the ledger at `path`: all of it happens, durably, or nothing.

    A writing one holds the only lock for writing from its first line, so what it reads stays
    true until it has written. `new` makes the file where there is none.
    """
    with unchecked(path, write=write, new=new) as connection:
        _check(connection, path, new)
        yield connection


@contextmanager
def unchecked(
    path: Path, *, write: bool = False, new: bool = False
) -> Iterator[sqlite3.Connection]:
    """Give a transaction on a file that may be no sound ledger: for whoever finds out or mends."""
    with _in_our_words(path):
        if path.is_dir():
            raise LedgerError(f"{path} is a folder: name a ledger in it", argument="path")
        if new:
            _make_file(path)
        elif not path.exists():
            raise LedgerError(
                f"there is no ledger at {path}: check the path, or make one with "
                f"'dpregions budget create'",
                argument="path",
            )
        with _begun(path, write=write) as connection:
            yield connection


@contextmanager
def _begun(path: Path, *, write: bool) -> Iterator[sqlite3.Connection]:
    """Give a transaction on an SQLite file, in SQLite's words."""
    opened = sqlite3.connect(_address(path), uri=True, timeout=PATIENCE, isolation_level=None)
    # Closing rolls back what was not committed, whatever ended it.
    with closing(opened) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("PRAGMA synchronous = EXTRA")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
        yield connection
        connection.execute("COMMIT")


def insert(connection: sqlite3.Connection, table: str, **row: object) -> int:
    """Append a row to a table and its link to the chain, in a transaction; return its number."""
    number = _append(connection, table, row)
    _append(connection, "link", next_link(connection, table, number))
    return number


def _append(connection: sqlite3.Connection, table: str, row: dict[str, object]) -> int:
    after = f"SELECT coalesce(max(number), 0) + 1 FROM {table}"
    number = int(connection.execute(after).fetchone()[0])
    places = ", ".join("?" * (1 + len(row)))
    connection.execute(
        f"INSERT INTO {table} (number, {', '.join(row)}) VALUES ({places})", (number, *row.values())
    )
    return number


def now() -> str:
    """Return the time as the ledger writes it: UTC, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _address(path: Path) -> str:
    """Return the file's URI: to write if the system allows, to read if not, never to make."""
    return f"{path.absolute().as_uri()}?mode=rw"


def _make_file(path: Path) -> None:
    """Make a ledger for its owner's eyes if there is no file, whole or not at all."""
    if path.exists():
        return
    try:
        with (
            replacing(path, mode=SECRET, fresh=True) as part,
            _begun(part, write=True) as connection,
        ):
            set_up(connection, **_fresh())
    except FileExistsError:  # another process was faster
        pass
    except OSError as error:
        raise LedgerUnavailableError(
            f"the ledger {path} cannot be made: {error.strerror}. Give a file in a folder that "
            f"exists and that you may write to"
        ) from None


def _check(connection: sqlite3.Connection, path: Path, new: bool) -> None:
    """Refuse a file that is no sound ledger of this version; set an empty one up if `new`."""
    if is_empty(connection):
        if not new:
            raise LedgerError(
                f"{path} is empty, no ledger yet: make one with 'dpregions budget create'",
                argument="path",
            )
        set_up(connection, **_fresh())
    if wrong := faults(connection, path):
        raise LedgerError(
            f"the ledger {path} was altered: {wrong[0]}. Restore it from a copy, and count the "
            f"debits made since; 'dpregions budget verify' says more",
            argument="path",
        )


def is_empty(connection: sqlite3.Connection) -> bool:
    """Whether there is nothing in the file yet."""
    marked = version_of(connection) != (0, 0)
    return not (marked or connection.execute("SELECT 1 FROM sqlite_master").fetchone())


def version_of(connection: sqlite3.Connection) -> tuple[int, int]:
    """Return the numbers in a file's header: of the application that made it, and the version."""
    application, version = (
        int(connection.execute(f"PRAGMA {name}").fetchone()[0])
        for name in ("application_id", "user_version")
    )
    return application, version


def _fresh() -> dict[str, str]:
    return {"id": secrets.token_hex(8), "created": now()}


def set_up(connection: sqlite3.Connection, **ledger: str) -> None:
    """Make the tables and triggers in a file without any, and the ledger's own row."""
    for statement in schema(TABLES).values():
        connection.execute(statement)
    insert(connection, "ledger", **ledger)
    connection.execute(f"PRAGMA application_id = {APPLICATION}")
    connection.execute(f"PRAGMA user_version = {VERSION}")


def faults(connection: sqlite3.Connection, path: Path) -> list[str]:
    """Return what was altered in a ledger, in words; refuse what is none of this version."""
    application, version = version_of(connection)
    if application != APPLICATION:
        raise LedgerError(
            f"{path} is an SQLite file, but no dpregions ledger: give another path", argument="path"
        )
    if version != VERSION:
        remedy = {
            1: "open a new one with 'dpregions budget create', with what was left as the total",
            2: f"it is from before the chain: 'dpregions budget migrate {path}' brings it over",
        }.get(version, "use the release of dpregions that wrote it, or a newer one")
        raise LedgerError(
            f"{path} is a ledger of version {version}; this dpregions knows version {VERSION}: "
            f"{remedy}",
            argument="path",
        )
    if connection.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
        raise _damaged(path)
    if not as_made(connection, TABLES):
        return [
            "its tables, its triggers or the numbers of its rows are not as dpregions made them"
        ]
    return broken(connection, LINKED)


def as_made(connection: sqlite3.Connection, tables: dict[str, str]) -> bool:
    """Whether tables and triggers are as made, and no row is missing."""
    # SQLite's own names: indexes of keys, and statistics that another tool may have gathered.
    others = "SELECT name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite@_%' ESCAPE '@'"
    same = dict(connection.execute(others).fetchall()) == schema(tables)
    return same and all(_is_whole(connection, table) for table in tables)


def _is_whole(connection: sqlite3.Connection, table: str) -> bool:
    """Whether the rows are numbered from 1 without a gap, and a ledger has its one row."""
    found = f"SELECT count(*), coalesce(max(number), 0) FROM {table}"
    count, last = connection.execute(found).fetchone()
    return bool(count == last and (count == 1 or table != "ledger"))


_UNAVAILABLE = {
    sqlite3.SQLITE_BUSY: "another process holds it, and kept it longer than dpregions waits: "
    "try again, or end that process",
    sqlite3.SQLITE_READONLY: "it cannot be written: the file and its folder must be writable",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened: it must be a file that you may read and write, "
    "in a folder that you may write to",
    sqlite3.SQLITE_PERM: "the system refuses access to it: check its permissions",
    sqlite3.SQLITE_FULL: "the disk is full: make room",
    sqlite3.SQLITE_IOERR: "the disk failed to read or write it: check the disk",
    sqlite3.SQLITE_PROTOCOL: "its locks do not work: keep it on a local disk",
}


@contextmanager
def _in_our_words(path: Path) -> Iterator[None]:
    """Say what SQLite found wrong with the file, and what to do."""
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError) as error:  # SQLite quotes broken names in errors
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        if code in _UNAVAILABLE:
            raise LedgerUnavailableError(f"the ledger {path}: {_UNAVAILABLE[code]}") from error
        if code == sqlite3.SQLITE_NOTADB:
            raise LedgerError(
                f"{path} is no ledger: it is not an SQLite file", argument="path"
            ) from error
        raise _damaged(path) from error


def _damaged(path: Path) -> LedgerError:
    return LedgerError(
        f"the ledger {path} is damaged: restore it from a copy, and count the debits made since",
        argument="path",
    )
