"""Files are written whole or not at all."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest

import dpregions
from dpregions.atomic_files import PUBLIC, SECRET, replacing, try_out


def test_the_new_file_replaces_the_old_one_only_at_the_end(tmp_path):
    path = tmp_path / "x.txt"
    path.write_text("old")
    with replacing(path) as part:
        part.write_text("new")
        assert path.read_text() == "old"
        assert part.parent == tmp_path and part.suffix == ".txt"
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("trouble", [ValueError, KeyboardInterrupt])
def test_trouble_keeps_the_old_file_and_leaves_nothing(tmp_path, trouble):
    path = tmp_path / "x.txt"
    path.write_text("old")

    def write_half():
        with replacing(path) as part:
            part.write_text("half")
            raise trouble

    with pytest.raises(trouble):
        write_half()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(("mode", "expected"), [(SECRET, 0o600), (PUBLIC, 0o640)])
def test_secret_files_are_the_owners_and_public_ones_follow_the_umask(tmp_path, mode, expected):
    old = os.umask(0o027)
    try:
        with replacing(tmp_path / "x", mode=mode) as part:
            assert stat.S_IMODE(part.stat().st_mode) == 0o600
            part.write_text("x")
        assert os.umask(0o027) == 0o027
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == expected


def _gone(part):
    part.unlink()
    part.read_text()


def _told(part):
    raise OSError(f"Failed to open local file '{part}'")


def _full(part):
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize(
    ("write", "folder"), [(_gone, "."), (_told, "."), (_full, "."), (Path.touch, "missing")]
)
def test_an_error_names_the_file_that_was_asked_for_and_not_the_temporary_one(
    write, folder, tmp_path
):
    path = tmp_path / folder / "x.txt"
    with pytest.raises(OSError, match=r"x\.txt") as error, replacing(path) as part:
        write(part)
    assert ".part" not in str(error.value)
    assert str(path) in str(error.value)


WRITER = """
import sys
from pathlib import Path
from dpregions.privacy.ledger import Ledger
from dpregions.atomic_files import PUBLIC, SECRET, replacing
folder = Path(sys.argv[1])
for name, mode in {"secret": SECRET, "public": PUBLIC}.items():
    with replacing(folder / name, mode=mode) as part:
        print(oct(part.stat().st_mode & 0o777))
        part.write_text("x")
Ledger(folder / "ledger").create("town", 1)
"""


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o027, 0o077, 0o177, 0o277, 0o777])
def test_secret_is_600_and_public_at_most_644_whatever_the_umask(tmp_path, umask):
    command = [sys.executable, "-c", WRITER, str(tmp_path)]
    done = subprocess.run(command, umask=umask, check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["0o600", "0o600"]
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert modes == {"secret": 0o600, "public": 0o644 & ~umask, "ledger": 0o600}


def test_the_umask_is_neither_read_nor_set(tmp_path):
    """Reading it sets it: a file that another thread makes in that moment is for everyone."""
    called = set()
    sys.setprofile(lambda frame, event, what: called.add(what) if event == "c_call" else None)
    try:
        for mode in (PUBLIC, SECRET):
            with replacing(tmp_path / "x", mode=mode) as part:
                part.write_text("x")
        try_out(tmp_path / "y")
    finally:
        sys.setprofile(None)
    assert os.open in called and os.chmod in called
    assert os.umask not in called


def test_no_module_asks_for_the_umask():
    sources = list(Path(dpregions.__file__).parent.rglob("*.py"))
    assert len(sources) > 50
    assert [path.name for path in sources if "umask(" in path.read_text()] == []


@pytest.mark.parametrize("trouble", [OSError, KeyboardInterrupt])
def test_a_file_that_cannot_be_made_the_owners_is_not_left_behind(tmp_path, monkeypatch, trouble):
    # Between the making of a file and its mode the system fails, or somebody interrupts.
    monkeypatch.setattr(os, "chmod", mock.Mock(side_effect=trouble))
    with pytest.raises(trouble):
        try_out(tmp_path / "x")
    assert list(tmp_path.iterdir()) == []


def test_a_path_without_a_folder_is_in_the_current_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with replacing("x.txt") as part:
        part.write_text("here")
    assert (tmp_path / "x.txt").read_text() == "here"


@pytest.mark.parametrize("links", [True, False])
def test_a_fresh_file_never_replaces_another(tmp_path, monkeypatch, links):
    if not links:  # as on FAT, or on some network drives
        monkeypatch.setattr(os, "link", mock.Mock(side_effect=PermissionError("no links here")))
    path = tmp_path / "x.txt"
    with replacing(path, fresh=True) as part:
        part.write_text("first")

    def write_second():
        with replacing(path, fresh=True) as part:
            part.write_text("second")

    with pytest.raises(FileExistsError):
        write_second()
    assert path.read_text() == "first"
    assert list(tmp_path.iterdir()) == [path]


def test_trying_a_name_out_leaves_nothing_and_fails_where_writing_would(tmp_path):
    try_out(tmp_path / "x.txt")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(OSError, match="too long"):
        try_out(tmp_path / ("x" * 300))
