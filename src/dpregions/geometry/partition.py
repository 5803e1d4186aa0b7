"""`Partition`: any cells as the public domain of a histogram, and the rules for bodies on them.

A partition is a public choice, as a grid is, never read off the data. This module owns what it is
made of, how it is named and shown, and how regions become bodies on it. The integers are in
`complexes.py`, how cells become integers in `tilings.py`, the walk in `complex_kernel.py`.
"""

from __future__ import annotations

import math
import warnings
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from dpregions.crs import crs_label, same_crs
from dpregions.errors import (
    Argument,
    DPRegionsWarning,
    GridError,
    InputTypeError,
)
from dpregions.geometry.complexes import ACROSS, Complex
from dpregions.geometry.counted_cells import CountedCells
from dpregions.geometry.drawn_cells import (
    checked_polygons,
    checked_sites,
    convex_area,
    cut_inside,
    hexagon_cells,
    one_projected_crs,
    places_of,
)
from dpregions.geometry.jung import odd_cap
from dpregions.geometry.lattice import REACH, STEPS
from dpregions.geometry.partition_views import drawn, layer_of
from dpregions.geometry.tilings import TOLERANCE, Lattice, complex_of_grid, named, tiled
from dpregions.geometry.voronoi import voronoi_complex
from dpregions.lengths import positive_length

if TYPE_CHECKING:
    import geopandas
    import shapely
    from numpy.typing import NDArray
    from pyproj import CRS

    from dpregions.choices import Kind
    from dpregions.geometry.grid import Grid
    from dpregions.geometry.layers import Layer


class Partition(CountedCells):
    """Cells that tile an area of a projected plane: Voronoi cells, hexagons, any polygons.

    Make one with `voronoi`, `hexagons`, `from_polygons` or `from_grid`. Components are numbered
    faces first, in the caller's order, then inner edges, then inner vertices.

    Examples
    --------
    >>> from dpregions import Partition
    >>> masts = [(1, 1), (8, 2), (3, 7), (9, 9)]
    >>> Partition.voronoi(masts, (0, 0, 10, 10), labels=["a", "b", "c", "d"])
    Partition(4 cells by voronoi, 5 edges, 2 vertices)
    """

    def __init__(
        self,
        complex_: Complex,
        labels: list[Any],
        crs: CRS | None,
        made_by: str,
        grid: Grid | None = None,
        cap: int | None = None,
    ) -> None:
        self._complex, self._labels, self._crs = complex_, tuple(labels), crs
        self._made_by, self._grid, self._cap = made_by, grid, cap

    # -- how one is made -----------------------------------------------------------------------

    @classmethod
    def voronoi(cls, sites: Any, area: Any, *, labels: Any = None, crs: Any = None) -> Self:
        """Make the cells of places that are nearest to each of some sites.

        Parameters
        ----------
        sites : GeoDataFrame, GeoSeries, array of points or array (n, 2)
            Two or more, inside the area. They are public: never take them from the data.
        area : shapely.Polygon, tuple, Grid or Partition
            Convex; or the bounds ``xmin, ymin, xmax, ymax``; or the area of another one.
        labels : str or array, optional
            A column of `sites`, or a label for each; by default the index.
        crs : optional
            The CRS of what carries none; a projected one.
        """
        found = one_projected_crs(crs, sites=sites, area=area)
        xy, labels = places_of(sites, labels)
        lattice, ring = convex_area(area)
        steps = checked_sites(xy, labels, lattice, ring)
        made = voronoi_complex(steps, labels, lattice, ring)
        return cls(made, labels, found, "voronoi")

    @classmethod
    def hexagons(cls, area: Any, size: float | str, *, crs: Any = None) -> Self:
        """Make regular hexagons that cover an area, cut at its border.

        Parameters
        ----------
        area : shapely.Polygon, tuple, Grid or Partition
            Convex; or the bounds ``xmin, ymin, xmax, ymax``; or the area of another one.
        size : float or str
            From one side of a hexagon to the opposite one, which is also how far the centres of
            neighbours are apart: a number in CRS units, or text such as ``"500m"``.
        crs : optional
            The CRS of an area that carries none; a projected one.

        Examples
        --------
        >>> from dpregions import Partition
        >>> Partition.hexagons((0, 0, 10, 10), 4)
        Partition(17 cells by hexagons, 32 edges, 16 vertices)
        """
        found = one_projected_crs(crs, area=area)
        lattice, ring = convex_area(area)
        length = float(positive_length(size, name="size", crs=found))
        cells, ring = hexagon_cells(length, lattice, ring)
        labels = list(range(len(cells)))
        return cls(tiled(cells, labels, lattice, area=ring), labels, found, "hexagons")

    @classmethod
    def from_polygons(
        cls,
        polygons: Any,
        *,
        labels: Any = None,
        tolerance: float | str | None = None,
        convex: bool = True,
        crs: Any = None,
    ) -> Self:
        """Make a partition of polygons that tile an area.

        Parameters
        ----------
        polygons : GeoDataFrame, GeoSeries or array of polygons
            Valid, without holes, without overlaps or gaps beyond the tolerance.
        labels : str or array, optional
            A column of `polygons`, or a label for each; by default the index.
        tolerance : float or str, optional
            Corners nearer than this become one, and lie on a side that is nearer: a number in CRS
            units, or text such as ``"1m"``. By default about 4e-9 of the area's width.
        convex : bool
            Refuse cells, or a union of all, that are not convex. With False they are allowed:
            single cells count exactly, but a body may meet the union of several in more than one
            piece, and every sum over several is an approximation.
        crs : optional
            The CRS of polygons that carry none; a projected one.
        """
        import shapely

        if not isinstance(convex, bool | np.bool_):
            raise InputTypeError(Argument("convex"), f" must be True or False, got {convex!r}")
        found = one_projected_crs(crs, polygons=polygons)
        shapes, labels = checked_polygons(polygons, labels)
        lattice = Lattice.over(*shapely.total_bounds(shapes))
        steps = TOLERANCE
        if tolerance is not None:
            length = positive_length(tolerance, name="tolerance", crs=found)
            steps = max(math.ceil(length / Fraction(lattice.step)), TOLERANCE)
            if steps > ACROSS >> 6:
                raise GridError(
                    Argument("tolerance", repr(tolerance)),
                    " is more than a sixty-fourth of the area's width: use a smaller one",
                )
        made = tiled(shapes, labels, lattice, tolerance=steps)
        if not made.is_convex and convex:
            return cls(made, labels, found, "polygons")._refuse_reflex()
        if made.is_convex and not made.is_strict:
            made = cut_inside(made)
        return cls(made, labels, found, "polygons")

    @classmethod
    def from_grid(cls, grid: Grid) -> Self:
        """Make the cells of a grid, row by row, on its own lattice: counts are the grid's.

        Examples
        --------
        >>> from dpregions import Grid, Partition
        >>> Partition.from_grid(Grid(0, 0, 1, n_rows=2, n_cols=3))
        Partition(6 cells by grid, 7 edges, 2 vertices)
        """
        from dpregions.geometry.grid import Grid

        if not isinstance(grid, Grid):
            raise InputTypeError(Argument("grid"), f" must be a Grid, got {type(grid).__name__}")
        most = ACROSS // STEPS
        if max(grid.shape) > most:
            raise GridError(
                f"{grid.size_in_words} has more than {most} cells along a side: as a partition use "
                f"larger cells, or count on the grid itself"
            )
        labels = list(range(grid.n_rows * grid.n_cols))
        return cls(complex_of_grid(grid), labels, grid.crs, "grid", grid)

    def _refuse_reflex(self) -> Self:
        """Refuse cells that are not convex, or whose union is not, by their labels."""
        if self._complex.is_convex:
            return self
        c = self._complex
        reflex = np.unique(c.side_face[c.side_turn < 0])
        what = (
            f"cells are not convex: {named(self._labels, reflex)}"
            if reflex.size
            else ("the cells are convex, but not their union")
        )
        raise GridError(
            f"{what}. Counts over several cells would be approximations: allow that with ",
            Argument("convex", "False"),
            ", or use convex cells (a Voronoi diagram, hexagons)",
        )

    # -- what it is ----------------------------------------------------------------------------

    @property
    def complex(self) -> Complex:
        """The integers: rings of lattice points, and what meets what."""
        return self._complex

    @property
    def crs(self) -> CRS | None:
        """The CRS; None for a plane without one."""
        return self._crs

    @property
    def labels(self) -> tuple[Any, ...]:
        """The label of each cell."""
        return self._labels

    @property
    def written_labels(self) -> tuple[Any, ...]:
        """The labels as a column of a file holds them: all texts where some are and some are not.

        Examples
        --------
        >>> from dpregions import Partition
        >>> Partition.voronoi([(1, 1), (2, 2)], (0, 0, 3, 3), labels=["a", 7]).written_labels
        ('a', '7')
        """
        types = {type(label) for label in self._labels}
        return self._labels if len(types) == 1 else tuple(map(str, self._labels))

    @property
    def made_by(self) -> str:
        """How it was made: "voronoi", "hexagons", "polygons" or "grid"."""
        return self._made_by

    @cached_property
    def area(self) -> shapely.Polygon:
        """The area that is counted in."""
        import shapely

        c = self._complex
        ring = c.area if c.area.size else np.stack([c.x[c.border], c.y[c.border]], axis=-1)
        return shapely.Polygon(self.to_coordinates(ring))

    @cached_property
    def bounds(self) -> tuple[float, float, float, float]:
        """``xmin, ymin, xmax, ymax`` of the area."""
        xmin, ymin, xmax, ymax = self.area.bounds
        return xmin, ymin, xmax, ymax

    @property
    def xmin(self) -> float:
        """The left end of the area."""
        return self.bounds[0]

    @property
    def ymin(self) -> float:
        """The lower end of the area."""
        return self.bounds[1]

    @property
    def xmax(self) -> float:
        """The right end of the area."""
        return self.bounds[2]

    @property
    def ymax(self) -> float:
        """The upper end of the area."""
        return self.bounds[3]

    @property
    def n_faces(self) -> int:
        """How many cells there are."""
        return self._complex.n_faces

    n_cells = n_faces

    @property
    def n_edges(self) -> int:
        """How many inner edges there are."""
        return self._complex.n_edges

    @property
    def n_vertices(self) -> int:
        """How many inner vertices there are."""
        return self._complex.n_vertices

    @property
    def n_components(self) -> int:
        """How many faces, inner edges and inner vertices there are together."""
        return self._complex.n_components

    @property
    def kinds(self) -> NDArray[np.int8]:
        """What each component is: 0 a face, 1 an edge, 2 a vertex."""
        return self._complex.kinds

    @property
    def is_convex(self) -> bool:
        """Whether cells and area are convex, so that F - E + V = 1 holds for every body."""
        return self._complex.is_convex

    @property
    def step(self) -> float:
        """The length of a lattice step, in CRS units."""
        return self._complex.step

    def capped(self, cap: int) -> Self:
        """Return the same cells, on which no region may touch more components than `cap`.

        Public, chosen without looking at the data: a region that touches more is shrunk until it
        does not. The sensitivity of the paper's method is then at most that. An odd number.
        """
        if not self.is_convex:
            raise GridError(
                Argument("cap"), " can be enforced on convex partitions alone: leave it out"
            )
        most = odd_cap(cap)
        if most > self.n_components:
            raise GridError(
                Argument("cap", str(most) if most < 1 << 63 else "..."),
                f" is more than the {self.n_components:,} components there are: leave it out",
            )
        made = type(self)(
            self._complex, list(self._labels), self._crs, self._made_by, self._grid, most
        )
        made.__dict__.update({k: v for k, v in self.__dict__.items() if k not in made.__dict__})
        return made

    def __repr__(self) -> str:
        """Return how it was made and how large it is; flagged where it is not convex."""
        crs = "" if self._crs is None else f", crs={crs_label(self._crs)!r}"
        flag = "" if self.is_convex else ", NOT CONVEX"
        flag += "" if self._cap is None else f", cap={self._cap}"
        sizes = f"{self.n_faces:,} cells by {self._made_by}, {self.n_edges:,} edges"
        return f"Partition({sizes}, {self.n_vertices:,} vertices{crs}{flag})"

    def __eq__(self, other: object) -> bool:
        """Whether cells, labels and CRS are the same."""
        if not isinstance(other, Partition):
            return NotImplemented
        if (self._crs is None) != (other._crs is None):
            return False
        if (self._grid, self._cap) != (other._grid, other._cap):
            return False
        if self._crs is not None and not same_crs(self._crs, other._crs):  # type: ignore[arg-type]
            return False
        return self._labels == other._labels and self._complex == other._complex

    def __hash__(self) -> int:
        """Return a number that equal partitions share."""
        return hash((self._labels, self._complex))

    # -- queries -------------------------------------------------------------------------------

    def is_exact(self, *query: Any, crs: Any = None, cells: Any = None) -> Any:
        """Tell whether a query's cells are one cell or a convex set, so that its count is exact."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DPRegionsWarning)
            selection = self.select(query, crs, cells=cells)
        return selection.wrap(selection.exact, "exact")

    @cached_property
    def face_tree(self) -> shapely.STRtree:
        """The faces in lattice steps, to be searched."""
        import shapely

        c = self._complex
        xy = np.stack([c.x[c.points], c.y[c.points]], axis=-1).astype(np.float64)
        rings = shapely.linearrings(xy, indices=c.side_face)
        return shapely.STRtree(np.asarray(shapely.polygons(rings)))

    def nearest_steps(self, coords: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return coordinates of queries in lattice steps: the nearest ones, as floats."""
        if self._grid is not None:
            return self._grid.snap(*coords.T, nearest=True).astype(np.float64)
        return np.rint((coords - np.array(self._complex.origin)) / self._complex.step)

    @property
    def reach(self) -> float:
        """How far from the area's corner, in CRS units, coordinates are places."""
        return float(REACH) * STEPS * self._complex.step

    # -- seen and saved ------------------------------------------------------------------------

    def to_coordinates(self, steps: NDArray[Any]) -> NDArray[np.float64]:
        """Return lattice steps, (n, 2), as coordinates."""
        origin = np.array(self._complex.origin)
        if self._grid is not None:
            return origin + (steps / STEPS) * self._grid.cell_size
        return origin + steps * self._complex.step

    def to_geodataframe(self, kind: Kind = "faces") -> geopandas.GeoDataFrame:
        """Return the faces, inner edges or inner vertices as geometries.

        Returns
        -------
        geopandas.GeoDataFrame
            `component` is the number of each, so that ``counts[frame["component"]]`` are the
            counts in the frame's order. Faces have their `label`, edges the labels of the two
            cells beside them.
        """
        return self.layer(kind).frame()

    def layer(self, kind: Kind = "faces") -> Layer:
        """Return what `to_geodataframe` does, as a layer."""
        return layer_of(self, kind)

    def blocks_layer(self, block: int) -> Layer:
        """Return the cells as geometries: there are no blocks of several."""
        self.blocks_shape(block)
        return self.layer("faces")

    def draw(self, ax: Any, values: NDArray[Any], style: dict[str, Any]) -> Any:
        """Draw a value for each face on matplotlib axes; return what colours it."""
        look = {"edgecolor": "face", "linewidth": 0.2} | style
        limits = look.pop("vmin", None), look.pop("vmax", None)
        self.plot(ax, array=values, **look)
        drawn = ax.collections[-1]
        drawn.set_clim(*limits)
        return drawn

    def plot(self, ax: Any = None, **style: Any) -> Any:
        """Draw the cells (the extra `plot`); return the axes.

        `style` goes to matplotlib's PolyCollection.
        """
        return drawn(self, ax, style)

    def to_json(self) -> str:
        """Return the partition as JSON text; `from_json` reads it back to an equal one."""
        from dpregions.geometry.partition_text import partition_to_text

        made = (self._complex, self._labels, self._crs, self._made_by, self._grid)
        return partition_to_text(*made, self._cap)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the partition that `to_json` wrote; anything that is not one is refused."""
        from dpregions.geometry.partition_text import partition_from_text

        found = partition_from_text(text)
        *parts, grid, cap = found
        made = cls(*parts) if grid is None else cls.from_grid(grid)
        return made if cap is None else made.capped(cap)

    def to_file(self, path: Path | str) -> None:
        """Write the partition as GeoParquet: the cells for people, the integers in its metadata."""
        from dpregions.geometry.partition_text import write_partition

        cells = self.to_geodataframe("faces").assign(label=list(self.written_labels))
        write_partition(Path(path), cells, self.to_json())

    @classmethod
    def from_file(cls, path: Path | str) -> Self:
        """Return the partition in a file that `to_file` wrote, once it is proved to be one."""
        from dpregions.geometry.partition_text import read_partition

        return cls.from_json(read_partition(Path(path)))
