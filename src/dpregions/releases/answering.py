"""What a release answers: counts, estimates and intervals of any query.

Each answer is made from what was published and public values alone. How a query becomes cells or
a shape is settled by `geometry`, what is counted on them by the mechanism's outcome.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dpregions.choices import Detail, Within, refuse_other
from dpregions.errors import PrivacyError, QueryError
from dpregions.geometry.grid import Grid
from dpregions.releases.statement import Statement

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dpregions.geometry.cells import Selection
    from dpregions.mechanisms.base import Outcome


class ExpectedError(NamedTuple):
    """How far an estimate is off on average: numbers, or arrays of them."""

    noise: Any
    """From the noise alone."""
    shape: Any
    """From not knowing which part of its footprint a region touches (0 for "paper")."""
    total: Any
    """From both."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Answering(Statement):
    """A statement with the outcome that it is about, and the questions it answers."""

    outcome: Outcome = field(repr=False)
    """What the mechanism published."""

    @cached_property
    def asked(self) -> Outcome:
        """What the outcome says of `grid`: the outcome itself, unless another was measured."""
        return self.outcome if self.base is None else self.outcome.on(self.grid)

    @property
    def counts(self) -> NDArray[np.int64]:
        """Whole numbers >= 0 for every face, edge and vertex (read only)."""
        return self.asked.counts

    @property
    def signed(self) -> NDArray[Any] | None:
        """The signed estimate of every component, some negative (read only); None if covert."""
        return self.asked.estimates()

    def count(
        self, *query: Any, cells: Any = None, within: Within | None = None, crs: Any = None
    ) -> Any:
        """Count the regions that touch a query, from the published whole numbers.

        What lies outside the area is ignored; wholly outside it: 0, with a warning.

        Parameters
        ----------
        *query
            ``xmin, ymin, xmax, ymax`` as four numbers or four arrays; or one geometry, an
            array of geometries, a GeoSeries or a GeoDataFrame. Points, lines, holes and
            several parts are allowed.
        cells : list, optional
            Instead of a query, on a partition: the labels of its cells, or a list of such lists.
        within : {"cells", "shape"}, optional
            "shape" counts the published bodies that touch the query as drawn, "cells" those that
            touch the cells it touches. On the grid's lines both are the same. By default "shape",
            but "cells" for rectangles on the lines (a look-up) and for method "paper", which has
            no bodies.
        crs : optional
            The CRS of numbers or geometries that carry none; the grid's by default.

        Returns
        -------
        int, numpy.ndarray or pandas.Series
        """
        rule = self._rule(within)
        found = self.grid.look_up(query, crs, rule) if cells is None else None
        if found is not None:
            return self.asked.count_table.rectangle(*found)
        selection = self._selected(query, cells, rule, crs)
        return selection.wrap(self.asked.count(selection))

    def estimate(
        self, *query: Any, cells: Any = None, within: Within | None = None, crs: Any = None
    ) -> Any:
        """Estimate the same without the bias of making counts whole and consistent.

        Signed: may be negative or fractional. Takes what `count` takes.
        """
        self._need_signed("estimates")
        rule = self._rule(within)
        found = self.grid.look_up(query, crs, rule) if cells is None else None
        if found is not None:
            return self.asked.estimate_of(found)
        selection = self._selected(query, cells, rule, crs)
        return selection.wrap(self.asked.estimate(selection), "estimate")

    def interval(
        self,
        *query: Any,
        confidence: float = 0.95,
        detail: Detail = "likely",
        cells: Any = None,
        within: Within | None = None,
        crs: Any = None,
    ) -> Any:
        """Return an interval that holds the true count with the given confidence.

        The true count is that of the regions as they were counted: one a user, within
        `max_diameter`. From noisy and public information alone. It is never negative, so
        neither is the interval. Within cells that form no rectangle, it is about the Euler sum
        over them (see `Grid.is_exact`). It allows for the noise, by its law, and for detail
        that was not measured, by rules that were checked on many kinds of data and are no part
        of the privacy claim: see "What intervals promise" in the documentation.

        Parameters
        ----------
        *query, cells, within, crs
            As for `count`.
        confidence : float
            Between 0 and 1.
        detail : {"likely", "worst"}
            What is thought of regions inside the parts that were measured. "likely" judges it
            by noisy counts. "worst" leaves it open, for rectangles alone: whatever regions do
            there, only noise beyond its quantile makes the interval miss. It is mostly
            wider, and takes time in the number of parts.

        Returns
        -------
        tuple or pandas.DataFrame
            ``(low, high)``, numbers or arrays; for frames a DataFrame `low`, `high`. NaN of a
            query wholly outside the area, of which nothing is known.
        """
        self._need_signed("intervals")
        rule = self._rule(within)
        refuse_other(detail, Detail, "detail")
        likely = detail == "likely"
        found = self.grid.look_up(query, crs, rule) if cells is None and likely else None
        read = None if found is None else self.asked.reading_of(found, confidence)
        if read is not None:
            return read[1:]
        selection = self._selected(query, cells, rule, crs)
        low, high = self._bounds(selection, confidence, detail)
        if selection.outside.any():
            low, high = (np.where(selection.outside, np.nan, end) for end in (low, high))
        if selection.index is not None:
            import pandas as pd

            return pd.DataFrame({"low": low, "high": high}, index=selection.index)
        return selection.wrap(low), selection.wrap(high)

    def cell_intervals(
        self, block: int = 1, confidence: float = 0.95
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return `interval` of every cell, or of every block of cells, in one go.

        Parameters
        ----------
        block : int
            How many cells a block is wide and high, from 1 to the grid's longer side. Blocks at
            the upper and right border are cut there. A partition has single cells alone.
        confidence : float
            Between 0 and 1, of each interval by itself.

        Returns
        -------
        tuple of numpy.ndarray
            ``(low, high)``: rows x columns of blocks, row 0 at the grid's `ymin`; of a partition,
            one entry for each cell.
        """
        from dpregions.releases.tables import interval_arrays

        self._need_signed("intervals")
        return interval_arrays(self, block, confidence)

    def cell_arrays(self, block: int = 1, confidence: float = 0.95) -> dict[str, NDArray[Any]]:
        """Return `count`, `estimate`, `low`, `high` and `may_be_empty` of every cell or block.

        The count of a block is that of its rectangle, the regions that touch it: not the sum of
        its cells. Takes what `cell_intervals` takes; a covert release has `count` alone.

        Returns
        -------
        dict of numpy.ndarray
            In the shape of `cell_intervals`. `may_be_empty` says that `low` is 0.
        """
        from dpregions.releases.tables import block_arrays

        return block_arrays(self, block, confidence)

    def select(
        self,
        query: tuple[Any, ...],
        *,
        within: Within | None,
        crs: Any,
        cells: Any = None,
        quiet: bool = False,
    ) -> Selection:
        """Return what queries are asked about, for `answers`: each by the rule that answers it.

        With `quiet` without a warning, for who tells of `exact`, `outside` and `cut` otherwise.
        """
        level = None if quiet else 3
        return self._selected(query, cells, self._rule(within), crs, level)

    def _selected(
        self,
        query: tuple[Any, ...],
        cells: Any,
        rule: Within | None,
        crs: Any,
        stacklevel: int | None = 3,
    ) -> Selection:
        once = self.asked.answers_shapes
        found: Selection = self.grid.select(
            query, crs, cells=cells, within=rule, once=once, stacklevel=stacklevel
        )
        return found

    def _bounds(
        self, selection: Selection, confidence: float, detail: Detail
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        asked = self.asked
        bounds = asked.worst_bounds if detail == "worst" else asked.bounds
        return bounds(selection, confidence)

    def answer_cells(
        self, cells: tuple[int, int, int, int], confidence: float = 0.95
    ) -> dict[str, Any]:
        """Return `count` and, unless covert, `estimate`, `low` and `high` of a grid's rectangle.

        Its first and last row, first and last column: what a server asks thousands of times.
        """
        found: dict[str, Any] = {"count": self.asked.count_table.rectangle(*cells)}
        if self.covert:
            return found
        read = self.asked.reading_of(cells, confidence)
        if read is None:
            bounds = Grid.needed(self.grid, "a rectangle of cells").cell_bounds(*cells)
            read = self.estimate(*bounds), *self.interval(*bounds, confidence=confidence)
        return found | dict(zip(("estimate", "low", "high"), read, strict=True))

    def answers(
        self,
        selection: Any,
        confidence: float = 0.95,
        detail: Detail = "likely",
        *,
        estimates: bool = False,
    ) -> dict[str, NDArray[Any]]:
        """Return `count`, `low` and `high` (unless covert), and what they are about, by query.

        With `estimates` the `estimate` too, for `detail` "likely".
        `within` is the rule that answered. `exact` says that no region counts twice: a query was
        answered as drawn, or its cells form a rectangle. A query that is `outside` lies wholly
        beyond the area (its 0 says nothing), of one that is `cut` the answer is about the part
        inside, and of one that is `enlarged` about whole cells that reach beyond it.
        """
        found: dict[str, NDArray[Any]] = {"count": self.asked.count(selection)}
        if estimates and not self.covert:
            read = self.asked.readings(selection, confidence)
            found |= dict(zip(("estimate", "low", "high"), read, strict=True))
        elif not self.covert:
            found["low"], found["high"] = self._bounds(selection, confidence, detail)
        rule = np.where(selection.as_drawn, "shape", "cells")
        found |= {"within": rule, "exact": selection.exact, "outside": selection.outside}
        cut, enlarged = selection.cut(self.grid), selection.enlarged(self.grid)
        return found | {"cut": cut, "enlarged": enlarged}

    def expected_error(
        self, *query: Any, cells: Any = None, within: Within | None = None, crs: Any = None
    ) -> Any:
        """Return the mean absolute error to expect of `estimate`, by its source.

        Takes what `count` takes.

        Returns
        -------
        ExpectedError or pandas.DataFrame
            `noise`, `shape` and `total`, numbers or arrays; for frames a DataFrame.
        """
        self._need_signed("error estimates")
        selection = self._selected(query, cells, self._rule(within), crs)
        noise, shape = self.asked.deviations(selection)
        # The mean absolute value of a normal variable, which sums of many draws are close to.
        parts = [np.sqrt(2 / np.pi) * part for part in (noise, shape, np.hypot(noise, shape))]
        if selection.index is not None:
            import pandas as pd

            columns = dict(zip(ExpectedError._fields, parts, strict=True))
            return pd.DataFrame(columns, index=selection.index)
        return ExpectedError(*(selection.wrap(part) for part in parts))

    def _rule(self, within: Within | None) -> Within | None:
        """Return how queries are answered: as asked, or as is best; refuse what cannot be."""
        if within is None:
            return None if self.asked.answers_shapes else "cells"
        refuse_other(within, Within, "within", QueryError)
        if within == "shape" and not self.asked.answers_shapes:
            raise QueryError(
                f"a release made with method={self.method!r} has no bodies to count on a shape: "
                f"ask it within cells, or release with method='footprint'",
                argument="within",
            )
        return within

    def _need_signed(self, what: str) -> None:
        if self.covert:
            raise PrivacyError(
                f"a covert release holds no signed measurements, so it has no {what}: "
                f"release with covert=False to keep them"
            )
