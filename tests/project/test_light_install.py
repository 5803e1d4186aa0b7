"""What readers of releases need: the packages of `pip install dpregions`, without any extra."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import sys
import tomllib
import venv
import warnings
from pathlib import Path

import geopandas
import numpy as np
import pyarrow.parquet as pq
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

import dpregions as dpr
from dpregions.compiled import interpreted
from dpregions.extras import EXTRA_OF
from dpregions.mechanisms.footprint import parts_kernel, parts_layout
from dpregions.mechanisms.footprint.border import NODE
from dpregions.mechanisms.footprint.mechanism import Footprint
from dpregions.mechanisms.footprint.tree.growing import Adaptive
from support.light_interpreter import answers_of, light_commands

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
GRID = dpr.Grid(500_000, 5_370_000, 1000, n_rows=5, n_cols=6, crs="EPSG:32632")
KINDS = ("small", "paper", "tree", "covert", "cells")


def boxes(n: int) -> np.ndarray:
    rng = np.random.default_rng(n)
    x, y = rng.uniform(GRID.xmin, GRID.xmax, n), rng.uniform(GRID.ymin, GRID.ymax, n)
    return shapely.box(x, y, x + 1500 * rng.random(n), y + 1500 * rng.random(n))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A release file of each kind that is read in its own way, and areas to ask about."""
    folder = tmp_path_factory.mktemp("light")
    given = {"epsilon": 1, "max_diameter": 2000, "user_id": None, "crs": GRID.crs}
    dpr.release(boxes(400), GRID, **given).save(folder / "small.parquet")
    dpr.release(boxes(400), GRID, covert=True, **given).save(folder / "covert.parquet")
    dpr.release(boxes(400), GRID, method="paper", **given).save(folder / "paper.parquet")
    wide = given | {"max_diameter": 5000}
    tree = dpr.release(boxes(400), GRID, method=Footprint(strategy=Adaptive(1.0, 16)), **wide)
    tree.save(folder / "tree.parquet")
    sites = np.random.default_rng(1).uniform(GRID.bounds[:2], GRID.bounds[2:], (6, 2))
    cells = dpr.Partition.voronoi(sites, GRID.bounds, crs=GRID.crs)
    dpr.release(boxes(60), cells, **given).save(folder / "cells.parquet")
    dpr.release(boxes(3000), cells, **given | {"epsilon": 5}).save(folder / "many.parquet")
    circle = shapely.Point(503_000, 5_373_000).buffer(900, 2)
    areas = [circle, shapely.box(501_000, 5_371_000, 503_000, 5_374_000)]
    frame = geopandas.GeoDataFrame({"name": ["round", "square"]}, geometry=areas, crs=GRID.crs)
    frame.to_crs(4326).to_file(folder / "areas.geojson")
    frame.to_parquet(folder / "areas.parquet")
    frame.to_file(folder / "areas.gpkg")
    return folder


ASK = """
import dpregions as dpr, json, shapely, sys, warnings
import numpy as np
def ask(path):
    release = dpr.load(path)
    xmin, ymin, xmax, ymax = release.grid.bounds
    rng = np.random.default_rng(7)
    found = [release.describe(), repr(release)]
    def add(values):
        found.append(np.asarray(values, np.float64).ravel().tolist())
    queries = [release.grid.bounds]
    for _ in range(6):
        x0, x1 = np.sort(rng.uniform(xmin, xmax, 2))
        y0, y1 = np.sort(rng.uniform(ymin, ymax, 2))
        queries.append((x0, y0, x1, y1))
    points = rng.uniform((xmin, ymin), (xmax, ymax), (1, 2))
    shapes = [shapely.Point(point).buffer(700, 2) for point in points]
    shapes.append(shapely.LineString([(xmin, ymin), (xmin + 1500, ymin + 900)]))
    asked = [(tuple(map(float, query)), within) for query in queries for within in ("cells",)]
    asked += [(tuple(map(float, queries[1])), None)]
    asked += [((shape,), within) for shape in shapes for within in ("cells", None)]
    for query, within in asked:
        add(release.count(*query, within=within))
        if not release.covert:
            add(release.estimate(*query, within=within))
            add(release.interval(*query, within=within))
    add(release.counts)
    for values in release.cell_arrays().values():
        add(values)
    return found
"""


@pytest.mark.parametrize("kind", KINDS)
def test_a_release_answers_the_same_without_a_compiler(folder, kind):
    path = folder / f"{kind}.parquet"
    light = answers_of(f"{ASK}\nprint(json.dumps(ask(sys.argv[1])))", path)
    here: dict = {}
    exec(ASK, here)
    with warnings.catch_warnings():  # of cells that form no rectangle
        warnings.simplefilter("ignore")
        compiled = json.loads(json.dumps(here["ask"](path)))
    assert len(light) == len(compiled)
    for mine, theirs in zip(light, compiled, strict=True):
        if isinstance(theirs, str):
            assert mine == theirs
        else:  # sums in another order may differ in the last bits
            np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-9)


@st.composite
def trees(draw):
    """Nodes of random blocks, each with a parent before it; neighbours may share a block."""
    n = draw(st.integers(2, 60))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    parent = np.array([-1, *(int(rng.integers(0, max(i // 3, 1))) for i in range(1, n))])
    nodes = np.zeros(n, NODE)
    nodes["row"], nodes["col"] = rng.integers(0, draw(st.integers(1, 40)), (2, n))
    nodes["side"] = 2 ** rng.integers(0, 3, n)
    nodes["group"] = rng.integers(0, 3, n)
    nodes["spread"], nodes["fit"], nodes["held"] = rng.random((3, n))
    return parent, nodes


@given(trees())
def test_parts_are_laid_out_the_same_without_a_compiler(tree):
    compiled, depth = parts_kernel.laid_out(*tree)
    plain, other_depth = parts_layout.laid_out(*tree)
    assert depth == other_depth
    for name in NODE.names:
        np.testing.assert_array_equal(plain[name], compiled[name], name)


@given(st.integers(-(2**62), 2**62), st.integers(-(2**40), 2**40), st.integers(1, 2**40))
def test_an_interpreted_loop_counts_modulo_64_bits_and_reads_records_by_name(a, b, c):
    @interpreted
    def product(x, records):
        return x[0] * x[1] + records[0].row

    records = np.zeros(1, NODE)
    records["row"] = c % 1000
    wrapped = (a * b + c % 1000 + 2**63) % 2**64 - 2**63
    assert int(product(np.array([a, b]), records)) == wrapped


# The command line


def test_describe_query_and_export_need_no_extra(folder, tmp_path):
    city, areas = folder / "small.parquet", folder / "areas.geojson"
    release = dpr.load(city)
    suffixes = ("geojson", "parquet", "csv")
    told = light_commands(
        ("describe", city),
        ("query", city, *GRID.bounds, "--json"),
        *(
            ("query", city, "--polygons", folder / f"areas.{kind}", "--json")
            for kind in suffixes[:2]
        ),
        *(("query", city, "--polygons", areas, "-o", f"areas.{suffix}") for suffix in suffixes),
        *(("export", city, f"out.{suffix}") for suffix in suffixes),
        cwd=tmp_path,
    )
    assert [each.returncode for each in told] == [0] * len(told), told
    assert release.describe() in told[0].stdout
    assert json.loads(told[1].stdout)["count"] == release.count(*GRID.bounds)
    frame = geopandas.read_parquet(folder / "areas.parquet")
    for each in told[2:4]:
        rows = json.loads(each.stdout)
        assert [row["name"] for row in rows] == ["round", "square"]
        assert [row["count"] for row in rows] == release.count(frame).tolist()
    assert all((tmp_path / f"areas.{suffix}").exists() for suffix in suffixes)
    assert len(geopandas.read_file(tmp_path / "out.geojson")) == release.counts.size
    assert pq.read_table(tmp_path / "out.parquet").num_rows == release.counts.size
    rows = list(csv.DictReader(io.StringIO((tmp_path / "out.csv").read_text())))
    assert [int(row["count"]) for row in rows] == release.counts[::2, ::2].ravel().tolist()
    low, high = release.cell_intervals()
    np.testing.assert_allclose([float(row["low"]) for row in rows], low.ravel(), rtol=1e-9)
    np.testing.assert_allclose([float(row["high"]) for row in rows], high.ravel(), rtol=1e-9)
    assert {row["privacy"] for row in rows} == {"private"} and {row["epsilon"] for row in rows} == {
        "1.0"
    }
    first = tuple(float(rows[0][side]) for side in ("xmin", "ymin", "xmax", "ymax"))
    assert first == tuple(map(float, GRID.cell_bounds(0, 0, 0, 0)))


NEED_AN_EXTRA = {
    ("export", "small.parquet", "out.gpkg"): "curator",
    ("export", "small.parquet", "out.fgb"): "curator",
    ("export", "small.parquet", "out.tif"): "raster",
    ("query", "small.parquet", "--polygons", "areas.gpkg"): "curator",
    ("release", "areas.parquet", "-o", "new.parquet", "--epsilon", "1"): "curator",
    ("demo",): "curator",
    ("export", "many.parquet", "out.csv"): "curator",
    ("serve", "small.parquet"): "web",
}


def test_what_needs_an_extra_names_it_and_writes_nothing(folder):
    before = sorted(path.name for path in folder.iterdir())
    told = light_commands(*NEED_AN_EXTRA, cwd=folder)
    for (args, extra), each in zip(NEED_AN_EXTRA.items(), told, strict=True):
        assert each.returncode == 2, (args, each)
        if args[0] != "release":  # which may find another fault first
            assert f"[{extra}]'" in each.stderr, (args, each)
        assert "Traceback" not in each.stderr
    assert sorted(path.name for path in folder.iterdir()) == before


NEED_A_CURATOR = [
    "",
    "dpr.release",
    "dpr.EulerHistogram",
    "dpr.open_regions",
    "dpr.regions_from_fixes",
    "dpr.synthetic.regions",
    "dpr.paper",
    "__import__('dpregions.planning').planning.plan",
    "dpr.load('small.parquet').to_geodataframe()",
    "dpr.load('small.parquet').to_regions()",
    "dpr.load('small.parquet').plot()",
    "dpr.load('small.parquet').to_xarray()",
    "dpr.load('many.parquet').counts",
    "",
][1:-1]


def test_in_python_too_a_missing_package_is_named_with_its_extra(folder):
    code = """
import dpregions as dpr, json
said = []
for code in json.loads(sys.argv[1]):
    try:
        eval(code)
        said.append("")
    except ImportError as error:
        said.append(f"{type(error).__name__} {error}")
print(json.dumps(said))
"""
    said = answers_of(code, json.dumps(NEED_A_CURATOR), cwd=folder)
    for asked, words in zip(NEED_A_CURATOR, said, strict=True):
        assert re.search(r"^MissingExtraError .*\[(curator|plot|raster)\]'", words), (asked, words)


# What is declared


def test_the_light_install_is_light_and_every_extra_is_known():
    names = {re.split(r"[<>=\[]", need)[0] for need in PROJECT["dependencies"]}
    assert names == {"numpy", "shapely", "pyproj", "pyarrow", "typer", "rich"}
    extras = PROJECT["optional-dependencies"]
    assert set(EXTRA_OF.values()) <= set(extras)
    for package, extra in EXTRA_OF.items():
        assert any(need.lower().startswith(package) for need in extras[extra]), package
    (everything,) = extras["all"]
    inside = re.fullmatch(r"dpregions\[(.*)\]", everything)[1].split(",")
    assert set(inside) == set(extras) - {"all"}


@pytest.mark.slow
def test_an_environment_of_a_built_wheel_reads_releases(folder, tmp_path):
    """Takes a package index: half a minute with one, and is skipped without."""
    made = tmp_path / "wheel"
    built = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", made, ROOT],
        capture_output=True,
        text=True,
    )
    if built.returncode:
        pytest.skip(f"no wheel can be built here: {built.stderr[-300:]}")
    (wheel,) = made.glob("dpregions-*.whl")
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / "bin" / "python"
    installed = subprocess.run(
        [python, "-m", "pip", "install", "-q", wheel], capture_output=True, text=True
    )
    if installed.returncode:
        pytest.skip(f"no packages can be had here: {installed.stderr[-300:]}")
    have = subprocess.run([python, "-m", "pip", "freeze"], capture_output=True, text=True).stdout
    assert not {"numba", "pandas", "opendp", "geopandas", "pyogrio"} & set(
        re.findall(r"^[\w-]+", have.lower(), re.MULTILINE)
    )

    def run(*args):
        command = [tmp_path / "venv" / "bin" / "dpregions", *map(str, args)]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env={})
        assert done.returncode == 0, done.stderr
        return done.stdout

    city = folder / "small.parquet"
    release = dpr.load(city)
    assert release.describe() in run("describe", city)
    asked = json.loads(run("query", city, *GRID.bounds, "--json"))
    assert asked["count"] == release.count(*GRID.bounds)
    assert json.loads(run("query", city, "--polygons", folder / "areas.geojson", "--json"))
    for suffix in ("geojson", "parquet", "csv", "html"):
        run("export", city, tmp_path / f"out.{suffix}")
