"""Hot loops over the bytes of CSV: where records end, and the fields of whole records.

A field that begins with a quote goes on to the next single one, over delimiters and line ends;
two quotes within it stand for one. A quote elsewhere is a character like others. Lines end with
CR, LF or both, and blank ones are no records. Nothing is decoded here: bytes stay as they are.
"""

from __future__ import annotations

import numpy as np
from numba import njit

FIELD_START, IN_FIELD, IN_QUOTES, QUOTE_IN_QUOTES, AFTER_QUOTES, BROKEN = range(6)
"""Where the framing is; broken: after a closing quote comes neither delimiter nor line end."""

LF, CR, BLANK, TAB = 10, 13, 32, 9


@njit(cache=True, nogil=True)
def frame(data, state, delimiter, quote):
    """Return the ends of the first and the last record that end in `data`, and the state after.

    Ends are 0 where no record ends here. The state goes on with the bytes that follow.
    """
    first = last = 0
    for i in range(data.size):
        c = data[i]
        if state == IN_QUOTES:
            if c == quote:
                state = QUOTE_IN_QUOTES
        elif c in (LF, CR):
            state = FIELD_START
            last = i + 1
            if first == 0:
                first = last
        elif c == delimiter:
            state = FIELD_START
        elif state in (QUOTE_IN_QUOTES, AFTER_QUOTES):
            if c == quote and state == QUOTE_IN_QUOTES:
                state = IN_QUOTES
            elif c in (BLANK, TAB):
                state = AFTER_QUOTES
            else:
                return first, last, BROKEN
        elif c == quote and state == FIELD_START:
            state = IN_QUOTES
        else:
            state = IN_FIELD
    return first, last, state


@njit(cache=True, nogil=True)
def field_end(data, start, delimiter, quote):
    """Return where the quotes of the field at `start` close (`start` without), and its end."""
    i, n, close = start, data.size, start
    if i < n and data[i] == quote:
        i += 1
        while i < n:
            if data[i] == quote:
                if i + 1 < n and data[i + 1] == quote:
                    i += 1
                else:
                    break
            i += 1
        close = i
    while i < n and data[i] != delimiter and data[i] != LF and data[i] != CR:
        i += 1
    return close, i


@njit(cache=True, nogil=True)
def first_record(data, delimiter, quote):
    """Return where the first record starts and ends, and how many fields it has: 0 for none."""
    start = 0
    while start < data.size and (data[start] == LF or data[start] == CR):
        start += 1
    if start == data.size:
        return start, start, 0
    i, fields = start, 0
    while True:
        _, i = field_end(data, i, delimiter, quote)
        fields += 1
        if i >= data.size or data[i] != delimiter:
            return start, i, fields
        i += 1


@njit(cache=True, nogil=True)
def put(data, start, close, end, quote, out, length):
    """Write a field without its quotes to `out` at `length`; return the length after it."""
    i = start
    if close > start:
        i += 1
        while i < close:
            out[length] = data[i]
            length += 1
            i += 2 if data[i] == quote else 1
        i += 1
    while i < end:
        out[length] = data[i]
        length += 1
        i += 1
    return length


@njit(cache=True, nogil=True)
def split(data, delimiter, quote, turns, longest, values, offsets):
    """Write columns of whole records; return how many, and how many are left out.

    Parameters
    ----------
    data : uint8 array
        Whole records. Those that have not as many fields as `turns` is long are left out.
    turns : int array
        For each field the row of `values` it goes to, -1 if to none.
    longest : int
        Records of more bytes are left out too.
    values, offsets : arrays, written to
        The columns' bytes, one value after the other, and where each starts.
    """
    rows = left_out = i = 0
    length = np.zeros(values.shape[0], np.int64)
    offsets[:, 0] = 0
    while i < data.size:
        if data[i] == LF or data[i] == CR:
            i += 1
            continue
        begin, fields = i, 0
        while True:
            start = i
            close, i = field_end(data, start, delimiter, quote)
            if fields < turns.size and turns[fields] >= 0:
                w = turns[fields]
                length[w] = put(data, start, close, i, quote, values[w], length[w])
            fields += 1
            if i >= data.size or data[i] != delimiter:
                break
            i += 1
        if fields == turns.size and i - begin <= longest:
            rows += 1
            offsets[:, rows] = length
        else:
            left_out += 1
            length[:] = offsets[:, rows]
    return rows, left_out
