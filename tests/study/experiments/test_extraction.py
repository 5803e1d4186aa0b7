"""The user who is shown."""

from __future__ import annotations

import numpy as np
import pandas as pd

from dpregions.study.datasets import GEOLIFE, TDRIVE, Setting
from dpregions.study.experiments.base import Source, Unit, measure
from dpregions.study.experiments.extraction import EXTRACTION, one_user


def fixes_of(sizes):
    """Return fixes of users with so many each, a minute apart, near Beijing's centre."""
    owner = np.repeat(list(sizes), list(sizes.values()))
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "user_id": owner,
            "t": pd.Timestamp("2008-02-02") + pd.to_timedelta(np.arange(len(owner)), "min"),
            "lon": rng.normal(116.40, 0.004, len(owner)),
            "lat": rng.normal(39.91, 0.004, len(owner)),
        }
    )


def test_the_user_shown_has_the_median_number_of_fixes(tmp_path):
    fixes_of({5: 40, 6: 3, 7: 20}).to_parquet(tmp_path / "tdrive.parquet")
    fixes, k = one_user(TDRIVE, tmp_path)
    assert set(fixes["user_id"]) == {7} and len(fixes) == 20
    assert k == 163
    row = measure(
        Source((), 0, tmp_path, tmp_path), Unit(EXTRACTION.measure, Setting(TDRIVE, 20), 0, 1)
    )
    assert row["fixes"].tolist() == [20]
    assert 0 < row["circle_km"][0] <= 2.01


def test_of_trajectories_the_longest_is_shown(tmp_path):
    fixes = fixes_of({7: 20})
    fixes.loc[5:, "t"] += pd.Timedelta("1h")
    fixes.to_parquet(tmp_path / "geolife.parquet")
    assert len(one_user(GEOLIFE, tmp_path)[0]) == 15
