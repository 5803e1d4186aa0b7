"""One rule for every verb that writes a file: what is there is not replaced unless it is said."""

import errno
from unittest import mock

import pytest

import dpregions as dpr
from dpregions.cli import options as cli_options
from support.command_line import run

AREA = ("--around", "9.0,48.5", "--side", "4km", "--cell", "1km")
BOUND = ("--max-diameter", "2km")

VERBS = {
    "regions": (
        *("regions", "fixes.parquet", "-o", "out.parquet", "--k", "20", *BOUND),
        *("--around", "9.0,48.5"),
    ),
    "release": (
        *("release", "homes.parquet", "-o", "out.parquet", "--epsilon", "1", *BOUND, *AREA),
        *("--method", "paper"),
    ),
    "query": ("query", "made.parquet", "--rectangles", "asked.csv", "-o", "out.csv"),
    "export": ("export", "made.parquet", "out.geojson", "--what", "faces"),
    "plan": (
        *("plan", "--side", "4km", "--cell", "1km,2km", *BOUND, "--epsilon", "1"),
        *("--regions", "100", "--shape", "even", "--method", "paper", "--plot", "out.png"),
    ),
    "sign-off": ("sign-off", "out.toml"),
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with all that the verbs read."""
    monkeypatch.chdir(tmp_path)
    dpr.synthetic.fixes(3).to_parquet("fixes.parquet")
    homes = dpr.synthetic.regions(50)
    homes.to_parquet("homes.parquet")
    grid = dpr.Grid.around(9.0, 48.5, side="4km", cell_size="1km")
    dpr.release(homes, grid, epsilon=1, max_diameter="2km", method="paper").save("made.parquet")
    xmin, ymin, xmax, ymax = grid.bounds
    (tmp_path / "asked.csv").write_text(f"xmin,ymin,xmax,ymax\n{xmin},{ymin},{xmax},{ymax}\n")
    return tmp_path


@pytest.mark.parametrize("verb", VERBS)
def test_what_is_there_is_replaced_only_when_told_to(folder, verb):
    (out,) = (word for word in VERBS[verb] if word.startswith("out."))
    (folder / out).write_text("paid for")
    refused = run(*VERBS[verb])
    assert refused.exit_code == 2 and refused.stdout == ""
    assert f"{out} is there already" in refused.stderr
    assert "choose another name, or give --overwrite" in refused.stderr
    assert (folder / out).read_text() == "paid for"
    done = run(*VERBS[verb], "--overwrite")
    assert done.exit_code == 0, done.output
    assert (folder / out).read_bytes() != b"paid for"


@pytest.mark.parametrize("verb", VERBS)
def test_a_target_that_cannot_be_written_is_refused_before_the_work(folder, verb, monkeypatch):
    # Permissions do not stop root, and CI may be root.
    denied = mock.Mock(side_effect=PermissionError(errno.EACCES, "Permission denied"))
    monkeypatch.setattr(cli_options, "try_out", denied)
    for read in folder.iterdir():
        read.write_bytes(b"not read")  # or the error would be another
    refused = run(*VERBS[verb])
    assert refused.exit_code == 2
    assert "cannot be written: Permission denied" in refused.stderr


@pytest.mark.parametrize("verb", VERBS)
def test_a_target_in_no_folder_is_refused(folder, verb):
    args = [f"nowhere/{word}" if word.startswith("out.") else word for word in VERBS[verb]]
    refused = run(*args)
    assert refused.exit_code == 2 and "give a file in a folder that exists" in refused.stderr
