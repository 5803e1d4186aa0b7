"""A plan as it is shown: errors to expect in percent and in regions, as text, frame and JSON.

Owns what a plan holds and how it reads. It rehearses nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dpregions.lengths import shown_percent
from dpregions.planning.rehearsal import BUSY, PLACES, TYPICAL
from dpregions.planning.stand_ins import PROXY

if TYPE_CHECKING:
    import pandas as pd

    from dpregions.choices import Neighbours
    from dpregions.planning.advice import Recommendation

_PLACES = {
    BUSY: "In busy places (where people are: about any region, each as likely as any other)",
    TYPICAL: "In typical places (anywhere in the area, where there is at least one region)",
}


@dataclass(frozen=True)
class Expectation:
    """The error to expect of a method at a cell size, epsilon, size of query and kind of places."""

    method: str
    cell: str
    cell_size: float
    epsilon: float
    query: str
    place: str
    """``"busy"`` or ``"typical"``."""
    rows: int
    """Cells that answer the query; 0 where it is smaller than a cell."""
    cols: int
    share: float
    """Of the area, as it is answered."""
    error: float
    """Median relative error; NaN where there is none to expect. Of several kinds of cities the
    geometric middle of their range."""
    low: float
    """Eight of ten rehearsals lie between this and `high`."""
    high: float
    regions: float
    """The same in regions: `error` of `count`."""
    count: float
    """How many regions such a query typically counts, the geometric mean over kinds of cities."""
    by_kind: dict[str, float]
    """The error in each kind of city."""
    uncertainty: float
    """Relative standard error of `error`, from having rehearsed so many times and no more."""
    note: str = ""

    @property
    def shown(self) -> str:
        """The error in percent, or its range over kinds of cities, and in regions."""
        if math.isnan(self.error):
            return "-"
        ends = [shown_percent(end) for end in (min(self.by_kind.values()), self.most)]
        percent = ends[0] if ends[0] == ends[1] else f"{ends[0].removesuffix(' %')}-{ends[1]}"
        return f"{percent} ({shown_regions(self.regions)} of {shown_regions(self.count)})"

    @property
    def most(self) -> float:
        """The error in the least favourable kind of city."""
        return max(self.by_kind.values(), default=math.nan)


@dataclass(frozen=True)
class Plan:
    """What to expect of a release, by method, cell size, epsilon, size of query and places.

    Made by `plan`; print it, or take `to_dataframe()`.

    Attributes
    ----------
    area, max_diameter : str
    n_regions : int
    neighbours : str
    kinds : tuple of str
        The kinds of cities that were rehearsed on, or ``"proxy"``.
    rows : tuple of Expectation
    recommendations : tuple of Recommendation
        Empty without a target.
    """

    area: str
    max_diameter: str
    n_regions: int
    neighbours: Neighbours
    kinds: tuple[str, ...]
    rows: tuple[Expectation, ...]
    recommendations: tuple[Recommendation, ...] = ()

    def at(self, place: str) -> list[Expectation]:
        """Return the rows of one kind of places, ``"busy"`` or ``"typical"``."""
        return [row for row in self.rows if row.place == place]

    def to_dataframe(self) -> pd.DataFrame:
        """Return the rows as a table."""
        import pandas as pd

        return pd.DataFrame([asdict(row) for row in self.rows])

    def as_dict(self) -> dict[str, Any]:
        """Return everything in plain types, without NaN, as JSON wants it."""
        return _plain(asdict(self))

    @property
    def uncertainty(self) -> float:
        """The median over rows of their Monte Carlo standard error; NaN where all refuse."""
        known = [row.uncertainty for row in self.rows if not math.isnan(row.uncertainty)]
        return float(np.median(known)) if known else math.nan

    @property
    def rehearsed_on(self) -> str:
        """What stood in for the data."""
        if self.kinds == (PROXY,):
            return "rehearsed on the proxy"
        return f"rehearsed on made-up cities ({', '.join(self.kinds)}), no data was read"

    def __str__(self) -> str:
        lines = [
            f"Errors to expect, for about {self.n_regions:,} regions up to {self.max_diameter} "
            f"across in {self.area}",
            f"({self.neighbours}; {self.rehearsed_on})",
        ]
        for place in PLACES:
            lines += ["", f"{_PLACES[place]}:", "", *_table(self.at(place))]
        notes = [row.note for row in self.rows if row.note]
        lines += ["", *(f"* {note}" for note in dict.fromkeys(notes)), *self._footnotes()]
        advice = [str(one) for one in self.recommendations]
        if advice and len(self.kinds) > 1:
            advice.append("This holds in the least favourable of these kinds of cities.")
        if advice and notes:
            advice.append("Cells that would enlarge or cannot answer a query (*) are not advised.")
        return "\n".join([*lines, *([""] * bool(advice)), *advice])

    def _footnotes(self) -> list[str]:
        if math.isnan(self.uncertainty):
            return []
        sure = self.uncertainty < 0.01
        about = "less than 1 %" if sure else f"about {100 * self.uncertainty:.0f} %"
        ranges = (
            ["Ranges are over the kinds of cities; in regions, their middle is shown."]
            if len(self.kinds) > 1
            else []
        )
        return [
            "Errors are medians; (12 of 300): about 12 too many or too few where 300 are.",
            *ranges,
            f"Each figure is uncertain by {about} of itself (Monte Carlo); a real city may differ "
            f"by more.",
        ]


def shown_regions(number: float) -> str:
    """Return a number of regions in two digits; less than one is said so.

    Examples
    --------
    >>> [shown_regions(n) for n in (0.3, 1.4, 12.3, 4567)]
    ['<1', '1', '12', '4,600']
    """
    if number < 1:
        return "<1"
    digits = 1 - math.floor(math.log10(number))
    return f"{round(number, min(digits, 0)):,.0f}"


def _table(rows: Sequence[Expectation]) -> list[str]:
    """Return rows as lines of text, one for each method, cell size and epsilon."""
    queries = list(dict.fromkeys(row.query for row in rows))
    lines = [["method", "cell", "epsilon", *(f"{query} " for query in queries)]]
    grouped: dict[tuple[str, str, float], list[str]] = {}
    for row in rows:
        mark = "*" if row.note else " "
        grouped.setdefault((row.method, row.cell, row.epsilon), []).append(row.shown + mark)
    lines += [[m, cell, f"{eps:g}", *cells] for (m, cell, eps), cells in grouped.items()]
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return [
        "  ".join(
            text.ljust(width) if i == 0 else text.rjust(width)
            for i, (text, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
