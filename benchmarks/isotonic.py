"""The order-constrained fits against scipy's HiGHS dual simplex on the paper's linear program."""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from tests.support.oracle_lp import solve

from benchmarks.report import Row, best_of, show
from dpregions.mechanisms.paper.isotonic import fit_l1, fit_linf

TITLE = "Order-constrained fits (both L1 optima included)"
HIGHS = "scipy HiGHS dual simplex"


def make_noisy(n: int, kind: str = "regions") -> np.ndarray:
    """Return a doubled n x n array: an Euler histogram plus discrete Laplace noise, cut at 0."""
    rng = np.random.default_rng(n)
    truth = boxes_histogram(n, 5000, rng)
    scale = 729 if kind == "no regions, scale 729" else 25
    if kind == "no regions, scale 729":
        truth[:] = 0
    if kind == "hot spot of 1e6":
        bell = np.exp(-((np.arange(2 * n - 1) - n) ** 2) / (5 * n))
        truth += np.outer(bell, bell * 1e6).astype(np.int64)
    if kind == "500 everywhere, floats":
        return 500 + rng.laplace(scale=scale, size=truth.shape)
    rate = 1 - math.exp(-1 / scale)
    noise = rng.geometric(rate, truth.shape) - rng.geometric(rate, truth.shape)
    return np.maximum(truth + noise, 0)


def boxes_histogram(n: int, regions: int, rng: np.random.Generator) -> np.ndarray:
    """Count boxes of 1 to 3 cells a side: each covers whole rows and columns of components."""
    low = rng.integers(0, n, (2, regions))
    high = np.minimum(low + rng.integers(0, 3, (2, regions)), n - 1)
    steps = np.zeros((2 * n, 2 * n), np.int64)
    for rows, row_sign in ((2 * low[0], 1), (2 * high[0] + 1, -1)):
        for columns, sign in ((2 * low[1], row_sign), (2 * high[1] + 1, -row_sign)):
            np.add.at(steps, (rows, columns), sign)
    return steps.cumsum(0).cumsum(1)[:-1, :-1]


def against_highs(n: int, goal: str, time_limit: float) -> Row:
    noisy = make_noisy(n)
    ours = best_of(5, lambda: fit_l1(noisy))
    start = time.perf_counter()
    result = solve(noisy, norm="l1", time_limit=time_limit)
    peer = time.perf_counter() - start
    if result.status == 0:
        change = np.abs(fit_l1(noisy) - noisy).sum()
        assert change == round(result.fun), "the two programs must have one optimal value"
        note = f"same objective, {change:,}"
    else:
        note = f"HiGHS stopped at {time_limit:g} s: a lower bound"
    what = f"L1, n = {n} ({noisy.size:,} counts)"
    return Row(what, ours, "s", HIGHS, peer, peer / ours, goal, note)


def growth(small: int, large: int) -> list[Row]:
    """Time the sizes between small and large, doubling, and fit one exponent to the ends."""
    sizes = [small * 2**k for k in range(int(math.log2(large / small)) + 1)]
    times = []
    for n in sizes:
        noisy = make_noisy(n)
        times.append(best_of(9 if n < 256 else 5, lambda noisy=noisy: fit_l1(noisy)))
    steps = ", ".join(f"{n}: {t:.4f} s" for n, t in zip(sizes, times, strict=True))
    exponent = math.log(times[-1] / times[0], large / small)
    counts = (2 * large - 1) ** 2
    return [
        Row(f"L1, n = {large} ({counts:,} counts)", times[-1], goal="< 15"),
        Row(f"L1, growth from {small} to {large}", exponent, "exponent", goal="2.4", note=steps),
    ]


def other_inputs(n: int) -> list[Row]:
    rows = []
    for kind in ("no regions, scale 729", "hot spot of 1e6", "500 everywhere, floats"):
        noisy = make_noisy(n, kind)
        rows.append(Row(f"L1, n = {n}: {kind}", best_of(3, lambda noisy=noisy: fit_l1(noisy))))
    return rows


def largest_change(n: int) -> Row:
    noisy = make_noisy(n)
    ours = best_of(3, lambda: fit_linf(noisy))
    return Row(f"L-infinity, n = {n} ({noisy.size:,} counts)", ours, goal="< 1")


# The peak belongs to a process of its own, and is read from /proc: `ru_maxrss` starts at what the
# parent held, and tracemalloc does not see what numba allocates.
MEMORY = """
import sys
from pathlib import Path
from benchmarks.isotonic import fit_l1, make_noisy
def kib(field):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field))
fit_l1(make_noisy(4))
noisy = make_noisy(int(sys.argv[1]))
before = kib("VmRSS")
fit_l1(noisy)
print((kib("VmHWM") - before) * 1024)
"""


def memory(n: int) -> list[Row]:
    if not Path("/proc/self/status").exists():
        return []
    args = [sys.executable, "-c", MEMORY, str(n)]
    root = Path(__file__).parents[1]
    ran = subprocess.run(args, capture_output=True, text=True, check=True, cwd=root)
    grown, counts = int(ran.stdout), (2 * n - 1) ** 2
    note = f"{grown / 2**20:.0f} MiB over the input"
    return [Row(f"L1, peak memory, n = {n}", grown / counts, "bytes/count", note=note)]


def run(quick: bool = False, *, time_limit: float = 900.0) -> list[Row]:
    """Measure everything; `quick` on small sizes, to see that it runs."""
    fit_l1(make_noisy(4))  # compile or load the cache
    fit_l1(make_noisy(4, "500 everywhere, floats"))
    if quick:
        return [
            against_highs(12, "8 x", time_limit),
            *growth(8, 32),
            *other_inputs(16),
            largest_change(32),
            *memory(64),
        ]
    return [
        against_highs(100, "8 x", time_limit),
        against_highs(256, "10 x", time_limit),
        *growth(64, 512),
        *other_inputs(512),
        largest_change(1000),
        *memory(512),
        *memory(1024),
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument("--time-limit", type=float, default=900.0, help="seconds for HiGHS")
    options = parser.parse_args()
    show(TITLE, run(options.quick, time_limit=options.time_limit))
