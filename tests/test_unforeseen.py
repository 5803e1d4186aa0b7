"""What nobody foresaw is reported by its type alone, wherever records are read."""

from __future__ import annotations

import os
import sys
import traceback

import pandas as pd
import pyarrow as pa
import pytest

import dpregions as dpr
from dpregions.cli import app as cli
from dpregions.curator import check_regions
from dpregions.errors import InputError, SourceError, UnforeseenError
from dpregions.extraction.fixes import regions_from_batches, regions_from_fixes
from dpregions.privacy.ledger import Ledger
from dpregions.unforeseen import foreseen, foreseen_items, stopped_by

SECRET = "Mrs Canary, 471"
GRID = dpr.Grid(0, 0, 1, n_rows=4, n_cols=4)


def broken(*_, **__):
    raise KeyError(SECRET)


def assert_no_secret(error: BaseException) -> None:
    assert error.__cause__ is None
    assert error.__context__ is None
    assert SECRET not in "".join(traceback.format_exception(error)) + repr(vars(error))


class Stopped(BaseException):
    """As Ctrl-C is, for the command line."""


def wrapped():
    """What compiled code makes of an interrupt."""
    try:
        raise Stopped
    except Stopped as stopped:
        raise SystemError(SECRET) from stopped


def test_ctrl_c_within_compiled_code_is_ctrl_c():
    with pytest.raises(Stopped) as caught:
        foreseen(wrapped, "reading")
    assert_no_secret(caught.value)
    with pytest.raises(SystemError) as inside:
        wrapped()
    assert isinstance(stopped_by(inside.value), Stopped)
    assert stopped_by(KeyError(SECRET)) is None


def test_another_librarys_words_are_never_passed_on():
    with pytest.raises(UnforeseenError, match=r"^reading failed .*\(KeyError\)") as caught:
        foreseen(broken, "reading")
    assert_no_secret(caught.value)


def test_our_own_errors_pass_without_what_they_came_from():
    def ours():
        try:
            broken()
        except KeyError as error:
            raise InputError("our words") from error

    with pytest.raises(InputError, match="our words") as caught:
        foreseen(ours, "reading")
    assert_no_secret(caught.value)


def test_items_before_the_failure_are_handed_on():
    def items():
        yield 1
        yield None
        broken()

    found = foreseen_items(items(), "reading")
    assert [next(found), next(found)] == [1, None]
    with pytest.raises(UnforeseenError) as caught:
        next(found)
    assert_no_secret(caught.value)


def test_an_interruption_is_one():
    def interrupted():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        foreseen(interrupted, "reading")


class Strange:
    """A sequence that fails in the middle, in a way that no reader knows."""

    def __iter__(self):
        return iter(())

    def __len__(self):
        broken()


@pytest.mark.parametrize("method", ["paper", "footprint"])
def test_a_release_that_fails_on_a_record_costs_nothing_and_tells_nothing(method, tmp_path):
    book = Ledger(tmp_path / "a.ledger")
    book.create("a", 1)
    shapes = pa.table({"user_id": [1], "geometry": [b"\x01"]})
    terms = {"epsilon": 1, "max_diameter": 1, "method": method, "ledger": book, "dataset": "a"}
    with pytest.raises(UnforeseenError) as caught:
        dpr.release(shapes, GRID, user_id=Strange(), **terms)
    assert_no_secret(caught.value)
    assert book.account("a").spent == 0


def test_an_exact_histogram_and_the_curators_check_tell_nothing_either(monkeypatch):
    shapes = pa.table({"user_id": [1], "geometry": [b"\x01"]})
    with pytest.raises(UnforeseenError) as caught:
        dpr.EulerHistogram.from_regions(shapes, GRID, user_id=Strange())
    assert_no_secret(caught.value)
    # Of records that were opened nothing is known to break the figures, so they are broken here.
    monkeypatch.setattr("dpregions.intake.figures._figures", broken)
    with pytest.raises(UnforeseenError) as caught:
        check_regions(dpr.open_regions(shapes), GRID)
    assert_no_secret(caught.value)


def test_opening_a_source_tells_nothing_either(tmp_path):
    class BrokenPath(os.PathLike):
        __fspath__ = broken

    with pytest.raises(
        UnforeseenError, match=r"^opening the source failed .*\(KeyError\)"
    ) as caught:
        dpr.open_regions(BrokenPath())
    assert_no_secret(caught.value)
    with pytest.raises(InputError, match=r"File name too long$"):  # the name is the caller's own
        dpr.open_regions(tmp_path / ("x" * 300 + ".csv"))


class BrokenFrame(pd.DataFrame):
    """A table that fails where a column is taken, in a way that no reader knows."""

    __getitem__ = broken


def test_extraction_tells_nothing_either():
    fixes = BrokenFrame({"user_id": [1], "lon": [9.0], "lat": [48.5]})
    recipe = {"k": 1, "max_diameter": 100, "crs": 32632}
    for extract, given in ((regions_from_fixes, fixes), (regions_from_batches, [fixes])):
        with pytest.raises(UnforeseenError) as caught:
            extract(given, **recipe)
        assert_no_secret(caught.value)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (KeyError(SECRET), "unforeseen KeyError"),
        (OSError(SECRET), "unforeseen OSError"),
        (OSError(28, SECRET, "out.parquet"), "No space left on device: 'out.parquet'"),
        (pa.ArrowInvalid(SECRET), "unforeseen ArrowInvalid"),
        (RecursionError(SECRET), "unforeseen RecursionError"),
        (SourceError("a column\x1b[2J\n"), r"failed: a column\x1b[2J\n"),
    ],
)
def test_the_command_line_shows_a_type_and_no_traceback(error, words, monkeypatch, capsys):
    def fails():
        raise error

    # No command is known to end like this: that is the point.
    monkeypatch.setattr(cli, "app", fails)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 1
    told = capsys.readouterr().err
    assert words in told
    assert "Canary" not in told
    assert len(told.splitlines()) == 1
    assert sys.exc_info() == (None, None, None)
