"""The queries that a budget is laid out for: sizes of rectangles, or districts where they lie.

Public input, read into cells of the grid. A district counts as a rectangle of cells of its area and
proportions about its middle: the layout follows how large queries are, not their outlines.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from dpregions.errors import Argument, InputError
from dpregions.geometry.rectangles import Rectangles

if TYPE_CHECKING:
    from dpregions.arrays import Ints
    from dpregions.geometry.grid import Grid

Size = tuple[int, int]
"""Rows and columns of cells."""

Place = tuple[int, int, int, int]
"""A rectangle of cells: ``row0, row1, col0, col1``, inclusive."""

_MOST_GROUPS = 8
"""Groups of districts of like size, which count alike: as many as the default has sizes."""
_GOLDEN = (5**0.5 - 1) / 2
_MOST_NAMED = 20
"""Sizes that are named one by one in words."""


@dataclass(frozen=True)
class Workload:
    """Rectangles by size, or at their places; neither: every size alike."""

    sizes: tuple[Size, ...] = ()
    places: tuple[Place, ...] = ()

    @classmethod
    def of(cls, given: Any, grid: Grid) -> Workload:
        """Read what a user gives, or say why it cannot be."""
        if given is None:
            return ALL_SIZES
        if isinstance(given, cls):
            return given
        if _are_shapes(given):
            return cls(places=_places(given, grid))
        return cls(sizes=tuple(workload_sizes(given, grid)))

    def on(self, shape: Size, grid: Size) -> Workload:
        """Return the same on a grid of another size that stands for the first."""
        rows, cols = shape
        if self.places:
            scale = np.array([rows / grid[0]] * 2 + [cols / grid[1]] * 2)
            low = np.floor(np.array(self.places) * scale).astype(np.int64)
            return Workload(places=tuple(map(tuple, low.tolist())))
        sizes = self.sizes or tuple(Rectangles(rows, cols).sizes())
        return Workload(sizes=tuple((min(h, rows), min(w, cols)) for h, w in sizes))

    def groups(self) -> list[Ints]:
        """Return the places in groups of like area, as arrays ``row0, row1, col0, col1``."""
        found = np.array(self.places, np.int64).T
        area = (found[1] - found[0] + 1) * (found[3] - found[2] + 1)
        # Those of one area in an order of their own: neighbours would all be busy, or none of them.
        order = np.lexsort(((np.arange(len(area)) * _GOLDEN) % 1.0, area))
        return [found[:, some] for some in np.array_split(order, min(_MOST_GROUPS, len(order)))]

    def in_words(self) -> str:
        """Return what it is in plain words, on one line."""
        if self.places:
            area = [(r1 - r0 + 1) * (c1 - c0 + 1) for r0, r1, c0, c1 in self.places]
            return f"{len(area):,} districts of about {min(area):,} to {max(area):,} cells"
        if not self.sizes:
            low, high = Rectangles.SHARES[0], Rectangles.SHARES[-1]
            return f"rectangles of {low:.0%} to {high:.0%} of the area"
        named = ", ".join(f"{h} x {w}" for h, w in self.sizes[:_MOST_NAMED])
        more = len(self.sizes) - _MOST_NAMED
        others = f" and {more} more sizes" if more > 0 else ""
        return f"rectangles of {named}{others} (rows x columns of cells)"


ALL_SIZES = Workload()
"""The default: near-square rectangles from 1 % to 100 % of the area, each size alike."""


def _are_shapes(given: Any) -> bool:
    """Whether a workload is of geometries: it has a geometry, or its first entry is one."""
    if hasattr(given, "geom_type") or hasattr(given, "geometry"):
        return True
    several = isinstance(given, Sequence | np.ndarray) and not isinstance(given, str)
    return several and len(given) > 0 and hasattr(given[0], "geom_type")


def _places(given: Any, grid: Grid) -> tuple[Place, ...]:
    """Return the rectangle of cells that stands for each district; those outside are left out."""
    import shapely

    shapes = grid.shapes_of(given)
    if not np.isin(shapely.get_type_id(shapes), (3, 6)).all():
        raise InputError(
            Argument("workload"), " must be of polygons, or of sizes: points and lines have no area"
        )
    inside = shapely.clip_by_rect(shapes, *grid.bounds)
    inside = inside[shapely.area(inside) > 0]
    if not inside.size:
        raise InputError(
            Argument("workload"), " has no polygon that lies in the area: give those that do"
        )
    bounds = shapely.bounds(inside)
    low = (bounds[:, :2] - (grid.xmin, grid.ymin)) / grid.cell_size
    high = (bounds[:, 2:] - (grid.xmin, grid.ymin)) / grid.cell_size
    sides = high - low
    # As wide and high as their box, made smaller until they have their own area.
    slim = np.sqrt(shapely.area(inside) / grid.cell_size**2 / sides.prod(axis=1))
    most = np.array([grid.n_cols, grid.n_rows])
    cells = np.clip(np.rint(sides * slim[:, None]), 1, most).astype(np.int64)
    first = np.clip(np.rint((low + high - cells) / 2).astype(np.int64), 0, most - cells)
    last = first + cells - 1
    found = np.stack([first[:, 1], last[:, 1], first[:, 0], last[:, 0]], axis=1)
    return tuple(map(tuple, found.tolist()))


def workload_sizes(workload: Any, grid: Grid) -> list[Size]:
    """Return a user's sizes of rectangles as (rows, cols), in cells, or say why they cannot be."""
    if isinstance(workload, str) or not isinstance(workload, Sequence) or not workload:
        raise InputError(
            Argument("workload"),
            f" must be a sequence of sizes, each a side or a pair (width, height), such as "
            f"['2km', ('4km', '1km')], or of polygons, got {workload!r}",
        )
    found = []
    for size in workload:
        sides: Any = (size, size) if isinstance(size, str | Real) else size
        if not isinstance(sides, Sequence) or len(sides) != 2:
            raise InputError(
                f"a size of a workload is a side or a pair, got {size!r}", argument="workload"
            )
        width, height = (math.ceil(grid.in_cells(side, "workload")) for side in sides)
        if width > grid.n_cols or height > grid.n_rows:
            raise InputError(
                f"the workload's size {size!r} is {height} x {width} cells, but the area has only "
                f"{grid.n_rows} x {grid.n_cols}",
                argument="workload",
            )
        found.append((height, width))
    return found
