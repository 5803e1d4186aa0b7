"""Errors carry the argument they are about, apart from the words around it."""

from __future__ import annotations

import ast
import pickle
from pathlib import Path

import pandas as pd
import pytest

import dpregions as dpr
from dpregions.errors import (
    Argument,
    DPRegionsError,
    InputError,
    InputTypeError,
    InPython,
    OverBudgetError,
    PrivacyError,
    QueryError,
    QueryNumber,
    SettingWarning,
    SourceError,
)
from dpregions.intake.sources.traces import read_fixes
from dpregions.io.exports import export
from dpregions.planning.planner import plan, square_grids
from dpregions.privacy.budget import Budget
from dpregions.privacy.ledger import Ledger

SOURCE = Path(dpr.__file__).parent
GRID = dpr.Grid(0, 0, 1, 4, 4)
CITY = dpr.synthetic.grid()
FIXES = pd.DataFrame({"user_id": [1], "lon": [9.0], "lat": [48.5]})
BOUNDS = {"epsilon": 1, "max_diameter": 2, "user_id": None}
PUBLIC = {"max_diameter": "2km", "n_regions": 100, "epsilons": 1, "queries": ["2km"]}
REGION = {"k": 1, "max_diameter": "2km", "crs": 32632}


def released(**wrong):
    return dpr.release([], GRID, **(BOUNDS | wrong))


def planned(**wrong):
    return plan(square_grids("8km", ["2km"]), **(PUBLIC | wrong))


def extracted(**wrong):
    return dpr.regions_from_fixes(FIXES, **(REGION | wrong))


WRONG = {
    "Grid": {
        "xmin": lambda: dpr.Grid("west", 0, 1, 2, 2),
        "cell_size": lambda: dpr.Grid(0, 0, 0, 2, 2),
        "n_rows": lambda: dpr.Grid(0, 0, 1, 0, 2),
        "crs": lambda: dpr.Grid(0, 0, 1, 2, 2, crs="EPSG:4326"),
        "side": lambda: dpr.Grid.around(9, 48, side="wide", cell_size="1km"),
        "lat": lambda: dpr.Grid.around(9, 99, side="4km", cell_size="1km"),
        "xmax": lambda: dpr.Grid.from_bounds(0, 0, 0, 1, cell_size=1),
        "text": lambda: dpr.Grid.from_json("{"),
    },
    "release": {
        "grid": lambda: dpr.release([], "grid", **BOUNDS),
        "epsilon": lambda: released(epsilon=0),
        "max_diameter": lambda: released(max_diameter=-1),
        "method": lambda: released(method="magic"),
        "neighbours": lambda: released(neighbours="friends"),
        "unit": lambda: released(unit="cat"),
        "oversize": lambda: released(oversize="keep"),
        "workload": lambda: released(workload="2km"),
        "user_id": lambda: released(user_id="user"),
        "crs": lambda: released(crs="nonsense"),
        "ledger": lambda: released(dataset="taxis"),
        "dataset": lambda: released(ledger="city.ledger"),
    },
    "open_regions": {
        "source": lambda: dpr.open_regions("none.parquet"),
        "sql": lambda: dpr.open_regions("new.duckdb", sql=1),
        "user_id": lambda: dpr.open_regions("city.csv", user_id="user", lon="x", lat="y"),
        "layer": lambda: dpr.open_regions("city.csv", layer="homes"),
        "lon": lambda: dpr.open_regions("city.csv", lon="east", lat="y"),
        "unit": lambda: dpr.open_regions("city.csv", user_id=None, unit="user"),
        "geometry": lambda: dpr.open_regions("city.csv", geometry="shape"),
        "crs": lambda: dpr.open_regions("city.csv", crs="nonsense"),
    },
    "regions_from_fixes": {
        "k": lambda: extracted(k=0),
        "max_diameter": lambda: extracted(max_diameter="wide"),
        "crs": lambda: extracted(crs=4326),
        "unit": lambda: extracted(unit="record"),
        "gap": lambda: extracted(unit="trajectory"),
        "time": lambda: extracted(unit="trajectory", gap="20min"),
        "user_id": lambda: extracted(user_id="taxi"),
        "fixes": lambda: dpr.regions_from_fixes([], **REGION),
    },
    "read_fixes": {
        "format": lambda: read_fixes("city.csv", format="gpx"),
        "paths": lambda: read_fixes([]),
    },
    "plan": {
        "grids": lambda: plan("20km", **PUBLIC),
        "max_diameter": lambda: planned(max_diameter="9km"),
        "n_regions": lambda: planned(n_regions=0),
        "epsilons": lambda: planned(epsilons=[0]),
        "queries": lambda: planned(queries=["9km"]),
        "target": lambda: planned(target="low"),
        "methods": lambda: planned(methods="magic"),
        "neighbours": lambda: planned(neighbours="friends"),
        "cell_sizes": lambda: square_grids("8km", ["9km"]),
    },
    "Budget": {
        "epsilon": lambda: Budget(float("nan")),
        "weights": lambda: Budget(1).split(1, 0),
    },
    "Ledger": {
        "path": lambda: Ledger("none.ledger").accounts(),
        "dataset": lambda: Ledger("city.ledger").account("buses"),
        "total": lambda: Ledger("city.ledger").set_total("taxis", 0.5),
        "unit": lambda: Ledger("city.ledger").create("buses", 1, unit="cat"),
    },
    "export": {
        "release": lambda: export(GRID, "city.gpkg"),
        "path": lambda: export(dpr.load("city.parquet"), "city.doc"),
        "what": lambda: export(dpr.load("city.parquet"), "city.gpkg", "bodies"),
    },
    "load": {
        "path": lambda: dpr.load("city.csv"),
    },
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a release, a ledger that has spent 1 of 2, and a table of places."""
    folder = tmp_path_factory.mktemp("folder")
    (folder / "city.csv").write_text("user_id,x,y\n1,9.0,48.5\n")
    Ledger(folder / "city.ledger").create("taxis", 2)
    paid = {"ledger": folder / "city.ledger", "dataset": "taxis"}
    made = dpr.release([], GRID, epsilon=1, max_diameter=2, user_id=[], **paid)
    made.save(folder / "city.parquet")
    return folder


@pytest.mark.parametrize(
    ("entry", "argument"), [(entry, name) for entry, names in WRONG.items() for name in names]
)
def test_an_error_names_the_argument_it_is_about(entry, argument, folder, monkeypatch):
    monkeypatch.chdir(folder)
    with pytest.raises((InputError, InputTypeError)) as refused:
        WRONG[entry][argument]()
    assert refused.value.argument == argument


def test_over_budget_is_about_epsilon(folder):
    paid = {"ledger": folder / "city.ledger", "dataset": "taxis", "user_id": []}
    with pytest.raises(OverBudgetError) as refused:
        released(epsilon=3, **paid)
    assert refused.value.argument == "epsilon"


def test_in_python_a_message_reads_as_one_text():
    error = InputError(
        Argument("user_id", "'x'"), " is no column: ", InPython("give ids, or "), Argument("k", "")
    )
    assert str(error) == "user_id='x' is no column: give ids, or k="
    assert error.args == (str(error),)
    assert error.argument == "user_id"
    assert str(QueryError(QueryNumber(3), " is reversed")) == "query 3 is reversed"
    assert str(InputError(Argument("k"), " is missing")) == "k is missing"


def test_the_argument_may_be_another_than_the_message_names_or_none():
    named = InputError("over ", Argument("dataset", "'a'"), argument="ledger")
    assert named.argument == "ledger"
    assert InputError("the file is damaged").argument is None
    assert SourceError("the database is down").argument is None
    assert SettingWarning(Argument("epsilon"), " is large").argument == "epsilon"


def test_errors_go_from_one_process_to_another_whole():
    for error in (
        PrivacyError(Argument("unit", "'cat'"), " is unknown"),
        QueryError(QueryNumber(3), " is null", argument="query"),
        SourceError("the database is down"),
    ):
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error) and str(again) == str(error)
        assert (again.argument, again.parts) == (error.argument, error.parts)
        assert isinstance(again, DPRegionsError)


def library_texts():
    """Every text in the library's code that is no docstring, with its place."""
    for path in sorted(SOURCE.rglob("*.py")):
        if path.is_relative_to(SOURCE / "cli"):
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        texts = (node for node in ast.walk(tree) if isinstance(node, ast.Constant))
        for node in texts:
            if isinstance(node.value, str) and id(node) not in alone:
                yield f"{path.relative_to(SOURCE)}:{node.lineno}", node.value


def test_no_text_of_the_library_names_an_option_of_the_command_line():
    named = [
        (place, text)
        for place, text in library_texts()
        if any(word.strip("'\"(,.:;").startswith("--") and len(word) > 3 for word in text.split())
    ]
    assert named == []
