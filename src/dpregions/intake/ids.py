"""User ids as values, read one by one: equal values are one user, different values never.

Owns when two ids are one, for every reader. Numbers are one id when they are exactly equal (1,
1.0, 1e0); text is compared as it is stored, and never equals a number; null, NaN and empty text
are no id. What one row holds never changes how another is read: a column is read as a whole only
where its declared type makes that the same. A column of floats is refused whatever it holds, as
are kinds whose values cannot be told apart. No message quotes a value.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Hashable, Iterable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from numbers import Rational
from typing import TYPE_CHECKING, Any
from uuid import UUID

import numpy as np

from dpregions.errors import Argument, InputError, InputTypeError, InPython, Part, printable

if TYPE_CHECKING:
    import pyarrow

    from dpregions.arrays import Ints, Objects

EACH_ROW = Argument("user_id", "None")
"""The remedy where there are no users: each row is its own."""

_NUMBER = re.compile(r"([+-]?)([0-9]*)\.?([0-9]*)(?:[eE]([+-]?[0-9]+))?", re.ASCII)
_PLAIN_DIGITS = 40
_PLAIN = 10**_PLAIN_DIGITS
_LARGE_DIGITS = 4000
_LARGE = 10**_LARGE_DIGITS
_EXPONENT_DIGITS = 18
_MADE_OF_BYTES = range(0xDC80, 0xDD00)
_HALVES = re.compile("[\udc80-\udcff]+")
_OTHER_HALF = {code: code - 0x100 for code in _MADE_OF_BYTES}


class IdColumns(tuple[str, ...]):
    """Names of columns whose values together are one id."""


class NumberToken(str):
    """The digits of a number as a source has them: its value is exact, whatever their length."""


# Ids as text, for sources whose columns have no type of their own.


def id_text(value: Any) -> str | None:
    """Return the text that stands for one id of a source without types; None for no id.

    Texts are equal where the ids are. Numbers are written in one way, text as JSON in ASCII,
    bytes in hexadecimal digits: so none passes for another.

    Examples
    --------
    >>> id_text(7), id_text(7.0), id_text(NumberToken("70e-1")), id_text("7")
    ('7', '7', '7', '"7"')
    """
    if type(value) is int and -_PLAIN < value < _PLAIN:  # what the rest gives, faster
        return str(value)
    if value is None or (isinstance(value, str | bytes) and not value):
        return None
    if isinstance(value, NumberToken):
        return number_text(value)
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return number_text(_digits(value))
    if isinstance(value, float):
        return None if math.isnan(value) else _float_text(value)
    return None


def text_id(raw: bytes) -> str | None:
    r"""Return what `id_text` does, for text as bytes; those that are no UTF-8 become escapes.

    Examples
    --------
    >>> text_id("José".encode()), text_id("José".encode("latin-1"))
    ('"Jos\\u00e9"', '"Jos\\xe9"')
    """
    return marked_text(*both_ways(raw)) if raw else None


def both_ways(raw: bytes) -> tuple[str, str]:
    """Return bytes as text in two ways, which differ where they are not UTF-8 and only there.

    Each such byte is one half of a pair of surrogates, the second half or the first. Text in
    UTF-8 holds neither, but text that is parsed further may: escapes of JSON make them too.
    """
    low = raw.decode("utf-8", "surrogateescape")
    return low, low if low.isascii() else low.translate(_OTHER_HALF)


def marked_text(low: str, high: str) -> str | None:
    """Return what `id_text` does, for text that was decoded in two ways where it is no UTF-8.

    A byte that is no text is a character by which the two differ, and nothing else is: so it
    cannot pass for a character that the text has.
    """
    if low == high:
        return json.dumps(low) if low else None
    parts, done = [], 0
    for run in _HALVES.finditer(low):
        parts.append(json.dumps(low[done : run.start()])[1:-1])
        done = run.end()
        pairs = zip(run[0], high[run.start() : done], strict=True)
        parts += (json.dumps(a)[1:-1] if a == b else f"\\x{ord(a) - 0xDC00:02x}" for a, b in pairs)
    return f'"{"".join(parts)}{json.dumps(low[done:])[1:-1]}"'


def plain_text(raw: bytes) -> str:
    r"""Return bytes as text for people and files, different for different bytes.

    Text in UTF-8 is itself. Where bytes are none they become escapes, and then (or where text
    looks like such an escape) a backslash becomes two.

    Examples
    --------
    >>> plain_text("José".encode()), plain_text("José".encode("latin-1"))
    ('José', 'Jos\\xe9')
    """
    text = raw.decode("utf-8", "backslashreplace")
    if "\\x" not in text:
        return text
    return raw.replace(b"\\", b"\\\\").decode("utf-8", "backslashreplace")


def number_text(digits: str) -> str | None:
    """Return a decimal number in the one way that all its spellings share; None if it is none.

    Examples
    --------
    >>> number_text("1e0"), number_text("-0.0"), number_text("1.50"), number_text("1e999")
    ('1', '0', '15e-1', '1e999')
    """
    parts = _NUMBER.fullmatch(digits)
    if parts is None or not (parts[2] or parts[3]):
        return None
    exponent = (parts[4] or "0").lstrip("+")
    negative, size = exponent.startswith("-"), exponent.lstrip("-").lstrip("0")
    if len(size) > _EXPONENT_DIGITS:
        return None  # beyond any id: its digits could not be counted
    power = (-1 if negative else 1) * int(size or 0) - len(parts[3])
    number = (parts[2] + parts[3]).lstrip("0")
    if not number:
        return "0"
    stripped = number.rstrip("0")
    power += len(number) - len(stripped)
    sign = "-" if parts[1] == "-" else ""
    if power >= 0 and len(stripped) + power <= _PLAIN_DIGITS:
        return f"{sign}{stripped}{'0' * power}"
    return f"{sign}{stripped}e{power}"


def _digits(value: int) -> str:
    """Return a whole number's decimal digits, however many: `str` refuses more than 4,300."""
    return str(value) if abs(value) < 1 << 4096 else format(Decimal(value), "f")


def _float_text(value: float) -> str | None:
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return number_text(format(Decimal(value), "f"))


# Ids as numbers of users.


def user_numbers(user_id: Any, columns: list[Any] | None, column: Any) -> Ints | None:
    """Return each row's user as a number, -1 for none; None where each row is its own.

    Parameters
    ----------
    user_id : str, IdColumns, array or None
        A column's name, several, or the ids themselves.
    columns : list or None
        The names of the columns there are; None for data without columns.
    column : callable
        Returns the column of a name: an Arrow column, or an array of pandas.
    """
    if user_id is None:
        return None
    if not isinstance(user_id, str | IdColumns):
        return _codes(_given(user_id), Argument("user_id"))
    names = id_names(user_id, columns)
    given = {name: Argument("user_id", repr(name)) for name in names}
    return _joint_codes([_codes(column(name), given[name]) for name in names])


def id_names(user_id: str | IdColumns, columns: list[Any] | None) -> list[str]:
    """Return the columns whose values together are one id; refuse those that are not there."""
    if columns is None:
        raise InputError(
            Argument("user_id", repr(user_id)),
            " names a column, but these regions have no columns: ",
            InPython("pass an array of ids, or "),
            *("use ", EACH_ROW, " if each row is its own user"),
        )
    names = list(user_id) if isinstance(user_id, IdColumns) else [user_id]
    for name in names:
        one_column(name, columns, "user_id")
    return names


def one_column(
    name: str,
    columns: list[Any],
    argument: str,
    *,
    of: str = "",
    why: str | None = None,
    each_row: bool = True,
) -> None:
    """Refuse a name that no column has, or several.

    Parameters
    ----------
    name, columns, argument
        The name that an argument gives, and those there are.
    of : str
        Whose columns they are, as " of city.csv".
    why : str, optional
        A sentence to say instead of the names there are, where these may be a record.
    each_row : bool
        Whether a row may be its own user, which is then the remedy for a missing `user_id`.
    """
    times = list(columns).count(name)
    if times == 1:
        return
    given = Argument(argument, repr(name))
    if times > 1:
        raise InputError(given, f" names several columns{of}: rename all but one")
    if why is None and all(isinstance(column, str) for column in columns):
        why = f"there are {printable(', '.join(columns)) or 'none'}."
    # Names that are not text may be a row read as one, which is secret.
    why = why or "the names there are not text."
    remedy: tuple[Part, ...] = ()
    if each_row and argument == "user_id":
        remedy = (" Use ", EACH_ROW, " if each row is its own user")
    raise InputError(given, f" is no column{of}: {why}", *remedy)


def refuse_kind(name: str, kind: pyarrow.DataType, argument: str = "user_id") -> None:
    """Refuse a declared kind of column whose values are no ids, before a row is looked at."""
    _refuse_arrow(kind, Argument(argument, repr(name)))


def _given(user_id: Any) -> Any:
    """Return ids given as such, in a form that keeps each value as it is."""
    import pyarrow as pa

    if isinstance(user_id, pa.Array | pa.ChunkedArray):
        return user_id
    if not hasattr(user_id, "dtype") or not hasattr(user_id, "ndim"):
        if hasattr(user_id, "__arrow_c_stream__"):
            return pa.chunked_array(user_id)
        if hasattr(user_id, "__arrow_c_array__"):
            return pa.array(user_id)
    if isinstance(user_id, bytes | dict | set | frozenset) or not hasattr(user_id, "__len__"):
        raise InputTypeError(
            Argument("user_id"),
            f" must be a column name, an array of ids or None, got {type(user_id).__name__}",
        )
    if isinstance(user_id, np.ma.MaskedArray):
        raise InputTypeError(
            Argument("user_id"), " is a masked array: give a list, with None where no id is"
        )
    ids = user_id if hasattr(user_id, "dtype") else _objects(user_id)
    if ids.ndim != 1:
        raise InputTypeError(
            Argument("user_id"),
            f" must be one column of ids, got {type(user_id).__name__} of {ids.ndim} dimensions",
        )
    return ids


def _objects(values: Iterable[Any]) -> Objects:
    """Return values as an array of objects, whatever they are."""
    items = list(values)
    array = np.empty(len(items), dtype=object)
    for i, item in enumerate(items):  # not all at once: sequences among them would be unpacked
        array[i] = item
    return array


def _joint_codes(codes: list[Ints]) -> Ints:
    """Return one number for each distinct row of several ids, -1 where one is missing."""
    joint = codes[0]
    for more in codes[1:]:
        missing = (joint < 0) | (more < 0)
        # Numbered anew each time: below the number of rows, so that products fit in int64.
        joint = np.unique(joint * (more.max(initial=0) + 1) + more, return_inverse=True)[1]
        joint[missing] = -1
    return joint


def _codes(ids: Any, given: Argument) -> Ints:
    """Return a column's ids as numbers, equal for equal ids, -1 for none."""
    import pandas as pd
    import pyarrow as pa

    if isinstance(ids, pa.Array | pa.ChunkedArray):
        return _arrow_codes(ids, given)
    if isinstance(ids, pd.arrays.NumpyExtensionArray):
        ids = ids.to_numpy()
    kind = ids.dtype
    if isinstance(kind, pd.CategoricalDtype):
        categories = _codes(kind.categories.array, given)
        return np.append(categories, -1)[np.asarray(pd.Series(ids).cat.codes)]
    if isinstance(kind, pd.ArrowDtype) or getattr(kind, "storage", "") == "pyarrow":
        stored: Any = pd.Series(ids).array
        return _arrow_codes(pa.chunked_array(stored.__arrow_array__()), given)
    if isinstance(kind, np.dtype) and kind.kind in "biumM":
        return np.asarray(pd.factorize(np.asarray(ids))[0], np.int64)
    if pd.api.types.is_extension_array_dtype(kind) and not pd.api.types.is_string_dtype(kind):
        if pd.api.types.is_float_dtype(kind) or isinstance(kind, pd.IntervalDtype):
            raise _no_ids(given, kind)
        return np.asarray(pd.factorize(ids)[0], np.int64)
    if isinstance(kind, np.dtype) and kind.kind not in "OUST":
        raise _no_ids(given, kind)
    return _object_codes(np.asarray(ids, dtype=object))


def _no_ids(given: Argument, kind: object) -> InputTypeError:
    return InputTypeError(
        given,
        f" holds {kind}, which cannot be ids: of numbers with fractions several users may pass for "
        f"one, and other kinds have no one spelling. Make them whole numbers or text (in pandas "
        f"Int64 or string, as a null among whole numbers makes them floats)",
    )


def _arrow_codes(column: Any, given: Argument) -> Ints:
    """Return the ids of an Arrow column as numbers, chunk by chunk: nothing is put together."""
    import pyarrow as pa

    _refuse_arrow(column.type, given)
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    ids = pa.chunked_array([stored(chunk) for chunk in chunks], _stored_type(column.type))
    if pa.types.is_null(ids.type) or ids.type == pa.binary(0):
        return np.full(len(ids), -1)
    encoded = ids.dictionary_encode()
    if not encoded.num_chunks:
        return np.zeros(0, np.int64)
    codes = [np.asarray(chunk.indices.fill_null(-1), np.int64) for chunk in encoded.chunks]
    numbers = np.concatenate(codes)
    if ids.type == pa.large_binary():
        empty = encoded.chunk(0).dictionary.index(pa.scalar(b"", ids.type)).as_py()
        numbers[numbers == empty] = -1 if empty >= 0 else numbers[numbers == empty]
    return numbers


def _stored_type(kind: Any) -> Any:
    """Return the type in which ids are compared: text as its bytes, which need be no UTF-8."""
    import pyarrow as pa

    if isinstance(kind, pa.BaseExtensionType):
        return _stored_type(kind.storage_type)
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return _stored_type(kind.value_type)
    if pa.types.is_decimal(kind) and kind.bit_width < 128:  # of which Arrow cannot tell equals
        return pa.decimal128(kind.precision, kind.scale)
    return pa.large_binary() if _is_bytes(kind) else kind


def stored(chunk: Any) -> Any:
    """Return an Arrow array of ids in the type in which they are compared."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(chunk, pa.ExtensionArray):
        chunk = chunk.storage
    if isinstance(chunk, pa.DictionaryArray):
        return stored(chunk.dictionary).take(chunk.indices)
    if isinstance(chunk, pa.RunEndEncodedArray):
        return stored(pc.run_end_decode(chunk))
    kind = _stored_type(chunk.type)
    return chunk if chunk.type == kind else chunk.cast(kind)


def _is_bytes(kind: Any) -> bool:
    """Say whether a type holds bytes of any length, or text, which is compared as bytes."""
    names = ("string", "large_string", "string_view", "binary", "large_binary", "binary_view")
    return str(kind) in names


def _refuse_arrow(kind: Any, given: Argument) -> None:
    """Refuse an Arrow type by what it is, never by what a row holds."""
    from pyarrow import types

    stored = _stored_type(kind)
    checks = (
        *(types.is_integer, types.is_boolean, types.is_decimal, types.is_null),
        *(types.is_temporal, types.is_fixed_size_binary),
    )
    fine = _is_bytes(stored) or any(check(stored) for check in checks)
    if not fine or types.is_interval(stored):
        raise _no_ids(given, stored)


def _object_codes(values: Objects) -> Ints:
    """Return ids that are Python's objects as numbers, each looked at by itself."""
    # Not by pandas: it takes some texts with NUL or surrogates for one.
    numbers: dict[Hashable, int] = {}
    if set(map(type, values)) <= {str}:  # what `_key` gives, faster
        keys: Iterable[Hashable] = (value or None for value in values.tolist())
    else:
        keys = map(_key_or_none, values)
    return np.array([-1 if k is None else numbers.setdefault(k, len(numbers)) for k in keys],
                    np.int64)  # fmt: skip


_TIMES = (datetime, date, time, timedelta, UUID)


def _key_or_none(value: Any) -> Hashable:
    """Return what `_key` does; an object that cannot even be looked at is no id."""
    try:
        return _key(value)
    except Exception:
        return None


def _key(value: Any) -> Hashable:
    """Return what stands for an object as an id: equal keys are one user; None is no id."""
    if type(value) is str:
        return value or None
    if type(value) is int and -_LARGE < value < _LARGE:
        return ("number", value)  # equal to the fraction that it is, and quicker
    if isinstance(value, np.generic):
        value = _python_value(value)
    if value is None or isinstance(value, str | bytes):
        return value or None
    if isinstance(value, bool):
        return ("truth", value)
    if isinstance(value, Rational | float | Decimal):
        number = None if value != value else _number_key(value)
        return None if number is None else ("number", number)
    if isinstance(value, bytearray | memoryview):
        return bytes(value) or None
    if isinstance(value, _TIMES):
        return None if value != value else ("time", value)  # NaT, which pandas counts among times
    if isinstance(value, tuple):
        parts = tuple(None if isinstance(part, tuple) else _key(part) for part in value)
        return ("several", parts) if parts and None not in parts else None
    return None


def _python_value(value: np.generic) -> Any:
    """Return a number of numpy's as one of Python's, exactly; a time as one of pandas'."""
    import pandas as pd

    if isinstance(value, np.floating) and np.isfinite(value):
        return Fraction(*value.as_integer_ratio())
    if isinstance(value, np.datetime64 | np.timedelta64):
        try:
            return pd.Timestamp(value) if isinstance(value, np.datetime64) else pd.Timedelta(value)
        except (ValueError, OverflowError):
            return None
    return value.item()


def _number_key(value: Rational | float | Decimal) -> Hashable:
    """Return an exact number: a fraction, or digits where it would take all memory, as 1e999999.

    None for a number beyond any id, whose digits cannot be counted.
    """
    if isinstance(value, Rational) and value.denominator == 1 and abs(value) >= _LARGE:
        return number_text(_digits(int(value.numerator)))
    if isinstance(value, Decimal) and value.is_finite() and abs(value.adjusted()) >= _LARGE_DIGITS:
        return number_text(str(value))
    if isinstance(value, Rational) or math.isfinite(value):
        return Fraction(value)
    return float(value)
