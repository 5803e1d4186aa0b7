"""Columns of numbers and times, one element at a time: no row changes how another is read.

Numbers in text are numbers, numbers are Unix seconds where times are asked for, other text is
ISO 8601, and what cannot be read is NaN or `NO_TIME`. Whole columns are read at once only
where that gives the same.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from datetime import date
from decimal import Decimal
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from dpregions.arrays import Floats, Ints

NO_TIME = np.iinfo(np.int64).min
"""Stands for a time that is missing or cannot be read, in microseconds; NaT as an integer."""

# In which no two parts can take the same digits: long text is read in linear time.
_NUMBER = re.compile(r"\s*[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?\s*", re.ASCII | re.IGNORECASE)

_PLAIN_NUMBER = "^-?[0-9]{1,40}([.][0-9]{1,40})?$"

_MICROSECONDS = {"D": 86_400_000_000, "s": 1_000_000, "ms": 1_000, "us": 1}


def decoded(column: Any) -> Any:
    """Return an Arrow column of text or bytes as text, null where it is empty or no UTF-8."""
    import pyarrow as pa
    import pyarrow.compute as pc

    raw = column.cast(pa.large_binary())
    try:
        text = raw.cast(pa.large_string())
    except pa.ArrowInvalid:
        text = pa.array(map(_decoded, raw.to_pylist()), pa.large_string())
    return pc.if_else(pc.greater(pc.binary_length(text), 0), text, None)


def _decoded(value: bytes | None) -> str | None:
    try:
        return value if value is None else value.decode()
    except UnicodeDecodeError:
        return None


def numbers_of_text(text: Any) -> Floats:
    """Return an Arrow column of text as floats, NaN for what is no number."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        return text.cast(pa.float64()).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid:
        plain = pc.match_substring_regex(text, _PLAIN_NUMBER)
        numbers = pc.if_else(plain, text, None).cast(pa.float64()).to_numpy(zero_copy_only=False)
    odd = np.isnan(numbers)
    numbers = numbers.copy()
    numbers[odd] = number_each(text.filter(pa.array(odd)).to_pylist())
    return numbers


def _values(column: pd.Series[Any]) -> list[Any]:
    """Return a column's values as Python's; of Arrow's text those that are UTF-8."""
    import pandas as pd
    import pyarrow as pa

    kind = column.dtype
    if getattr(kind, "storage", "") != "pyarrow" and not isinstance(kind, pd.ArrowDtype):
        return column.tolist()
    stored = pa.chunked_array(column.array.__arrow_array__())
    if pa.types.is_dictionary(stored.type):
        stored = stored.cast(stored.type.value_type)
    if pa.types.is_decimal(stored.type):
        return stored.to_pylist()
    if str(stored.type) in ("string", "large_string", "string_view"):
        return decoded(stored.combine_chunks().cast(pa.large_string())).to_pylist()
    return [None] * len(stored)


def numbers_of(column: pd.Series[Any]) -> Floats:
    """Return a column as floats, NaN for what is no number."""
    import pandas as pd

    if isinstance(column.dtype, pd.CategoricalDtype):
        known = numbers_of(pd.Series(column.cat.categories))
        return np.append(known, np.nan)[column.cat.codes]
    if not pd.api.types.is_numeric_dtype(column.dtype):
        return number_each(_values(column))
    return column.to_numpy(dtype=np.float64, na_value=np.nan)


def number_each(values: Iterable[Any]) -> Floats:
    """Return numbers, in text too, as floats, each by itself; NaN for what is none."""
    return np.array([_number(value) for value in values], np.float64)


def _number(value: Any) -> float:
    if isinstance(value, str):
        return float(value) if _NUMBER.fullmatch(value) else math.nan
    if isinstance(value, Real | Decimal) and not isinstance(value, bool):
        try:
            return float(value)
        except (OverflowError, ValueError, TypeError):
            return math.nan
    return math.nan


def microseconds_of(column: pd.Series[Any]) -> Ints:
    """Return times as microseconds; numbers are Unix seconds, the unreadable `NO_TIME`.

    What one row holds never changes how another is read.
    """
    import pandas as pd

    kind = column.dtype
    if isinstance(kind, pd.CategoricalDtype):
        known = microseconds_of(pd.Series(column.cat.categories))
        return np.append(known, NO_TIME)[column.cat.codes]
    if pd.api.types.is_numeric_dtype(kind):
        return _microseconds_of_seconds(numbers_of(column))
    if not pd.api.types.is_datetime64_any_dtype(kind):
        return _microseconds_of_each(_values(column))
    if isinstance(kind, pd.ArrowDtype):
        import pyarrow as pa

        return microseconds_of_arrow(pa.chunked_array(column.array.__arrow_array__()))
    times = column.dt.tz_convert(None) if column.dt.tz is not None else column
    return _microseconds_of_counts(times.to_numpy())


def microseconds_of_arrow(column: Any) -> Ints:
    """Return times as microseconds, from Arrow timestamps or dates."""
    import pyarrow as pa

    if pa.types.is_timestamp(column.type):
        unit, column = column.type.unit, column.cast(pa.int64())
    elif pa.types.is_date64(column.type):
        unit, column = "ms", column.cast(pa.int64())
    else:
        unit, column = "D", column.cast(pa.int32()).cast(pa.int64())
    counts = column.fill_null(NO_TIME).to_numpy(zero_copy_only=False)
    return _microseconds_of_counts(counts.view(f"M8[{unit}]"))


def _microseconds_of_counts(times: NDArray[np.datetime64]) -> Ints:
    """Return datetimes of any unit as microseconds, those too far away as `NO_TIME`."""
    unit, counts = np.datetime_data(times.dtype)[0], times.view(np.int64)
    if unit == "ns":
        return np.where(counts == NO_TIME, NO_TIME, counts // 1000)
    micro = np.full(len(counts), NO_TIME)
    usable = np.abs(counts) < (1 << 63) // _MICROSECONDS[unit]
    usable &= counts != NO_TIME  # whose absolute value is itself
    micro[usable] = counts[usable] * _MICROSECONDS[unit]
    return micro


def _microseconds_of_seconds(seconds: Floats) -> Ints:
    usable = np.abs(seconds) < 2**43
    micro = np.full(len(seconds), NO_TIME)
    micro[usable] = np.round(seconds[usable] * 1e6).astype(np.int64)
    return micro


def _microseconds_of_each(values: list[Any]) -> Ints:
    """Return times of any kind as microseconds, each by itself: numbers first, then ISO text."""
    import pandas as pd

    micro = _microseconds_of_seconds(number_each(values))
    text: dict[int, str] = {}
    for i in np.flatnonzero(micro == NO_TIME).tolist():
        value = values[i]
        if isinstance(value, str):
            # Words such as "now" are no times. To the microsecond, as one finer time would
            # make pandas read all of them in units in which far ones do not fit.
            if value.lstrip()[:1].isdigit() and not _NUMBER.fullmatch(value):
                text[i] = re.sub(r"(\.\d{6})\d+", r"\1", value)
        elif isinstance(value, date | np.datetime64):
            try:
                micro[i] = pd.Timestamp(value).to_datetime64().astype("M8[us]").astype(np.int64)
            except (ValueError, OverflowError):
                continue
    if text:
        written = pd.Series(list(text.values()), dtype=object)
        read = pd.to_datetime(written, errors="coerce", utc=True, format="ISO8601")
        micro[list(text)] = microseconds_of(read)
    return micro
