"""Work that takes longer than a look-up: in threads, few at a time, each request for so long.

A thread cannot be stopped, so work is cut into parts and looks at its `Deadline` between them. Who
comes when the queue is full is told so at once.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from dpregions.web.problems import Problem
from dpregions.web.settings import Limits

T = TypeVar("T")


class Deadline:
    """When work for a request has to end: whoever works in parts looks here between them."""

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self._end = None if seconds is None else time.monotonic() + seconds

    @property
    def left(self) -> float | None:
        """Seconds until then; None: as many as it takes."""
        return None if self._end is None else max(self._end - time.monotonic(), 0)

    def check(self) -> None:
        """Refuse to go on after the end."""
        if self.left == 0:
            raise self.problem()

    def problem(self) -> Problem:
        """Return what is said to who asked for too much."""
        return Problem(
            "too-long",
            413,
            f"the answer takes longer than {self._seconds:g} seconds: ask in parts, or about "
            f"simpler shapes",
        )


class Workshop:
    """The threads that answer costly requests."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._threads = ThreadPoolExecutor(limits.at_work, "dpregions")
        self._asked = 0

    async def do(self, work: Callable[[Deadline], T], *, bounded: bool = True) -> T:
        """Return what some work gives; refuse it where too many wait.

        Waiting counts as part of the time that a request has. Work that is not `bounded` is done
        once, and its result kept: it may take longer.
        """
        if self._asked >= self._limits.at_work + self._limits.waiting:
            raise Problem(
                "too-many",
                429,
                f"{self._asked} requests are being answered or wait: come back in a second",
                headers={"Retry-After": "1"},
            )
        deadline = Deadline(self._limits.seconds if bounded else None)

        def part() -> T:
            deadline.check()
            return work(deadline)

        self._asked += 1
        future = asyncio.get_running_loop().run_in_executor(self._threads, part)
        future.add_done_callback(self._one_less)  # a thread that goes on is still at work
        try:
            return await asyncio.wait_for(asyncio.shield(future), deadline.left)
        except TimeoutError:
            raise deadline.problem() from None

    def _one_less(self, future: asyncio.Future[Any]) -> None:
        self._asked -= 1
        if not future.cancelled():
            future.exception()  # nobody may be there any more to hear of it

    def close(self) -> None:
        """Let work that has begun end; drop what waits."""
        self._threads.shutdown(wait=False, cancel_futures=True)
