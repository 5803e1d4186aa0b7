"""`EulerHistogram`: exact and SECRET. Build, merge, count.

Holds how many regions touch each face, inner edge and inner vertex of a grid. Nothing here
is private: it must never be written to a release, a log or a page. `release` adds the noise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from dpregions import extras
from dpregions.engines.choice import tally_of
from dpregions.errors import InputError, InputTypeError
from dpregions.geometry.domain import check_domain
from dpregions.geometry.outlines import Bound

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dpregions.choices import Oversize
    from dpregions.geometry.domain import Domain

extras.need("curator")

SECRET = "SECRET: exact counts, not differentially private; never publish"


class EulerHistogram:
    """Exact counts of the regions that touch each face, edge and vertex of a grid. Secret.

    For convex regions and a rectangle of cells, faces - edges + vertices inside it is the
    number of regions that touch it: each counted once, however many cells it covers.

    Parameters
    ----------
    grid : Grid or Partition
    counts : array of int64
        Of shape ``grid.counts_shape``. Of a grid, the doubled array: even/even entries are
        faces, odd/odd vertices, mixed ones edges. Of a partition, one entry for each component.

    Examples
    --------
    >>> import dpregions as dpr
    >>> from shapely import box
    >>> grid = dpr.Grid(0, 0, 1, n_rows=3, n_cols=3)
    >>> hist = dpr.EulerHistogram.from_regions([box(0.5, 0.5, 1.5, 1.5)], grid)
    >>> hist.count(0, 0, 2, 2), int(hist.faces[:2, :2].sum())
    (1, 4)
    """

    def __init__(self, grid: Domain, counts: Any) -> None:
        counts = np.array(counts)
        if counts.shape != grid.counts_shape or counts.dtype.kind not in "iu":
            raise InputError(
                f"counts must be integers of shape {grid.counts_shape} for {grid!r}, "
                f"got {counts.dtype} of shape {counts.shape}"
            )
        if counts.dtype.kind == "u" and counts.size and int(counts.max()) >= 1 << 63:
            raise InputError("counts must fit in int64")
        self._hold(grid, counts.astype(np.int64, copy=False))

    @classmethod
    def from_regions(
        cls,
        regions: Any,
        grid: Domain,
        *,
        user_id: Any = None,
        max_diameter: float | str | None = None,
        oversize: Oversize = "shrink",
        crs: Any = None,
    ) -> Self:
        """Count regions on a grid or on another partition.

        Parameters
        ----------
        regions
            GeoDataFrame, GeoSeries, a sequence or array of shapely geometries or of WKB, or
            anything with an Arrow stream of WKB. Each geometry, of any type, becomes its
            convex hull. Null, empty, not finite and far-away ones count nowhere.
        grid : Grid or Partition
            Regions in another CRS are reprojected to the grid's.
        user_id : str, array or None
            The column of user ids, or the ids: one region a user counts, chosen by a fixed
            rule that does not depend on row order. None: each row is its own user.
        max_diameter : float, str or None
            The largest diameter of a region; None: no bound.
        oversize : {"shrink", "drop"}
            What becomes of a longer region: shrunk about its centroid, or left out.
        crs : optional
            The CRS of regions that carry none (bare arrays).
        """
        check_domain(grid)
        Bound.check_oversize(oversize)
        bound = None if max_diameter is None else grid.bound(max_diameter, oversize)

        counted = tally_of(regions, grid, bound, grid.counter, user_id=user_id, crs=crs)
        made = cls.__new__(cls)
        made._hold(grid, counted.histogram())
        return made

    def _hold(self, grid: Domain, counts: NDArray[np.int64]) -> None:
        counts.flags.writeable = False
        self._grid, self._counts = grid, counts
        self._sums: Any = None

    @property
    def grid(self) -> Domain:
        """The grid or partition."""
        return self._grid

    @property
    def counts(self) -> NDArray[np.int64]:
        """All counts in one doubled array (read only). Secret."""
        return self._counts

    @property
    def faces(self) -> NDArray[np.int64]:
        """Regions touching each cell, of a grid in the shape ``(n_rows, n_cols)``. Secret."""
        return self._grid.split(self._counts)[0]

    @property
    def edges(self) -> Any:
        """Regions touching each inner edge. Secret.

        On a grid `vertical` and `horizontal` ones, shapes ``(n_rows, n_cols - 1)`` (between a cell
        and its right neighbour) and ``(n_rows - 1, n_cols)`` (and its upper one).
        """
        return self._grid.split(self._counts)[1]

    @property
    def vertices(self) -> NDArray[np.int64]:
        """Regions touching each inner vertex; on a grid ``(n_rows - 1, n_cols - 1)``. Secret."""
        return self._grid.split(self._counts)[2]

    def count(self, *query: Any, cells: Any = None, crs: Any = None) -> Any:
        """Count the regions that touch a query. Exact for rectangles; secret.

        A query that is not a union of cells is enlarged to the cells it touches. Where those
        form no rectangle the count is an approximation, and a warning says so. The part outside
        the area is ignored; wholly outside: 0, with a warning.

        Parameters
        ----------
        *query
            ``xmin, ymin, xmax, ymax`` as four numbers or four arrays; or one geometry, an
            array of geometries, a GeoSeries or a GeoDataFrame.
        cells : list, optional
            Instead of a query, on a partition: the labels of its cells, or a list of such lists.
        crs : optional
            The CRS of numbers or geometries that carry none; the grid's by default.

        Returns
        -------
        int, numpy.ndarray or pandas.Series
            One number, or as many as queries, in their shape or on their index.
        """
        if self._sums is None:
            self._sums = self._grid.table(self._counts)
        found = self._grid.look_up(query, crs, "cells") if cells is None else None
        if found is not None:
            return self._sums.rectangle(*found)
        selection = self._grid.select(query, crs, cells=cells)
        return selection.wrap(selection.sums(self._sums))

    def __add__(self, other: object) -> EulerHistogram:
        """Merge partial histograms of one grid (of different users: nobody twice)."""
        if not isinstance(other, EulerHistogram):
            return NotImplemented
        if self._grid != other._grid:
            raise InputError(
                f"histograms of different grids cannot be added: {self._grid!r} and {other._grid!r}"
            )
        return EulerHistogram(self._grid, self._counts + other._counts)

    def __radd__(self, other: object) -> EulerHistogram:
        """Let `sum` merge partial histograms."""
        return self if other == 0 else NotImplemented

    def __eq__(self, other: object) -> bool:
        """Whether grid and counts are the same."""
        if not isinstance(other, EulerHistogram):
            return NotImplemented
        return self._grid == other._grid and np.array_equal(self._counts, other._counts)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        """Return what it is, and that it is secret; never a count."""
        return f"<EulerHistogram on {self._grid!r}. {SECRET}>"

    def __getstate__(self) -> dict[str, Any]:
        """Return the state to pickle, the label first: whoever opens the file sees it."""
        return {"label": SECRET, "grid": self._grid, "counts": self._counts}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore, checking as the constructor does."""
        if state.get("label") != SECRET:
            raise InputTypeError("this pickle does not hold an EulerHistogram")
        EulerHistogram.__init__(self, state["grid"], state["counts"])
