"""`Release`, private and immutable: what was published, and what it answers.

A release is a statement, every public parameter of the promise, and an outcome, what its
mechanism published. It holds nothing exact, and neither type converts into the other:
`EulerHistogram` is secret, `Release` is not.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dpregions.crs import unit_label
from dpregions.errors import InputError, PrivacyError
from dpregions.geometry.cells import answer, select
from dpregions.privacy.noise import scale_for
from dpregions.releases import file
from dpregions.releases.statement import NOT_RECORDED, Statement

if TYPE_CHECKING:
    from pathlib import Path

    import geopandas
    from numpy.typing import NDArray

    from dpregions.choices import Kind
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
class Release(Statement):
    """A differentially private Euler histogram with its privacy statement.

    Made by `release`; ask it `count`, `estimate` and `interval`, and `describe`. Its attributes
    are those of its statement (`grid`, `method`, `budget`, `unit`, ...), and `counts` and `signed`.
    """

    outcome: Outcome = field(repr=False)
    """What the mechanism published."""

    def __post_init__(self) -> None:
        if self.outcome.grid != self.grid or self.covert != (self.outcome.signed is None):
            raise InputError("this outcome is not of this statement: another grid, or covert")
        if sum(share.epsilon for _, share in self.spending) != self.budget.epsilon:
            raise PrivacyError("what was spent does not add up to epsilon")

    def stated(self) -> dict[str, Any]:
        """Return every public parameter as JSON's values: the statement of the release's file."""
        return {**super().stated(), "mechanism": self.outcome.options()}

    @property
    def counts(self) -> NDArray[np.int64]:
        """Whole numbers >= 0 for every face, edge and vertex (read only)."""
        return self.outcome.counts

    @property
    def signed(self) -> NDArray[Any] | None:
        """The signed estimate of every component, some negative (read only); None if covert."""
        return self.outcome.signed

    def count(self, *query: Any, crs: Any = None) -> Any:
        """Count the regions that touch a query, from the published whole numbers.

        A query is enlarged to the cells it touches, and cut to the area: what lies outside is
        ignored. Wholly outside the area: 0, with a warning.

        Parameters
        ----------
        *query
            ``xmin, ymin, xmax, ymax`` as four numbers or four arrays; or one geometry, an
            array of geometries, a GeoSeries or a GeoDataFrame.
        crs : optional
            The CRS of numbers or geometries that carry none; the grid's by default.

        Returns
        -------
        int, numpy.ndarray or pandas.Series
        """
        return answer(self.outcome.count_table, self.grid, query, crs)

    def estimate(self, *query: Any, crs: Any = None) -> Any:
        """Estimate the same without the bias of making counts whole and consistent.

        Signed: may be negative or fractional. Takes what `count` takes.
        """
        self._need_signed("estimates")
        return answer(self.outcome.signed_table, self.grid, query, crs, "estimate")

    def interval(self, *query: Any, confidence: float = 0.95, crs: Any = None) -> Any:
        """Return an interval that holds the true count with the given confidence.

        The true count is that of the regions as they were counted: one a user, within
        `max_diameter`. From noisy and public information alone. It is never negative, so
        neither is the interval. For a query whose cells form no rectangle, it is about the
        Euler sum over them (see `Grid.is_exact`).

        Parameters
        ----------
        *query, crs
            As for `count`.
        confidence : float
            Between 0 and 1.

        Returns
        -------
        tuple or pandas.DataFrame
            ``(low, high)``, numbers or arrays; for frames a DataFrame `low`, `high`.
        """
        self._need_signed("intervals")
        selection = select(self.grid, query, crs)
        low, high = self.outcome.bounds(selection, confidence)
        if selection.index is not None:
            import pandas as pd

            return pd.DataFrame({"low": low, "high": high}, index=selection.index)
        return selection.wrap(low), selection.wrap(high)

    def answers(self, selection: Selection, confidence: float = 0.95) -> dict[str, NDArray[Any]]:
        """Return `count`, `low` and `high` (unless covert), `rectangle`, one a selected query.

        `rectangle` says that the query's cells form one, so that no region counts twice.
        """
        found: dict[str, NDArray[Any]] = {"count": self.outcome.count(selection)}
        if not self.covert:
            found["low"], found["high"] = self.outcome.bounds(selection, confidence)
        return found | {"rectangle": selection.exact}

    def expected_error(self, *query: Any, crs: Any = None) -> Any:
        """Return the mean absolute error to expect of `estimate`, by its source.

        Takes what `count` takes.

        Returns
        -------
        ExpectedError or pandas.DataFrame
            `noise`, `shape` and `total`, numbers or arrays; for frames a DataFrame.
        """
        self._need_signed("error estimates")
        selection = select(self.grid, query, crs)
        noise, shape = self.outcome.deviations(selection)
        # The mean absolute value of a normal variable, which sums of many draws are close to.
        parts = [np.sqrt(2 / np.pi) * part for part in (noise, shape, np.hypot(noise, shape))]
        if selection.index is not None:
            import pandas as pd

            columns = dict(zip(ExpectedError._fields, parts, strict=True))
            return pd.DataFrame(columns, index=selection.index)
        return ExpectedError(*(selection.wrap(part) for part in parts))

    def to_regions(self) -> geopandas.GeoDataFrame:
        """Return the synthetic regions that this release is the exact histogram of.

        Convex polygons within `max_diameter`, in the grid's CRS. They are made up: none is
        anybody's. ``EulerHistogram.from_regions(release.to_regions(), grid).counts`` equals
        ``release.counts``.
        """
        return self.outcome.to_regions()

    def save(self, path: Path | str) -> None:
        """Write the release to a Parquet file, whole or not at all; `load` reads it back.

        DuckDB, Polars and pandas read the file too: docs/file-format.md has the SQL. It holds
        what the release holds: nothing exact, no time, no name of a machine.

        Parameters
        ----------
        path : pathlib.Path or str
            A file that is there already is replaced.
        """
        file.save(self, path)

    def to_geodataframe(self, kind: Kind = "faces") -> geopandas.GeoDataFrame:
        """Return the faces, inner edges or inner vertices with what was published of each.

        Returns
        -------
        geopandas.GeoDataFrame
            `kind`; `sign` (+1 for faces and vertices, -1 for edges); `row` and `col` in the
            doubled array `counts`; `count`; `estimate`, unless the release is covert. Counts
            of faces do not add up, as a region is in every cell it touches: over the
            components inside a rectangle, the sum of sign times count is `count`.
        """
        from dpregions.releases.display import components_frame

        return components_frame(self, kind)

    def plot(self, ax: Any = None, **style: Any) -> Any:
        """Draw a map of the face counts (needs matplotlib, extra `plot`).

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw, in the coordinates of the grid's CRS.
        **style
            For `matplotlib.axes.Axes.imshow`: `cmap`, `vmax`, `norm`, `alpha`.

        Returns
        -------
        matplotlib.axes.Axes
        """
        from dpregions.releases.display import draw_map

        return draw_map(self, ax, style)

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        from dpregions.releases.display import release_html

        return release_html(self)

    def _need_signed(self, what: str) -> None:
        if self.covert:
            raise PrivacyError(
                f"a covert release holds no signed measurements, so it has no {what}: "
                f"release with covert=False to keep them"
            )

    def describe(self) -> str:
        """Return the privacy statement in plain words."""
        promise = (
            f"epsilon = {self.budget}, pure differential privacy. " + self.privacy_unit.describe()
        )
        if not self.private:
            promise = f"NOT PRIVATE ({self.noise}): do not publish. It imitates: {promise}"
        longer = {"shrink": "shrunk to it", "drop": "left out"}[self.oversize]
        spent = "; ".join(
            f"{what} with epsilon {part}, noise of scale {scale_for(part, self.sensitivity):g}"
            for what, part in self.spending
        )
        return "\n".join(
            [
                f"dpregions release, method {self.method!r}, software version {self.version}.",
                f"Privacy: {promise}",
                f"Enforced: one region a {self.unit}, of diameter at most {self.max_diameter!r} "
                f"{unit_label(self.grid.crs)} (longer ones {longer}); so neighbouring data move "
                f"what each measurement counts by at most {self.sensitivity} (L1).",
                f"Measured: {spent}. Every count of each got noise, empty ones too; {self.noise}.",
                f"Public, chosen without looking at the data: {self.grid!r} with cells of "
                f"{self.grid.cell_size!r} {unit_label(self.grid.crs)}, max_diameter, epsilon.",
                f"Ledger: {self.ledger_entry or NOT_RECORDED}.",
                "Not promised: that two releases of the same data cost one epsilon. Their epsilons "
                "add up.",
            ]
        )

    def __repr__(self) -> str:
        """Return one line: method, promise, grid."""
        mark = "" if self.private else "NOT PRIVATE, "
        return (
            f"<Release {mark}method={self.method!r}, epsilon={self.budget}, "
            f"{self.neighbours}, unit={self.unit!r}, {self.grid!r}>"
        )


def load(path: Path | str) -> Release:
    """Read a release from a file that `Release.save` wrote.

    Checks seal, version, shape and ranges. The seal finds damage; it cannot find a forgery, so get
    files from whom you trust.

    Parameters
    ----------
    path : pathlib.Path or str

    Returns
    -------
    Release
        It answers exactly as the saved one did.

    Examples
    --------
    >>> import dpregions as dpr
    >>> city = dpr.synthetic.regions(500)
    >>> made = dpr.release(city, dpr.synthetic.grid(), epsilon=1, max_diameter="2km")
    >>> made.save("city.parquet")  # doctest: +SKIP
    >>> dpr.load("city.parquet").count(0, 0, 1, 1)  # doctest: +SKIP
    """
    statement, outcome = file.read(path)
    return Release(**vars(statement), outcome=outcome)
