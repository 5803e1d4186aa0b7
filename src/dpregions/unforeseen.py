"""The last line of defence: what nobody foresaw is reported by its type alone.

Another library's message may quote a record, so none is passed on, nor kept as an error's cause
or context. Errors of our own pass, as they hold public values only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from dpregions.errors import DPRegionsError, UnforeseenError

T = TypeVar("T")

READING = "reading the regions"


def foreseen(call: Callable[[], T], doing: str) -> T:
    """Return what a call returns; where it fails in an unforeseen way, raise its type alone.

    Parameters
    ----------
    call : callable
        The work that touches records.
    doing : str
        What it does, for the message: "reading the regions".
    """
    failure: BaseException
    try:
        return call()
    except DPRegionsError as error:
        failure = error
    except Exception as error:
        failure = stopped_by(error) or UnforeseenError(
            f"{doing} failed in an unforeseen way ({type(error).__name__}), and nothing was "
            f"released. What it said is not shown, as it may quote a record"
        )
    # Raised out here: within the handler, the new error's context would hold the old one.
    failure.__cause__ = failure.__context__ = None
    raise failure


def stopped_by(error: BaseException) -> BaseException | None:
    """Return the Ctrl-C that an error hides: compiled code makes a SystemError of it."""
    found: BaseException | None = error
    while found is not None and isinstance(found, Exception):
        found = found.__cause__ or found.__context__
    return found


def foreseen_items(items: Iterator[T], doing: str) -> Iterator[T]:
    """Yield items; where making one fails in an unforeseen way, raise its type alone."""
    end = object()
    while (item := foreseen(lambda: next(items, end), doing)) is not end:
        yield item  # type: ignore[misc]
