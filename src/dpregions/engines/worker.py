"""What the workers of another engine run: Arrow batches of regions -> contributions, or sums.

Nothing here draws noise, and nothing decides: a job comes from the driver with the grid, the bound
and an empty tally, catalogue and all, so that no worker makes its own. What fails is reported by
its type alone, as engines write messages to their logs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from dpregions.geometry.outlines import Outlines
from dpregions.intake.geometries import bytes_and_offsets
from dpregions.unforeseen import READING, foreseen

if TYPE_CHECKING:
    from dpregions.arrays import Ints
    from dpregions.intake.elsewhere import Elsewhere


@dataclass(frozen=True, repr=False)
class Job:
    """What a worker needs to know: how rows are read, and an empty tally. Public."""

    reading: Elsewhere
    tally: Any


def contributed(job: Job, batches: Iterator[Any]) -> Iterator[Any]:
    """Yield, for rows that contribute: their ids, a key that orders a user's rows, and marks.

    Columns are named c0, c1 and so on. Marks are those of the tally, or the outline itself, as
    bytes, where it has none.
    """
    for batch in batches:
        yield foreseen(partial(_contributed, job, batch), READING)


def _contributed(job: Job, batch: Any) -> Any:
    import pyarrow as pa

    outlines = job.reading.outlines(batch)
    ids, there = job.reading.users(batch)
    there &= np.diff(outlines.offsets) > 0
    rows = np.flatnonzero(there)
    columns = [column.take(pa.array(rows)) for column in ids]
    # The highest byte first: bytes are then ordered as the two words are.
    keys = outlines.keys()[rows].astype(">u8").tobytes()
    columns.append(_bytes(keys, 16 * np.arange(len(rows) + 1)))
    if hasattr(job.tally, "marks"):
        marks = job.tally.marks(outlines)[rows]
        columns += [pa.array(np.ascontiguousarray(column)) for column in marks.T]
    else:
        outlines = job.reading.marked(outlines)
        sizes = np.diff(outlines.offsets)
        xy = outlines.xy[np.repeat(there, sizes)]
        columns.append(_bytes(xy.tobytes(), np.concatenate([[0], 16 * np.cumsum(sizes[rows])])))
    return pa.RecordBatch.from_arrays(columns, [f"c{i}" for i in range(len(columns))])


def _bytes(data: bytes, offsets: Ints) -> Any:
    """Return an Arrow array of bytes, value i being ``data[offsets[i]:offsets[i + 1]]``."""
    import pyarrow as pa

    ends = pa.py_buffer(offsets.astype(np.int32).tobytes())
    return pa.Array.from_buffers(pa.binary(), len(offsets) - 1, [None, ends, pa.py_buffer(data)])


def summed(job: Job, batches: Iterator[Any]) -> Iterator[Any]:
    """Yield the entries of the tally of all outlines in some batches, once at the end."""
    import pyarrow as pa

    tally = job.tally
    for batch in batches:
        foreseen(partial(_add, job, batch.column(0)), READING)
    index, n = tally.entries()
    for start in range(0, len(index), _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        yield pa.RecordBatch.from_arrays([pa.array(index[part]), pa.array(n[part])], ["index", "n"])


_AT_ONCE = 1 << 16


def _add(job: Job, column: Any) -> None:
    """Add outlines that `contributed` wrote as bytes."""
    if not len(column):
        return
    octets, offsets = bytes_and_offsets(column)  # of 32 or 64 bits: Spark has an option for it
    xy = np.frombuffer(octets[offsets[0] : offsets[-1]].tobytes(), np.int64).reshape(-1, 2)
    outlines = Outlines(xy, (offsets - offsets[0]) // 16)
    job.tally.add(job.reading.unmarked(outlines))
