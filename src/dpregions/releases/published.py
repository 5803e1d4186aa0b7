"""`Release`, private and immutable: what was published, and what it answers.

A release is a statement, every public parameter of the promise, and an outcome, what its
mechanism published. It holds nothing exact, and neither type converts into the other:
`EulerHistogram` is secret, `Release` is not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from dpregions.choices import Within
from dpregions.errors import InputError, PrivacyError, QueryError
from dpregions.geometry.domain import check_domain
from dpregions.privacy.budget import Budget
from dpregions.privacy.law import checked_confidence
from dpregions.releases import file
from dpregions.releases.answering import Answering
from dpregions.releases.groups import GroupsOutcome
from dpregions.releases.statement import state_group

if TYPE_CHECKING:
    from pathlib import Path

    import geopandas
    import pandas as pd
    import xarray

    from dpregions.choices import Kind
    from dpregions.geometry.domain import Domain
    from dpregions.geometry.layers import Layer
    from dpregions.page.live import LiveExplorer
    from dpregions.page.notebook import Explorer
    from dpregions.releases.compare import Comparison
    from dpregions.releases.districts import Summary


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Release(Answering):
    """A differentially private Euler histogram with its privacy statement.

    Made by `release`; ask it `count`, `estimate` and `interval`, and `describe`. Its attributes
    are those of its statement (`grid`, `method`, `budget`, `unit`, ...), and `counts` and `signed`.
    """

    STATEMENT_KEY: ClassVar[bytes] = b"dpregions_statement"
    """Where Arrow and GeoParquet have the privacy statement, among their key-value metadata."""

    def __post_init__(self) -> None:
        if self.outcome.grid != self.rows or self.covert != self.outcome.is_covert:
            raise InputError("this outcome is not of this statement: another grid, or covert")
        if sum(share.epsilon for _, share in self.spending) != self.budget.epsilon:
            raise PrivacyError("what was spent does not add up to epsilon")

    def stated(self) -> dict[str, Any]:
        """Return every public parameter as JSON's values: the statement of the release's file."""
        if self.groups is None or not isinstance(self.outcome, GroupsOutcome):
            return {**super().stated(), "mechanism": self.outcome.options()}
        each = [
            state_group(self.group(label), part.signed is not None, part.options())
            for label, part in zip(self.groups.labels, self.outcome.parts, strict=True)
        ]
        return {**super().stated(), "mechanism": {"groups": each}}

    @property
    def is_of_groups(self) -> bool:
        """Whether it is of several groups together, each of which has a release of its own."""
        return isinstance(self.outcome, GroupsOutcome)

    def on(self, grid: Domain) -> Release:
        """Return this release, asked on another grid or partition: nothing more is published.

        What was published are made-up bodies, and bodies can be counted on anything: at no cost
        in privacy. Takes a release of the footprint mechanism.

        Parameters
        ----------
        grid : Partition
            In the same CRS; or the grid that was measured. Of cells that reach beyond the area of
            the release, only what lies inside is counted, with a warning.
        """
        check_domain(grid)
        if isinstance(self.outcome, GroupsOutcome):
            return replace(self, grid=grid, outcome=self.outcome.on(grid))
        made = replace(self, grid=grid, base=None if grid == self.rows else self.rows)
        made.asked  # noqa: B018  refuses what cannot be asked
        return made

    def group(self, label: Any) -> Release:
        """Return the release of one group, of a release that was made by groups.

        Parameters
        ----------
        label : str or int
            One of ``release.groups.labels``.

        Returns
        -------
        Release
            Its regions alone: ask it, export it or save it as any other. Nothing more is published.
        """
        if self.groups is None or not isinstance(self.outcome, GroupsOutcome):
            made = "is of one group" if self.groups is not None else "was not made by groups"
            raise QueryError(
                f"this release {made}: make one by release(..., by=, groups=)", argument="group"
            )
        one = self.groups.alone(label)
        part = self.outcome.parts[one.labels.index(one.only or "")]
        spent = sum((share.epsilon for _, share in part.spending), Fraction(0))
        return replace(
            self,
            groups=one,
            outcome=part,
            base=None if part.grid == self.grid else part.grid,
            budget=Budget(spent),
            spending=part.spending,
        )

    def compare(self, other: Release) -> Comparison:
        """Return a comparison with another release: how much more that one counts, and how surely.

        Parameters
        ----------
        other : Release
            Of another time, for instance. On the same cells everything can be compared; on other
            ones what is asked as drawn.

        Returns
        -------
        Comparison
            It has `count`, `interval`, `cell_arrays` and `describe`.

        Examples
        --------
        >>> import dpregions as dpr
        >>> grid, regions = dpr.synthetic.grid(), dpr.synthetic.regions(500)
        >>> may, june = (
        ...     dpr.release(regions, grid, epsilon=1, max_diameter="2km") for _ in range(2)
        ... )
        >>> low, high = may.compare(june).interval(*grid.bounds)
        """
        from dpregions.releases.compare import Comparison

        return Comparison(self, other)

    def summary(self, confidence: float = 0.95) -> Summary:
        """Return how many regions touch the area, with the interval: `str` says it in a sentence.

        Parameters
        ----------
        confidence : float
            Between 0 and 1.

        Returns
        -------
        Summary
            `count`, `low`, `high`, `confidence`, `epsilon`, `unit` and `private`.
        """
        from dpregions.releases.districts import summary_of

        return summary_of(self, confidence)

    def table(
        self,
        districts: Any,
        *,
        within: Within | None = None,
        crs: Any = None,
        confidence: float = 0.95,
    ) -> pd.DataFrame:
        """Return districts with their counts and intervals, the largest count first.

        Parameters
        ----------
        districts : GeoDataFrame, GeoSeries or array of geometries
        within, crs, confidence
            As for `interval`.

        Returns
        -------
        pandas.DataFrame
            The districts' own columns but for the geometry, then `count`, `low`, `high` (unless
            covert), `exact`, and `rank`: equal counts share one. It is the order of the counts.
            Where intervals overlap, the true order may be another. Districts wholly outside the
            area come last, without numbers.
        """
        from dpregions.releases.districts import ranked

        return ranked(self, districts, within, crs, confidence)

    def to_regions(self) -> geopandas.GeoDataFrame:
        """Return the synthetic regions that this release is the exact histogram of.

        Convex polygons within `max_diameter`, in the grid's CRS. They are made up: none is
        anybody's. ``EulerHistogram.from_regions(release.to_regions(), grid).counts`` equals
        ``release.counts``.
        """
        return self.outcome.to_regions().frame()

    def save(self, path: Path | str, *, fresh: bool = False) -> str:
        """Write the release to a Parquet file, whole or not at all; `load` reads it back.

        DuckDB, Polars and pandas read the file too: docs/file-format.md has the SQL. It holds
        what the release holds: nothing exact, no time, no name of a machine.

        Parameters
        ----------
        path : pathlib.Path or str
            A file that is there already is replaced.
        fresh : bool
            Do not replace one: FileExistsError.

        Returns
        -------
        str
            The SHA-256 of the file.
        """
        return file.save(self, path, fresh=fresh)

    def to_geodataframe(
        self, kind: Kind = "faces", *, block: int = 1, confidence: float = 0.95
    ) -> geopandas.GeoDataFrame:
        """Return the faces, inner edges or inner vertices with what was published of each.

        Parameters
        ----------
        kind : {"faces", "edges", "vertices"}
        block : int
            Of faces: blocks of so many cells in width and height instead of single ones.
        confidence : float
            Of the intervals of faces, between 0 and 1.

        Returns
        -------
        geopandas.GeoDataFrame
            `kind`; `sign` (+1 for faces and vertices, -1 for edges); `row` and `col` in the
            doubled array `counts`; `count`; `estimate`, unless the release is covert. Faces then
            have the ends of their interval, `low` and `high`, and `may_be_empty` where `low` is 0.
            Counts of faces do not add up, as a region is in every cell it touches: over the
            components inside a rectangle, the sum of sign times count is `count`. Blocks have
            neither `kind` nor `sign`: their counts are those of their rectangles already.
        """
        return self.layer(kind, block=block, confidence=confidence).frame()

    def layer(self, kind: Kind = "faces", *, block: int = 1, confidence: float = 0.95) -> Layer:
        """Return what `to_geodataframe` does, as columns and geometries: without geopandas."""
        from dpregions.releases.tables import components_layer

        return components_layer(self, kind, block, confidence)

    def to_xarray(self, block: int = 1, confidence: float = 0.95) -> xarray.Dataset:
        """Return the cells, or blocks of cells, of a grid as an xarray Dataset (extra `raster`).

        Parameters
        ----------
        block, confidence
            As for `cell_intervals`.

        Returns
        -------
        xarray.Dataset
            The variables of `cell_arrays` over `y` and `x`, the centres of cells or blocks in the
            grid's CRS, from `ymin` up. They are evenly spaced: a block that is cut at the border
            keeps the centre of a whole one. `attrs` have the parameters of the promise and the
            statement, `spatial_ref` the CRS, as rioxarray and CF have it.
        """
        from dpregions.releases.tables import to_dataset

        return to_dataset(self, block, confidence)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the faces as an Arrow stream: for pyarrow, polars, DuckDB, `from_arrow`.

        The columns are those of `to_geodataframe` without `kind` and `sign`, intervals at
        confidence 0.95; `geometry` is WKB, of the extension type geoarrow.wkb, with the CRS.
        """
        from dpregions.releases.tables import arrow_table

        return arrow_table(self).__arrow_c_stream__(requested_schema)

    def plot(self, ax: Any = None, **style: Any) -> Any:
        """Draw a map of the face counts (needs matplotlib, extra `plot`).

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw, in the coordinates of the grid's CRS.
        **style
            For `matplotlib.axes.Axes.imshow`: `cmap`, `vmax`, `norm`, `alpha`. By default colours
            go by the square root of counts; ``norm="linear"`` has them go by counts.

        Returns
        -------
        matplotlib.axes.Axes
        """
        from dpregions.releases.display import draw_map

        return draw_map(self, ax, style)

    def explore(
        self, name: str = "release", *, confidence: float = 0.95, live: bool = False
    ) -> Explorer | LiveExplorer:
        """Return a map to explore in a notebook: draw areas, read counts and intervals.

        It needs no server and no network, also in HTML made of the notebook. `Explorer.save`
        writes it to a file that any browser opens, as `dpregions export` does.

        Parameters
        ----------
        name : str
            What the page calls the release.
        confidence : float
            Of the intervals, between 0 and 1.
        live : bool
            Whether the kernel answers what the page does not know (extra `notebook`). What is
            drawn is then a GeoDataFrame, `LiveExplorer.selection`.

        Returns
        -------
        Explorer or LiveExplorer
        """
        from dpregions.page.notebook import explorer

        return explorer(self, name, checked_confidence(confidence), live)

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        from dpregions.releases.display import release_html

        return release_html(self)

    def describe(self) -> str:
        """Return the privacy statement in plain words."""
        from dpregions.releases.in_words import described

        return described(self)

    def card(self) -> dict[str, Any]:
        """Return a draft for a registry: nested fields, named as in OpenDP's of deployments.

        What a release does not know is left empty: what it is for, and when it was published.
        """
        from dpregions.releases.card import registry_card

        return registry_card(self)

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
