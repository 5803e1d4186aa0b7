"""Coverage in figures: by size and decile of truth, and whether it is below what is promised.

Study on exact data: not a private release. Reads the rows that `study.coverage` makes; it runs no
mechanism.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from dpregions.planning.exact_data import ExactData

if TYPE_CHECKING:
    import pandas as pd

PROMISED, FAMILY = 0.92, 0.01
"""No kind of query may be held significantly less often; the chance of one false alarm in all."""

_RESAMPLES = 2000


def with_deciles(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows with `held`, `width` and `decile`: 10 is the tenth with the largest truth.

    Deciles are those of a size. Equal truths are in one decile, the middle one of theirs, so a
    decile may be missing or hold more than a tenth.
    """
    rank = rows.groupby("size")["truth"].rank(method="average", pct=True)
    return rows.assign(
        held=(rows["low"] <= rows["truth"]) & (rows["truth"] <= rows["high"]),
        width=rows["high"] - rows["low"],
        decile=np.ceil(10 * rank - 1e-9).astype(int),
    )


def coverage_table(rows: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Return how much was `held`, of how many (`n`), with median `truth` and `width`."""
    grouped = with_deciles(rows).groupby(by, sort=False)
    table = grouped.agg(
        held=("held", "mean"), n=("held", "size"), truth=("truth", "median"),
        width=("width", "median"),
    )  # fmt: skip
    return table.sort_index(level=by[1:], sort_remaining=False) if len(by) > 1 else table


def coverage_tests(
    settings: Mapping[str, pd.DataFrame],
    *,
    promised: float = PROMISED,
    family: float = FAMILY,
    resamples: int = _RESAMPLES,
    seed: int = 0,
) -> pd.DataFrame:
    """Test each size and decile of each setting for being held less often than promised.

    The critical value is the `family` quantile of the least of all standardised deviations in a
    bootstrap over releases: queries of one release share its noise and count as one cluster. So
    the chance that any of them is called `below` by mistake is about `family`.

    Parameters
    ----------
    settings : mapping
        Of names to what `interval_rows` returned.
    promised, family : float
    resamples, seed : int

    Returns
    -------
    pandas.DataFrame
        By `setting`, `size`, `decile`: `held`, `n`, `score` (in standard errors from `promised`)
        and `below`. Its attribute `critical` is the score below which one counts as below.
    """
    import pandas as pd

    rng = np.random.default_rng(seed)
    least, parts = np.full(resamples, np.inf), []
    for name, rows in settings.items():
        found = with_deciles(rows).groupby(["release", "size", "decile"], sort=False)["held"]
        wide = found.agg(["sum", "size"]).unstack(["size", "decile"], fill_value=0)
        held, asked = (wide[part].to_numpy(np.float64) for part in ("sum", "size"))
        n = asked.sum(axis=0)
        mean = held.sum(axis=0) / n
        # Clusters' errors; of queries that all hold, those that a smaller share would have.
        clustered = np.sqrt(((held - mean * asked) ** 2).sum(axis=0)) / n
        error = np.maximum(clustered, np.sqrt(promised * (1 - promised) / n))
        drawn = rng.multinomial(len(held), np.full(len(held), 1 / len(held)), size=resamples)
        again = np.maximum(drawn @ asked, 1.0)
        deviation = (drawn @ held - mean * (drawn @ asked)) / again / error
        least = np.minimum(least, deviation.min(axis=1))
        table = pd.DataFrame({"held": mean, "n": n, "score": (mean - promised) / error})
        keys = wide["sum"].columns.to_frame(index=False)
        parts.append(pd.concat([keys.assign(setting=name), table], axis=1))
    critical = float(np.quantile(least, family))
    whole = pd.concat(parts, ignore_index=True).set_index(["setting", "size", "decile"])
    whole["below"] = whole["score"] < critical
    whole.attrs.update(label=ExactData.label, critical=critical)
    return whole


def width_ratios(now: pd.DataFrame, earlier: pd.DataFrame) -> pd.DataFrame:
    """Return by size the median width now, in an earlier state, and their ratio.

    Both were asked the same queries. `held` and `held_earlier` are how often they held.
    """
    here, there = (coverage_table(rows, ["size"]) for rows in (now, earlier))
    table = here[["held", "width"]].join(there[["held", "width"]].add_suffix("_earlier"))
    return table.assign(ratio=table["width"] / table["width_earlier"])
