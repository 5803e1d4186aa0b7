"""How much memory work takes, by measured figures, and the refusal of what a machine does not hold.

Every figure is the slope of a process's peak over sizes, rounded up; `benchmarks/memory.py`
measures them again. Guards look at public sizes alone (components, buckets, bodies), and they stand
before the debit: what is refused here costs no epsilon.
"""

from __future__ import annotations

import math
import os
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from dpregions.errors import InputError, Part

PAPER = 90
"""Bytes per component of a release by the paper's method, from counting to its saved file."""

COMPONENT, BUCKET = 60, 250
"""Bytes per component and per bucket of a release by footprints, from counting to its file."""

FILE = 30
"""Bytes per component, per bucket or per part of a tree in a release file, at most."""

PART = 400
"""Bytes per part of an adaptive tree, from its measurement to its file."""

LOADED, LOADED_ENTRY, LOADED_BUCKET = 70, 50, 80
"""Bytes per component, per entry of its lists and per bucket of a release that is read; per bucket
and level 16 more."""

BODY = 700
"""Bytes per synthetic region that is made into a polygon."""


def refuse_beyond(
    needed: float,
    what: str,
    remedy: str | tuple[Part, ...] = "use larger cells or a smaller area",
    error: type[InputError] = InputError,
) -> None:
    """Refuse work that takes more bytes than this process may use."""
    memory = memory_bytes()
    if needed > memory:
        raise error(
            f"{what} takes about {gibibytes(needed)}, and this machine has {gibibytes(memory)} of "
            f"memory: ",
            *((remedy,) if isinstance(remedy, str) else remedy),
        )


def gibibytes(n_bytes: float) -> str:
    """Return a number of bytes in words."""
    return f"{n_bytes / 2**30:,.1f} GiB"


def n_workers(bytes_each: int = 0, cores: int | None = None) -> int:
    """Return how many threads to use: the cores this process may run on, at least 1.

    Fewer where their `bytes_each` would take more than a quarter of memory together.
    """
    room = memory_bytes() / (4 * bytes_each) if bytes_each else math.inf
    return max(1, int(min(cores or n_cores(), room)))


def n_cores(system: Any = os) -> int:
    """Return how many cores this process may run on, 1 where the system does not tell."""
    affinity = getattr(system, "sched_getaffinity", None)  # only Linux has it
    return len(affinity(0)) if affinity else system.cpu_count() or 1


def memory_bytes() -> float:
    """Return the memory that this process may use, infinite where nothing tells.

    The machine's, or less where its container (Linux control groups) or its shell (``ulimit -v``)
    allows less.
    """
    return min(_physical(), _control_groups(), _address_space())


def _physical() -> float:
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):
        return math.inf


def _address_space() -> float:
    try:
        import resource
    except ImportError:
        return math.inf
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    return math.inf if soft == resource.RLIM_INFINITY else float(soft)


@cache
def _control_groups() -> float:
    """Return the least limit among this process's control groups, version 1 or 2, and above."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except (OSError, ValueError):
        return math.inf
    limits = [math.inf]
    for line in lines:
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        if controllers == "":
            limits += _limits(Path("/sys/fs/cgroup"), path, "memory.max")
        elif "memory" in controllers.split(","):
            limits += _limits(Path("/sys/fs/cgroup/memory"), path, "memory.limit_in_bytes")
    return min(limits)


def _limits(root: Path, path: str, name: str) -> list[float]:
    """Return the limits of a group and of those above it; inside a container only the root's is."""
    group = root / path.lstrip("/")
    found = []
    for folder in (group, *group.parents):
        with suppress(OSError, ValueError):  # "max" is no number
            found.append(float((folder / name).read_text()))
        if folder == root:
            break
    return found
