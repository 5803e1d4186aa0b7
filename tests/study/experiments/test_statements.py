"""The paper's statements beside tables made by hand: verdicts follow the numbers."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from dpregions.study.experiments import findings

STUDY = Path(__file__).parents[3] / "docs" / "study"


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
    ("extraction", "expected", "how", "reason"),
    [
        (100.0, "agrees", "", ""),
        (10.0, "differs", ", 16 times as fast", "compiled"),
        (500.0, "differs", ", 2.6 times as long", "slower"),
    ],
)
def test_the_time_in_total_and_how_it_differs(extraction, expected, how, reason):
    found = verdict(
        {"times": seconds(**{**STEPS, "fixes to regions": extraction}, **QUICK)}, "GeoLife: 196 s"
    )
    assert found.verdict == expected
    total = f"{extraction + 2.6:.3g} s from the file of fixes to Round"
    assert found.measured.startswith(f"{total}{how}; ")
    assert reason in found.why and bool(reason) == bool(found.why)


def test_reasons_claim_nothing_about_a_file_that_the_tables_do_not_tell():
    both = [sizes("cabspotting", 4, {1.0: 50.0}), sizes("cabspotting", 20, {1.0: 300.0})]
    quick = seconds(**{**STEPS, "fixes to regions": 10.0}, **QUICK)
    reasons = " ".join(found.why for found in findings({"sizes": pd.concat(both), "times": quick}))
    assert "cabs" in reasons and "fixes" in reasons
    for fact in ("hundred", "536", "10 seconds"):
        assert fact not in reasons


def test_the_page_of_the_study_states_what_its_tables_say():
    tables = {p.stem: pd.read_csv(p, comment="#") for p in sorted(STUDY.glob("*.csv"))}
    page = (STUDY / "index.md").read_text(encoding="utf-8")
    section = page.split("\n## The paper's statements\n")[1].split("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("|")][2:]
    found = findings(tables)
    assert rows == [f"| {f.printed} | {f.measured} | **{f.verdict}** |" for f in found]
    reasons = [line.split(".* ", 1)[1] for line in section.splitlines() if line.startswith("- *")]
    assert reasons == [f.why for f in found if f.why]
