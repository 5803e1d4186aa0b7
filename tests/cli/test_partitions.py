"""Partitions on the command line: --partition, and every command on a release that has one."""

from __future__ import annotations

import json

import geopandas
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import dpregions as dpr
from dpregions.privacy.ledger import Ledger
from dpregions.sealed_files import seal
from support.command_line import run
from support.releases_on_cells import CRS, PARTITIONS, hexagons, squares, town_on, voronoi

ASKED = ("--epsilon", "1", "--max-diameter", "2m", "--each-row")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Regions and two partitions as files, and a release on each partition."""
    folder = tmp_path_factory.mktemp("masts")
    shapes = town_on(voronoi())
    frame = geopandas.GeoDataFrame({"user_id": np.arange(len(shapes))}, geometry=shapes, crs=CRS)
    frame.to_parquet(folder / "regions.parquet")
    voronoi().to_file(folder / "masts.parquet")
    squares().to_file(folder / "squares.parquet")
    for name, method in (("masts", "footprint"), ("masts", "paper"), ("squares", "footprint")):
        cells, out = folder / f"{name}.parquet", folder / f"{name}-{method}.parquet"
        options = ["--partition", cells, "-o", out, "--method", method]
        done = run("release", folder / "regions.parquet", *options, *ASKED)
        assert done.exit_code == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def made(folder):
    return dpr.load(folder / "masts-footprint.parquet")


def test_release_publishes_on_the_partition_of_a_file(folder, made):
    assert made.grid == voronoi()
    assert made.base is not None and made.private
    assert dpr.load(folder / "masts-paper.parquet").grid == voronoi()
    assert dpr.load(folder / "squares-footprint.parquet").grid == squares()


def test_check_counts_what_touches_the_area_of_a_partition(folder):
    options = ["--each-row", "--max-diameter", "2m", "--json"]
    cells = ["--partition", folder / "masts.parquet"]
    done = run("check", folder / "regions.parquet", *cells, *options)
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)
    regions = town_on(voronoi())
    exact = dpr.EulerHistogram.from_regions(regions, voronoi(), crs=CRS)
    assert found["rows"] == 200
    assert found["counted_rows"] == exact.count(*voronoi().bounds) < 200
    assert found["outside"] == 200 - found["counted_rows"]


def test_a_rectangle_is_answered_as_drawn_and_as_the_library_does(folder, made):
    done = run("query", folder / "masts-footprint.parquet", 2.5, 3, 6, 5.5, "--json")
    assert done.exit_code == 0 and done.stderr == "", done.stderr
    found = json.loads(done.stdout)
    low, high = made.interval(2.5, 3, 6, 5.5)
    assert (found["count"], found["within"], found["exact"]) == (
        made.count(2.5, 3, 6, 5.5),
        "shape",
        True,
    )
    assert (found["low"], found["high"]) == (low, high)


def test_the_papers_release_says_that_whole_cells_answer(folder):
    paper = folder / "masts-paper.parquet"
    done = run("query", paper, 4.9, 3.9, 5, 4)
    assert done.exit_code == 0, done.stderr
    assert "about the whole cells it touches, mast " in done.stderr
    done = run("query", paper, 1, 1, 9, 7)
    assert " more\n" in done.stderr and "not a convex set" in done.stderr
    assert run("query", paper, 1, 1, 9, 7, "--within", "shape").exit_code == 2


def test_what_reaches_beyond_the_area_is_said(folder, made):
    done = run("query", folder / "masts-footprint.parquet", 5, 5, 50, 50)
    assert "beyond the area" in done.stderr
    assert done.stdout.startswith(f"count {made.count(5, 5, 50, 50)}\n")
    done = run("query", folder / "masts-footprint.parquet", 50, 50, 60, 60)
    assert done.exit_code == 0 and "no cell" in done.stderr
    assert done.stdout.startswith("count unknown\n")


def test_polygons_come_back_with_answers(folder, made, tmp_path):
    out = tmp_path / "answers.parquet"
    done = run(
        *("query", folder / "masts-footprint.parquet"),
        *("--polygons", folder / "masts.parquet", "-o", out),
    )
    assert done.exit_code == 0, done.stderr
    found = geopandas.read_parquet(out)
    assert found["label"].tolist() == list(voronoi().labels)
    counts = made.count(cells=[[label] for label in voronoi().labels])
    # Cells reach beyond the area by some steps, and are answered inside it.
    assert np.abs(found["count"] - counts).max() <= 1
    assert (found["within"] == "shape").all() and found["exact"].all()
    asked = ["--polygons", out_of(found, tmp_path), "--json"]
    rows = json.loads(run("query", folder / "masts-paper.parquet", *asked).stdout)
    assert {row["within"] for row in rows} == {"cells"}


def out_of(found, folder):
    path = folder / "bare.parquet"
    found[["label", "geometry"]].to_parquet(path)
    return path


def test_describe_names_the_cells_and_what_was_measured(folder, made):
    done = run("describe", folder / "masts-footprint.parquet")
    assert done.exit_code == 0, done.stderr
    for words in (made.describe(), "40 cells by voronoi", repr(made.base), "Area: 40 cells about"):
        assert words in done.stdout


def test_describe_as_json_leaves_out_what_is_as_long_as_there_are_cells(folder, tmp_path):
    for name in ("masts-footprint", "masts-paper"):
        found = json.loads(run("describe", folder / f"{name}.parquet", "--json").stdout)
        assert found["partition"] == "voronoi"
        assert found["grid"]["n_faces"] == 40
        assert found["grid"]["left_out"] == ["labels", "x", "y", "sizes", "points", "area"]
        assert not found["grid"].keys() & set(found["grid"]["left_out"])
        assert found["epsilon"] == "1" and len(found["sha256"]) == 64
    assert "left out" in " ".join(run("describe", "--help").stdout.split())


def test_export_writes_cells_with_labels_and_refuses_a_raster(folder, made, tmp_path):
    out = tmp_path / "masts.gpkg"
    done = run("export", folder / "masts-footprint.parquet", out)
    assert done.exit_code == 0, done.stderr
    faces = geopandas.read_file(out, layer="faces")
    assert faces["label"].tolist() == list(voronoi().labels)
    assert faces["count"].tolist() == made.counts[:40].tolist()
    done = run("export", folder / "masts-footprint.parquet", tmp_path / "masts.tif")
    assert done.exit_code == 2 and "export to .gpkg or .parquet" in done.stderr
    assert not (tmp_path / "masts.tif").exists()


# What is refused: with exit code 2, and nothing is written


def refused(folder, tmp_path, *options, regions="regions.parquet"):
    before = sorted(tmp_path.iterdir())
    out = tmp_path / "out.parquet"
    done = run("release", folder / regions, "-o", out, *ASKED, *options)
    assert done.exit_code == 2 and done.stdout == "", done.output
    assert sorted(tmp_path.iterdir()) == before
    return done.stderr


@pytest.mark.parametrize(
    "also", [("--grid", "grid.json"), ("--around", "9,48"), ("--side", "2km"), ("--cell", "1km")]
)
def test_a_partition_and_a_grid_are_refused(folder, tmp_path, also):
    said = refused(folder, tmp_path, "--partition", folder / "masts.parquet", *also)
    assert "--partition, or as a grid, not both" in said


def test_files_that_are_not_partitions_are_refused_by_name(folder, tmp_path):
    (tmp_path / "text.parquet").write_text("masts")
    pd.DataFrame({"a": [1]}).to_parquet(tmp_path / "table.parquet")
    (tmp_path / "cells.json").write_text(voronoi().to_json())
    names = ["text.parquet", "table.parquet", "cells.json", "none.parquet"]
    for path in [*(tmp_path / name for name in names), folder / "regions.parquet", tmp_path]:
        said = refused(folder, tmp_path, "--partition", path)
        assert str(path) in said and "Partition.to_file" in said


def test_a_damaged_partition_is_refused(folder, tmp_path):
    table = pq.read_table(folder / "masts.parquet")
    fields = json.loads(table.schema.metadata[b"dpregions_partition"])
    text = json.dumps(fields | {"n_faces": 39})
    metadata = {**table.schema.metadata, b"dpregions_partition": text.encode()}
    path = tmp_path / "damaged.parquet"
    pq.write_table(table.replace_schema_metadata(metadata), path)
    seal(path)
    assert "sizes" in refused(folder, tmp_path, "--partition", path)


def test_describes_json_of_a_partition_is_not_a_grid(folder, tmp_path):
    path = tmp_path / "masts.json"
    for text in (
        run("describe", folder / "masts-footprint.parquet", "--json").stdout,
        voronoi().to_json(),
    ):
        path.write_text(text)
        assert "--partition" in refused(folder, tmp_path, "--grid", path)


def test_regions_of_another_place_or_crs_are_refused_before_anything_is_written(folder, tmp_path):
    shapes = town_on(voronoi())
    frame = geopandas.GeoDataFrame({"user_id": np.arange(len(shapes))}, geometry=shapes)
    frame.to_parquet(folder / "bare.parquet")
    said = refused(
        folder, tmp_path, "--partition", folder / "masts.parquet", regions="bare.parquet"
    )
    assert "CRS" in said


def test_the_ledgers_line_names_the_cells(folder, tmp_path):
    book = tmp_path / "book.ledger"
    done = run("budget", "create", book, "--dataset", "masts", "--epsilon", "2", "--unit", "record")
    assert done.exit_code == 0, done.stderr
    out = tmp_path / "paid.parquet"
    paid = ["--ledger", book, "--dataset", "masts", "--partition", folder / "masts.parquet"]
    done = run("release", folder / "regions.parquet", "-o", out, *ASKED, *paid)
    assert done.exit_code == 0, done.stderr
    entry = Ledger(book).account("masts").entries[-1]
    assert entry.what.startswith("footprint, 40 cells about ")
    assert dpr.load(out).ledger_entry is not None


def test_every_kind_of_partition_goes_through_the_command_line(folder, tmp_path):
    for name, cells in PARTITIONS.items():
        path, out = tmp_path / f"{name}-cells.parquet", tmp_path / f"{name}.parquet"
        cells().to_file(path)
        asked = ["-o", out, "--partition", path, *ASKED]
        done = run("release", folder / "regions.parquet", *asked)
        assert done.exit_code == 0, done.stderr
        assert dpr.load(out).grid == cells()
    assert hexagons().n_cells
