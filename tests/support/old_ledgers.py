"""Ledgers as they were before the chain."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from dpregions.privacy import ledger_file
from dpregions.privacy.migration import OLD_TABLES, OLD_VERSION


def as_before_the_chain(ledger):
    """Write a ledger's rows as an earlier dpregions kept them."""
    rows = {}
    with closing(sqlite3.connect(ledger.path)) as db:
        for table in OLD_TABLES:
            found = db.execute(f"SELECT * FROM {table} ORDER BY number")
            names = [column[0] for column in found.description]
            rows[table] = [dict(zip(names, row, strict=True)) for row in found]
    ledger.path.unlink()
    with closing(sqlite3.connect(ledger.path)) as db:
        for statement in ledger_file.schema(OLD_TABLES).values():
            db.execute(statement)
        for table, held in rows.items():
            columns = [c[1] for c in db.execute(f"PRAGMA table_info({table})")]
            for row in held:
                places = ", ".join("?" * len(columns))
                values = [row[column] for column in columns]
                db.execute(f"INSERT INTO {table} VALUES ({places})", values)
        db.execute(f"PRAGMA application_id = {ledger_file.APPLICATION}")
        db.execute(f"PRAGMA user_version = {OLD_VERSION}")
        db.commit()
