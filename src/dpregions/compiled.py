"""Loops over arrays: compiled by numba where it is installed, run by Python where it is not.

Reading a release needs no compiler: numba is a speed-up there, and comes with the extra `curator`.
What curators alone run imports numba itself. Owns how such a loop sees its arguments, so that it
finds the same either way: records by their fields' names, and whole numbers modulo 2**64.
"""

from __future__ import annotations

import threading
from collections import namedtuple
from collections.abc import Callable, Iterator
from functools import cache, wraps
from typing import Any

import numpy as np

try:
    from numba import njit
except ImportError:

    def njit(  # type: ignore[no-redef]
        **_: Any,
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Return a decorator that lets Python run a loop as it is written."""
        return interpreted


class _Records:
    """Records of an array, read by number and field as compiled code reads them.

    As Python's numbers, which never overflow.
    """

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self._array = array
        self._record = _record(array.dtype.names or ())

    def __len__(self) -> int:
        return len(self._array)

    def __getitem__(self, i: int) -> Any:
        return self._record(*self._array[i].item())

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))


@cache
def _record(names: tuple[str, ...]) -> Any:
    return namedtuple("Record", names)


class _Depth(threading.local):
    """Whether this thread is inside such a loop already: what it calls has its arguments as is."""

    inside = False


_depth = _Depth()


def interpreted(loop: Callable[..., Any]) -> Callable[..., Any]:
    """Return a loop as Python runs it, to be called as if it were compiled."""

    @wraps(loop)
    def run(*arguments: Any) -> Any:
        if _depth.inside:
            return loop(*arguments)
        _depth.inside = True
        try:
            with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
                return loop(*map(_readable, arguments))
        finally:
            _depth.inside = False

    return run


def _readable(argument: Any) -> Any:
    if isinstance(argument, np.ndarray) and argument.dtype.names:
        return _Records(argument)
    return argument
