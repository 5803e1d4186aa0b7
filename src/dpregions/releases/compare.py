"""Two releases beside each other: how much more the second counts, and how sure that is.

The interval of a difference needs no new mathematics. Each release's own interval holds its true
count with 1 - (1 - confidence) / 2; both do with the confidence (the union bound, whatever ties the
two together), and then the true difference is in [low of the second - high of the first, high of
the second - low of the first]. Reads what was published, and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dpregions.crs import crs_label, same_crs
from dpregions.errors import (
    Argument,
    CRSError,
    InputTypeError,
    PrivacyError,
    QueryError,
    QueryNumber,
)
from dpregions.privacy.budget import Budget
from dpregions.privacy.law import checked_confidence

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dpregions.choices import Within
    from dpregions.releases.published import Release


@dataclass(frozen=True)
class Comparison:
    """Two releases, and what the second counts more than the first.

    Made by `Release.compare`. Queries are those of `Release.count`. On two different grids they
    are answered as drawn, within what both releases cover: cells of one are not cells of the
    other.

    Attributes
    ----------
    first, second : Release
    """

    first: Release
    second: Release

    def __post_init__(self) -> None:
        kind = type(self.first)
        if not isinstance(self.second, kind):
            raise InputTypeError(
                Argument("other"), f" must be a Release, got {type(self.second).__name__}"
            )
        if self.first.covert or self.second.covert:
            raise PrivacyError(
                "a covert release has no intervals, so nobody can say how sure a difference to it "
                "is: compare releases made with covert=False"
            )
        one, other = self.first.grid.crs, self.second.grid.crs
        if (one is None) != (other is None):
            raise CRSError("one release has a CRS and the other has none: nothing would meet")

    @property
    def same_cells(self) -> bool:
        """Whether both are asked on the same cells."""
        return self.first.grid == self.second.grid

    @property
    def private(self) -> bool:
        """Whether both may be published."""
        return self.first.private and self.second.private

    @property
    def together(self) -> Budget | None:
        """What both cost together, if their ledger says that they are of one data set."""
        one, other = self.first.ledger_entry, self.second.ledger_entry
        if one is None or other is None:
            return None
        if one == other:
            # One debit paid for both. One may be a group of the other, which may have cost more.
            return Budget(max(self.first.budget.epsilon, self.second.budget.epsilon))
        if one.rpartition("/")[0] != other.rpartition("/")[0]:
            return None
        return Budget(self.first.budget.epsilon + self.second.budget.epsilon)

    def describe(self) -> str:
        """Return in words what is compared, and what both releases cost together."""
        mark = "" if self.private else "NOT PRIVATE: do not publish. "
        lines = [
            f"{mark}The second release ({_in_short(self.second)}) against the first "
            f"({_in_short(self.first)}).",
            self._cost(),
        ]
        if self.first.unit != self.second.unit:
            lines.append(
                f"They count different things: one region a {self.first.unit}, and one a "
                f"{self.second.unit}."
            )
        if not self.same_cells:
            lines.append(
                "Their cells differ: a query is answered as drawn, within what both cover."
            )
        return "\n".join(lines)

    def _cost(self) -> str:
        together = self.together
        if together is not None and self.first.ledger_entry == self.second.ledger_entry:
            return f"Both are one release of one data set: it cost epsilon = {together}, once."
        if together is not None:
            return f"Both are of one data set: together these cost epsilon = {together}."
        total = Budget(self.first.budget.epsilon + self.second.budget.epsilon)
        return (
            f"Whether they are of the same people is not recorded: if they are, their epsilons "
            f"add up to {total}."
        )

    def count(
        self, *query: Any, cells: Any = None, within: Within | None = None, crs: Any = None
    ) -> Any:
        """Return how many more regions touch a query in the second release than in the first.

        Takes what `Release.count` takes. Negative where there are fewer.
        """
        one, other = self._selected(query, cells, within, crs)
        counts = self.second.asked.count(other) - self.first.asked.count(one)
        return one.wrap(counts, "difference")

    def interval(
        self,
        *query: Any,
        confidence: float = 0.95,
        cells: Any = None,
        within: Within | None = None,
        crs: Any = None,
    ) -> Any:
        """Return an interval that holds the true difference with the given confidence.

        Takes what `Release.interval` takes, and returns its forms. Where it holds 0, the two
        releases do not say which count is larger. NaN of a query wholly outside the area.
        """
        one, other = self._selected(query, cells, within, crs)
        low, high = self._bounds(one, other, confidence)
        if one.index is not None:
            import pandas as pd

            return pd.DataFrame({"low": low, "high": high}, index=one.index)
        return one.wrap(low), one.wrap(high)

    def answers(
        self,
        *query: Any,
        confidence: float = 0.95,
        cells: Any = None,
        within: Within | None = None,
        crs: Any = None,
        quiet: bool = False,
    ) -> dict[str, NDArray[Any]]:
        """Return arrays of `first`, `second`, `difference`, `low`, `high`, `within`, `exact`.

        With `quiet` without a warning, for who tells of `exact` otherwise.
        """
        one, other = self._selected(query, cells, within, crs, quiet)
        counts = self.first.asked.count(one), self.second.asked.count(other)
        low, high = self._bounds(one, other, confidence)
        return {
            "first": counts[0],
            "second": counts[1],
            "difference": counts[1] - counts[0],
            "low": low,
            "high": high,
            "within": np.where(one.as_drawn & other.as_drawn, "shape", "cells"),
            "exact": one.exact & other.exact,
        }

    def cell_arrays(self, block: int = 1, confidence: float = 0.95) -> dict[str, NDArray[Any]]:
        """Return `difference`, `low`, `high` and `may_be_equal` of every cell or block of cells.

        Parameters
        ----------
        block, confidence
            As for `Release.cell_arrays`. Both releases must have the same cells.

        Returns
        -------
        dict of numpy.ndarray
            `may_be_equal` says that the interval holds 0.
        """
        if not self.same_cells:
            raise QueryError(
                f"the cells of the releases differ, {self.first.grid!r} and "
                f"{self.second.grid!r}: ask about areas instead"
            )
        each = _of_each(confidence)
        one, other = (made.cell_arrays(block, each) for made in (self.first, self.second))
        low, high = other["low"] - one["high"], other["high"] - one["low"]
        return {
            "difference": other["count"] - one["count"],
            "low": low,
            "high": high,
            "may_be_equal": (low <= 0) & (high >= 0),
        }

    def _bounds(self, one: Any, other: Any, confidence: float) -> tuple[NDArray[Any], NDArray[Any]]:
        each = _of_each(confidence)
        low, high = self.first.asked.bounds(one, each)
        low_2, high_2 = self.second.asked.bounds(other, each)
        # Beyond the area nothing is known.
        unknown = np.where(one.outside, np.nan, 0.0)
        return low_2 - high + unknown, high_2 - low + unknown

    def _selected(
        self,
        query: tuple[Any, ...],
        cells: Any,
        within: Within | None,
        crs: Any,
        quiet: bool = False,
    ) -> tuple[Any, Any]:
        """Return what is asked of each release: the same area, or an error."""
        both = self.first.asked.answers_shapes and self.second.asked.answers_shapes
        if self.same_cells:
            rule = within if both or within is not None else "cells"
            return self._each(query, cells, rule, (crs, crs), quiet)
        if cells is not None or within == "cells" or not both:
            raise QueryError(
                f"the cells of the releases differ, {self.first.grid!r} and "
                f"{self.second.grid!r}, so only what is drawn can be compared, of releases by "
                f"footprints, with within='shape'",
                argument="within",
            )
        one, other = self._each(query, None, "shape", (crs, self._crs_of_second(query, crs)), quiet)
        beyond = one.outside | other.outside
        beyond |= one.cut(self.first.grid) | other.cut(self.second.grid)
        if (where := np.flatnonzero(beyond)).size:
            which = QueryNumber(where[0]) if one.shape != () else "the query"
            raise QueryError(
                which, " reaches beyond what both releases cover: ask about what lies in both"
            )
        return one, other

    def _each(
        self,
        query: tuple[Any, ...],
        cells: Any,
        within: Within | None,
        crs: tuple[Any, Any],
        quiet: bool,
    ) -> tuple[Any, Any]:
        asked: Any = {"within": within, "cells": cells}
        one = self.first.select(query, crs=crs[0], quiet=quiet, **asked)
        # What there is to warn of was said of the first.
        return one, self.second.select(query, crs=crs[1], quiet=True, **asked)

    def _crs_of_second(self, query: tuple[Any, ...], crs: Any) -> Any:
        """Return the CRS for numbers that carry none: that of the first release."""
        one, other = self.first.grid.crs, self.second.grid.crs
        bare = crs is None and getattr(query[0] if query else None, "crs", None) is None
        differ = one is not None and other is not None and not same_crs(one, other)
        return one if bare and differ else crs


def _of_each(confidence: float) -> float:
    """Return the confidence of each of two intervals that hold together with one confidence."""
    return 1 - (1 - checked_confidence(confidence)) / 2


def _in_short(release: Release) -> str:
    crs = release.grid.crs
    place = "no CRS" if crs is None else crs_label(crs)
    return (
        f"epsilon = {release.budget}, unit {release.unit}, {release.grid.cells_in_words}, {place}"
    )
