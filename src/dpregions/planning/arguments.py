"""The public parameters of a plan, read and refused: grids, queries, epsilons, a target.

Nothing here runs a mechanism.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from dpregions.crs import projected_crs
from dpregions.errors import Argument, GridError, InputError, InputTypeError
from dpregions.geometry.grid import Grid
from dpregions.geometry.rectangles import Rectangles
from dpregions.lengths import positive_length, quotient, shown_area, shown_length
from dpregions.privacy.budget import Budget

MOST_REGIONS = 10**10
"""More users than people: a slip of the finger."""

SAME_SIZE = 1.15
"""A query that whole cells enlarge by no more than this, in area, is answered as asked."""


def square_grids(side: float | str, cell_sizes: Iterable[float | str]) -> list[Grid]:
    """Return grids of one square area whose place does not matter, one a cell size.

    Parameters
    ----------
    side : float or str
        Of the area: metres, or text such as ``"20km"``.
    cell_sizes : iterable of float or str
        Likewise.

    Examples
    --------
    >>> [grid.shape for grid in square_grids("20km", ["1km", "2km"])]
    [(20, 20), (10, 10)]
    """
    crs = projected_crs(32631)  # errors do not depend on where the area is
    length = positive_length(side, name="side", crs=crs)
    grids = []
    for size in cell_sizes:
        cell = positive_length(size, name="cell_sizes", crs=crs)
        if cell > length:
            raise GridError(
                *(Argument("cell_sizes", repr(size)), " is larger than the area, "),
                *(Argument("side", repr(side)), ": use smaller cells"),
            )
        n = math.ceil(quotient(length, cell))
        grids.append(Grid(0.0, 0.0, cell, n, n, crs=crs))
    return grids


@dataclass(frozen=True)
class Query:
    """A size of query: the side of a square, or a share of the area."""

    label: str
    side: Any = None
    share: float | None = None

    def cells(self, grid: Grid) -> tuple[int, int] | None:
        """Return the rows and columns of cells that answer it; None: it is smaller than a cell.

        A square is enlarged to whole cells, as every query is. A share is the near-square
        rectangle nearest it, as in the studies.
        """
        if self.share is not None:
            shown = self.asked_cells(grid) * SAME_SIZE >= 1
            return Rectangles(*grid.shape).shape_of(self.share) if shown else None
        n = grid.in_cells(self.side)
        return None if n < 1 else (math.ceil(n), math.ceil(n))

    def asked_cells(self, grid: Grid) -> float:
        """Return the area asked about, in cells."""
        if self.share is not None:
            return self.share * grid.n_rows * grid.n_cols
        return float(grid.in_cells(self.side)) ** 2

    def fits(self, grid: Grid) -> bool:
        """Tell whether whole cells answer it about as it was asked."""
        cells = self.cells(grid)
        return cells is not None and math.prod(cells) <= SAME_SIZE * self.asked_cells(grid)


def read_queries(queries: Iterable[Any], grids: Sequence[Grid]) -> list[Query]:
    """Return sizes of queries, each once, none larger than the area."""
    return list(dict.fromkeys(_query(value, grids) for value in listed(queries, "queries")))


def _query(value: Any, grids: Sequence[Grid]) -> Query:
    given = Argument("queries", repr(value))
    if isinstance(value, str) and value.strip().endswith("%"):
        share = _percent(value, given)
        if not 0 < share <= 1:
            raise InputError(given, " must be above 0 % and at most 100 % of the area")
        return Query(f"{100 * share:.6g} %", share=share)
    for grid in grids:
        n = math.ceil(grid.in_cells(value, "queries"))
        if n > min(grid.shape):
            raise InputError(
                given,
                f" is larger than the area, which is {shown_area(grid)}: ask for a smaller side, "
                f"or for a share of the area such as 50%",
            )
    return Query(shown_length(float(grids[0].length(value, "queries")), grids[0]), side=value)


def read_grids(grids: Any) -> list[Grid]:
    """Return the grids of one area, from fine to coarse; refuse grids of different areas."""
    found = [grids] if isinstance(grids, Grid) else list(grids) if _many(grids) else []
    if not found or not all(isinstance(grid, Grid) for grid in found):
        raise InputTypeError(
            Argument("grids"),
            f" must be a Grid or several of the same area, got {grids!r}: for example "
            f"square_grids('20km', ['500m', '1km'])",
        )
    found = sorted(dict.fromkeys(found), key=lambda grid: grid.cell_size)
    coarsest = found[-1].cell_size
    for grid in found[1:]:
        gaps = [abs(a - b) for a, b in zip(grid.bounds, found[0].bounds, strict=True)]
        if (grid.crs != found[0].crs) or max(gaps) > coarsest:
            several = f" must be of one area, but {found[0]!r} and {grid!r} are not"
            raise GridError(Argument("grids"), several)
    return found


def read_bound(max_diameter: Any, grids: Sequence[Grid]) -> str:
    """Return the label of a bound that fits into the area."""
    for grid in grids:
        if grid.in_cells(max_diameter, "max_diameter") > max(grid.shape):
            raise InputError(
                Argument("max_diameter", repr(max_diameter)),
                f" is larger than the area, which is {shown_area(grid)}: choose one that fits "
                f"into it",
            )
    return shown_length(float(grids[0].length(max_diameter, "max_diameter")), grids[0])


def read_epsilons(epsilons: Any) -> list[Budget]:
    """Return budgets, each once, from small to large."""
    values = listed([epsilons] if isinstance(epsilons, Real | Budget) else epsilons, "epsilons")
    found = []
    for value in values:
        try:
            found.append(Budget(_number(value)))
        except InputError:
            raise InputError(
                Argument("epsilons"),
                f" must be finite numbers greater than 0, such as 0.1 or 1, got {value!r}",
            ) from None
    return sorted(dict.fromkeys(found), key=float)


def read_regions_number(n_regions: Any) -> int:
    """Return about how many regions there are."""
    number = _real(_number(n_regions))
    if not 1 <= number <= MOST_REGIONS:
        raise InputError(
            Argument("n_regions"),
            f" must be about how many regions there are, from 1 to {MOST_REGIONS:,}, got "
            f"{n_regions!r}",
        )
    return round(number)


def read_target(target: Any) -> float:
    """Return the error aimed at, as a share: 0.05 or "5%"."""
    number = (
        _percent(target, Argument("target", repr(target)))
        if isinstance(target, str)
        else _number(target)
    )
    if not 0 < _real(number) < 1:
        raise InputError(
            Argument("target"),
            f" must lie above 0 % and below 100 %, such as 5% (or 0.05), got {target!r}",
        )
    return float(number)


def read_methods(methods: Any, known: Iterable[str]) -> list[str]:
    """Return methods by name, each once."""
    found = list(
        dict.fromkeys(listed([methods] if isinstance(methods, str) else methods, "methods"))
    )
    for method in found:
        if method not in known:
            unknown = Argument("method", repr(method)), f" is unknown: use {' or '.join(known)}"
            raise InputError(*unknown, argument="methods")
    return found


def listed(values: Any, name: str) -> list[Any]:
    """Return a list of one or more; refuse text, which would be read letter by letter."""
    found = list(values) if _many(values) else []
    if not found:
        raise InputError(Argument(name), f" needs one value or more, in a list, got {values!r}")
    return found


def _many(values: Any) -> bool:
    return isinstance(values, Iterable) and not isinstance(values, str | bytes)


def _number(value: Any) -> Any:
    """Return text as the number it says; anything else as it is."""
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _real(value: Any) -> float:
    """Return a number as a float; 0 for what is none, or not finite."""
    readable = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    return float(value) if readable and math.isfinite(value) else 0.0


def _percent(text: str, given: Argument) -> float:
    """Return "5%" or "0.05" as 0.05."""
    bare = text.strip()
    try:
        return float(bare[:-1]) / 100 if bare.endswith("%") else float(bare)
    except ValueError:
        raise InputError(given, " is no percentage: write for example 5%") from None
