"""One form for every benchmark's result: rows, a table on the screen, a JSON file."""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table


@dataclass(frozen=True)
class Row:
    """One measurement; `goal` is what the project promises of it."""

    what: str
    ours: float
    unit: str = "s"
    peer: str = ""
    peer_value: float | None = None
    ratio: float | None = None
    goal: str = ""
    note: str = ""


def best_of(n: int, work: Callable[[], Any]) -> float:
    """Return the shortest of n timings: machines are noisy, and noise only adds."""
    times = []
    for _ in range(n):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def show(title: str, rows: list[Row]) -> None:
    """Print rows as a table."""
    table = Table(title=title)
    for column in ("what", "ours", "peer", "ratio", "goal", "note"):
        table.add_column(column, justify="right" if column in ("ours", "ratio") else "left")
    for row in rows:
        peer = f"{row.peer}: {row.peer_value:,.4g} {row.unit}" if row.peer_value else row.peer
        ratio = f"{row.ratio:,.1f} x" if row.ratio else ""
        table.add_row(row.what, f"{row.ours:,.4g} {row.unit}", peer, ratio, row.goal, row.note)
    Console().print(table)


def save(path: Path, results: dict[str, list[Row]]) -> None:
    """Write all rows, with the machine they were measured on, as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    machine = {"python": platform.python_version(), "machine": platform.machine()}
    rows = {name: [asdict(row) for row in rows] for name, rows in results.items()}
    path.write_text(json.dumps({"machine": machine, "results": rows}, indent=1) + "\n")
