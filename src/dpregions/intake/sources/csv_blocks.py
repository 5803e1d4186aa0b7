"""CSV files, compressed ones too, as blocks of whole records: columns of bytes, never decoded.

Owns the framing: the first line says what separates fields, commas or semicolons, and its names
how many fields a record has. One with more or fewer is left out by itself, and no record is cut by
a block's end, however long it is. Only broken framing is refused (quotes or compression that do not
end), without a word of the file. The loops are in `io/csv_frames.py`.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpregions.errors import InputError
from dpregions.intake.ids import plain_text

if TYPE_CHECKING:
    import pyarrow

CSV_BLOCK = 1 << 23
"""Bytes of a file read at once."""

LONGEST_RECORD = 1 << 27
"""Bytes beyond which a record is left out, as if it had wrong fields: it would fill the memory."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

_WORD = re.compile(r"[^\W\d]+(?:[ .-][^\W\d]+){0,3}\d{0,2}")
_COLUMN = re.compile(r"(?i)user|id\b|_id|name|lon|lat|geo|wkt|wkb|shape|time|date|^[xy]$")


def delimiter_of(path: Path) -> str:
    """Return what separates fields: semicolons, where the first line has more of them than commas.

    A decimal comma goes with them: it is how spreadsheets write numbers in half of Europe.
    """
    line = first_line(path)
    return ";" if line.count(b";") > line.count(b",") else ","


def first_line(path: Path) -> bytes:
    """Return the first line that is not blank, or its beginning."""
    with opened(path) as file:
        start: bytes = file.read(1 << 16)
    return re.split(rb"[\r\n]", start.removeprefix(_BYTE_ORDER_MARK).lstrip(b"\r\n"), maxsplit=1)[0]


def names_in_words(names: list[str]) -> str | None:
    """Return a sentence with the names in a first line; None where it may be a record.

    It is none where all are words without a number or a parenthesis, which a region has, and one
    of them is a word that columns are called by.
    """
    words = all(_WORD.fullmatch(name) for name in names)
    if words and len(set(names)) == len(names) and any(map(_COLUMN.search, names)):
        return f"there are {', '.join(names)}."
    return None


def column_names(path: Path, block: int = CSV_BLOCK) -> list[str]:
    """Return the names in the first line; bytes that are no UTF-8 become escapes."""
    delimiter = delimiter_of(path)
    with opened(path) as file:
        for data, dropped in _whole_records(path, file, block, LONGEST_RECORD, delimiter):
            names, _ = _header(data, delimiter)
            if dropped:
                break  # what comes next is a record
            if names:
                return names
    raise _nameless(path)


def _nameless(path: Path) -> InputError:
    return InputError(f"{path} is empty or cannot be read as .csv: no first line names its columns")


def blocks(
    path: Path, columns: list[str], block: int = CSV_BLOCK, longest: int = LONGEST_RECORD
) -> Iterator[tuple[pyarrow.RecordBatch, int]]:
    """Yield columns as bytes, in batches, and how many records each batch leaves out.

    Parameters
    ----------
    path : Path
        A CSV file, compressed if its name ends in .gz.
    columns : list of str
        Names in the first line, each there once.
    block, longest : int
        How many bytes to read at once, and the length of a record that is too long.
    """
    turns, delimiter = None, delimiter_of(path)
    with opened(path) as file:
        for data, dropped in _whole_records(path, file, block, longest, delimiter):
            if turns is None:
                names, end = _header(data, delimiter)
                if dropped:
                    raise _nameless(path)
                if not names:
                    continue
                turns = np.array([columns.index(n) if n in columns else -1 for n in names])
                data = data[end:]
            batch, left_out = split(data, columns, turns, delimiter=delimiter, longest=longest)
            yield batch, left_out + dropped


def split(
    data: bytes,
    columns: list[str],
    turns: Any,
    *,
    delimiter: str = ",",
    quotes: bool = True,
    longest: int = LONGEST_RECORD,
) -> tuple[pyarrow.RecordBatch, int]:
    """Return columns of whole records as bytes, and how many records are left out.

    `turns` says for each field which of the columns it is, -1 for none.
    """
    import pyarrow as pa

    from dpregions.intake.sources import csv_frames as _csv_frames

    raw = np.frombuffer(data, np.uint8)
    # A record of n fields has n - 1 delimiters and, but for the last, a line end.
    values = np.empty((len(columns), len(raw)), np.uint8)
    offsets = np.empty((len(columns), len(raw) // len(turns) + 2), np.int32)
    signs = ord(delimiter), ord('"') if quotes else -1
    rows, left_out = _csv_frames.split(raw, *signs, turns, longest, values, offsets)
    arrays = []
    for text, ends in zip(values, offsets, strict=True):
        # Copies: a view would keep the room for all columns.
        parts = (ends[: rows + 1].tobytes(), text[: ends[rows]].tobytes())
        buffers = [None, *map(pa.py_buffer, parts)]
        arrays.append(pa.Array.from_buffers(pa.binary(), rows, buffers))
    return pa.RecordBatch.from_arrays(arrays, names=columns), left_out


def _header(data: bytes, delimiter: str) -> tuple[list[str], int]:
    """Return the names in the first record, none if all lines are blank, and where it ends."""
    from dpregions.intake.sources import csv_frames as _csv_frames

    raw = np.frombuffer(data, np.uint8)
    start, end, n_fields = _csv_frames.first_record(raw, ord(delimiter), ord('"'))
    if not n_fields:
        return [], end
    fields = [str(i) for i in range(n_fields)]
    batch, _ = split(data[start:end], fields, np.arange(n_fields), delimiter=delimiter)
    return [plain_text(column[0].as_py()) for column in batch.columns], end


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    """Open a file, compressed or not, to read its bytes."""
    openly: Any = gzip.open if path.suffix.lower() == ".gz" else open
    try:
        with openly(path, "rb") as file:
            yield file
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise InputError(f"{path} is cut short or damaged: its compression ends wrongly") from None


def _whole_records(
    path: Path, file: Any, block: int, longest: int, delimiter: str
) -> Iterator[tuple[bytes, int]]:
    """Yield a file's bytes, cut where records end, and how many were too long and left out."""
    from dpregions.intake.sources import csv_frames as _csv_frames

    held: list[bytes] = []  # of a record that goes on
    dropping = False  # the record that goes on is too long
    state = _csv_frames.FIELD_START
    more = file.read(max(block, len(_BYTE_ORDER_MARK)))
    data = more.removeprefix(_BYTE_ORDER_MARK)
    while more:
        raw = np.frombuffer(data, np.uint8)
        first, last, state = _csv_frames.frame(raw, state, ord(delimiter), ord('"'))
        if state == _csv_frames.BROKEN:
            raise InputError(
                f"{path} has quotes that do not go in pairs: a quote may open a field, close it "
                f"before a '{delimiter}' or a line's end, or be doubled within it"
            )
        if last:
            start = first if dropping else 0
            yield b"".join([*held, data[start:last]]), int(dropping)
            held, dropping = [], False
        rest = data[last:]
        if dropping or sum(map(len, held), len(rest)) > longest:
            held, dropping = [], True
        elif rest:
            held.append(rest)
        more = data = file.read(block)
    if state == _csv_frames.IN_QUOTES:
        raise InputError(f"{path} is cut short: it ends within quotes")
    if held or dropping:
        yield b"".join(held), int(dropping)
