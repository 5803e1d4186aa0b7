"""The paper's statements beside tables made by hand: verdicts follow the numbers."""

from __future__ import annotations

import pandas as pd
import pytest

from dpregions.study.statements import findings


def sizes(dataset, n, errors):
    return pd.DataFrame(
        {
            "dataset": dataset,
            "cells_a_side": n,
            "method": "round",
            "share_percent": list(errors),
            "error_percent": list(errors.values()),
        }
    )


def seconds(**steps):
    return pd.DataFrame(
        {"dataset": "geolife", "step": list(steps), "seconds": list(steps.values())}
    )


def violated(c1, c2, c3):
    row = {"dataset": "tdrive", "method": "diff-priv"}
    return pd.DataFrame([{**row, "C1_percent": c1, "C2_percent": c2, "C3_percent": c3}])


def verdict(tables, begins):
    (found,) = (f for f in findings(tables) if f.printed.startswith(begins))
    return found


def test_without_tables_only_what_needs_none_is_judged():
    verdicts = [found.verdict for found in findings({})]
    assert verdicts.count("agrees") == 1
    assert verdicts.count("not measured") == len(verdicts) - 1
    assert verdict({}, "Sensitivities").measured == "25, 49, 9, 729"


@pytest.mark.parametrize(("worst", "expected"), [(19.9, "agrees"), (20.1, "differs")])
def test_small_questions_on_tdrive(worst, expected):
    table = {"sizes": sizes("tdrive", 20, {1.0: worst, 10.0: 9.0, 50.0: 99.0})}
    found = verdict(table, "T-Drive: errors under 20 %")
    assert found.verdict == expected
    assert found.measured == f"Round errs by 9 to {worst} %"
    assert bool(found.why) == (expected == "differs")


@pytest.mark.parametrize(("worst", "expected"), [(9.9, "agrees"), (12.0, "differs")])
def test_large_questions_on_tdrive(worst, expected):
    table = {"sizes": sizes("tdrive", 20, {10.0: 50.0, 20.0: worst, 100.0: 5.0})}
    assert verdict(table, "T-Drive: very low").verdict == expected


@pytest.mark.parametrize(("coarse", "expected"), [(9.0, "agrees"), (50.0, "differs")])
def test_cabspotting_is_judged_by_the_papers_cells(coarse, expected):
    both = [sizes("cabspotting", 4, {1.0: coarse}), sizes("cabspotting", 20, {1.0: 300.0})]
    found = verdict({"sizes": pd.concat(both)}, "Cabspotting")
    assert found.verdict == expected
    assert "300 %" in found.measured


@pytest.mark.parametrize(("c3", "expected"), [(1.0, "agrees"), (3.0, "differs")])
def test_the_constraint_least_violated(c3, expected):
    found = verdict({"consistency": violated(2.0, 2.5, c3)}, "C3")
    assert found.verdict == expected
    assert f"C3 {c3:g} %" in found.measured


STEPS = {"read the fixes": 1.0, "fixes to regions": 100.0, "Euler": 1.0}
QUICK = {"diff-priv": 0.1, "lin-prog": 0.2, "round": 0.3}


def test_times_of_steps():
    tables = {"times": seconds(**STEPS, **QUICK)}
    assert verdict(tables, "DiffPriv, LinProg and Round").verdict == "agrees"
    tables = {"times": seconds(**STEPS, **{**QUICK, "round": 1.5})}
    assert verdict(tables, "DiffPriv, LinProg and Round").verdict == "differs"


@pytest.mark.parametrize(
    ("extraction", "expected", "reason"),
    [(100.0, "agrees", ""), (10.0, "differs", "compiled"), (500.0, "differs", "slower")],
)
def test_the_time_in_total(extraction, expected, reason):
    found = verdict(
        {"times": seconds(**{**STEPS, "fixes to regions": extraction}, **QUICK)}, "GeoLife: 196 s"
    )
    assert found.verdict == expected
    assert found.measured.startswith(f"{extraction + 2.6:.3g} s")
    assert reason in found.why
