"""Hints name the way in which this package was installed."""

import sys

import pytest

from dpregions.errors import MissingExtraError
from dpregions.installation import command_from, install_command
from support.command_line import run


@pytest.mark.parametrize(
    ("noted", "command"),
    [
        ({}, "pip install 'dpregions[db]'"),
        ({"url": 7}, "pip install 'dpregions[db]'"),
        ({"url": "file:///src/dp%20regions", "dir_info": {}}, "pip install '/src/dp regions[db]'"),
        (
            {"url": "file:///src/dp", "dir_info": {"editable": True}},
            "pip install -e '/src/dp[db]'",
        ),
        (
            {"url": "https://x.org/dp.git", "vcs_info": {"vcs": "git", "commit_id": "0"}},
            "pip install 'dpregions[db] @ git+https://x.org/dp.git'",
        ),
        (
            {
                "url": "https://x.org/dp.git",
                "vcs_info": {"vcs": "git", "requested_revision": "v1", "commit_id": "0"},
            },
            "pip install 'dpregions[db] @ git+https://x.org/dp.git@v1'",
        ),
        (
            {"url": "https://x.org/dp.whl", "archive_info": {}},
            "pip install 'dpregions[db] @ https://x.org/dp.whl'",
        ),
    ],
)
def test_the_command_is_that_of_the_installation(noted, command):
    assert command_from(noted, "db") == command


def test_an_error_of_a_missing_extra_has_the_command():
    assert str(MissingExtraError("DuckDB", "db")).endswith(f"installed: {install_command('db')}")


def test_the_demo_goes_without_pictures_where_matplotlib_is_absent_and_says_so_first(
    tmp_path, monkeypatch
):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    done = run("demo", "--out", tmp_path / "demo")
    assert done.exit_code == 0, done.stderr
    first = done.stdout.strip().splitlines()[0]
    assert first.startswith("1. There will be no pictures: this needs matplotlib")
    assert install_command("plot") in first
    assert (tmp_path / "demo" / "city.parquet").exists()
    assert not [*(tmp_path / "demo").glob("*.png")]
