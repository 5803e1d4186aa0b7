"""`Release`, private and immutable: what was published, and what it answers.

A release holds what was published and every public parameter of the promise. It holds nothing
exact, and neither type converts into the other: `EulerHistogram` is secret, `Release` is not.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

import numpy as np

from dpregions._version import __version__
from dpregions.choices import Method as Method
from dpregions.crs import unit_label
from dpregions.errors import InputError, PrivacyError
from dpregions.geometry.cells import Selection, select, signed_sums, signed_table
from dpregions.geometry.grid import Grid, Kind
from dpregions.geometry.outlines import Oversize
from dpregions.mechanisms.footprint import mechanism as footprint
from dpregions.mechanisms.footprint.mechanism import Measurements
from dpregions.privacy.budget import Budget, Neighbours, PrivacyUnit, Unit
from dpregions.privacy.law import sum_half_width, variance
from dpregions.privacy.noise import scale_for
from dpregions.releases.statement import NOT_RECORDED

if TYPE_CHECKING:
    from pathlib import Path

    import geopandas
    from numpy.typing import NDArray

    from dpregions.mechanisms.footprint.bodies import Bodies

METHODS: tuple[Method, ...] = get_args(Method)


class ExpectedError(NamedTuple):
    """How far an estimate is off on average: numbers, or arrays of them."""

    noise: Any
    """From the noise alone."""
    shape: Any
    """From not knowing which part of its footprint a region touches (0 for "paper")."""
    total: Any
    """From both."""


@dataclass(frozen=True, eq=False, repr=False)
class Release:
    """A differentially private Euler histogram with its privacy statement.

    Made by `release`; ask it `count`, `estimate` and `interval`, and `describe`.

    Attributes
    ----------
    grid : Grid
    counts : numpy.ndarray
        Whole numbers >= 0 for every face, edge and vertex (read only).
    signed : numpy.ndarray or None
        The signed estimate of every component, some negative (read only); None in a covert
        release, which then has no estimates and no intervals.
    method : str
    budget : Budget
        Epsilon, exactly.
    privacy_unit : PrivacyUnit
        The neighbour relation and whose data is protected together.
    sensitivity : int
        How far neighbouring data move what each measurement counts (L1), enforced.
    max_diameter : float
        The enforced bound on a region, in CRS units.
    oversize : str
        What became of longer regions.
    private : bool
        False only for a study's seeded noise: such a release must not be published.
    noise : str
        Where the noise came from.
    spending : tuple
        What was measured and with which epsilon; they sum to the budget.
    version : str
        Of the software.
    bodies : Bodies or None
        What the counts are the exact histogram of ("footprint").
    measurements : Measurements or None
        What the signed estimate and its errors come from ("footprint", unless covert).
    ledger_entry : str or None
        The debit that paid for it: the ledger's random id, data set, number. None: not recorded.
    """

    grid: Grid
    counts: NDArray[np.int64]
    signed: NDArray[Any] | None
    method: Method
    budget: Budget
    privacy_unit: PrivacyUnit
    sensitivity: int
    max_diameter: float
    oversize: Oversize
    private: bool
    noise: str
    spending: tuple[tuple[str, Budget], ...]
    version: str = __version__
    bodies: Bodies | None = None
    measurements: Measurements | None = None
    ledger_entry: str | None = None

    def __post_init__(self) -> None:
        tables = {}
        for name in ("counts", "signed"):
            if getattr(self, name) is None:
                continue
            array = np.array(getattr(self, name))
            if array.shape != self.grid.doubled_shape:
                raise InputError(
                    f"{name} must have shape {self.grid.doubled_shape} on {self.grid!r}, "
                    f"got {array.shape}"
                )
            array.flags.writeable = False
            object.__setattr__(self, name, array)
            tables[name] = signed_table(array)
        object.__setattr__(self, "_tables", tables)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and copy through the constructor: arrays come back checked and read only."""
        return Release, tuple(getattr(self, part.name) for part in fields(self))

    @property
    def epsilon(self) -> float:
        """The privacy loss."""
        return float(self.budget)

    @property
    def neighbours(self) -> Neighbours:
        """The neighbour relation."""
        return self.privacy_unit.neighbours

    @property
    def unit(self) -> Unit:
        """Whose data is protected together."""
        return self.privacy_unit.unit

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
        selection = select(self.grid, query, crs)
        return selection.wrap(self._sums("counts", selection))

    def estimate(self, *query: Any, crs: Any = None) -> Any:
        """Estimate the same without the bias of making counts whole and consistent.

        Signed: may be negative or fractional. Takes what `count` takes.
        """
        self._need_signed("estimates")
        selection = select(self.grid, query, crs)
        return selection.wrap(self._sums("signed", selection), "estimate")

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
        low, high = self._bounds(selection, confidence)
        if selection.index is not None:
            import pandas as pd

            return pd.DataFrame({"low": low, "high": high}, index=selection.index)
        return selection.wrap(low), selection.wrap(high)

    def answers(self, selection: Selection, confidence: float = 0.95) -> dict[str, NDArray[Any]]:
        """Return `count`, `low` and `high` (unless covert), `rectangle`, one a selected query.

        `rectangle` says that the query's cells form one, so that no region counts twice.
        """
        found: dict[str, NDArray[Any]] = {"count": self._sums("counts", selection)}
        if self.signed is not None:
            found["low"], found["high"] = self._bounds(selection, confidence)
        return found | {"rectangle": selection.exact}

    def _bounds(self, selection: Selection, confidence: float) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the ends of the intervals of selected queries."""
        middle = self._sums("signed", selection)
        width: NDArray[Any]
        if self.measurements is None:
            scale = scale_for(self.budget, self.sensitivity)
            width = sum_half_width(selection.n_components, scale, confidence)
        else:
            noise, shape = self._deviations(selection)
            width = footprint.half_widths(noise, shape, confidence)
        low, high = np.maximum(middle - width, 0), np.maximum(middle + width, 0)
        if self.measurements is None:
            return low, high
        # The count is another reading of the same noisy counts, so it is never left outside.
        count = self._sums("counts", selection)
        return np.minimum(low, count), np.maximum(high, count)

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
        noise, shape = self._deviations(selection)
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
        if self.bodies is None:
            raise PrivacyError(
                f"a release made with method={self.method!r} is the histogram of no set of "
                f"regions: its counts satisfy C1 to C3, which does not suffice. "
                f"Use method='footprint'"
            )
        return self.bodies.to_regions(self.grid)

    def save(self, path: Path | str) -> None:
        """Write the release to a Parquet file, whole or not at all; `load` reads it back.

        DuckDB, Polars and pandas read the file too: docs/file-format.md has the SQL. It holds
        what the release holds: nothing exact, no time, no name of a machine.

        Parameters
        ----------
        path : pathlib.Path or str
            A file that is there already is replaced.
        """
        from dpregions.releases.file import save

        save(self, path)

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

    def _deviations(self, selection: Selection) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the standard deviations of the estimate from noise and from shape."""
        if self.measurements is None:
            one = variance(scale_for(self.budget, self.sensitivity))
            noise = np.sqrt(selection.n_components * one)
            return noise, np.zeros_like(noise)
        noise, shape = np.zeros((2, selection.ranges.shape[1]))
        plain = selection.exact
        noise[plain], shape[plain] = footprint.rectangle_deviations(
            self.measurements, selection.ranges[:, plain]
        )
        for i in selection.masks:
            signs = selection.signs(i, self.grid)
            noise[i], shape[i] = footprint.deviations(self.measurements, signs)
        return noise, shape

    def _need_signed(self, what: str) -> None:
        if self.signed is None:
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

    def _sums(self, name: str, selection: Selection) -> NDArray[Any]:
        tables: dict[str, NDArray[np.int64]] = self._tables  # type: ignore[attr-defined]
        return signed_sums(tables[name], getattr(self, name), selection)

    def __repr__(self) -> str:
        """Return one line: method, promise, grid."""
        mark = "" if self.private else "NOT PRIVATE, "
        return (
            f"<Release {mark}method={self.method!r}, epsilon={self.budget}, "
            f"{self.neighbours}, unit={self.unit!r}, {self.grid!r}>"
        )
