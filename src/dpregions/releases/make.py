"""`release`: secret regions in, a private `Release` out. The one place where they meet.

Checks the public parameters before any work (`Terms`), reads regions, has a ledger pay before the
first draw of noise, and runs the mechanism. It never looks at what it counted.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from dpregions import extras
from dpregions.crs import unit_label
from dpregions.engines.choice import tally_of
from dpregions.errors import (
    Argument,
    InputError,
    InputTypeError,
    PrivacyError,
    SettingWarning,
)
from dpregions.geometry.domain import check_domain
from dpregions.intake.regions import read_unit
from dpregions.mechanisms.known import chosen
from dpregions.memory import refuse_beyond
from dpregions.policy import site_policy
from dpregions.privacy.budget import Budget, PrivacyUnit
from dpregions.privacy.groups import Groups
from dpregions.privacy.noise import MeteredNoise, SystemNoise
from dpregions.releases.groups import GroupsOutcome
from dpregions.releases.published import Release
from dpregions.releases.sign_off import answers_of
from dpregions.releases.statement import refuse_unwritable

if TYPE_CHECKING:
    from dpregions.choices import Favour, Method, Neighbours, Oversize, Unit
    from dpregions.geometry.domain import Domain
    from dpregions.geometry.outlines import Bound
    from dpregions.mechanisms.base import Cost, Mechanism, Outcome, Prepared
    from dpregions.privacy.budget import BudgetLike
    from dpregions.privacy.ledger import Ledger
    from dpregions.privacy.noise import NoiseSource

extras.need("curator")


def release(
    regions: Any,
    grid: Domain,
    *,
    epsilon: BudgetLike,
    max_diameter: float | str,
    method: Method | Mechanism = "footprint",
    neighbours: Neighbours = "add-remove",
    unit: Unit | None = None,
    user_id: Any = "user_id",
    oversize: Oversize = "shrink",
    workload: Any = None,
    favour: Favour | None = None,
    covert: bool = False,
    by: str | None = None,
    groups: Iterable[str | int] | None = None,
    crs: Any = None,
    ledger: Ledger | str | os.PathLike[str] | None = None,
    dataset: str | None = None,
    period: str | None = None,
    sign_off: Any = None,
    allow_epsilon: bool = False,
) -> Release:
    """Publish regions once, under differential privacy.

    Parameters
    ----------
    regions
        One region a user: GeoDataFrame, GeoSeries, geometries, WKB, an Arrow stream, or a Spark
        DataFrame of ids and WKB, which is counted on Spark.
    grid : Grid or Partition
        The public area and cells, chosen without looking at the data.
    epsilon : number
        The privacy loss, greater than 0. Above 20 it protects next to nothing and is refused,
        unless `allow_epsilon` is True.
    max_diameter : float or str
        The largest diameter of a region, in CRS units or as text ("2km"): public, enforced.
        Beyond the diagonal of the area, a `SettingWarning` is issued.
    method : {"footprint", "paper"} or Mechanism
        The mechanism: noise on footprints (consistent, far smaller errors), or the pipeline
        of the paper. Or a mechanism of your own, see `mechanisms.base`.
    neighbours : {"add-remove", "replace-one"}
        What epsilon is about: one user more or fewer, or one user's region replaced (twice
        the noise).
    unit : {"user", "record", "trajectory"}, optional
        What epsilon protects, one of which counts once: by default the user where there are
        ids, and the record with ``user_id=None``. "trajectory" takes the columns `user_id` and
        `trajectory` together; regions that are marked as trajectories' need it.
    user_id : str, array or None
        The column of user ids, or the ids. None makes each row its own record.
    oversize : {"shrink", "drop"}
        What becomes of regions longer than `max_diameter`.
    workload : sequence or geometries, optional
        Sizes of the rectangles that matter, each a side or a pair (width, height), numbers or
        text ("2km"); or polygons (districts). The budget is laid out for them: public, chosen
        without looking at the data. By default all sizes matter alike.
    favour : {"people", "places"}, optional
        What the budget is laid out for: queries where people are as well as everywhere (the
        default), or all places alike.
    covert : bool
        Leave out the signed measurements: no estimates and no intervals, only whole counts.
    by : str, optional
        A column of groups of users, such as "age_group": each group is released by itself, at the
        price of one (docs/groups.md). `Release.group` returns one, the release itself answers for
        all.
    groups : list, optional
        With `by`: the groups, chosen without looking at the data. Each is released, empty ones
        too; rows of others count nowhere. A user with rows in several counts in one.
    crs : optional
        The CRS of regions that carry none.
    ledger : path or Ledger, optional
        The budget ledger that pays for this release, before noise is drawn: over budget, it is
        refused. Make one with ``dpregions budget create``.
    dataset : str, optional
        The data set's name in the ledger; published with the release.
    period : str, optional
        A label for the ledger's entry, such as "2026-W23". It changes nothing of what is counted,
        and debits of other periods add up all the same.
    sign_off : path or dict, optional
        Answers on a sign-off sheet (docs/sign-off.md), published with the release.
    allow_epsilon : bool
        Take an epsilon above 20, with a `SettingWarning`.

    Returns
    -------
    Release

    Examples
    --------
    >>> import dpregions as dpr
    >>> city = dpr.synthetic.regions(500)
    >>> published = dpr.release(city, dpr.synthetic.grid(), epsilon=1, max_diameter="2km")
    >>> published.sensitivity
    1
    """
    terms = Terms(
        grid=grid,
        epsilon=epsilon,
        max_diameter=max_diameter,
        method=method,
        neighbours=neighbours,
        oversize=oversize,
        workload=workload,
        favour=favour,
        covert=covert,
        by=by,
        groups=groups,
        crs=crs,
        period=period,
        sign_off=sign_off,
        allow_epsilon=allow_epsilon,
    )
    if (ledger is None) != (dataset is None):
        raise InputError(
            "ledger and dataset go together: give the ledger's path and the data set's name in it",
            argument="ledger" if ledger is None else "dataset",
        )
    if period is not None and ledger is None:
        raise InputError(
            *(
                Argument("period", repr(period)),
                " is a label in a ledger: give the ledger too, or ",
            ),
            "leave it out",
        )
    terms.warn_of_odd(stacklevel=2)
    regions, ids, kept = read_unit(regions, user_id, unit)
    count = partial(_tally, regions, ids, terms)
    return _paid(count, terms, kept, ledger, dataset)


def release_tally(
    tally: Any,
    terms: Terms,
    *,
    unit: Unit,
    ledger: Ledger | str | os.PathLike[str] | None = None,
    dataset: str | None = None,
) -> Release:
    """Publish what another engine counted: the end of `release`, which see.

    Parameters
    ----------
    tally : Tally
        Made by ``terms.prepared.tally()``, with one region for each `unit` in it. Whoever counted
        answers for that; nothing here can check it.
    terms : Terms
        The public parameters.
    unit : {"user", "record", "trajectory"}
        What counts once in the tally.
    ledger, dataset : optional
        As in `release`.
    """
    if terms.grouping is not None and not hasattr(tally, "parts"):
        raise InputTypeError("a release by groups takes a tally of groups: see engines.groups")
    return _paid(lambda: tally, terms, unit, ledger, dataset)


def _paid(
    count: Callable[[], Any],
    terms: Terms,
    unit: Unit,
    ledger: Ledger | str | os.PathLike[str] | None,
    dataset: str | None,
) -> Release:
    """Return the release of what is counted, paid by the ledger before the first draw of noise."""
    held: dict[str, Any] = {"policy": terms.held_to_policy(unit, ledger)}
    held["sign_off"] = terms.answers
    if ledger is None or dataset is None:
        return replace(_published(SystemNoise(), count(), unit, terms), **held)
    from dpregions.privacy.ledger import Ledger

    book = ledger if isinstance(ledger, Ledger) else Ledger(ledger)
    promise = PrivacyUnit(terms.neighbours, unit)
    what = f"{terms.mechanism.name}, {terms.grid.cells_in_words}"
    if terms.grouping is not None:
        what += f", {len(terms.grouping.labels)} groups by {terms.grouping.by!r}"
    if terms.period is not None:
        what += f", period {terms.period}"
    with book.paying(SystemNoise(), dataset, terms.cost, promise, what) as noise:
        made = _published(noise, count(), unit, terms)
    if noise.entry is not None:
        paid = noise.entry
        held |= {"ledger_entry": str(paid), "ledger_digest": paid.digest}
        held |= {"declared": paid.declared}
    return replace(made, **held)


def release_with(
    noise: NoiseSource,
    regions: Any,
    grid: Domain,
    *,
    unit: Unit | None = None,
    user_id: Any = "user_id",
    **terms: Any,
) -> Release:
    """Make a release with a given source of noise: the seam for studies, not for publishing.

    Takes what `release` takes, but no ledger. The system's noise is refused: what it makes may be
    published, so it is `release`'s alone, with the site's policy and the ledger.
    """
    if isinstance(noise, SystemNoise):
        raise PrivacyError("release_with is for studies: publish with release", argument="noise")
    regions, ids, kept = read_unit(regions, user_id, unit)
    stated = Terms(grid=grid, **{"allow_epsilon": True} | terms)
    return _published(noise, _tally(regions, ids, stated), kept, stated)


SHORT = Fraction(1, 20)
"""Part of a cell below which a bound is taken for a mistake, such as a forgotten unit."""


@dataclass(frozen=True, kw_only=True)
class Terms:
    """The public parameters of a release, as `release` takes them; refused before any work."""

    grid: Domain
    epsilon: BudgetLike
    max_diameter: float | str
    method: Method | Mechanism = "footprint"
    neighbours: Neighbours = "add-remove"
    oversize: Oversize = "shrink"
    workload: Any = None
    favour: Favour | None = None
    covert: bool = False
    by: str | None = None
    groups: Iterable[str | int] | None = None
    crs: Any = None
    period: str | None = None
    sign_off: Any = None
    allow_epsilon: bool = False

    budget: Budget = field(init=False)
    """Of one group, where there are groups."""
    answers: tuple[tuple[str, str], ...] = field(init=False)
    grouping: Groups | None = field(init=False)
    cost: Budget = field(init=False)
    """What the whole release costs."""
    mechanism: Mechanism = field(init=False)
    bound: Bound = field(init=False)
    prepared: Prepared = field(init=False)

    def __post_init__(self) -> None:
        check_domain(self.grid)
        settle = partial(object.__setattr__, self)
        settle("budget", Budget(self.epsilon))
        self.budget.refuse_long()
        settle("answers", answers_of(self.sign_off))
        PrivacyUnit(self.neighbours)
        if not isinstance(self.covert, bool | np.bool_):
            raise InputTypeError(Argument("covert"), f" must be True or False, got {self.covert!r}")
        settle("covert", bool(self.covert))
        settle("mechanism", chosen(self.method, self.workload, self.favour))
        settle("grouping", Groups.of(self.by, self.groups))
        settle("cost", self._cost())
        if self.period is not None and not Groups.is_label(self.period):
            raise InputError(
                Argument("period", repr(self.period)),
                " must be a label of 1 to 100 printable characters, for example '2026-W23'",
            )
        self.cost.refuse_large(allowed=self.allow_epsilon)
        if self.max_diameter is None:
            raise PrivacyError(
                Argument("max_diameter"),
                " is missing: the noise is calibrated to it, and it must be public. Choose how "
                "large a region may be, for example ",
                Argument("max_diameter", "'2km'"),
            )
        settle("bound", self.grid.bound(self.max_diameter, self.oversize))
        refuse_unwritable(self.grid)
        prepare = self.mechanism.prepare
        settle("prepared", prepare(self.grid, self.bound, self.budget, self.neighbours))
        if self.grouping is not None:
            self._refuse_many(len(self.grouping.labels))

    def _cost(self) -> Budget:
        """Return what the whole release costs: of disjoint groups, as much as one of them."""
        if self.grouping is None:
            return self.budget
        halves = getattr(self.mechanism, "half_for_one", False)
        cost = self.grouping.cost(self.budget, self.neighbours, halves)
        cost.refuse_long()
        return cost

    def most(self) -> Cost:
        """Return what the release takes at most, of a mechanism that tells: all groups together."""
        prepared: Any = self.prepared
        n = 1 if self.grouping is None else len(self.grouping.labels)
        cost: Cost = prepared.cost()
        draws, memory, file = (n * part for part in cost)
        return cost._replace(draws=draws, memory=memory, file=file)

    def _refuse_many(self, n: int) -> None:
        """Refuse more groups than this machine holds releases of, before anything is spent."""
        if hasattr(self.prepared, "cost"):
            refuse_beyond(
                self.most().memory,
                f"a release of {n} groups on {self.grid.size_in_words}",
                ("list fewer ", Argument("groups"), ", or use larger cells"),
                PrivacyError,
            )

    def held_to_policy(
        self, unit: Unit | None, ledger: Ledger | str | os.PathLike[str] | None
    ) -> str | None:
        """Refuse what the site's policy does not allow; return the policy's digest, if any."""
        policy = site_policy()
        if policy is None:
            return None
        path: Any = getattr(ledger, "path", ledger)
        epsilon = self.cost.epsilon
        policy.refuse(epsilon=epsilon, unit=unit, ledger=path, signed=bool(self.answers))
        return policy.digest

    def warn_of_odd(self, stacklevel: int) -> None:
        """Warn of public settings that protect or bound next to nothing."""
        Budget.warn_large([self.budget], stacklevel + 1)
        given = Argument("max_diameter", repr(self.max_diameter))
        bound = self.grid.in_cells(self.max_diameter, "max_diameter")
        if bound < SHORT:
            warnings.warn(
                SettingWarning(
                    given,
                    f" is {float(bound):.2g} of a cell: every region is shrunk to that, next to a "
                    f"point. Give it with its unit, for example '2km'",
                ),
                stacklevel=stacklevel + 1,
            )
        xmin, ymin, xmax, ymax = self.grid.bounds
        diagonal = math.hypot(xmax - xmin, ymax - ymin)
        if float(self.grid.length(self.max_diameter, "max_diameter")) > diagonal:
            warnings.warn(
                SettingWarning(
                    given,
                    f" is longer than the diagonal of the area, {diagonal:.6g} "
                    f"{unit_label(self.grid.crs)}: the release is laid out for regions that may "
                    f"cover it all. Choose how large a region may be, from public knowledge",
                ),
                stacklevel=stacklevel + 1,
            )


def _tally(regions: Any, ids: Any, terms: Terms) -> Any:
    """Return the exact counts of regions. Secret."""
    options = {"user_id": ids, "crs": terms.crs, "groups": terms.grouping}
    return tally_of(regions, terms.grid, terms.bound, terms.prepared.tally, **options)


def _published(noise: NoiseSource, tally: Any, unit: Unit, terms: Terms) -> Release:
    """Add noise, and fit: the one place where the secret meets the noise."""
    grid, prepared, outcome = terms.grid, terms.prepared, _outcome(noise, tally, terms)
    return Release(
        grid=grid,
        base=None if outcome.grid is grid else outcome.grid,
        groups=terms.grouping,
        method=terms.mechanism.name,
        budget=terms.cost,
        neighbours=terms.neighbours,
        unit=unit,
        sensitivity=prepared.sensitivity,
        max_diameter=float(grid.length(terms.max_diameter, "max_diameter")),
        oversize=terms.oversize,
        private=noise.private,
        noise=noise.label,
        software=noise.software,
        spending=outcome.spending,
        covert=terms.covert,
        laid_out_for=getattr(prepared, "laid_out_for", ""),
        outcome=outcome,
    )


def _outcome(noise: NoiseSource, tally: Any, terms: Terms) -> Outcome:
    """Return what is published of a tally; of groups, what is published of each."""
    metered, publish = MeteredNoise(noise, terms.cost), terms.prepared.publish
    if terms.grouping is None:
        outcome = publish(tally, metered)
        return outcome.covert() if terms.covert else outcome
    # Each group draws within a budget of its own: what they cost together is settled, and debited
    # before the first draw.
    shared = metered.allot(terms.cost)
    parts = [publish(part, MeteredNoise(shared, terms.budget)) for part in tally.parts]
    if terms.covert:
        parts = [part.covert() for part in parts]
    return GroupsOutcome.of(terms.grid, parts, terms.grouping, terms.budget, terms.cost)
