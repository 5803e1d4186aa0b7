"""Release files whose statement cannot be are refused, whatever their seal says."""

from __future__ import annotations

import dataclasses
import json
from fractions import Fraction

import pytest
from pyproj import CRS

import dpregions as dpr
from dpregions.errors import CRSError, ReleaseFileError
from dpregions.releases import file as release_file
from dpregions.releases.columns import held_by, outcome_of
from dpregions.releases.statement import canonical, parse_statement
from support.release_files import GRID, forged, made


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
    "an aim of two lines": change(laid_out_for="people\nand more"),
    "private in words": change(private="yes"),
    "no spending": change(spending=[]),
    "odd spending": change(spending=[1]),
    "no mechanism": change(mechanism=None),
    "no strategy": change(mechanism={}),
    "odd strategy": change(mechanism={"strategy": {}}),
    "a strategy and more": nested("mechanism", "more", value=1),
    "a weight": nested("mechanism", "strategy", "measurements", 0, "weight", value=10**30),
    "a negative weight": nested("mechanism", "strategy", "measurements", 0, "weight", value=-1),
    "a weight in words": nested("mechanism", "strategy", "measurements", 0, "weight", value="1"),
    "measurements": nested("mechanism", "strategy", "measurements", value=[]),
    "letters": nested("mechanism", "strategy", "measurements", 0, "letters", value="some"),
    "alphabet": nested("mechanism", "strategy", "alphabet", value="greek"),
    "blocks": nested("mechanism", "strategy", "measurements", 0, "block", value=10**30),
    "finest level": nested("mechanism", "strategy", "measurements", -1, "block", value=2),
    "the total again": nested("mechanism", "strategy", "measurements", -1, value={
        "block": 0, "letters": "all", "weight": 1}),
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
    "a digest of capitals": change(ledger_digest="A" * 64),
    "a digest cut short": change(policy="a" * 63),
    "no digest": change(policy=None),
    "software in a dict": change(noise_software={"OpenDP": "0.16.0"}),
    "software without a version": change(noise_software=[["OpenDP"]]),
    "software by number": change(noise_software=[["OpenDP", 16]]),
    "software twice": change(noise_software=[["OpenDP", "1"], ["OpenDP", "2"]]),
    "an answer that rings": change(sign_off=[["grid", "\a"]]),
    "an answer of many words": change(sign_off=[["grid", "very " * 100]]),
    "answers without end": change(sign_off=[[str(i), "yes"] for i in range(1000)]),
    "an owner of colours": change(declared=[["owner", "\x1b[31mred"]]),
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
    with pytest.raises(ReleaseFileError, match="bad") as caught:
        dpr.load(bad)
    assert_harmless(caught.value)


def assert_harmless(error):
    """One line that a terminal only shows, without another library's error behind it."""
    assert str(error).isprintable() and len(str(error)) < 1000
    assert error.__suppress_context__ and error.__cause__ is None


UTM = CRS.from_epsg(32632).to_json_dict()
BOUND = CRS("+proj=utm +zone=32 +towgs84=1,2,3").to_json_dict()


def bound(depth):
    """A CRS bound to a transformation, bound to one again, so many times."""
    made = BOUND
    for _ in range(depth):
        made = BOUND | {"source_crs": made}
    return made


def lists(depth):
    made = []
    for _ in range(depth):
        made = [made]
    return made


CLEARS = "\x1b[2J"
HOSTILE = {
    "bound twice": bound(1),
    "bound 300 times": bound(300),
    "deep": UTM | {"remarks": lists(900)},
    "a base that clears the screen": UTM | {"base_crs": UTM["base_crs"] | {"name": CLEARS}},
    "a key that clears the screen": UTM | {CLEARS: 1},
    "a type that clears the screen": UTM | {"type": CLEARS},
    "an authority that rings": UTM | {"id": {"authority": "\a", "code": 1}},
    "from right to left": UTM | {"name": "\u202eabc"},
    "a lone surrogate": UTM | {"name": "\ud800"},
    "huge": UTM | {"name": "x" * 300_000},
    "a long name": UTM | {"name": "x" * 600},
    "no name": {k: v for k, v in UTM.items() if k != "name"},
    "no axes": UTM | {"coordinate_system": {"subtype": "Cartesian", "axis": []}},
    "an odd code": UTM | {"id": {"authority": "E", "code": [1]}},
    "a type alone": {"type": "ProjectedCRS"},
    "WKT": f'PROJCS["{CLEARS}"]',
    "options": "+init=epsg:32632",
    "a file": "/etc/passwd",
    "an address": "http://example.org/crs",
    "a number": 32632,
    "a list": [UTM],
    "true": True,
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_crs_is_refused_in_one_harmless_line(what, good, tmp_path):
    bad = forged(good[1], tmp_path / "bad", fields=nested("grid", "crs", value=HOSTILE[what]))
    with pytest.raises(ReleaseFileError, match="CRS") as caught:
        dpr.load(bad)
    assert_harmless(caught.value)


@pytest.mark.parametrize(
    "crs",
    [
        "+proj=utm +zone=32 +towgs84=1,2,3",
        "+proj=tmerc +ellps=airy +nadgrids=@none.gsb,null",
        "EPSG:7405",
        'ENGCRS["a plan",EDATUM["here"],CS[Cartesian,2],AXIS["x",east],AXIS["y",north],'
        'LENGTHUNIT["metre",1]]',
    ],
)
def test_a_crs_that_a_grid_may_have_reads_back(crs, tmp_path):
    release = made(dpr.Grid(0, 0, 1, n_rows=4, n_cols=5, crs=crs))
    release.save(tmp_path / "a")
    assert dpr.load(tmp_path / "a").grid == release.grid


def test_a_crs_that_no_file_brings_back_is_refused_before_the_debit(ledger):
    ledger.create("city", 1, unit="record")
    grid = dpr.Grid(0, 0, 1, n_rows=4, n_cols=5, crs=UTM | {"name": CLEARS})
    with pytest.raises(CRSError, match=r"a release file cannot keep .* use one of the usual"):
        made(grid, private=True, ledger=ledger, dataset="city")
    assert ledger.account("city").spent == 0


@pytest.mark.parametrize("field", ["software_version", "noise", "ledger_entry", "unit", "method"])
@pytest.mark.parametrize("text", [CLEARS, "\ud800", "\u202e", "a\nb", "\x9b2J", "\x7f"])
def test_no_text_of_a_statement_reaches_a_terminal_unless_printable(field, text, good, tmp_path):
    bad = forged(good[1], tmp_path / "bad", fields=change(**{field: f"none{text}"}))
    with pytest.raises(ReleaseFileError) as caught:
        dpr.load(bad)
    assert_harmless(caught.value)


def test_another_librarys_words_are_never_passed_on(good):
    words = r"damaged \(it ends in RuntimeError\)"
    with pytest.raises(ReleaseFileError, match=words) as caught, release_file._refusing(good[1]):
        raise RuntimeError(f"{CLEARS} canary")
    assert_harmless(caught.value)
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize(
    "change",
    [
        change(sensitivity=24),
        change(sensitivity=1),
        change(max_diameter=3.0),
        change(neighbours="replace-one"),
        change(spending=[{"what": "half", "epsilon": "1/2"}] * 2),
        change(mechanism={}),
        change(mechanism={"norm": "l2"}),
        change(epsilon="1/10" + "0" * 20, spending=[{"what": "x", "epsilon": "1/10" + "0" * 20}]),
    ],
)
def test_a_paper_release_that_cannot_be_is_refused(change, tmp_path):
    release = made(dpr.Grid(0, 0, 1, n_rows=8, n_cols=9, crs="EPSG:32632"), method="paper")
    fields = json.loads(canonical(change(release.stated())))
    held = dataclasses.replace(held_by(release), options=fields["mechanism"])
    with pytest.raises(ReleaseFileError), release_file._refusing(tmp_path):
        outcome_of(dataclasses.replace(held, statement=parse_statement(fields)))


def test_shares_out_of_proportion_to_the_strategy_are_refused():
    grid = dpr.Grid(0, 0, 1, n_rows=10, n_cols=10, crs="EPSG:32632")
    release = made(grid, 9000, max_diameter=1, epsilon=0.1)
    fields, held = release.stated(), held_by(release)
    outcome_of(dataclasses.replace(held, statement=parse_statement(fields)))
    assert len(fields["spending"]) > 2
    for place, change in ((1, Fraction(1, 1000)), (2, -Fraction(1, 1000))):
        share = fields["spending"][place]
        share["epsilon"] = str(Fraction(share["epsilon"]) + change)
    with pytest.raises(ReleaseFileError, match="not in proportion"):
        outcome_of(dataclasses.replace(held, statement=parse_statement(fields)))


def test_a_newer_format_asks_for_an_upgrade(good, tmp_path):
    bad = forged(good[1], tmp_path / "bad", fields=change(format_version=6, surprise=1))
    with pytest.raises(ReleaseFileError, match=r"format version 6.*upgrade dpregions"):
        dpr.load(bad)


def test_an_older_format_is_refused_with_the_remedy(good, tmp_path):
    bad = forged(good[1], tmp_path / "bad", fields=change(format_version=1, checksum="sha256:0"))
    with pytest.raises(ReleaseFileError, match=r"format version 1.*that made it, or ask"):
        dpr.load(bad)


def test_an_altered_statement_is_refused_by_the_seal(good, tmp_path):
    whole = good[1].read_bytes()
    (tmp_path / "bad").write_bytes(whole.replace(b'"unit":"record"', b'"unit":"person"'))
    with pytest.raises(ReleaseFileError, match="seal"):
        dpr.load(tmp_path / "bad")


def test_what_was_recorded_of_how_it_was_made_comes_back(good, tmp_path):
    release, _ = good
    recorded = {
        "software": (("OpenDP", "0.16.0"), ("Python", "3.11.7")),
        "ledger_entry": "862e1821547b2910/taxis/2",
        "ledger_digest": "0" * 64,
        "declared": (("source", "the operator's rides"), ("owner", "Ådalen 🚕")),
        "policy": "f" * 64,
        "sign_off": tuple((f"question {i}", "🚕" * 300) for i in range(12)),
    }
    full = dataclasses.replace(release, **recorded)
    full.save(tmp_path / "full.parquet")
    again = dpr.load(tmp_path / "full.parquet")
    assert {name: getattr(again, name) for name in recorded} == recorded
    words = again.describe()
    assert "Noise drawn by: OpenDP 0.16.0, Python 3.11.7." in words
    assert "Ledger: 862e1821547b2910/taxis/2." in words
    assert f"Its link in the ledger's chain: {'0' * 64}." in words
    assert "Account of: source: the operator's rides; owner: Ådalen" in words
    assert f"with SHA-256 {'f' * 64}." in words and "Signed off: question 0: " in words


def test_a_release_says_what_drew_its_noise():
    import platform
    from importlib.metadata import version

    release = made(private=True)
    assert dict(release.software) == {
        "OpenDP": version("opendp"),
        "Python": platform.python_version(),
    }
