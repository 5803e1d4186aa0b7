"""A release's privacy statement in plain words: what is promised, and what was recorded about it.

Owns the sentences of `Release.describe`. Every value in them is public, from the release alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from dpregions.crs import unit_label
from dpregions.privacy.noise import scale_for
from dpregions.releases.statement import NOT_RECORDED

if TYPE_CHECKING:
    from dpregions.releases.published import Release

PRIORS = ((0.5, "50 %"), (0.01, "1 %"))
"""How sure somebody is of a guess beforehand, as a board may think of it."""


def described(release: Release) -> str:
    """Return the privacy statement, a line for each of its parts."""
    return "\n".join(_lines(release))


def _lines(release: Release) -> Iterator[str]:
    promise = (
        f"epsilon = {release.budget}, pure differential privacy. {release.privacy_unit.describe()}"
    )
    if not release.private:
        promise = f"NOT PRIVATE ({release.noise}): do not publish. It imitates: {promise}"
    grid, unit = release.grid, release.unit
    measured = "" if release.base is None else f", measured on {release.base!r}"
    aim = release.laid_out_for
    aim = f"; the budget is laid out for {aim}" if aim else ""
    longer = {"shrink": "shrunk to it", "drop": "left out"}[release.oversize]
    listed = "" if release.groups is None else f", the list of groups by {release.groups.by!r}"
    method = f"{release.method!r}{_options(release)}"
    yield f"dpregions release, method {method}, software version {release.version}."
    yield f"Privacy: {promise}"
    if release.private:
        (half, more), (one, less) = ((said, release.budget.surest(p)) for p, said in PRIORS)
        yield (
            f"In odds: whoever was {half} sure of a guess about one {unit} is at most {more} sure "
            f"after seeing all of this release; whoever was {one} sure, at most {less}."
        )
    yield (
        f"Enforced: one region a {unit}, of diameter at most {release.max_diameter!r} "
        f"{unit_label(grid.crs)} (longer ones {longer}){grid.enforced_in_words}; so neighbouring "
        f"data move what each measurement counts by at most {release.sensitivity} (L1)."
    )
    yield from _groups(release)
    yield (
        f"Measured: {spent(release)}. Every count of each got noise, empty ones too; "
        f"{release.noise}."
    )
    yield (
        f"Public, chosen without looking at the data: {grid!r}, {grid.cells_in_words}{measured}, "
        f"max_diameter, epsilon{listed}{aim}."
    )
    yield f"Exact: {_exact(release)}."
    if not release.covert:
        yield f"Intervals: {_intervals(release)}; they are not part of the privacy claim."
    yield from _records(release)
    yield (
        "Not promised: that two releases of the same data cost one epsilon. Their epsilons add up."
    )


def _groups(release: Release) -> Iterator[str]:
    """Yield what groups a release was made by, if any, and what they cost."""
    groups = release.groups
    if groups is None:
        return
    n, rule = len(groups.labels), f"One {release.unit} counts in one group at most"
    if groups.only is not None:
        yield (
            f"Group: {groups.only}, one of {n} by {groups.by!r}. {rule}. All of them were released "
            f"together, and their statement says what they cost together."
        )
        return
    cost = f"together they cost epsilon {release.budget}, as each of them does"
    if len(release.spending) > 1:
        cost = f"what they cost adds up to epsilon {release.budget}"
    yield f"Groups: {n} by {groups.by!r}: {groups.in_words()}. {rule}; {cost}."


def spent(release: Release) -> str:
    """Return what was measured, and with which noise."""
    if release.is_of_groups:
        return "each group by itself, as its own statement says"
    return "; ".join(
        f"{what} with epsilon {part}, noise of scale {scale_for(part, release.sensitivity):g}"
        for what, part in release.spending
    )


def _records(release: Release) -> Iterator[str]:
    """Yield what was recorded of how the release was made and by whose word."""
    if release.software:
        drawn = ", ".join(f"{name} {version}" for name, version in release.software)
        yield f"Noise drawn by: {drawn}."
    yield f"Ledger: {release.ledger_entry or NOT_RECORDED}."
    if release.ledger_digest:
        yield f"Its link in the ledger's chain: {release.ledger_digest}."
    if release.declared:
        facts = "; ".join(f"{name}: {said}" for name, said in release.declared)
        yield f"Account of: {facts}."
    if release.policy:
        yield f"Site policy: it was held to the one with SHA-256 {release.policy}."
    if release.sign_off:
        answers = "; ".join(f"{name}: {said}" for name, said in release.sign_off)
        yield f"Signed off: {answers}."


def _options(release: Release) -> str:
    """Return the options of the mechanism that are a word or a number, as they were given."""
    options = release.outcome.options().items()
    said = [f"{name}={value!r}" for name, value in options if isinstance(value, str | int)]
    return f" ({', '.join(said)})" if said else ""


def _intervals(release: Release) -> str:
    """Return what intervals allow for."""
    by_law = "they allow for the noise, by its law"
    if release.outcome.answers_shapes:
        by_law += (
            ", and for detail that was not measured, by rules that were checked on real and "
            'made-up data (detail="worst" leaves that detail open)'
        )
    return by_law


def _exact(release: Release) -> str:
    """Return what a count is, to the last unit."""
    if release.outcome.answers_shapes:
        return "a count is how many of the published synthetic regions touch the query as drawn"
    return "a count is the Euler sum of the published counts over the cells that a query touches"
