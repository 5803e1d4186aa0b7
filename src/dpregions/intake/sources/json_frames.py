"""Hot loop over JSON text (numba): where its values begin and end, by brackets and quotes alone.

Owns the framing of GeoJSON, block by block and in one pass: a string hides what is within, every
bracket is closed by its own kind, values of the array that is read are separated by commas. It
never looks at what a record holds, and what follows for a record's neighbours is nothing.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dpregions.arrays import Ints

SURVEY, SEQUENCE = -2, -1
"""What is looked for, beside a number from 0 on: that of the outer object's array whose values
are records. SURVEY: the first outer object without what is in its arrays. SEQUENCE: each outer
object is a record."""

BROKEN = -1

DEPTH, IN_STRING, ESCAPED, OPEN, START, DEEPEST, N_OBJECTS, ARRAY, N_ARRAYS, PLACE = range(10)
"""What is carried from block to block: brackets open; within a string; after its backslash;
whether a span is open, its first byte and its nesting so far; outer objects met; the depth of the
object that has the outermost open array, 0 for none; arrays met at depth 1; what may follow in
the array that is read."""

_FIRST, _VALUE, _SCALAR, _AFTER = range(4)

KINDS_KNOWN = 128
"""Brackets deeper than this are counted but not told apart: no record may be as deep."""

_QUOTE, _BACKSLASH, _COMMA = ord('"'), ord("\\"), ord(",")
_BRACE, _BRACKET, _END_BRACE, _END_BRACKET = ord("{"), ord("["), ord("}"), ord("]")
_SPACE, _TAB, _NEWLINE, _RETURN, _SEPARATOR = 0x20, 0x09, 0x0A, 0x0D, 0x1E


def at_the_start() -> tuple[Ints, NDArray[np.uint8]]:
    """Return what is carried, before the first byte."""
    return np.zeros(10, np.int64), np.zeros(KINDS_KNOWN, np.uint8)


@njit(cache=True, nogil=True)
def scan(block, state, kinds, wanted, spans):
    """Find the spans that end in a block; return how many, or BROKEN.

    Rows of `spans` are the first byte, the byte after the last, and the nesting of brackets.
    Bytes are counted from the block's first; those of blocks before it are negative. There
    must be room for half as many spans as the block has bytes, and one.
    """
    depth, in_string, escaped = state[DEPTH], state[IN_STRING] != 0, state[ESCAPED] != 0
    is_open, start, deepest = state[OPEN] != 0, state[START], state[DEEPEST]
    place = state[PLACE]
    n_objects, array, n_arrays = state[N_OBJECTS], state[ARRAY], state[N_ARRAYS]
    base = 2 if wanted >= 0 else 0
    inside = wanted >= 0 and array == 1 and n_arrays - 1 == wanted
    n = 0
    for i in range(block.size):
        c = block[i]
        if in_string:
            if escaped:
                escaped = False
            elif c == _BACKSLASH:
                escaped = True
            elif c == _QUOTE:
                in_string = False
            continue
        opens = c in (_BRACE, _BRACKET)
        if opens or c == _QUOTE:
            if depth == 0 and c != _BRACE:
                return BROKEN
            if inside and depth == 2:
                if place > _VALUE:
                    return BROKEN
                place = _AFTER
            if not opens:
                in_string = True
                continue
            if depth == base and (inside or wanted == SEQUENCE or (n_objects == 0 and base == 0)):
                start, deepest, is_open = i, 0, True
            n_objects += depth == 0
            depth += 1
            if depth < KINDS_KNOWN:
                kinds[depth] = c
            if is_open:
                deepest = max(deepest, depth - base)
            if c == _BRACKET and array == 0:
                array = depth - 1
                if array == 1:
                    inside, place = n_arrays == wanted, _FIRST
                    n_arrays += 1
                if wanted == SURVEY and is_open:
                    spans[n, 0], spans[n, 1], spans[n, 2] = start, i + 1, deepest
                    n += 1
                    is_open = False
        elif c in (_END_BRACE, _END_BRACKET):
            if depth == 0 or (depth < KINDS_KNOWN and kinds[depth] != c - 2):
                return BROKEN
            if inside and depth == 2:
                if place == _VALUE:
                    return BROKEN
                inside = False
            depth -= 1
            if array == depth and array > 0:
                array = 0
                if wanted == SURVEY and n_objects == 1:
                    start, deepest, is_open = i, 0, True
            if is_open and depth == base:
                spans[n, 0], spans[n, 1], spans[n, 2] = start, i + 1, deepest
                n += 1
                is_open = False
        elif depth == 0:
            if c not in (_SPACE, _NEWLINE, _RETURN, _TAB, _SEPARATOR):
                return BROKEN
        elif inside and depth == 2:
            if c == _COMMA:
                if place < _SCALAR:
                    return BROKEN
                place = _VALUE
            elif c in (_SPACE, _NEWLINE, _RETURN, _TAB):
                place = _AFTER if place == _SCALAR else place
            elif place == _AFTER:
                return BROKEN
            else:
                place = _SCALAR
    state[DEPTH], state[IN_STRING], state[ESCAPED] = depth, in_string, escaped
    state[OPEN], state[START], state[DEEPEST] = is_open, start - block.size, deepest
    state[PLACE] = place
    state[N_OBJECTS], state[ARRAY], state[N_ARRAYS] = n_objects, array, n_arrays
    return n
