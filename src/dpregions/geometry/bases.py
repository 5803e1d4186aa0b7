"""`Base`: a grid that the regions of a domain are measured on, and the way there in integers.

A grid is its own base. The cells of another partition are of any shape and size: its bases are
grids of squares over its area, whose side is a whole number of the partition's lattice steps. So an
outline is taken to a base without a float, and keeps to the bound that was enforced on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dpregions.geometry.lattice import STEPS
from dpregions.geometry.outlines import Bound, Outlines

if TYPE_CHECKING:
    from dpregions.geometry.grid import Grid


@dataclass(frozen=True)
class Base:
    """A grid, the bound on it, and its side and corner in steps of the domain's lattice."""

    grid: Grid
    bound: Bound
    side: int = STEPS
    corner: tuple[int, int] = (0, 0)
    area: Any = None
    """The polygon that bodies are cut to, where the grid reaches beyond it."""

    @classmethod
    def of_side(
        cls, grid: Grid, side: int, bound: Bound, corner: tuple[int, int], area: Any = None
    ) -> Base:
        """Return the base for outlines within a bound in steps of the domain's lattice.

        The least whole number k of cells with ``steps <= k * side`` bounds the extent there too:
        floor((x + k * side) * STEPS / side) is floor(x * STEPS / side) + k * STEPS.
        """
        k = -(-bound.steps // side)
        return cls(grid, Bound(k, bound.steps * STEPS // side, bound.drop), side, corner, area)

    def outlines(self, outlines: Outlines) -> Outlines:
        """Return outlines of the domain's lattice in that of the grid."""
        if (self.side, self.corner) == (STEPS, (0, 0)):
            return outlines
        return Outlines(outlines.xy - self.corner, outlines.offsets).scaled(STEPS, self.side)
