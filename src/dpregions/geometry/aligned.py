"""Areas aligned to lines that others use too: multiples of the cell, or the INSPIRE grid.

Two releases, or a release and a census, can be compared cell by cell only where their lines are the
same. Owns where such lines are; `grid.py` makes the grid.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from dpregions.choices import Align, refuse_other
from dpregions.crs import crs_label, projected_crs, same_crs
from dpregions.errors import Argument, CRSError, GridError
from dpregions.lengths import metres_per_unit

if TYPE_CHECKING:
    from pyproj import CRS

INSPIRE = 3035
"""ETRS89-extended / LAEA Europe, the CRS of the European grids of statistics."""

_WIDEST = 100_000
"""Metres: a side of cells divides it, as those of the grids of 1 m to 100 km do."""


def aligned_crs(align: Align | None, crs: CRS | None) -> CRS | None:
    """Return the CRS that an alignment is in: the given one, or INSPIRE's; refuse another."""
    if align is not None:
        refuse_other(align, Align, "align", GridError)
    if align != "inspire":
        return crs
    wanted = projected_crs(INSPIRE)
    if crs is not None and wanted is not None and not same_crs(crs, wanted):
        raise CRSError(
            Argument("align", "'inspire'"),
            f" is in EPSG:{INSPIRE}, not in {crs_label(crs)}: give that CRS, or none",
            argument="crs",
        )
    return wanted


def refuse_unaligned(align: Align | None, cell: Fraction, crs: CRS | None) -> None:
    """Refuse cells that no INSPIRE grid has."""
    if align != "inspire" or crs is None:
        return
    metres = cell * metres_per_unit(crs)
    if metres.denominator != 1 or _WIDEST % metres:
        raise GridError(
            Argument("cell_size", f"'{float(metres):g} m'"),
            " is no side of cells in an INSPIRE grid: take one that divides 100 km, such as "
            "100 m, 250 m, 1km, 5km or 10km",
        )


def aligned(low: Fraction, high: Fraction, cell: Fraction) -> tuple[Fraction, int]:
    """Return the last multiple of the cell at or below `low`, and how many cells reach `high`."""
    first, last = math.floor(low / cell), math.ceil(high / cell)
    return first * cell, max(last - first, 1)
