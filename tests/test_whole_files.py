"""Files are written whole or not at all."""

from __future__ import annotations

import os
import stat
from unittest import mock

import pytest

from dpregions.whole_files import PUBLIC, SECRET, replacing, try_out


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


def test_a_path_without_a_folder_is_in_the_current_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with replacing("x.txt") as part:
        part.write_text("here")
    assert (tmp_path / "x.txt").read_text() == "here"


@pytest.mark.parametrize("links", [True, False])
def test_a_fresh_file_never_replaces_another(tmp_path, monkeypatch, links):
    if not links:
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
