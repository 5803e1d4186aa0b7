"""Signs of a CSV file: what separates fields, decimal commas, and the names of its columns."""

import geopandas
import pytest
import shapely

import dpregions as dpr
from dpregions.errors import InputError, InputTypeError
from dpregions.intake.sources.csv_blocks import names_in_words
from dpregions.intake.sources.traces import read_fixes

GRID = dpr.synthetic.grid()
PLACES = [(9.0, 48.5), (9.01, 48.51), (8.99, 48.49)]


def written(path, names=("user_id", "lon", "lat"), sign=",", decimal=".", mark=""):
    rows = [[f"u{i}", *(str(v).replace(".", decimal) for v in at)] for i, at in enumerate(PLACES)]
    path.write_text(mark + "\n".join(sign.join(row) for row in [names, *rows]) + "\n")
    return path


def counted(path, **options):
    with dpr.open_regions(path, **options) as regions:
        return dpr.EulerHistogram.from_regions(regions, GRID, user_id="user_id").counts.tolist()


def truth():
    points = geopandas.GeoSeries(shapely.points(PLACES), crs=4326)
    return dpr.EulerHistogram.from_regions(points, GRID).counts.tolist()


@pytest.mark.parametrize(
    ("sign", "decimal", "mark"),
    [(",", ".", ""), (";", ".", ""), (";", ",", ""), (";", ",", "\ufeff"), (";", ",", "\r\n")],
)
def test_semicolons_and_decimal_commas_are_read_as_spreadsheets_write_them(
    sign, decimal, mark, tmp_path
):
    path = written(tmp_path / "a.csv", sign=sign, decimal=decimal, mark=mark)
    assert counted(path) == truth()
    (fixes,) = read_fixes(path)
    assert sorted(zip(fixes["lon"], fixes["lat"], strict=True)) == sorted(PLACES)


def test_regions_as_wkt_are_read_between_semicolons(tmp_path):
    lines = [f"u{i};POINT ({x} {y})" for i, (x, y) in enumerate(PLACES)]
    (tmp_path / "a.csv").write_text("\n".join(["user_id;wkt", *lines]))
    assert counted(tmp_path / "a.csv", crs=4326) == truth()


def test_a_comma_in_a_number_between_commas_is_not_a_decimal_comma(tmp_path):
    (tmp_path / "a.csv").write_text('user_id,lon,lat\nu0,"9,0","48,5"\nu1,9.0,48.5\n')
    (fixes,) = read_fixes(tmp_path / "a.csv")
    assert fixes["user_id"].tolist() == ["u1"]


@pytest.mark.parametrize(
    "names",
    [("user_id", "longitude", "latitude"), ("user_id", "LON", "LAT"), ("user_id", "Lng", "Lat")],
)
def test_longitude_and_latitude_are_found_by_every_reader(names, tmp_path):
    path = written(tmp_path / "a.csv", names)
    assert counted(path) == truth()
    (fixes,) = read_fixes(path)
    assert sorted(zip(fixes["lon"], fixes["lat"], strict=True)) == sorted(PLACES)
    frame = fixes.rename(columns={"lon": names[1], "lat": names[2]})
    made = dpr.regions_from_fixes(frame, k=1, max_diameter="2km", crs=GRID.crs)
    assert made["user_id"].tolist() == ["u0", "u1", "u2"]


def test_columns_that_are_named_are_not_replaced_by_others(tmp_path):
    path = written(tmp_path / "a.csv", ("user_id", "longitude", "latitude"))
    with pytest.raises(InputError, match="lon='x' is no column"):
        list(read_fixes(path, lon="x"))


def test_a_table_without_the_columns_lists_those_it_has(tmp_path):
    path = written(tmp_path / "a.csv", ("user_id", "east", "north"))
    for read in (dpr.open_regions, lambda path: list(read_fixes(path))):
        with pytest.raises(InputError, match="there are user_id, east, north"):
            read(path)


@pytest.mark.parametrize(
    "names",
    [
        ["u1", "9.01", "48.5"],
        ["anna", "POINT (9 48)"],
        ["anna", "berlin"],
        ["user", "user"],
        ["user", "geometry", "0101000000"],
        ["user", "-9"],
        ["471", "lon", "lat"],
    ],
)
def test_a_first_line_that_may_be_a_record_is_not_shown(names):
    assert names_in_words(names) is None


def test_text_and_fixes_given_as_regions_are_met_with_the_remedy(tmp_path):
    path = written(tmp_path / "a.csv")
    for given in (path, str(path), "postgresql://me:hunter2@db/x"):
        with pytest.raises(InputTypeError, match="open it by open_regions") as refused:
            dpr.release(given, GRID, epsilon=1, max_diameter="2km")
        assert "hunter2" not in str(refused.value)
    with pytest.raises(InputTypeError, match=r"columns lon and lat are places.*regions_from_fixes"):
        dpr.release(dpr.synthetic.fixes(3), GRID, epsilon=1, max_diameter="2km")


def test_us_survey_feet_and_international_feet_are_told_apart():
    grid = dpr.Grid(0, 0, "100 ftUS", 10, 10, crs=2263)  # New York, in US survey feet
    assert grid.cell_size == 100
    assert grid.length("100 ft") != 100 == float(grid.length("100 ftUS"))
    assert "100 ftUS" in grid.cells_in_words
    assert dpr.Grid(0, 0, "100 ft", 10, 10, crs=2222).cell_size == 100  # Arizona's are those of all
