"""The experiments of the paper and ours, in the order of the report; each whole in its own file.

Study on exact data: not a private release. Whoever adds an experiment adds its file and a line
here; nothing else in the study knows any of them by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from dpregions.errors import InputError
from dpregions.study.experiments.base import Experiment
from dpregions.study.experiments.cells import CELLS
from dpregions.study.experiments.consistency import CONSISTENCY
from dpregions.study.experiments.coverage import COVERAGE
from dpregions.study.experiments.density import DENSITY
from dpregions.study.experiments.epsilon import EPSILON
from dpregions.study.experiments.extraction import EXTRACTION
from dpregions.study.experiments.l1 import L1
from dpregions.study.experiments.shapes import SHAPES
from dpregions.study.experiments.sizes import PEOPLE, SIZES
from dpregions.study.experiments.times import TIMES

if TYPE_CHECKING:
    import pandas as pd

    from dpregions.study.statements import Finding

EXPERIMENTS = {
    made.name: made
    for made in (
        *(SIZES, PEOPLE, SHAPES, CELLS, EPSILON, L1),
        *(COVERAGE, CONSISTENCY, TIMES, DENSITY, EXTRACTION),
    )
}


def chosen_experiments(names: list[str]) -> list[Experiment]:
    """Return the experiments asked for, in their own order; all of them by default."""
    unknown = [name for name in names if name not in EXPERIMENTS]
    if unknown:
        raise InputError(
            f"{', '.join(unknown)} is no experiment: choose from {', '.join(EXPERIMENTS)}"
        )
    return [made for name, made in EXPERIMENTS.items() if not names or name in names]


def findings(tables: Mapping[str, pd.DataFrame]) -> list[Finding]:
    """Set each of the paper's statements beside the tables that are there."""
    return [judge(tables.get(e.name)) for e in EXPERIMENTS.values() for judge in e.judges]
