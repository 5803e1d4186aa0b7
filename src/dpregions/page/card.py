"""The privacy card: what a release promises, in words for those who look at a map.

Every sentence is computed from the statement that travels with the release.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpregions.crs import unit_label

if TYPE_CHECKING:
    from dpregions.releases.published import Release

_LITTLE = 5.0
"""Above this epsilon a guess that was even may become almost sure."""

_WHO = {
    "user": "One region for each person.",
    "record": "One region for each record; a person with several records is in here several times.",
    "trajectory": "One region for each trip; a person with several trips is in here several times.",
}
_WHAT = {
    "user": "All of a person's data together.",
    "record": "One record. A person with several records is protected less.",
    "trajectory": "One trip. A person with several trips is protected less.",
}
_WHETHER = {
    "user": "you are in the data",
    "record": "a record is in the data",
    "trajectory": "a trip is in the data",
}
_WHERE = {
    "user": "your region is here or somewhere else",
    "record": "a record's region is here or somewhere else",
    "trajectory": "a trip is here or somewhere else",
}


def card_of(release: Release, checksum: str | None = None) -> list[dict[str, str]]:
    """Return the questions of the privacy card and their answers."""
    said = {
        "Who is in here?": _WHO[release.unit],
        "What is protected?": _WHAT[release.unit],
        "How much?": _how_much(release),
        "What was changed?": "Whole-number noise was added to every measurement. All numbers on "
        "this page come from the noisy ones. Looking, drawing and downloading cost nothing more.",
        "What is not promised?": "Other releases about the same people add up with this one. What "
        "is true of a whole neighbourhood can be learned.",
        "Which file?": _which(release, checksum),
    }
    return [{"title": title, "text": text} for title, text in said.items()]


def _how_much(release: Release) -> str:
    if not release.private:
        return (
            "NOT PRIVATE. The noise of this file came from a seed, for a study: it protects "
            "nobody, so do not publish it."
        )
    epsilon = release.epsilon
    whether = (_WHERE if release.neighbours == "replace-one" else _WHETHER)[release.unit]
    said = (
        f"Epsilon is {epsilon:g}. Someone who was 50:50 whether {whether} could be at most "
        f"{release.budget.surest()} sure after seeing everything here: the odds change at most "
        f"{release.budget.odds_change()} times."
    )
    return said + (" This promises little." if epsilon > _LITTLE else "")


def _which(release: Release, checksum: str | None) -> str:
    longer = {"shrink": "were shrunk to it", "drop": "were left out"}[release.oversize]
    said = [
        f"Regions longer than {release.max_diameter:g} {unit_label(release.grid.crs)} {longer}.",
        f"Made with dpregions {release.version}, method {release.method}.",
        "Its budget was not recorded in a ledger."
        if release.ledger_entry is None
        else f"Budget: {release.ledger_entry}.",
    ]
    if checksum is not None:
        said.append(f"Checksum sha256:{checksum[:12]}: it finds damage, and cannot find a forgery.")
    return " ".join(said)
