"""`Domain`: what a histogram lives on, whether its cells are squares or any other convex shapes.

A domain is public. It owns how regions become outlines on its lattice, how outlines are counted on
its faces, inner edges and inner vertices, and which of these a query sums. Everything else
(mechanisms, releases, files, exports) asks a domain and never which kind it is.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol, Self

from dpregions.errors import Argument, InputTypeError
from dpregions.geometry.grid import Grid
from dpregions.geometry.partition import Partition

if TYPE_CHECKING:
    import geopandas
    import numpy as np
    from numpy.typing import NDArray
    from pyproj import CRS

    from dpregions.choices import Kind, Oversize, Within
    from dpregions.geometry.bases import Base
    from dpregions.geometry.layers import Layer
    from dpregions.geometry.outlines import Bound, Outlines


class Counter(Protocol):
    """Counts of bodies on the components of a domain, while they are added."""

    @property
    def nbytes(self) -> int:
        """How much memory it holds."""

    def add(self, outlines: Outlines) -> None:
        """Add bodies by their outlines."""

    def __iadd__(self, other: Any) -> Self:
        """Add what another part on the same domain counted."""

    def histogram(self) -> NDArray[np.int64]:
        """Return the counts of all components, in the domain's shape."""


class Domain(Protocol):
    """A public area that is cut into cells: `Grid` or `Partition`."""

    @property
    def crs(self) -> CRS | None:
        """The projected CRS of its coordinates."""

    @property
    def form(self) -> str:
        """What its cells are: "grid", "voronoi", "hexagons" or "polygons"."""

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """The area's extent as ``(xmin, ymin, xmax, ymax)``."""

    @property
    def counts_shape(self) -> tuple[int, ...]:
        """The shape of an array of counts; row by row it has the components in their order."""

    @property
    def kinds(self) -> NDArray[np.int8]:
        """0 for a face, 1 for an inner edge, 2 for an inner vertex, in `counts_shape`."""

    def split(self, counts: NDArray[Any]) -> tuple[NDArray[Any], Any, NDArray[Any]]:
        """Return the values of faces, of inner edges and of inner vertices."""

    @property
    def place_names(self) -> tuple[str, ...]:
        """The names of what `places` returns."""

    def places(self) -> dict[str, NDArray[np.int32]]:
        """Return what tells the components apart in a table, in their order."""

    @property
    def n_components(self) -> int:
        """How many faces, inner edges and inner vertices there are together."""

    @property
    def cells_in_words(self) -> str:
        """How many cells there are, for a message."""

    @property
    def enforced_in_words(self) -> str:
        """What it enforces on regions beside their diameter, for the privacy statement."""

    @property
    def size_in_words(self) -> str:
        """How large it is, for a message."""

    def length(self, value: float | str, name: str = "length") -> Fraction:
        """Return a positive length in CRS units, exactly; text such as ``"2km"`` is read."""

    def in_cells(self, value: float | str, name: str = "length") -> Fraction:
        """Return a positive length in cell sides, or in mean distances between cells."""

    def bound(self, max_diameter: float | str, oversize: Oversize) -> Bound:
        """Return the bound that `max_diameter` sets, as the integers that enforce it."""

    def most_touched(self, bound: Bound) -> int:
        """Return how many components a body within the bound touches at most."""

    def bases(self, bound: Bound) -> tuple[Base, ...]:
        """Return the grids that regions may be measured on, from large cells to small ones."""

    def touching(self, outlines: Outlines) -> NDArray[np.bool_]:
        """Say which bodies touch a cell."""

    def outlines(
        self, coords: NDArray[np.float64], starts: NDArray[np.int64], bound: Bound | None
    ) -> Outlines:
        """Return the bounded outlines of records: record i has points from ``starts[i]`` on."""

    def counter(self) -> Counter:
        """Return counts of nothing, to add to."""

    def table(self, counts: NDArray[Any]) -> Any:
        """Return counts ready to be summed over queries."""

    def look_up(
        self, query: tuple[Any, ...], crs: Any, within: Within | None
    ) -> tuple[int, int, int, int] | None:
        """Return the rectangle of cells that answers one query of plain numbers, if any."""

    def select(
        self,
        query: tuple[Any, ...],
        crs: Any = None,
        *,
        cells: Any = None,
        within: Within | None = "cells",
        once: bool = False,
        stacklevel: int | None = 2,
    ) -> Any:
        """Return what queries touch, in any accepted form, warning where due.

        `cells` are labels instead of a query. With `once`, whoever answers counts nobody twice.
        With a `stacklevel` of None there is no warning.
        """

    def blocks_shape(self, block: int) -> tuple[int, ...]:
        """Return the shape of an array with a value for each block of cells; refuse other sizes."""

    def select_blocks(self, block: int, start: int, stop: int) -> Any:
        """Return the blocks from number `start` to `stop`, row by row, as what is asked about."""

    def blocks_layer(self, block: int) -> Layer:
        """Return all blocks as geometries, row by row; those of one cell are the faces."""

    def draw(self, ax: Any, values: NDArray[Any], style: dict[str, Any]) -> Any:
        """Draw a value for each face on matplotlib axes; return what colours it."""

    def to_json(self) -> str:
        """Return the domain as JSON text."""

    def to_geodataframe(self, kind: Kind = "faces") -> geopandas.GeoDataFrame:
        """Return the faces, inner edges or inner vertices as geometries."""

    def layer(self, kind: Kind = "faces") -> Layer:
        """Return what `to_geodataframe` does, as a layer: columns and geometries."""


def check_domain(grid: object) -> None:
    """Refuse what is neither a `Grid` nor a `Partition`, where one is needed."""
    if not isinstance(grid, Grid | Partition):
        raise InputTypeError(
            Argument("grid"),
            f" must be a Grid or a Partition, got {type(grid).__name__}: the order is "
            f"(regions, grid, ...)",
        )
