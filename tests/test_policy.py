"""The site's policy: found where it was installed, and never passed over."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import venv
from fractions import Fraction
from pathlib import Path

import pytest
import shapely

import dpregions as dpr
from dpregions.errors import PolicyError
from dpregions.policy import INSTALLED, VARIABLE, site_policy
from dpregions.privacy.ledger import Ledger

GRID = dpr.Grid(0, 0, 1, n_rows=2, n_cols=2)
SQUARE = [shapely.box(0.2, 0.2, 0.8, 0.8)]


def written(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.fixture
def held(tmp_path, monkeypatch):
    """Return a function that puts a policy in force."""

    def put(text):
        path = written(tmp_path / "policy.toml", text)
        monkeypatch.setenv(VARIABLE, str(path))
        return path

    return put


def publish(**changes):
    terms = {"epsilon": 1, "max_diameter": 1, "user_id": [1], "method": "paper"} | changes
    return dpr.release(SQUARE, GRID, **terms)


def test_without_a_policy_there_is_none(tmp_path):
    assert site_policy(tmp_path, {}) is None
    assert site_policy(tmp_path, {VARIABLE: ""}) is None
    assert publish().policy is None


def test_the_installed_policy_wins_over_the_environments(tmp_path):
    named = written(tmp_path / "mine.toml", "max_epsilon = 9")
    environ = {VARIABLE: str(named)}
    assert site_policy(tmp_path, environ).max_epsilon == 9
    installed = written(tmp_path / INSTALLED, 'max_epsilon = "1/3"')
    found = site_policy(tmp_path, environ)
    assert found.path == installed and found.max_epsilon == Fraction(1, 3)
    assert found.digest == hashlib.sha256(installed.read_bytes()).hexdigest()


def test_a_virtual_environment_is_held_to_the_policy_of_the_python_it_was_made_from(tmp_path):
    base, own = tmp_path / "base", tmp_path / "venv"
    written(base / INSTALLED, "max_epsilon = 2")
    assert site_policy(own, {}, base).max_epsilon == 2
    written(own / INSTALLED, "max_epsilon = 1")
    assert site_policy(own, {}, base).max_epsilon == 1


def test_every_rule_is_read(tmp_path):
    text = 'ledger = "/srv/city.ledger"\nmax_epsilon = 0.1\nunit = "user"\nsign_off = true\n'
    found = site_policy(tmp_path, {VARIABLE: str(written(tmp_path / "all.toml", text))})
    assert (found.ledger, found.max_epsilon) == (Path("/srv/city.ledger"), Fraction(1, 10))
    assert (found.unit, found.sign_off) == ("user", True)


USELESS = {
    "no TOML": ("max_epsilon =", "it is no TOML"),
    "no text": (b"\xff\xfe", "it is no text"),
    "an unknown rule": ("max_epsilon = 1\nledgers = true", "'ledgers' is no rule"),
    "a table": ("[rules]\nmax_epsilon = 1", "'rules' is no rule"),
    "no epsilon": ("max_epsilon = 0", "must be greater than 0"),
    "an endless epsilon": ("max_epsilon = inf", "must be finite"),
    "an epsilon in words": ('max_epsilon = "one"', "must be a number or a fraction"),
    "an epsilon over nothing": ('max_epsilon = "1/0"', "must be a number or a fraction"),
    "a true epsilon": ("max_epsilon = true", "must be a number greater than 0"),
    "an unknown unit": ('unit = "household"', "unit must be one of user, record"),
    "a unit by number": ("unit = 1", "unit must be one of"),
    "a ledger by number": ("ledger = 1", "ledger must be true, false or a file's whole path"),
    "a ledger somewhere": ('ledger = "city.ledger"', "ledger must be true, false or a file's"),
    "perhaps": ('sign_off = "perhaps"', "sign_off must be true or false"),
}


@pytest.mark.parametrize("what", USELESS)
def test_a_policy_that_is_not_understood_refuses_every_release(held, what, ledger):
    text, words = USELESS[what]
    path = held(text)
    ledger.create("town", 3)
    with pytest.raises(PolicyError) as refused:
        publish(ledger=ledger, dataset="town")
    assert words in str(refused.value)
    assert f"the site's policy {path} is not understood, so nothing is released" in str(
        refused.value
    )
    assert ledger.account("town").spent == 0


def test_a_policy_that_is_named_and_missing_or_unreadable_refuses_every_release(tmp_path):
    for there in (tmp_path / "missing.toml", tmp_path):
        with pytest.raises(PolicyError, match="it cannot be read: "):
            site_policy(tmp_path / "none", {VARIABLE: str(there)})
    installed = tmp_path / INSTALLED
    installed.parent.mkdir(parents=True)
    installed.symlink_to(tmp_path / "gone.toml")  # a link that leads nowhere is there
    with pytest.raises(PolicyError, match="it cannot be read: No such file"):
        site_policy(tmp_path, {})


def test_what_a_policy_asks_for_is_refused_before_the_debit(held, ledger, tmp_path):
    ledger.create("town", 3)
    ledger.create("rows", 3, unit="record")
    other = Ledger(tmp_path / "other.ledger")
    other.create("town", 3)
    paid = {"ledger": ledger, "dataset": "town"}
    cases = {
        "ledger = true": ({}, "ledger is missing: no release without one"),
        f"ledger = {str(ledger.path)!r}": (
            {"ledger": other, "dataset": "town"},
            f"is not {ledger.path}: use that one",
        ),
        "max_epsilon = 0.5": (
            paid | {"epsilon": Fraction(501, 1000)},
            "epsilon=0.501 is more than 0.5, the most for one release",
        ),
        "unit = 'user'": (
            paid | {"user_id": None, "dataset": "rows"},
            "unit='record' is not 'user': protect each user",
        ),
        "sign_off = true": (paid, "sign_off is missing: fill in a sheet"),
    }
    for text, (changes, words) in cases.items():
        path = held(text)
        with pytest.raises(PolicyError) as refused:
            publish(**changes)
        assert words in str(refused.value)
        assert f"the site's policy {path} asks for it" in str(refused.value)
    books = [*ledger.accounts(), *other.accounts()]
    assert [account.spent for account in books] == [0, 0, 0]


def test_a_release_within_the_policy_records_its_digest(held, ledger, tmp_path):
    path = held(f"ledger = {str(ledger.path)!r}\nmax_epsilon = 1\nunit = 'user'\n")
    ledger.create("town", 3)
    made = publish(ledger=str(ledger.path), dataset="town")
    assert made.policy == hashlib.sha256(path.read_bytes()).hexdigest()
    assert f"Site policy: it was held to the one with SHA-256 {made.policy}." in made.describe()
    made.save(tmp_path / "made.parquet")
    assert dpr.load(tmp_path / "made.parquet").policy == made.policy


def test_an_environment_of_pythons_own_has_the_policy_that_was_put_into_it(tmp_path):
    """The whole path: a virtual environment, its policy file, and the command line in it."""
    home = tmp_path / "env"
    venv.create(home, with_pip=False)
    written(home / INSTALLED, "max_epsilon = 0.5\n")
    lax = written(tmp_path / "lax.toml", "max_epsilon = 20\n")
    args = ["release", "none.parquet", "-o", "made.parquet", "--epsilon", "1", "--dry-run"]
    args += ["--max-diameter", "2km", "--around", "9,48.5", "--side", "4km", "--cell", "1km"]
    path = os.pathsep.join([str(Path(dpr.__file__).parents[1]), *sys.path])
    done = subprocess.run(
        [home / "bin" / "python", "-m", "dpregions.cli.app", *args],
        env={**os.environ, "PYTHONPATH": path, VARIABLE: str(lax)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert "--epsilon 1.0 is more than 0.5, the most for one release" in done.stderr
