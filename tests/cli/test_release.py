"""The command `release`: what it writes, debits, says, refuses, and keeps to itself."""

import errno
import hashlib
import json
import re
import shlex
from fractions import Fraction
from functools import partial
from pathlib import Path
from unittest import mock

import geopandas
import numpy as np
import pandas as pd
import pytest
import rich.status
import shapely

import dpregions as dpr
from dpregions.cli import options as cli_options
from dpregions.cli.start import Interrupted
from dpregions.errors import LedgerUnavailableError
from dpregions.extraction.fixes import UNIT_ATTRIBUTE
from dpregions.io.region_files import save_regions
from dpregions.mechanisms.footprint import mechanism
from dpregions.privacy.ledger import Ledger
from dpregions.releases import file as release_file
from support.command_line import run

N_REGIONS = 437
AREA = ("--around", "9.0,48.5", "--side", "10km", "--cell", "1km")
TERMS = ("--epsilon", 0.5, "--max-diameter", "2km")


@pytest.fixture(scope="module")
def regions():
    return dpr.synthetic.regions(N_REGIONS)


@pytest.fixture
def folder(tmp_path, regions, monkeypatch):
    """A folder with regions and a ledger in it, to work in."""
    monkeypatch.chdir(tmp_path)
    save_regions(regions, tmp_path / "regions.parquet")
    Ledger("city.ledger").create("taxis", 1)
    return tmp_path


SAID = (
    "dpregions: area: 10 km x 10 km, 10 x 10 cells of 1000 m, longitude 8.9323 to 9.0677, "
    "latitude 48.4550 to 48.5450\n"
)
"""Before every debit."""


def publish(*args, terms=(*TERMS, *AREA), source="regions.parquet", out="city.parquet"):
    return run("release", source, "-o", out, *terms, *args)


PAID = ("--ledger", "city.ledger", "--dataset", "taxis")


def spent():
    return Ledger("city.ledger").account("taxis").spent


def test_odd_settings_are_noted_and_the_release_is_made(folder):
    area = ("--around", "9.0,48.5", "--side", "10km", "--cell", "3km")
    odd = ("--epsilon", "21", "--max-diameter", "17km", "--method", "paper", "--allow-epsilon")
    done = publish(terms=(*odd, *area))
    assert done.exit_code == 0, done.stderr
    rounded, area, epsilon, bound, unrecorded = done.stderr.splitlines()
    assert area == (
        "dpregions: area: 12 km x 12 km, 4 x 4 cells of 3000 m, longitude 8.9187 to 9.0813, "
        "latitude 48.4460 to 48.5540"
    )
    assert "the area is 12 km x 12 km with cells of 3 km" in rounded
    assert epsilon.startswith("dpregions: note: epsilon 21.0 protects next to nothing")
    assert bound.startswith(
        "dpregions: note: --max-diameter '17km' is longer than the diagonal of the area, 16970.6 m:"
    )
    assert unrecorded.startswith("budget not recorded")
    assert dpr.load("city.parquet").epsilon == 21


def test_the_file_is_a_release_and_the_ledger_knows_it(folder):
    done = publish(*PAID)
    assert done.exit_code == 0, done.stderr
    assert done.stderr == SAID
    made = dpr.load("city.parquet")
    assert (made.epsilon, made.method, made.max_diameter) == (0.5, "footprint", 2000)
    assert made.grid == dpr.Grid.around(9.0, 48.5, side="10km", cell_size="1km")
    (entry,) = Ledger("city.ledger").account("taxis").entries[1:]
    assert made.ledger_entry == f"{Ledger('city.ledger').id}/taxis/{entry.number}"
    assert entry.epsilon == Fraction(1, 2)
    assert entry.files[0].path == str(folder / "city.parquet")
    written = Path("city.parquet").read_bytes()
    assert entry.files[0].sha256 == hashlib.sha256(written).hexdigest()
    for words in ("Wrote city.parquet", "epsilon = 0.5", f"Ledger: {made.ledger_entry}."):
        assert words in done.stdout


def test_the_commands_it_suggests_work(folder):
    suggested = re.findall("Next: dpregions (.*)", publish(out="my city.parquet").stdout)
    for command in suggested:
        assert run(*shlex.split(command)).exit_code == 0
    assert [command.split()[0] for command in suggested] == ["describe", "query"]


def test_over_budget_is_refused_and_the_file_is_not_made(folder):
    publish(*PAID)
    publish(*PAID, out="second.parquet")
    third = publish(*PAID, out="third.parquet")
    assert third.exit_code == 2
    assert "1.0 is spent and 0.0 remains; 0.5 was asked for" in third.stderr
    assert not Path("third.parquet").exists()


def test_without_a_ledger_one_line_says_that_nothing_keeps_account(folder):
    done = publish()
    assert done.exit_code == 0
    kept = "budget not recorded: give --ledger and --dataset to keep account\n"
    assert done.stderr == SAID + kept
    assert dpr.load("city.parquet").ledger_entry is None


def test_the_result_as_json(folder):
    done = publish(*PAID, "--json", "--method", "paper", "--covert", "--neighbours", "add-remove")
    facts = json.loads(done.stdout)
    made = dpr.load("city.parquet")
    assert facts["statement"] == made.describe()
    assert facts["ledger_entry"] == made.ledger_entry
    assert facts["sha256"] == Ledger("city.ledger").account("taxis").entries[1].files[0].sha256
    wanted = {"method": "paper", "epsilon": "0.5", "unit": "user", "covert": True}
    assert wanted.items() <= facts.items()


def test_what_is_printed_does_not_depend_on_the_data(folder, regions):
    save_regions(regions.iloc[:3], Path("few.parquet"))
    for extra in ((), ("--json",)):
        args = ("--method", "paper", "--overwrite", *extra)
        few, many = publish(*args, source="few.parquet"), publish(*args)
        assert (few.stdout, few.stderr) == (many.stdout, many.stderr)
    assert not re.search(rf"\b{N_REGIONS}\b", publish("--overwrite").stdout)


def test_progress_on_a_terminal_names_stages_and_counts_nothing(folder, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # what rich takes for a terminal
    # The order of what a person sees for a moment, which leaves no trace in what was printed.
    monkeypatch.setattr(rich.status.Status, "update", lambda self, stage: shown.append(stage))
    shown = []
    assert publish(*PAID).exit_code == 0
    assert shown == ["opening the source", "counting, noise and fit", "saving"]


def test_the_grid_may_be_a_file(folder):
    Path("grid.json").write_text(dpr.synthetic.grid().to_json())
    assert publish(terms=(*TERMS, "--grid", "grid.json")).exit_code == 0
    assert dpr.load("city.parquet").grid == dpr.synthetic.grid()


@pytest.mark.parametrize("suffix", ["gpkg", "geojson", "fgb"])
def test_other_files_of_regions_are_read_too(folder, regions, suffix):
    wgs = regions.to_crs(4326) if suffix == "geojson" else regions
    wgs.to_file(f"regions.{suffix}")
    done = publish(source=f"regions.{suffix}")
    assert done.exit_code == 0, done.stderr


def test_a_database_is_a_source_too(folder, regions):
    duckdb = pytest.importorskip("duckdb")
    rows = pd.DataFrame({"person": regions["user_id"], "wkb": regions.geometry.to_wkb()})
    with duckdb.connect("city.duckdb") as database:
        database.register("rows", rows)
        database.execute("CREATE TABLE homes AS SELECT * FROM rows")
    asked = ("--sql", "SELECT person, wkb FROM homes", "--user-id", "person", "--crs", regions.crs)
    done = publish(*PAID, *asked, source="city.duckdb")
    assert done.exit_code == 0, done.stderr
    refused = publish(
        *PAID, "--sql", "SELECT * FROM nowhere", source="city.duckdb", out="no.parquet"
    )
    assert refused.exit_code in (1, 2)
    assert spent() == Fraction(1, 2)


def test_rows_and_trajectories_have_accounts_of_their_own(folder, regions):
    ledger = Ledger("city.ledger")
    refused = publish(*PAID, "--each-row")
    assert refused.exit_code == 2
    assert "this release is for unit 'record'" in refused.stderr
    ledger.create("rows", 1, unit="record")
    assert publish("--each-row", "--ledger", "city.ledger", "--dataset", "rows").exit_code == 0
    assert dpr.load("city.parquet").unit == "record"
    trips = regions.assign(trajectory=np.arange(len(regions)))
    trips.attrs[UNIT_ATTRIBUTE] = "trajectory"
    save_regions(trips, Path("trips.parquet"))
    ledger.create("trips", 1, unit="trajectory")
    paid = ("--ledger", "city.ledger", "--dataset", "trips")
    marked = publish(*paid, source="trips.parquet", out="trips_out.parquet")
    assert marked.exit_code == 2
    assert "--unit 'trajectory'" in marked.stderr
    named = ("--user-id", "user_id", "--unit", "user")
    assert publish(*paid, *named, source="trips.parquet", out="trips_out.parquet").exit_code == 2
    paid += ("--unit", "trajectory")
    assert publish(*paid, source="trips.parquet", out="trips_out.parquet").exit_code == 0
    assert dpr.load("trips_out.parquet").unit == "trajectory"
    assert spent() == 0


def test_the_workload_lays_the_budget_out(folder):
    done = publish("--workload", "1km, 2kmx4km,3km")
    assert done.exit_code == 0, done.stderr
    said = dpr.load("city.parquet").laid_out_for
    assert said.endswith("(rows x columns of cells), where people are and everywhere")


def test_a_file_of_districts_lays_the_budget_out(folder):
    assert publish("--overwrite").exit_code == 0
    grid = dpr.load("city.parquet").grid
    xmin, ymin, xmax, ymax = grid.bounds
    middle = (xmin + xmax) / 2
    halves = [shapely.box(xmin, ymin, middle, ymax), shapely.box(middle, ymin, xmax, ymax)]
    geopandas.GeoSeries(halves, crs=grid.crs).to_file("halves.gpkg")
    done = publish("--overwrite", "--workload", "halves.gpkg", "--favour", "places")
    assert done.exit_code == 0, done.stderr
    assert dpr.load("city.parquet").laid_out_for.startswith("2 districts of about ")
    assert "everywhere alike" in dpr.load("city.parquet").describe()
    refused = publish("--overwrite", "--workload", "none.gpkg")
    assert refused.exit_code == 2 and "there is no such file" in refused.stderr


# What is refused


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"terms": ("--epsilon", 0, "--max-diameter", "2km", *AREA)}, "--epsilon 0 is no privacy"),
        ({"terms": ("--epsilon", "inf", "--max-diameter", "2km", *AREA)}, "--epsilon inf is no"),
        (
            {"terms": ("--epsilon", "0." + "3" * 400, "--max-diameter", "2km", *AREA)},
            "epsilon is a fraction of more than 350 digits: round it",
        ),
        (
            {"terms": ("--epsilon", "0." + "3" * 5000, "--max-diameter", "2km", *AREA)},
            "epsilon is a fraction of more than",
        ),
        ({"terms": ("--epsilon", "1/inf", "--max-diameter", "2km", *AREA)}, "--epsilon 1/inf is"),
        ({"terms": ("--max-diameter", "2km", *AREA)}, "Missing option '--epsilon'"),
        ({"terms": ("--epsilon", 1, *AREA)}, "Missing option '--max-diameter'"),
        (
            {"terms": ("--epsilon", 1, "--max-diameter", "2parsec", *AREA)},
            "--max-diameter '2parsec' is not a length",
        ),
        (
            {"terms": ("--epsilon", 1, "--max-diameter", "-2km", *AREA)},
            "--max-diameter must be greater than 0",
        ),
        ({"terms": ("--epsilon", 1, "--max-diameter", 2, *AREA)}, "--max-diameter 2 has no unit"),
        (
            {"terms": (*TERMS, "--around", "9,48.5", "--side", 20, "--cell", 1)},
            "--side 20 has no unit: write 20km or 20m",
        ),
        ({"args": ("--workload", "1x2")}, "--workload 1 has no unit"),
        (
            {"terms": ("--epsilon", 21, "--max-diameter", "2km", *AREA)},
            "--epsilon 21.0 protects next to nothing: above 20",
        ),
        ({"terms": TERMS}, "give the public area by --grid"),
        ({"terms": (*TERMS, "--around", "9,48.5")}, "needs --side and --cell"),
        ({"terms": (*TERMS, "--grid", "missing.json")}, "missing.json: there is no such file"),
        ({"source": "missing.parquet"}, "missing.parquet: there is no such file"),
        ({"source": "city.ledger"}, "its name does not tell its format"),
        ({"source": "text.parquet"}, "text.parquet"),
        ({"args": ("--sql", "SELECT 1")}, "--sql has no use for"),
        ({"out": "nowhere/city.parquet"}, "give a file in a folder that exists"),
        ({"out": "regions.parquet"}, "is one of the inputs"),
        ({"out": "city.ledger"}, "is one of the inputs"),
        ({"out": "there.parquet"}, "is there already"),
        ({"args": ("--user-id", "name")}, "--user-id 'name' is no column: there are user_id"),
        ({"args": ("--user-id", "user_id", "--each-row")}, "give one of --user-id and --each-row"),
        ({"args": ("--workload", "1kmx2kmx3km")}, "is no list of sizes"),
        ({"args": ("--workload", "1km,")}, "is no list of sizes"),
        ({"args": ("--workload", "1km", "--method", "paper")}, "--method 'footprint'"),
        ({"args": ("--crs", "EPSG:32633")}, "leave --crs out"),
        ({"args": ("--method", "guess")}, "'guess' is not one of"),
        ({"args": ("--dataset", "buses")}, "'buses' is not in the ledger"),
        ({"args": ("--ledger", "missing.ledger")}, "there is no ledger at missing.ledger"),
        ({"args": ("--neighbours", "replace-one")}, "keeps account of unit 'user', neighbours"),
    ],
)
def test_wrong_usage_is_refused_before_any_budget_is_spent(folder, change, words):
    Path("text.parquet").write_text("no parquet")
    Path("there.parquet").write_text("spent on long ago")
    args = change.pop("args", ())
    ended = publish(*PAID, *args, **change)
    assert ended.exit_code == 2, ended.stderr
    assert words in " ".join(ended.stderr.replace("│", " ").split())
    assert spent() == 0
    assert not Path("city.parquet").exists()
    assert Path("there.parquet").read_text() == "spent on long ago"
    assert "max_diameter" not in ended.stderr


def test_a_ledger_without_a_data_set_and_the_other_way_round_are_refused(folder):
    for half in (PAID[:2], PAID[2:]):
        ended = publish(*half)
        assert ended.exit_code == 2
        assert "--ledger and --dataset go together" in ended.stderr


def test_regions_without_a_crs_need_one_stated(folder, regions):
    bare = regions.set_crs(None, allow_override=True)
    save_regions(bare, Path("bare.parquet"))
    refused = publish(*PAID, source="bare.parquet")
    assert refused.exit_code == 2
    assert "give --crs" in refused.stderr
    assert spent() == 0
    stated = publish(*PAID, "--crs", str(regions.crs), source="bare.parquet")
    assert stated.exit_code == 0, stated.stderr


def test_an_output_is_replaced_only_when_told_to(folder):
    publish(*PAID)
    first = Path("city.parquet").read_bytes()
    refused = publish(*PAID)
    assert refused.exit_code == 2
    assert "is there already, and may be a release that budget was spent on" in refused.stderr
    assert Path("city.parquet").read_bytes() == first
    assert spent() == Fraction(1, 2)
    assert publish(*PAID, "--overwrite").exit_code == 0
    assert Path("city.parquet").read_bytes() != first


def test_a_folder_that_cannot_be_written_is_refused_before_the_debit(folder, monkeypatch):
    # Permissions do not stop root, and CI may be root.
    denied = mock.Mock(side_effect=PermissionError(errno.EACCES, "Permission denied"))
    monkeypatch.setattr(cli_options, "try_out", denied)
    ended = publish(*PAID)
    assert ended.exit_code == 2
    assert "--output city.parquet cannot be written: Permission denied" in ended.stderr
    assert spent() == 0


@pytest.mark.parametrize("name", ["bad\udcffname.parquet", "n" * 250])
def test_a_name_that_cannot_be_written_is_refused_before_the_debit(folder, name):
    ended = publish(*PAID, out=name)
    assert ended.exit_code == 2
    assert ended.stderr.startswith("dpregions: error: --output ")
    assert spent() == 0


# What fails on the way. The command makes its own release and opens its own ledger, so whatever
# happens to them from outside is put in their place.


@pytest.fixture
def saving(monkeypatch):
    """Put a step around the saving of a release: it is given the real one and its arguments."""

    def put(step):
        monkeypatch.setattr(release_file, "save", partial(step, release_file.save))

    return put


def full(*_, **__):
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.fixture
def held_ledger(monkeypatch):
    """Let another process hold the ledger when it is to be told of something."""

    def hold(told):
        held = mock.Mock(side_effect=LedgerUnavailableError("another process holds it"))
        monkeypatch.setattr(Ledger, told, held)

    return hold


def test_two_runs_with_one_output_lose_neither_release(folder, saving):
    made = []

    def other_run_ends_first(save, *args, **kwargs):
        if not made:
            made.append(Path("city.parquet"))
            assert publish(*PAID).exit_code == 0
            made.append(made[0].read_bytes())
        return save(*args, **kwargs)

    saving(other_run_ends_first)
    done = publish(*PAID, "--json")
    assert done.exit_code == 1
    assert "city.parquet is there by now; the release is in city-2.parquet" in done.stderr
    facts = json.loads(done.stdout)
    assert facts["output"] == "city-2.parquet"
    assert made[0].read_bytes() == made[1]
    assert dpr.load("city-2.parquet").ledger_entry == facts["ledger_entry"]
    first, second = Ledger("city.ledger").account("taxis").entries[1:]
    assert {file.path for entry in (first, second) for file in entry.files} == {
        str(folder / "city.parquet"),
        str(folder / "city-2.parquet"),
    }


def test_the_ledger_has_the_checksum_of_what_was_written_not_of_what_is_there(folder, saving):
    def replaced_at_once(save, release, path, **options):
        found = save(release, path, **options)
        written.append(Path(path).read_bytes())
        Path(path).write_bytes(b"another's")
        return found

    written = []
    saving(replaced_at_once)
    assert publish(*PAID).exit_code == 0
    (entry,) = Ledger("city.ledger").account("taxis").entries[1:]
    assert entry.files[0].sha256 == hashlib.sha256(written[0]).hexdigest()


def test_a_release_that_its_folder_cannot_take_is_saved_elsewhere(folder, saving):
    def full_there(save, release, path, **options):
        return (full if Path(path).parent.name == "small" else save)(release, path, **options)

    saving(full_there)
    Path("small").mkdir()
    done = publish(*PAID, out="small/city.parquet")
    assert done.exit_code == 1
    assert "No space left on device; the release is in city-2.parquet" in done.stderr
    entry = dpr.load("city-2.parquet").ledger_entry
    assert f"Ledger: {entry}." in done.stdout
    assert Ledger("city.ledger").account("taxis").entries[1].state == "saved"


def test_a_file_that_cannot_be_saved_after_the_debit_leaves_it_spent_and_says_so(folder, saving):
    saving(full)
    ended = publish(*PAID)
    assert ended.exit_code == 1
    assert "epsilon 0.5 is spent, and the release was not saved to city.parquet" in ended.stderr
    assert "No space left" in ended.stderr
    assert spent() == Fraction(1, 2)
    assert Ledger("city.ledger").account("taxis").entries[1].state == "released"


@pytest.mark.parametrize(("error", "code"), [(Interrupted(), 130), (OSError("gone"), 1)])
def test_what_fails_after_the_debit_says_that_it_stays_spent(folder, monkeypatch, error, code):
    # A command takes methods by name: none can be passed that fails.
    monkeypatch.setattr(mechanism, "choose", mock.Mock(side_effect=error))
    ended = publish(*PAID)
    assert ended.exit_code == code
    assert "epsilon 0.5 was debited before this and stays spent" in ended.stderr
    entry = Ledger("city.ledger").account("taxis").entries[1]
    assert entry.state == "interrupted or running: the budget is spent"
    assert not Path("city.parquet").exists()


def test_a_saved_release_is_done_even_if_the_ledger_cannot_be_told(folder, held_ledger):
    held_ledger("mark_saved")
    done = publish(*PAID)
    assert done.exit_code == 0
    assert "is saved, but not noted in its ledger: another process holds it" in done.stderr
    assert dpr.load("city.parquet").ledger_entry.endswith("/taxis/2")


def test_a_release_that_the_ledger_cannot_mark_is_saved_with_a_note(folder, held_ledger):
    held_ledger("mark_released")
    done = publish(*PAID)
    assert done.exit_code == 0
    assert done.stderr.startswith(SAID + "dpregions: note: the release is made and paid for")
    assert len(done.stderr.splitlines()) == 2


def test_help_has_an_example():
    assert "Example: dpregions release regions.parquet -o city.parquet" in " ".join(
        run("release", "--help").stdout.split()
    )


def test_a_release_is_not_written_under_the_name_of_another_format(folder):
    done = publish(*PAID, out="city.csv")
    assert done.exit_code == 2 and spent() == 0
    assert "a release is a Parquet file" in done.stderr
    assert not Path("city.csv").exists()


def test_geojson_declares_no_columns_and_the_command_says_so_whatever_it_holds(folder, regions):
    for rows in (regions, regions.drop(columns="user_id"), regions.iloc[:0]):
        text = rows.to_crs(4326).to_json() if len(rows) else rows.to_json()
        Path("homes.geojson").write_text(text)
        done = publish("--overwrite", source="homes.geojson")
        assert done.exit_code == 0, done.stderr
        assert "the property that --user-id names count nowhere" in done.stderr


class TestDryRun:
    TERMS = (
        "nowhere.parquet",
        "-o",
        "made.parquet",
        *AREA,
        "--epsilon",
        1,
        "--max-diameter",
        "2km",
    )

    def test_it_tells_what_a_release_takes_and_does_nothing(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        done = run("release", *self.TERMS, "--dry-run")
        assert done.exit_code == 0, done.output
        for words in ("draws of noise", "MB of memory", "for its file", "Nothing was read, spent"):
            assert words in done.stdout
        assert not list(tmp_path.iterdir())

    @pytest.mark.parametrize("method", ["footprint", "paper"])
    def test_a_finer_grid_takes_more(self, tmp_path, monkeypatch, method):
        monkeypatch.chdir(tmp_path)
        terms = [*self.TERMS, "--method", method, "--dry-run", "--json"]
        found = json.loads(run("release", *terms).stdout)
        terms[terms.index("--cell") + 1] = "500m"
        finer = json.loads(run("release", *terms).stdout)
        assert all(finer[name] > found[name] for name in ("draws", "memory", "file"))

    def test_bad_terms_are_refused_as_ever(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        done = run("release", *self.TERMS[:-4], "--dry-run", "--epsilon", -1, *self.TERMS[-2:])
        assert done.exit_code != 0 and "epsilon" in done.stderr

    def test_the_paper_draws_once_for_each_component(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        done = run("release", *self.TERMS, "--method", "paper", "--dry-run", "--json")
        assert json.loads(done.stdout)["draws"] == 19 * 19


@pytest.mark.parametrize("given", [("--engine", "spark"), ("--master", "local[2]")])
def test_engine_and_master_go_together(given, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run("release", *TestDryRun.TERMS, *given)
    assert done.exit_code != 0 and "--engine spark and --master go together" in done.stderr
