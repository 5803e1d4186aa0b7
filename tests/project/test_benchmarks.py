"""Benchmarks run, small, so that they cannot rot. Nothing is timed against a limit here."""

from importlib import import_module

import pytest

from benchmarks.__main__ import TITLES
from benchmarks.report import Row


@pytest.mark.parametrize("name", TITLES)
def test_the_benchmark_runs(name):
    rows = import_module(f"benchmarks.{name}").run(quick=True)
    assert rows
    assert all(isinstance(row, Row) for row in rows)
