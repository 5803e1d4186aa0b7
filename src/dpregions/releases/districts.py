"""What a report asks of a release: the total with its interval, and districts in their order.

Shows what was published and nothing else: takes a `Release`, never an exact histogram.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dpregions.errors import InputError, printable
from dpregions.lengths import shown_percent

if TYPE_CHECKING:
    import pandas as pd

    from dpregions.choices import Within
    from dpregions.releases.published import Release

_ANSWERS = ("count", "low", "high", "exact", "rank")


@dataclass(frozen=True)
class Summary:
    """How many regions touch the area, and how surely; `str` says it in a sentence."""

    count: int
    low: float | None
    """None in a covert release, which has no intervals."""
    high: float | None
    confidence: float
    epsilon: str
    unit: str
    private: bool

    def __str__(self) -> str:
        mark = "" if self.private else "NOT PRIVATE, do not publish: "
        sure = ""
        if self.low is not None and self.high is not None:
            low, high = np.floor(self.low), np.ceil(self.high)
            sure = f", with {shown_percent(self.confidence)} confidence {low:,.0f} to {high:,.0f}"
        return (
            f"{mark}{self.count:,} regions touch the area{sure} "
            f"(one region per {self.unit}, epsilon = {self.epsilon})."
        )


def summary_of(release: Release, confidence: float) -> Summary:
    """Return the total of a release, over all of its area."""
    selection = release.select(release.grid.bounds, within=None, crs=None)
    found = release.answers(selection, confidence)
    low, high = (None if release.covert else float(found[end][0]) for end in ("low", "high"))
    return Summary(
        count=int(found["count"][0]),
        low=low,
        high=high,
        confidence=float(confidence),
        epsilon=str(release.budget),
        unit=release.unit,
        private=release.private,
    )


def ranked(
    release: Release, districts: Any, within: Within | None, crs: Any, confidence: float
) -> pd.DataFrame:
    """Return districts with their answers, the largest count first."""
    import pandas as pd

    selection = release.select((districts,), within=within, crs=crs)
    found = release.answers(selection, confidence)
    outside = found["outside"]
    table = _columns_of(districts, selection.index, len(outside))
    counts = pd.array(found["count"], dtype="Int64")
    counts[outside] = pd.NA
    table["count"] = counts
    for end in {"low", "high"} & found.keys():
        table[end] = np.where(outside, np.nan, found[end])
    table["exact"] = found["exact"]
    table["rank"] = table["count"].rank(method="min", ascending=False).astype("Int64")
    names = [name for name in _ANSWERS if name in table.columns]
    others = [name for name in table.columns if name not in names]
    return table[others + names].sort_values("rank", kind="stable", na_position="last")


def _columns_of(districts: Any, index: Any, n: int) -> pd.DataFrame:
    """Return what is known of each district beside its shape."""
    import pandas as pd

    if not hasattr(districts, "active_geometry_name"):
        return pd.DataFrame(index=pd.RangeIndex(n) if index is None else index)
    if taken := [name for name in districts.columns if name in _ANSWERS]:
        raise InputError(
            f"the districts have a column {printable(', '.join(taken))} already, which the table "
            f"adds: rename it"
        )
    return pd.DataFrame(districts.drop(columns=districts.active_geometry_name))
