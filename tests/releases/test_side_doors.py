"""Nothing but the released values tells neighbouring data apart; what is not private says so.

Two data sets that differ in one user go the same way, and everything but the values is compared:
words, warnings, log lines, standard output and error, exit codes, names of files, the ledger.
"""

from __future__ import annotations

import io
import json
import logging
import re
import warnings
from contextlib import redirect_stderr, redirect_stdout

import geopandas
import numpy as np
import pandas as pd
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

import dpregions as dpr
from dpregions.curator import LABEL, check_regions
from dpregions.errors import DPRegionsError
from dpregions.io.exports import export
from dpregions.privacy.ledger import Ledger
from dpregions.privacy.seeded import StudyNoise
from dpregions.releases.make import release_with
from dpregions.releases.statement import NOT_PRIVATE
from support.command_line import run
from support.small_releases import GRID, study, town

ODD = {
    "one more box": [shapely.box(1, 1, 2, 2)],
    "no region": [None],
    "an empty one": [shapely.Polygon()],
    "one that is far away": [shapely.box(1e6, 1e6, 1e6 + 1, 1e6 + 1)],
    "one that is far too large": [shapely.box(-50, -50, 60, 60)],
    "a bow tie": [shapely.Polygon([(0, 0), (2, 2), (2, 0), (0, 2)])],
    "ten thousand corners": [shapely.Point(2, 2).buffer(0.9, 2500)],
    "not a number": [shapely.Point(np.nan, np.nan)],
    "two records": [shapely.box(0, 0, 1, 1), shapely.box(3, 3, 4, 4)],
}
"""What one user more may have."""


def with_one_more(shapes) -> geopandas.GeoDataFrame:
    more = geopandas.GeoDataFrame({"user_id": [1000] * len(shapes)}, geometry=list(shapes))
    with warnings.catch_warnings():  # of pandas, about empty columns
        warnings.simplefilter("ignore")
        return pd.concat([town(), more], ignore_index=True)


def seen(make, caplog):
    """What making a release shows beside its values, or how it failed."""
    caplog.clear()
    out, err = io.StringIO(), io.StringIO()
    with (
        caplog.at_level(logging.DEBUG),
        warnings.catch_warnings(record=True) as warned,
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        warnings.simplefilter("always")
        try:
            release = make()
            shown = {
                "repr": repr(release),
                "words": release.describe(),
                "stated": json.dumps(release.stated(), default=str),
                "shape": release.counts.shape,
                "type": str(release.counts.dtype),
                "spending": [(name, str(share)) for name, share in release.spending],
            }
        except DPRegionsError as error:
            shown = {"error": f"{type(error).__name__}: {error}", "cause": repr(error.__cause__)}
    shown["warned"] = sorted(f"{w.category.__name__}: {w.message}" for w in warned)
    shown["logged"] = [(line.name, line.levelno, line.getMessage()) for line in caplog.records]
    return shown | {"out": out.getvalue(), "err": err.getvalue()}


WAYS = {
    "footprint": {"method": "footprint"},
    "paper": {"method": "paper"},
    "covert": {"covert": True},
    "replace-one": {"neighbours": "replace-one"},
    "drop": {"oversize": "drop"},
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("odd", ODD)
def test_one_user_more_changes_nothing_but_the_values(odd, way, caplog):
    given = {"epsilon": 1, "max_diameter": 2} | WAYS[way]

    def made(regions):
        return lambda: release_with(StudyNoise(1), regions, GRID, **given)

    assert seen(made(with_one_more(ODD[odd])), caplog) == seen(made(town()), caplog)


def without_the_plan(text: str) -> str:
    """Text without what was measured: a plan of footprints follows a noisy total, released too."""
    return re.sub(r"Measured: .*?(?:\n|\\n|$)", "", text)


@pytest.mark.parametrize("method", ["footprint", "paper"])
def test_nor_does_it_with_the_noise_of_a_release(method, caplog):
    given = {"epsilon": 1, "max_diameter": 2, "method": method}
    both = [
        seen(lambda regions=regions: dpr.release(regions, GRID, **given), caplog)
        for regions in (town(), with_one_more(ODD["two records"]))
    ]
    for shown in both:
        shown["words"] = without_the_plan(shown["words"])
        if method == "footprint":
            del shown["spending"], shown["stated"]
    assert both[0] == both[1]


@settings(max_examples=15)
@given(st.integers(0, 59))
def test_whoever_is_missing_is_missing_from_the_values_alone(missing):
    words = [
        (repr(made), made.describe(), json.dumps(made.stated(), default=str))
        for made in (study(), study(town().drop(index=missing)))
    ]
    assert words[0] == words[1]


class Failing(StudyNoise):
    """Noise that breaks when it is drawn."""

    def add(self, values, **given):
        raise OSError(5, "the source of noise broke")


@pytest.mark.parametrize("given", [{"epsilon": -1}, {"max_diameter": 0}, {"method": "best"}])
def test_errors_are_those_of_the_parameters(given, caplog):
    given = {"epsilon": 1, "max_diameter": 2} | given
    both = [
        seen(lambda regions=regions: release_with(StudyNoise(1), regions, GRID, **given), caplog)
        for regions in (town(), with_one_more(ODD["one more box"]))
    ]
    assert both[0] == both[1] and "error" in both[0]


@pytest.mark.parametrize("method", ["footprint", "paper"])
def test_a_failure_on_the_way_says_the_same_of_both(method):
    said = []
    for regions in (town(), with_one_more(ODD["two records"])):
        with pytest.raises(OSError, match="broke") as failed:
            study(regions, noise=Failing(1), method=method)
        said.append((type(failed.value), str(failed.value), getattr(failed.value, "__notes__", [])))
    assert said[0] == said[1]


# The command line


def spread(text: str) -> str:
    """Text without what is random in every run, or is of the released file itself."""
    text = re.sub(r"\b[0-9a-f]{64}\b", "CHECKSUM", without_the_plan(text))
    text = re.sub(r"\b[0-9a-f]{8,40}\b", "TOKEN", text)
    return re.sub(r"\d{4}-\d\d-\d\d[T ][\d:.]+(?:Z|\+00:00)?", "TIME", text)


@pytest.mark.parametrize("as_json", [False, True], ids=["words", "json"])
@pytest.mark.parametrize("method", ["footprint", "paper"])
def test_the_command_and_its_ledger_tell_nothing_of_one_user_more(
    tmp_path, monkeypatch, method, as_json
):
    told = []
    for regions in (town(), with_one_more(ODD["two records"])):
        folder = tmp_path / "here"  # the same path for both: it is part of what is said
        folder.mkdir()
        monkeypatch.chdir(folder)
        regions.to_parquet("regions.parquet")
        (folder / "grid.json").write_text(GRID.to_json())
        Ledger("budget").create("city", 3)
        done = run(
            *("release", "regions.parquet", "-o", "city.parquet", "--grid", "grid.json"),
            *("--epsilon", "1", "--max-diameter", "2", "--method", method),
            *("--ledger", "budget", "--dataset", "city", *(("--json",) if as_json else ())),
        )
        account = run("budget", "show", "budget")
        described = run("describe", "city.parquet")
        exported = run("export", "city.parquet", "city.csv", "--json")
        names = sorted(path.name for path in folder.rglob("*"))
        columns = (folder / "city.csv").read_text().splitlines()[0]
        modes = [oct(path.stat().st_mode) for path in sorted(folder.iterdir())]
        told.append(
            [
                *(done.exit_code, spread(done.stdout), spread(done.stderr)),
                *(account.exit_code, spread(account.stdout), account.stderr),
                *(described.exit_code, spread(described.stdout), described.stderr),
                *(exported.exit_code, exported.stdout, exported.stderr),
                *(names, columns, modes),
            ]
        )
        folder.rename(tmp_path / f"done{len(told)}")
    assert told[0][0] == 0, told[0][2]
    assert told[0] == told[1]


# What is not private says so


@pytest.mark.parametrize("suffix", ["csv", "geojson", "parquet", "html", "gpkg", "fgb"])
def test_every_export_of_a_study_says_that_it_is_not_private(tmp_path, suffix):
    grid = dpr.Grid(500_000, 5_370_000, 1, n_rows=4, n_cols=5, crs=32632)
    regions = town()
    regions = regions.set_geometry(regions.translate(grid.xmin, grid.ymin)).set_crs(grid.crs)
    made = study(regions, grid)
    export(made, tmp_path / f"out.{suffix}")
    content = (tmp_path / f"out.{suffix}").read_bytes()
    assert b"NOT PRIVATE" in content


def test_every_view_of_a_study_says_that_it_is_not_private(tmp_path):
    made = study()
    made.save(tmp_path / "study.parquet")
    again = dpr.load(tmp_path / "study.parquet")
    for release in (made, again):
        assert not release.private
        assert "NOT PRIVATE" in repr(release)
        assert "NOT PRIVATE" in release.describe()
        assert NOT_PRIVATE in release._repr_html_()
        assert "not private" in release.noise
        assert NOT_PRIVATE in release.plot().get_title()
        assert NOT_PRIVATE in release.to_xarray().attrs["privacy"]
        assert "NOT PRIVATE" in release.compare(again).describe()
        assert "private" in json.dumps(release.stated())
    for command in ("describe", "query"):
        bounds = ("0", "0", "2", "2") if command == "query" else ()
        done = run(command, tmp_path / "study.parquet", *bounds)
        assert "NOT PRIVATE" in done.output


def test_exact_figures_say_that_they_are_not_private(tmp_path):
    assert "not private" in LABEL
    town().to_parquet(tmp_path / "regions.parquet")
    figures = check_regions(dpr.open_regions(tmp_path / "regions.parquet"), GRID)
    assert LABEL in str(figures) + repr(figures)
    (tmp_path / "grid.json").write_text(GRID.to_json())
    for more in ((), ("--json",)):
        done = run(
            *("check", tmp_path / "regions.parquet", "--grid", tmp_path / "grid.json"),
            *("--max-diameter", "2", *more),
        )
        assert "not private" in done.output.lower()
    exact = dpr.EulerHistogram.from_regions(town(), GRID, max_diameter=2)
    assert re.search("secret|exact|not private", repr(exact), re.IGNORECASE)
