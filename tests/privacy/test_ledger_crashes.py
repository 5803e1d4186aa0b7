"""kill -9 during a budgeted release: no half file, no file without its debit, no free spend."""

import random
import subprocess
import sys
from fractions import Fraction

import pytest

import dpregions as dpr
from dpregions.privacy.ledger import Ledger

# Imports everything once, then forks a child for each try, which is killed after a delay or at a
# moment; so a try takes a fraction of a second.
RUNNER = """
import os, signal, sys, time, warnings
import numpy as np, shapely
import dpregions as dpr
from dpregions.privacy import ledger, ledger_file
from dpregions import atomic_files as whole_files
from dpregions.privacy.noise import SystemNoise

grid = dpr.Grid(0, 0, 1, n_rows=4, n_cols=5)
squares = list(shapely.box(*np.random.default_rng(0).uniform(0, 3, (2, 40)), 3.5, 3.5))
path, folder = sys.argv[1:]

def publish(out, **account):
    made = dpr.release(squares, grid, epsilon=0.1, max_diameter=2, user_id=None, **account)
    made.save(out)

def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

MOMENTS = {
    "before the link": (ledger_file, "next_link"),
    "before the commit": (ledger, "_id"),
    "before the noise": (SystemNoise, "add"),
    "before the release": (ledger.Ledger, "mark_released"),
    "before the file": (os, "replace"),
    "after the file": (whole_files, "_sync_folder"),
}

for _ in range(3):
    start = time.perf_counter()
    publish(f"{folder}/warm.parquet", ledger=path, dataset="warm")
    took = time.perf_counter() - start
print("ready", flush=True)
for line in sys.stdin:
    out, when = line.rstrip().split("|")
    child = os.fork()
    if child == 0:
        if when in MOMENTS:
            setattr(*MOMENTS[when], die)
        publish(f"{folder}/{out}", ledger=path, dataset="town")
        os._exit(0)
    if when not in MOMENTS:
        time.sleep(float(when) * took)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    print("killed" if os.WIFSIGNALED(status) else "done", flush=True)
"""


@pytest.fixture(scope="module")
def tries(tmp_path_factory):
    """Return a function that has a child publish to a file and be killed, and the ledger."""
    folder = tmp_path_factory.mktemp("crashes")
    ledger = Ledger(folder / "budget.ledger")
    ledger.create("warm", 3, unit="record")
    ledger.create("town", 5, unit="record")
    runner = subprocess.Popen(
        [sys.executable, "-c", RUNNER, str(ledger.path), str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert runner.stdout.readline() == "ready\n"

    def attempt(out, when):
        runner.stdin.write(f"{out}|{when}\n")
        runner.stdin.flush()
        return runner.stdout.readline().strip(), folder / out

    yield attempt, ledger
    runner.communicate()
    assert runner.returncode == 0


def check_file(file, ledger):
    """A file that is there is whole, and it and the ledger tell one story."""
    claims = {}
    if file.exists():
        claims = {file.name: dpr.load(file)}
    assert ledger.verify(claims).problems == ()
    return file.exists()


@pytest.mark.parametrize(
    ("moment", "spends", "state", "leaves_a_file"),
    [
        ("before the link", False, None, False),
        ("before the commit", False, None, False),
        ("before the noise", True, "interrupted or running: the budget is spent", False),
        ("before the release", True, "interrupted or running: the budget is spent", False),
        ("before the file", True, "released", False),
        ("after the file", True, "released", True),
    ],
)
def test_killed_at_a_moment_the_ledger_is_right(tries, moment, spends, state, leaves_a_file):
    attempt, ledger = tries
    before = ledger.account("town")
    ended, file = attempt(f"{moment}.parquet", moment)
    assert ended == "killed"
    after = ledger.account("town")
    assert after.spent - before.spent == (Fraction(1, 10) if spends else 0)
    new = after.entries[len(before.entries) :]
    assert [entry.state for entry in new] == ([state] if spends else [])
    assert check_file(file, ledger) == leaves_a_file


def test_killed_at_twenty_random_moments_no_file_lacks_its_debit(tries):
    attempt, ledger = tries
    ends, files = [], 0
    before = ledger.account("town")
    for number in range(20):
        ended, file = attempt(f"random {number}.parquet", random.uniform(0, 1.5))
        ends.append(ended)
        files += check_file(file, ledger)
        account = ledger.account("town")
        assert account.spent <= account.total
        assert files <= len(account.entries) - len(before.entries) <= number + 1
    assert "killed" in ends
    ledger.debit("town", 0.1, account.privacy_unit, "nobody left a lock behind")
