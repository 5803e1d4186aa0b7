"""`Release`, private and immutable, and the function `release` that makes one.

A release holds what was published and every public parameter of the promise. It holds nothing
exact, and neither type converts into the other: `EulerHistogram` is secret, `Release` is not.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from dpregions import paper
from dpregions._version import __version__
from dpregions.errors import InputError, InputTypeError, PrivacyError
from dpregions.euler import EulerHistogram
from dpregions.grid import Grid
from dpregions.noise_law import sum_half_width
from dpregions.privacy import (
    Budget,
    BudgetLike,
    Neighbours,
    NoiseSource,
    PrivacyUnit,
    SystemNoise,
    Unit,
    euler_sensitivity,
    scale_for,
)
from dpregions.queries import Selection, select, signed_sums, signed_table
from dpregions.regions import Oversize

if TYPE_CHECKING:
    from numpy.typing import NDArray

Method = Literal["paper"]
METHODS: tuple[Method, ...] = ("paper",)

TRAJECTORY_COLUMN = "trajectory"
UNIT_ATTRIBUTE = "dpregions_unit"
_TRAJECTORY_KEYS = ("user_id", TRAJECTORY_COLUMN)


@dataclass(frozen=True, eq=False, repr=False)
class Release:
    """A differentially private Euler histogram with its privacy statement.

    Made by `release`; ask it `count`, `estimate` and `interval`, and `describe`.

    Attributes
    ----------
    grid : Grid
    counts : numpy.ndarray
        Whole numbers >= 0 for every face, edge and vertex (read only).
    signed : numpy.ndarray
        Counts with their noise and nothing done to them: unbiased, some negative (read only).
    method : str
    budget : Budget
        Epsilon, exactly.
    privacy_unit : PrivacyUnit
        The neighbour relation and whose data is protected together.
    sensitivity : int
        How far one unit can move the exact histogram (L1), enforced.
    max_diameter : float
        The enforced bound on a region, in CRS units.
    oversize : str
        What became of longer regions.
    private : bool
        False only for a study's seeded noise: such a release must not be published.
    noise : str
        Where the noise came from.
    version : str
        Of the software.
    """

    grid: Grid
    counts: NDArray[np.int64]
    signed: NDArray[np.int64]
    method: Method
    budget: Budget
    privacy_unit: PrivacyUnit
    sensitivity: int
    max_diameter: float
    oversize: Oversize
    private: bool
    noise: str
    version: str = __version__

    def __post_init__(self) -> None:
        for name in ("counts", "signed"):
            array = np.array(getattr(self, name), dtype=np.int64)
            if array.shape != self.grid.doubled_shape:
                raise InputError(
                    f"{name} must have shape {self.grid.doubled_shape} on {self.grid!r}, "
                    f"got {array.shape}"
                )
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        tables = {"counts": signed_table(self.counts), "signed": signed_table(self.signed)}
        object.__setattr__(self, "_tables", tables)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and copy through the constructor: arrays come back checked and read only."""
        return Release, tuple(getattr(self, field.name) for field in fields(self))

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

    @property
    def scale(self) -> float:
        """Scale of the noise on every component."""
        return scale_for(self.budget, self.sensitivity)

    def count(self, *query: Any, crs: Any = None) -> Any:
        """Count the regions that touch a query, from the published whole numbers.

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
        """Estimate the same without bias, from the signed noisy counts; may be negative.

        Takes what `count` takes.
        """
        selection = select(self.grid, query, crs)
        return selection.wrap(self._sums("signed", selection), "estimate")

    def interval(self, *query: Any, confidence: float = 0.95, crs: Any = None) -> Any:
        """Return an interval that holds the true count with the given confidence.

        From the exact distribution of the sum of the noise over the query's components; the
        true count is never negative, so neither is the interval. For a query whose cells form
        no rectangle, it is about the Euler sum over them (see `Grid.is_exact`).

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
        selection = select(self.grid, query, crs)
        middle = self._sums("signed", selection)
        width = sum_half_width(selection.n_components, self.scale, confidence)
        low, high = np.maximum(middle - width, 0), np.maximum(middle + width, 0)
        if selection.index is not None:
            import pandas as pd

            return pd.DataFrame({"low": low, "high": high}, index=selection.index)
        return selection.wrap(low), selection.wrap(high)

    def describe(self) -> str:
        """Return the privacy statement in plain words."""
        promise = (
            f"epsilon = {self.budget}, pure differential privacy. " + self.privacy_unit.describe()
        )
        if not self.private:
            promise = f"NOT PRIVATE ({self.noise}): do not publish. It imitates: {promise}"
        longer = {"shrink": "shrunk to it", "drop": "left out"}[self.oversize]
        grid = self.grid
        return "\n".join(
            [
                f"dpregions release, method {self.method!r}, software version {self.version}.",
                f"Privacy: {promise}",
                f"Enforced: one region a {self.unit}, of diameter at most {self.max_diameter:g} "
                f"(longer ones {longer}); so neighbouring data move the exact histogram by at most "
                f"{self.sensitivity} (L1).",
                f"Noise: scale {self.scale:g} on each of {grid.n_components:,} components, empty "
                f"ones too; {self.noise}.",
                f"Public, chosen without looking at the data: {grid!r}, max_diameter, epsilon.",
                "Not promised: that two releases of the same data together cost only one epsilon "
                "(their epsilons add up), or that a person without a region is hidden any further.",
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


def release(
    regions: Any,
    grid: Grid,
    *,
    epsilon: BudgetLike,
    max_diameter: float | str,
    method: Method = "paper",
    neighbours: Neighbours = "add-remove",
    user_id: Any = "user_id",
    oversize: Oversize = "shrink",
    crs: Any = None,
) -> Release:
    """Publish regions once, under differential privacy.

    Parameters
    ----------
    regions
        One region a user: GeoDataFrame, GeoSeries, geometries, WKB, or an Arrow stream.
    grid : Grid
        The public area and cells, chosen without looking at the data.
    epsilon : number
        The privacy loss, greater than 0.
    max_diameter : float or str
        The largest diameter of a region, in CRS units or as text ("2km"): public, enforced.
    method : {"paper"}
        The mechanism.
    neighbours : {"add-remove", "replace-one"}
        What epsilon is about: one user more or fewer, or one user's region replaced (twice
        the noise).
    user_id : str, array or None
        The column of user ids, or the ids. None makes each row its own user, and the release
        says that its unit is the record.
    oversize : {"shrink", "drop"}
        What becomes of regions longer than `max_diameter`.
    crs : optional
        The CRS of regions that carry none.

    Returns
    -------
    Release

    Examples
    --------
    >>> import dpregions as dpr
    >>> city = dpr.synthetic.regions(500)
    >>> published = dpr.release(city, dpr.synthetic.grid(), epsilon=1, max_diameter="2km")
    >>> published.sensitivity
    25
    """
    return release_with(
        SystemNoise(),
        regions,
        grid,
        epsilon=epsilon,
        max_diameter=max_diameter,
        method=method,
        neighbours=neighbours,
        user_id=user_id,
        oversize=oversize,
        crs=crs,
    )


def release_with(
    noise: NoiseSource,
    regions: Any,
    grid: Grid,
    *,
    epsilon: BudgetLike,
    max_diameter: float | str,
    method: Method,
    neighbours: Neighbours,
    user_id: Any,
    oversize: Oversize,
    crs: Any = None,
) -> Release:
    """Make a release with a given source of noise: the seam for studies, not for publishing."""
    budget = Budget(epsilon)
    if method not in METHODS:
        raise PrivacyError(f"method={method!r} is unknown: use {' or '.join(map(repr, METHODS))}")
    if max_diameter is None:
        raise PrivacyError(
            "max_diameter is missing: the noise is calibrated to it, and it must be public. "
            "Choose how large a region may be, for example max_diameter='2km'"
        )
    user_id, unit = _protected(regions, user_id)
    privacy_unit = PrivacyUnit(neighbours, unit)
    k = grid.cells_spanned(max_diameter)
    sensitivity = euler_sensitivity(k, neighbours, *grid.shape)
    scale_for(budget, sensitivity)  # refuse a hopeless epsilon before any work
    exact = EulerHistogram.from_regions(
        regions, grid, user_id=user_id, max_diameter=max_diameter, oversize=oversize, crs=crs
    )
    steps = paper.run(exact.counts, epsilon=budget, sensitivity=sensitivity, noise=noise)
    return Release(
        grid=grid,
        counts=steps.counts,
        signed=steps.signed,
        method=method,
        budget=budget,
        privacy_unit=privacy_unit,
        sensitivity=sensitivity,
        max_diameter=float(grid.length(max_diameter, "max_diameter")),
        oversize=oversize,
        private=noise.private,
        noise=noise.label,
    )


def _protected(regions: Any, user_id: Any) -> tuple[Any, Unit]:
    """Return the ids that count once each, and what one of them is.

    Regions extracted one a trajectory say so: each trajectory of a user then counts once.
    """
    if user_id is None:
        return None, "record"
    of_trajectories = getattr(regions, "attrs", {}).get(UNIT_ATTRIBUTE) == "trajectory"
    if of_trajectories and isinstance(user_id, str) and user_id in _TRAJECTORY_KEYS:
        columns = getattr(regions, "columns", ())
        keys = [name for name in _TRAJECTORY_KEYS if name in columns]
        if TRAJECTORY_COLUMN in keys:
            return _trajectory_ids(regions, keys), "trajectory"
    return user_id, "user"


def _trajectory_ids(regions: Any, keys: list[str]) -> NDArray[Any]:
    """Return one id a trajectory: its number counts within its user. NaN where a key is missing."""
    try:
        return np.asarray(regions.groupby(keys, sort=False).ngroup())
    except TypeError:
        raise InputTypeError(
            f"{' and '.join(keys)} hold values that cannot be compared as ids"
        ) from None
