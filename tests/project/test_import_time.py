"""What is not imported: `import dpregions` and plain rectangles must stay fast."""

from __future__ import annotations

import subprocess
import sys

import pytest

from support.fresh_interpreter import imported_by


def test_importing_dpregions_loads_nothing_heavy():
    assert imported_by("import dpregions; dpregions.__version__; dir(dpregions)") == []


def test_errors_load_nothing_heavy():
    assert imported_by("import dpregions.errors, dpregions; dpregions.errors.GridError") == []


@pytest.mark.parametrize(
    "code",
    [
        "grid.cell_range(0.2, 0.2, 1.5, 1.5)",
        "grid.to_json(); repr(grid); hash(grid); grid.cells_spanned(2)",
        "from dpregions.geometry.grid import Grid; Grid.from_json(grid.to_json())",
    ],
)
def test_a_grid_and_its_rectangles_load_nothing_heavy(code):
    made = "import dpregions as dpr; grid = dpr.Grid(0, 0, 1, 3, 3)"
    assert imported_by(f"{made}; {code}") == []


def test_counting_rectangles_needs_neither_numba_nor_geopandas():
    code = (
        "import dpregions as dpr, numpy as np\n"
        "grid = dpr.Grid(0, 0, 1, 3, 3)\n"
        "hist = dpr.EulerHistogram(grid, np.ones(grid.doubled_shape, int))\n"
        "assert hist.count(0, 0, 2, 2) == 1\n"
        "assert hist.count([0], [0], [2], [2]).tolist() == [1]"
    )
    assert imported_by(code) == []


def test_a_saved_release_answers_rectangles_with_arrow_alone(tmp_path):
    path = tmp_path / "city.parquet"
    made = (
        "import dpregions as dpr\n"
        "grid = dpr.synthetic.grid()\n"
        "regions = dpr.synthetic.regions(200)\n"
        "for method in ('footprint', 'paper'):\n"
        "    made = dpr.release(regions, grid, epsilon=1, max_diameter='2km', method=method)\n"
        f"    made.save({str(path)!r} + method)"
    )
    subprocess.run([sys.executable, "-c", made], check=True)
    for method in ("footprint", "paper"):
        code = (
            "import dpregions as dpr\n"
            f"release = dpr.load({str(path)!r} + {method!r})\n"
            "bounds = release.grid.cell_bounds(2, 5, 3, 9)\n"
            "release.count(*bounds), release.estimate(*bounds), release.describe()\n"
            "release.count(*([bound, bound] for bound in bounds))\n"
        )
        if method == "paper":  # intervals of footprints walk down a tree, in a compiled loop
            code += (
                "release.interval(*bounds), release.expected_error(*bounds)\n"
                "release.interval(*([bound, bound] for bound in bounds))"
            )
        assert imported_by(code) == ["pyarrow"]


def test_unknown_names_are_missing_in_the_usual_way():
    import dpregions

    with pytest.raises(AttributeError, match="has no attribute 'Gird'"):
        _ = dpregions.Gird
    assert "Grid" in dir(dpregions)
