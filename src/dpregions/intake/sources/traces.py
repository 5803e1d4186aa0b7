"""Readers of GPS traces: files -> batches of fixes, each user whole in exactly one batch.

Owns the owners' formats of T-Drive, GeoLife and Cabspotting, and Parquet and CSV tables. Reads
in bounded memory: a batch, and the largest user. Bad lines (wrong fields, latitude 400, no
clock or a wrong one) are skipped, each by itself. How many is secret, so it is never logged or
raised: it is in `ReadReport` alone, which says of itself that it is not private.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from dpregions.choices import TraceFormat as TraceFormat
from dpregions.crs import on_the_globe
from dpregions.errors import Argument, InputError, InputTypeError
from dpregions.intake.ids import plain_text
from dpregions.intake.sources import csv_blocks, tables
from dpregions.place_names import places_asked
from dpregions.readable_files import refuse_unreadable

if TYPE_CHECKING:
    import pandas as pd


BATCH_FIXES = 1_000_000
"""Fixes after which a batch is handed on, completed to whole users."""

NOT_PRIVATE = "exact, not private, do not publish"

_TABLES = (*tables.PARQUET, ".csv", ".csv.gz")
_TABLE_CLOCK = ("1980-01-06", "2100-01-01")  # GPS time began then


@dataclass(frozen=True)
class ReadReport:
    """What a reader met, exactly: for the curator's eyes.

    `lines` are those of text files, headers and blank ones apart, or the rows of tables. Of the
    `latitudes` that are numbers, those `off_the_globe` lie outside -90..90.
    """

    files: int
    empty_files: int
    lines: int
    kept: int
    wrong_fields: int
    wrong_places: int
    wrong_clocks: int
    latitudes: int
    off_the_globe: int

    @property
    def swapped_axes_suspected(self) -> bool:
        """Whether most latitudes are none, as where a table's columns are exchanged."""
        return 2 * self.off_the_globe > self.latitudes

    def as_dict(self) -> dict[str, int | str]:
        """Return the figures under their label, for JSON."""
        suspected = {"swapped_axes_suspected": self.swapped_axes_suspected}
        return {"label": NOT_PRIVATE, **asdict(self), **suspected}

    def __str__(self) -> str:
        skipped = self.lines - self.kept
        share = skipped / self.lines if self.lines else 0.0
        hint = "\n  most latitudes lie outside -90..90: longitude and latitude may be swapped"
        return (
            f"Curator's report: {NOT_PRIVATE}\n"
            f"  files {self.files:,}, of which empty {self.empty_files:,}\n"
            f"  lines {self.lines:,}, of which skipped {skipped:,} ({share:.4%})\n"
            f"    wrong fields {self.wrong_fields:,}\n"
            f"    wrong places {self.wrong_places:,}\n"
            f"    wrong clocks {self.wrong_clocks:,}"
            f"{hint if self.swapped_axes_suspected else ''}"
        )

    __repr__ = __str__


@dataclass(frozen=True)
class _TextFormat:
    """An owner's format: its files, their fields, and when they were collected."""

    files: str
    fields: tuple[str, ...]
    delimiter: str
    header_lines: int
    collected: tuple[str, str]


_TEXT_FORMATS = {
    "tdrive": _TextFormat(
        "*.txt", ("taxi", "t", "lon", "lat"), ",", 0, ("2008-01-01", "2009-01-01")
    ),
    "geolife": _TextFormat(
        "*.plt",
        ("lat", "lon", "zero", "altitude", "days", "date", "time"),
        ",",
        6,
        ("2007-01-01", "2013-01-01"),
    ),
    "cabspotting": _TextFormat(
        "new_*.txt", ("lat", "lon", "occupied", "t"), " ", 0, ("2008-01-01", "2009-01-01")
    ),
}


def read_fixes(
    paths: Path | str | Iterable[Path | str],
    *,
    format: TraceFormat = "auto",
    user_id: str = "user_id",
    lon: str = "lon",
    lat: str = "lat",
    time: str = "t",
    batch_fixes: int = BATCH_FIXES,
    progress: Callable[[float], None] | None = None,
) -> FixReader:
    """Read GPS traces in batches that hold whole users.

    Parameters
    ----------
    paths : path or paths
        Files, or folders to look through.
    format : {"auto", "tdrive", "geolife", "cabspotting", "table"}
        "auto" goes by the files' names. A table is Parquet or CSV.
    user_id, lon, lat, time : str
        Names of a table's columns. A table may do without `time`; numbers there are Unix seconds.
        Where nobody names them, `longitude` and `latitude` are found too.
    batch_fixes : int
        Fixes after which a batch is handed on, completed to whole users.
    progress : callable, optional
        Called with the share of the work done, 0 to 1, now and then.

    Returns
    -------
    FixReader
        An iterable of DataFrames with columns `user_id`, `t`, `lon`, `lat`. Its `report` holds
        exact figures for the curator.

    Notes
    -----
    A user is a file in T-Drive and Cabspotting, a folder in GeoLife. The rows of a table are
    first looked through for their users. Where each user's rows lie together (sorted by user,
    for instance) a second pass reads them; where they are scattered, as many passes as it
    takes batches, each keeping its share of the users.
    """
    if format not in get_args(TraceFormat):
        known = get_args(TraceFormat)
        raise InputError(Argument("format", repr(format)), f" is unknown: use one of {known}")
    if isinstance(paths, str | Path):
        paths = [paths]
    given = [Path(path) for path in paths]
    if not given:
        raise InputError("no paths: give a file or a folder of fixes", argument="paths")
    if isinstance(batch_fixes, bool) or not isinstance(batch_fixes, int) or batch_fixes < 1:
        raise InputError(
            Argument("batch_fixes"), f" must be a whole number of at least 1, got {batch_fixes!r}"
        )
    columns = {"user_id": user_id, "lon": lon, "lat": lat, "t": time}
    if not all(isinstance(name, str) for name in columns.values()):
        names = "user_id, lon, lat and time"
        raise InputTypeError(f"{names} must name columns, got {columns}", argument="user_id")
    files, kind = _files(given, format)
    if kind == "table":
        lon, lat = places_asked(lon, lat, tables.names_of(files[0]))
        columns |= {"lon": lon, "lat": lat}
    return FixReader(files, kind, columns, batch_fixes, progress or (lambda done: None))


_Stream = Callable[[Path, list[str]], Iterator[tuple[Any, int]]]


@dataclass(repr=False)
class FixReader:
    """An iterable of batches of fixes; `read_fixes` makes one."""

    _files: list[Path]
    format: str
    _columns: dict[str, str]
    _batch_fixes: int
    _progress: Callable[[float], None]
    _stream: _Stream = tables.stream
    _met: Counter[str] = field(default_factory=Counter)

    @property
    def report(self) -> ReadReport:
        """What the last reading met, exactly: not private, do not publish."""
        return ReadReport(**{name: self._met[name] for name in ReadReport.__annotations__})

    def __iter__(self) -> Iterator[pd.DataFrame]:
        self._met = Counter(files=len(self._files))
        yield from (batch for batch in self._batches() if len(batch))

    def _batches(self) -> Iterator[pd.DataFrame]:
        if self.format != "table":
            return _whole_users(self._text_chunks(_TEXT_FORMATS[self.format]), self._batch_fixes)
        order = _survey(self._files, self._columns, self._stream)
        if order.clustered:
            return _whole_users(self._table_chunks(order, 0, 1), self._batch_fixes)
        return self._scattered(order)

    def _scattered(self, order: _Order) -> Iterator[pd.DataFrame]:
        """Yield a share of the users a pass: nothing is sorted, and no secret spilled to disk."""
        import pandas as pd

        passes = max(1, -(-order.rows // self._batch_fixes))
        for turn in range(passes):
            parts = [
                rows[pd.util.hash_array(rows["user_id"].to_numpy()) % passes == turn]
                for rows in self._table_chunks(order, turn, passes)
            ]
            yield pd.concat(parts, ignore_index=True)

    def _text_chunks(self, form: _TextFormat) -> Iterator[pd.DataFrame]:
        owners = {path: _owner(path, self.format) for path in self._files}
        done, total = 0, max(1, sum(path.stat().st_size for path in self._files))
        for path in sorted(self._files, key=lambda path: (owners[path], path)):
            data = path.read_bytes()
            done += len(data)
            for _ in range(form.header_lines):
                data = data.partition(b"\n")[2]
            rows, wrong = _split(data, form)
            self._met["empty_files"] += not (len(rows) or wrong)
            rows["user_id"] = owners[path]
            yield self._sound(rows, wrong, form.collected)
            self._progress(min(1.0, done / total))

    def _table_chunks(self, order: _Order, turn: int, passes: int) -> Iterator[pd.DataFrame]:
        done = 0
        for path in self._files:
            decimal = tables.decimal_mark(path)
            for chunk, wrong in self._stream(path, list(self._columns.values())):
                rows = tables.standard(chunk, self._columns, order.ids, decimal)
                done += chunk.num_rows
                wrong += chunk.num_rows - len(rows)
                yield self._sound(rows, wrong, _TABLE_CLOCK, count=turn == 0)
                self._progress((turn + min(1.0, done / max(1, order.rows))) / passes)

    def _sound(
        self, rows: pd.DataFrame, wrong: int, clock: tuple[str, str], count: bool = True
    ) -> pd.DataFrame:
        """Return the rows that can be used; count the others where this is the first pass."""
        lon, lat = rows["lon"].to_numpy(), rows["lat"].to_numpy()
        place = on_the_globe(lon, lat)
        timely = np.ones(len(rows), bool)
        if "t" in rows:
            begin, end = (np.datetime64(day) for day in clock)
            timely = (rows["t"].to_numpy() >= begin) & (rows["t"].to_numpy() < end)
        if count:
            finite = lat[np.isfinite(lat)]
            figures = {
                "lines": len(rows) + wrong,
                "wrong_fields": wrong,
                "wrong_places": int(np.count_nonzero(~place)),
                "wrong_clocks": int(np.count_nonzero(place & ~timely)),
                "kept": int(np.count_nonzero(place & timely)),
                "latitudes": len(finite),
                "off_the_globe": int(np.count_nonzero(np.abs(finite) > 90)),
            }
            self._met.update(figures)
        order = [name for name in ("user_id", "t", "lon", "lat") if name in rows]
        return rows.loc[place & timely, order]


@dataclass(frozen=True)
class _Order:
    """How tables are laid out: whether each user's rows lie together, and how many rows."""

    clustered: bool
    rows: int
    ids: Any  # their Arrow type, one for all files


def _survey(files: list[Path], columns: dict[str, str], stream: _Stream) -> _Order:
    """Look through the users of tables once; holds each user's id, not the rows."""
    import pyarrow as pa
    import pyarrow.compute as pc

    seen: set[Any] = set()
    last: Any = None
    clustered = True
    n_rows = 0
    ids = tables.id_type({path: tables.column_types(path, columns)["user_id"] for path in files})
    for path in files:
        for chunk, _ in stream(path, [columns["user_id"]]):
            users, _ = tables.users_of(chunk[columns["user_id"]], ids)
            if pa.types.is_timestamp(users.type):  # whose values Python cannot all hold
                users = users.view(pa.int64())
            n_rows += chunk.num_rows
            for user in pc.run_end_encode(users).values.to_pylist():
                clustered = clustered and (user == last or user not in seen)
                seen.add(user)
                last = user
    return _Order(clustered, n_rows, ids)


def _whole_users(chunks: Iterable[pd.DataFrame], least: int) -> Iterator[pd.DataFrame]:
    """Put chunks, where each user's rows follow each other, together to batches of whole users."""
    import pandas as pd

    ready: list[pd.DataFrame] = []
    last: list[pd.DataFrame] = []  # of the user who may go on in the next chunk
    for rows in chunks:
        if not len(rows):
            continue
        users = rows["user_id"].to_numpy()
        start = int(np.append(0, np.flatnonzero(users[1:] != users[:-1]) + 1)[-1])
        if last and (start > 0 or users[0] != last[0]["user_id"].iloc[0]):
            ready, last = ready + last, []
        ready.append(rows.iloc[:start])
        last.append(rows.iloc[start:])
        if sum(map(len, ready)) >= least:
            yield pd.concat(ready, ignore_index=True)
            ready = []
    if ready or last:
        yield pd.concat(ready + last, ignore_index=True)


def _files(given: list[Path], format: TraceFormat) -> tuple[list[Path], str]:
    """Return the files to read, and their one format."""
    found: dict[Path, None] = {}
    for path in given:
        if os.path.isdir(path):  # Path.is_dir raises where its folder may not be looked into
            inside = (p for p in sorted(path.rglob("*")) if p.is_file() and p.name[0] not in "._")
            found.update((p, None) for p in inside if _format_of(p, format))
        else:
            found[path] = None
    for path in found:
        refuse_unreadable(path, argument="paths")
    kinds = {_format_of(path, format) for path in found}
    if not found or None in kinds:
        raise InputError(
            f"no fixes found in {', '.join(map(str, given))} (",
            Argument("format", repr(format)),
            "): T-Drive and Cabspotting are .txt, GeoLife .plt, tables .parquet or .csv",
            argument="paths",
        )
    if len(kinds) > 1:
        raise InputError(
            f"files of several formats ({', '.join(sorted(map(str, kinds)))}): read them one by "
            f"one, or state the format",
            argument="format",
        )
    return list(found), str(kinds.pop())


def _format_of(path: Path, stated: TraceFormat) -> str | None:
    if stated == "table" or (stated == "auto" and path.name.endswith(_TABLES)):
        return "table" if path.name.endswith(_TABLES) else None
    for name in ("geolife", "cabspotting", "tdrive"):
        if stated in (name, "auto") and path.match(_TEXT_FORMATS[name].files):
            return name
    return None


def _owner(path: Path, format: str) -> str:
    """Return whose fixes a text file holds, as text."""
    name = path.stem
    if format == "geolife":
        name = (path.parent if path.parent.name != "Trajectory" else path.parent.parent).name
    if format == "cabspotting":
        name = name.removeprefix("new_")
    return plain_text(os.fsencode(name))


def _split(data: bytes, form: _TextFormat) -> tuple[pd.DataFrame, int]:
    """Return a text file's lines as rows of t, lon, lat, and how many had wrong fields."""
    import pandas as pd
    import pyarrow.compute as pc

    fields = list(form.fields)
    options: dict[str, Any] = {"delimiter": form.delimiter, "quotes": False}
    table, wrong = csv_blocks.split(data, fields, np.arange(len(fields)), **options)
    when = table["date" if "date" in fields else "t"]
    if "date" in fields:
        when = pc.binary_join_element_wise(when, table["time"], b" ")
    rows = {name: tables.numbers(table[name]) for name in ("lon", "lat")}
    return pd.DataFrame({"t": tables.times(when), **rows}), wrong
