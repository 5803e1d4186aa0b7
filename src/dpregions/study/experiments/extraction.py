"""The experiment `extraction`: from fixes to a region, for one user.

Shows one user's fixes, who is made up or real: what is made of a real one is secret.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from dpregions import synthetic
from dpregions.atomic_files import SECRET, replacing
from dpregions.study import charts
from dpregions.study.datasets import DATASETS, MAX_DIAMETER, DataSet
from dpregions.study.experiments import base
from dpregions.study.harness import Row

if TYPE_CHECKING:
    import pandas as pd

EXAMPLE_K = 400
"""Fixes that make the region of the made-up user who is shown."""


def extraction(source: base.Source, unit: base.Unit) -> Iterator[Row]:
    """Yield the facts of one user's region."""
    import shapely

    data = unit.setting.data
    fixes, k = shown_user(data, source)
    region = replace(data, k=k, unit="user", gap=None).regions_of(fixes).geometry.iloc[0]
    circle = shapely.minimum_bounding_radius(region)
    yield {
        "fixes": len(fixes),
        "k": k,
        "corners": len(shapely.get_coordinates(region)) - 1,
        "area_km2": region.area / 1e6,
        "circle_km": 2 * circle / 1e3,
    }


def shown_user(data: DataSet, source: base.Source) -> tuple[pd.DataFrame, int]:
    """Return one user's fixes, and k; kept, so that table and picture stay of the same user."""
    import pandas as pd

    if data.made_up:
        return one_user(data, None)
    path = source.kept / f"{data.name}_user.parquet"
    if not path.exists():
        with replacing(path, mode=SECRET) as part:
            one_user(data, source.folder)[0].to_parquet(part, index=False)
    return pd.read_parquet(path), data.k


def one_user(data: DataSet, folder: Path | None) -> tuple[pd.DataFrame, int]:
    """Return the fixes of one user, and k: made up, or with the median number of fixes.

    Where a region stands for a trajectory, those of the user's longest.
    """
    import pandas as pd

    if data.made_up:
        return synthetic.example_user().assign(user_id=0), EXAMPLE_K
    fixes = data.fixes(folder)
    sizes = fixes["user_id"].value_counts().sort_index().sort_values(kind="stable")
    mine = fixes[fixes["user_id"] == sizes.index[len(sizes) // 2]]
    if data.gap is not None:
        trajectory = (mine["t"].diff() > pd.Timedelta(data.gap)).cumsum()
        mine = mine[trajectory == trajectory.value_counts().sort_index().idxmax()]
    return mine.reset_index(drop=True), data.k


def _draw(table: pd.DataFrame, source: base.Source) -> base.Pictures:
    from dpregions.plots.extraction import plot_extraction

    for dataset in table["dataset"]:
        data = DATASETS[dataset]
        fixes, k = shown_user(data, source)
        crs = data.grid(data.n).crs
        figure = plot_extraction(fixes, k=k, max_diameter=MAX_DIAMETER, crs=crs)
        who = "a made-up user" if data.made_up else "ONE REAL USER: SECRET, never to be published"
        figure.suptitle(f"{data.title}: {who}", size=10, color=charts.INK)
        yield f"extraction_{dataset}", figure


def _say(part: pd.DataFrame) -> str:
    row = part.iloc[0]
    return (
        f"{row['fixes']:,} fixes, k = {row['k']:,}, a region of {row['corners']} corners and "
        f"{row['area_km2']:.3g} km², in a circle {row['circle_km']:.3g} km across."
    )


EXTRACTION = base.Experiment(
    name="extraction",
    title="From fixes to a region, for one user",
    about="One user's fixes, their density and its mode, the k fixes nearest the mode and not "
    "farther than half of the largest diameter, and their convex hull: the region.",
    measure=base.Measure("extraction", extraction, once=base.READING / 5),
    settings=base.main,
    columns=("dataset", "fixes", "k", "corners", "area_km2", "circle_km"),
    draw=_draw,
    say=_say,
    repeated=False,
)
