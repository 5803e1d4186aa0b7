"""Release files whose statement cannot be are refused, whatever their checksum says."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest

import dpregions as dpr
from dpregions import release_file
from dpregions.errors import ReleaseFileError
from dpregions.release_columns import checksum_of, columns_of, release_of
from dpregions.release_statement import canonical, parse_statement, statement_of
from release_files import GRID, forged, made


def change(**values):
    return lambda fields: fields | values


def nested(*keys, value):
    """Return a change of one field, deep in the statement."""

    def changed(fields):
        place = fields
        for key in keys[:-1]:
            place = place[key]
        place[keys[-1]] = value
        return fields

    return changed


STATEMENTS = {
    "no JSON": lambda _: "{",
    "a list": lambda _: "[]",
    "deep": lambda _: "[" * 200_000,
    "deep grid": lambda f: json.dumps(f | {"grid": 7}).replace("7", "[" * 5000 + "]" * 5000),
    "another format": change(format="dpregions grid"),
    "no version": change(format_version=None),
    "version 0": change(format_version=0),
    "true version": change(format_version=True),
    "one field less": lambda f: {k: v for k, v in f.items() if k != "noise"},
    "one field more": change(created="now"),
    "another method": change(method="magic"),
    "paper": change(method="paper"),
    "covert": change(covert=True),
    "epsilon too large": change(epsilon="2"),
    "epsilon in words": change(epsilon="one"),
    "epsilon with an exponent": change(epsilon="1e999999999"),
    "epsilon over 0": change(epsilon="1/0"),
    "epsilon of many digits": change(epsilon="9" * 100_000),
    "negative epsilon": change(epsilon="-1"),
    "a partition": change(partition="voronoi"),
    "unit": change(unit="household"),
    "neighbours": change(neighbours="none"),
    "other neighbours": change(neighbours="replace-one"),
    "sensitivity 0": change(sensitivity=0),
    "sensitivity 5": change(sensitivity=5),
    "diameter": change(max_diameter=float("inf")),
    "text for a diameter": change(max_diameter="2km"),
    "oversize": change(oversize="keep"),
    "private in words": change(private="yes"),
    "no spending": change(spending=[]),
    "odd spending": change(spending=[1]),
    "no strategy": change(strategy=None),
    "odd strategy": change(strategy={}),
    "weights": nested("strategy", "weights", value=[1, 1, 1]),
    "levels": nested("strategy", "levels", value=[]),
    "blocks": nested("strategy", "levels", 1, "block", value=10**30),
    "finest level": nested("strategy", "levels", -1, "block", value=2),
    "a grid of 10^9 cells": nested("grid", "n_rows", value=200_000_000),
    "a grid of 10^30 cells": nested("grid", "n_rows", value=10**30),
    "another grid": nested("grid", "n_rows", value=5),
    "a turned grid": lambda f: f | {"grid": f["grid"] | {"n_rows": 5, "n_cols": 4}},
    "text for a cell": nested("grid", "cell_size", value="1e999999999km"),
    "exact cell": nested("grid", "exact_cell_size", value="1e999999999"),
    "cells of 0": nested("grid", "cell_size", value=0),
    "no grid": change(grid=None),
    "CRS in words": nested("grid", "crs", value="EPSG:32632"),
    "CRS of options": nested("grid", "crs", value={"init": "epsg:32632"}),
    "degrees": nested("grid", "crs", value={"type": "GeographicCRS"}),
    "a ledger entry": change(ledger_entry=None),
    "a ledger entry of colours": change(ledger_entry="\x1b[31mred"),
    "a version of two lines": change(software_version="0.1\nPrivacy: perfect"),
    "a noise of many words": change(noise="very " * 1000),
    "spending that rings": nested("spending", 0, "what", value="\a"),
    "a CRS of colours": nested("grid", "crs", "name", value="\x1b[31mred"),
}  # fmt: skip


@pytest.mark.parametrize("what", STATEMENTS)
def test_a_statement_that_cannot_be_is_refused(what, good, tmp_path):
    _, path = good
    if what == "exact cell":  # not the float's: it is ignored, not computed
        assert dpr.load(forged(path, tmp_path / "bad", fields=STATEMENTS[what])).grid == GRID
        return
    bad = forged(path, tmp_path / "bad", fields=STATEMENTS[what])
    with pytest.raises(ReleaseFileError, match="bad"):
        dpr.load(bad)


@pytest.mark.parametrize(
    "change",
    [
        change(sensitivity=24),
        change(sensitivity=1),
        change(max_diameter=3.0),
        change(neighbours="replace-one"),
        change(spending=[{"what": "half", "epsilon": "1/2"}] * 2),
        change(epsilon="1/10" + "0" * 20, spending=[{"what": "x", "epsilon": "1/10" + "0" * 20}]),
    ],
)
def test_a_paper_release_that_cannot_be_is_refused(change, tmp_path):
    release = made(dpr.Grid(0, 0, 1, n_rows=8, n_cols=9, crs="EPSG:32632"), method="paper")
    fields = change(statement_of(release))
    text = canonical({**fields, "checksum": checksum_of(fields, columns_of(release))})
    with pytest.raises(ReleaseFileError), release_file._refusing(tmp_path):
        release_of(parse_statement(json.loads(text)), columns_of(release))


def test_shares_out_of_proportion_to_the_strategy_are_refused():
    grid = dpr.Grid(0, 0, 1, n_rows=10, n_cols=10, crs="EPSG:32632")
    release = made(grid, 9000, max_diameter=1, epsilon=0.1)
    fields = statement_of(release) | {"checksum": ""}
    release_of(parse_statement(fields), columns_of(release))
    assert len(fields["spending"]) > 2
    for place, change in ((1, Fraction(1, 1000)), (2, -Fraction(1, 1000))):
        share = fields["spending"][place]
        share["epsilon"] = str(Fraction(share["epsilon"]) + change)
    with pytest.raises(ReleaseFileError, match="not in proportion"):
        release_of(parse_statement(fields), columns_of(release))


def test_a_newer_format_asks_for_an_upgrade(good, tmp_path):
    bad = forged(good[1], tmp_path / "bad", fields=change(format_version=2, surprise=1))
    with pytest.raises(ReleaseFileError, match=r"format version 2.*upgrade dpregions"):
        dpr.load(bad)


def test_an_altered_statement_is_refused_by_its_checksum(good, tmp_path):
    bad = forged(good[1], tmp_path / "bad", fields=change(noise="none"), sum_anew=False)
    with pytest.raises(ReleaseFileError, match="checksum"):
        dpr.load(bad)
