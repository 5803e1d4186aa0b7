"""A server asked over HTTP: a count with its interval beside an endpoint that does nothing.

The server is `dpregions serve` in a process of its own, on loopback. The client is four plain
connections: it sends on all of them, then reads from all of them, so that the server never waits
for it. Slices of both endpoints take turns, so that what else runs here hurts both.
"""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
import shapely

import dpregions as dpr
from benchmarks.report import Row, show

CONNECTIONS = 4


class Connection:
    """One connection to the server, kept open."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, path: str) -> None:
        """Send a request."""
        self._socket.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())

    def read(self) -> bytes:
        """Return the body of one response, which must be a 200."""
        data = b""
        while b"\r\n\r\n" not in data:
            data += self._socket.recv(65_536)
        head, _, body = data.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200"), head[:300] + body
        length = int(re.search(rb"content-length: (\d+)", head).group(1))  # type: ignore[union-attr]
        while len(body) < length:
            body += self._socket.recv(65_536)
        return body

    def ask(self, path: str) -> bytes:
        """Send a request and return the body of its response."""
        self.send(path)
        return self.read()

    def close(self) -> None:
        """Hang up."""
        self._socket.close()


@contextmanager
def server(*files: Path) -> Iterator[int]:
    """Run the command and yield its port, once everything is prepared."""
    command = [sys.executable, "-m", "dpregions.cli.app", "serve", *map(str, files)]
    process = subprocess.Popen(
        [*command, "--port", "0", "--no-open", "--no-log"], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        port = int(re.search(r":(\d+)/", process.stdout.readline()).group(1))  # type: ignore[union-attr]
        one = Connection(port)
        while not json.loads(one.ask("/healthz"))["ready"]:
            time.sleep(0.2)
        one.close()
        yield port
    finally:
        process.terminate()
        process.communicate(timeout=30)


def release_on(n: int, n_users: int, path: Path) -> dpr.Grid:
    """Write a release of boxes on n x n cells that span two cells, k = 2."""
    grid = dpr.Grid(0, 0, 1, n, n)
    rng = np.random.default_rng(n)
    x, y = np.clip(rng.normal(n / 2, n / 6, (2, n_users)), 0, n - 2)
    width, height = rng.uniform(0.2, 1.3, (2, n_users))
    regions = shapely.box(x, y, x + width, y + height)
    made = dpr.release(regions, grid, epsilon=1, max_diameter=2, user_id=None)
    made.save(path)
    return grid


def rectangles(id: str, grid: dpr.Grid, n: int, rng: np.random.Generator) -> list[str]:
    """Return the paths of n rectangles of cells: of any place and size."""
    rows = np.sort(rng.integers(0, grid.n_rows, (n, 2)))
    cols = np.sort(rng.integers(0, grid.n_cols, (n, 2)))
    at = f"/api/v1/releases/{id}/count?cells="
    return [f"{at}{a},{b},{c},{d}" for (a, b), (c, d) in zip(rows, cols, strict=True)]


def rate(connections: list[Connection], paths: list[str]) -> float:
    """Return how many answers there are in a second."""
    start = time.perf_counter()
    for i in range(0, len(paths), len(connections)):
        asked = list(zip(connections, paths[i : i + len(connections)], strict=False))
        for connection, path in asked:
            connection.send(path)
        for connection, _ in asked:
            connection.read()
    return len(paths) / (time.perf_counter() - start)


def id_of(port: int) -> str:
    one = Connection(port)
    (found,) = json.loads(one.ask("/api/v1/releases"))["releases"]
    one.close()
    return str(found["id"])


def throughput(path: Path, n: int, slices: int, each: int) -> Row:
    """Measure a count with its interval beside an endpoint that says that the server is there."""
    grid = release_on(n, 20 * n, path)
    rng = np.random.default_rng(0)
    counts, nothing = [], []
    with server(path) as port, ExitStack() as stack:
        connections = [Connection(port) for _ in range(CONNECTIONS)]
        for connection in connections:
            stack.callback(connection.close)
        asked = rectangles(id_of(port), grid, each, rng)
        for _ in range(slices):
            nothing.append(rate(connections, ["/healthz"] * each))
            counts.append(rate(connections, asked))
    ours, peer = float(np.median(counts)), float(np.median(nothing))
    ratio = float(np.median(np.divide(counts, nothing)))  # of slices side by side
    return Row(
        f"count and interval, {n} x {n}",
        ours,
        "answers/s",
        "an endpoint that does nothing",
        peer,
        ratio,
        goal="0.5 x",
        note=f"{CONNECTIONS} connections, {slices} slices of {each} taking turns",
    )


def latency(path: Path, n: int, asked: int) -> list[Row]:
    """Measure how long single rectangles of any size take on a large grid, after the warm-up."""
    start = time.perf_counter()
    grid = release_on(n, 20 * n, path)
    made = time.perf_counter() - start
    start = time.perf_counter()
    with server(path) as port:
        warm = time.perf_counter() - start
        one = Connection(port)
        times = []
        for question in rectangles(id_of(port), grid, asked, np.random.default_rng(1)):
            start = time.perf_counter()
            one.ask(question)
            times.append(1000 * (time.perf_counter() - start))
        one.close()
    middle, late, latest = np.percentile(times, [50, 95, 100])
    what = f"count and interval of any rectangle, {n} x {n}, k = 2"
    return [
        Row(
            f"{what}: 95 of 100", float(late), "ms", goal="20 ms", note=f"{asked} asked one by one"
        ),
        Row(f"{what}: half", float(middle), "ms", note=f"the slowest {latest:.1f} ms"),
        Row("start until all is prepared", warm, "s", note=f"the release took {made:.1f} s"),
    ]


def run(quick: bool = False) -> list[Row]:
    """Measure throughput on a middling grid and waiting times on a large one."""
    small, large, slices, each, asked = (20, 60, 2, 40, 20) if quick else (100, 900, 15, 800, 1000)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "city.parquet"
        return [throughput(path, small, slices, each), *latency(path, large, asked)]


if __name__ == "__main__":
    show("Serving", run(quick="--quick" in sys.argv))
