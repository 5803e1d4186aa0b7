"""What cannot be read is called by its name, whoever reads it: never damaged."""

import os
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

import dpregions as dpr
from dpregions.errors import DPRegionsError, ReleaseFileError
from dpregions.intake.sources.traces import read_fixes
from dpregions.readable_files import refuse_unreadable
from support.other_users import as_nobody

GRID = dpr.synthetic.grid()


@contextmanager
def open_folder():
    """A folder that anybody may look into, which pytest's own are not."""
    with TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


@pytest.fixture(scope="module")
def folder():
    """Files of every kind, whole, which nobody but root may read."""
    with open_folder() as folder:
        _fill(folder)
        yield folder


def _fill(folder):
    city = dpr.synthetic.regions(20)
    city.to_parquet(folder / "city.parquet")
    for name in ("city.gpkg", "city.geojson", "city.shp", "city.fgb"):
        city.to_file(folder / name)
    city.to_wkt().to_csv(folder / "city.csv", index=False)
    dpr.release(city, GRID, epsilon=1, max_diameter="2km").save(folder / "release.parquet")
    dpr.Partition.hexagons(GRID.bounds, 4000, crs=GRID.crs).to_file(folder / "cells.parquet")
    (folder / "fixes.csv").write_text("user_id,lon,lat\n1,9,48\n")
    for file in folder.iterdir():
        file.chmod(0)


@pytest.mark.parametrize(
    ("name", "read"),
    [
        *[(f"city.{kind}", dpr.open_regions) for kind in ("parquet", "gpkg", "geojson", "csv")],
        *[(f"city.{kind}", dpr.open_regions) for kind in ("shp", "fgb")],
        ("release.parquet", dpr.load),
        ("cells.parquet", dpr.Partition.from_file),
        ("fixes.csv", read_fixes),
    ],
)
def test_a_file_that_may_not_be_read_is_called_so(folder, name, read):
    with as_nobody(), pytest.raises(DPRegionsError) as refused:
        read(folder / name)
    assert "permission denied" in str(refused.value) and name in str(refused.value)
    assert "damaged" not in str(refused.value)


def test_a_part_of_a_shapefile_that_may_not_be_read_is_called_so():
    with open_folder() as folder:
        dpr.synthetic.regions(3).to_file(folder / "city.shp")
        (folder / "city.dbf").chmod(0)
        with as_nobody(), pytest.raises(DPRegionsError, match=r"city\.dbf: permission denied"):
            dpr.open_regions(folder / "city.shp")


def test_a_folder_that_may_not_be_looked_into_is_called_so(tmp_path):
    (tmp_path / "fixes.csv").write_text("user_id,lon,lat\n1,9,48\n")
    tmp_path.chmod(0)
    with as_nobody(), pytest.raises(DPRegionsError, match="permission denied"):
        read_fixes(tmp_path / "fixes.csv")


def test_what_is_missing_or_a_folder_is_called_so(tmp_path):
    with pytest.raises(ReleaseFileError, match=r"none: there is no such file") as refused:
        refuse_unreadable(tmp_path / "none", error=ReleaseFileError, argument="path")
    assert refused.value.argument == "path"
    with pytest.raises(DPRegionsError, match="--grid here: this is a folder: name a file"):
        refuse_unreadable(tmp_path, named="--grid here")


def test_another_failure_is_told_in_the_systems_words(tmp_path):
    with pytest.raises(DPRegionsError, match=os.strerror(36)):
        refuse_unreadable(tmp_path / ("x" * 300))


def test_a_file_that_can_be_read_is_not_refused(tmp_path):
    (tmp_path / "a").touch()
    refuse_unreadable(tmp_path / "a")
