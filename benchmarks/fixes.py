"""GPS fixes to regions, against the same steps with `scipy.stats.gaussian_kde` for each user.

T-Drive where its Parquet file is there (folder DPREGIONS_DATA, or ../shared/data), made-up
fixes otherwise. The peer's cost grows with the square of a user's fixes: it is measured on a
sample of users and scaled by the sum of squares.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import geopandas
import numpy as np
import pandas as pd
import shapely
from scipy.stats import gaussian_kde

from benchmarks.report import Row, best_of, show
from dpregions.extraction.fixes import regions_from_fixes

PEER = "gaussian_kde at each user's fixes"
K, DIAMETER, CRS = 163, 2000.0, "EPSG:32650"

END_TO_END = """
import json, resource, sys, time
start = time.perf_counter()
from dpregions.extraction.fixes import regions_from_batches
from dpregions.intake.sources.traces import read_fixes
regions_from_batches(read_fixes(sys.argv[1]), k=163, max_diameter="2km", crs="EPSG:32650")
seconds = time.perf_counter() - start
print(json.dumps([seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))
"""


def made_up_fixes(n_users: int, seed: int = 0) -> pd.DataFrame:
    """Return taxis around Beijing: lognormal numbers of fixes about a few spots each."""
    rng = np.random.default_rng(seed)
    sizes = np.clip(rng.lognormal(6.3, 0.9, n_users), 1, 20_000).astype(int)
    user = np.repeat(np.arange(n_users), sizes)
    spots = rng.normal(0, 0.05, (n_users, 5, 2))
    where = spots[user, rng.integers(0, 5, len(user))] + rng.normal(0, 0.01, (len(user), 2))
    return pd.DataFrame({"user_id": user, "lon": 116.4 + where[:, 0], "lat": 39.9 + where[:, 1]})


def peer_regions(fixes: pd.DataFrame) -> list[shapely.Geometry]:
    """Do the same steps as one would with scipy and shapely."""
    points = geopandas.GeoSeries.from_xy(fixes["lon"], fixes["lat"], crs=4326).to_crs(CRS)
    xy = np.column_stack([points.x, points.y])
    regions = []
    for rows in fixes.reset_index(drop=True).groupby("user_id").indices.values():
        mine = xy[rows]
        mode = mine[np.argmax(gaussian_kde(mine.T)(mine.T))]
        distance = np.hypot(*(mine - mode).T)
        near = np.argsort(distance)[:K]
        kept = mine[near[distance[near] <= DIAMETER / 2]]
        regions.append(shapely.MultiPoint(kept).convex_hull)
    return regions


def sample(fixes: pd.DataFrame, n_users: int) -> pd.DataFrame:
    """Return some users' fixes: those the peer can take, and not the few that take minutes."""
    counts = fixes["user_id"].value_counts().sort_index()
    spread = fixes.groupby("user_id")["lon"].nunique()
    fair = counts[(counts >= 10) & (counts <= 5000) & (spread.reindex(counts.index) > 5)]
    users = fair.sample(min(n_users, len(fair)), random_state=1).index
    return fixes[fixes["user_id"].isin(users)]


def squares(fixes: pd.DataFrame) -> float:
    return float((fixes["user_id"].value_counts().astype(float) ** 2).sum())


def end_to_end(path: Path) -> tuple[float, float]:
    """Return seconds and peak MiB of a new process, from the file to the regions."""
    args = [sys.executable, "-c", END_TO_END, str(path)]
    done = subprocess.run(args, capture_output=True, text=True, check=True)
    seconds, peak = json.loads(done.stdout)
    return seconds, peak


def measure(name: str, path: Path, n_sample: int) -> list[Row]:
    recipe = {"k": K, "max_diameter": DIAMETER, "crs": CRS}
    regions_from_fixes(made_up_fixes(5), **recipe)  # compile or load the cache
    # First, while this process is small: a new one starts with its parent's peak.
    seconds, peak = end_to_end(path)
    fixes = pd.read_parquet(path, columns=["user_id", "lon", "lat"])
    few = sample(fixes, n_sample)
    ours = best_of(3, lambda: regions_from_fixes(few, **recipe))
    peer = best_of(1, lambda: peer_regions(few))
    scaled = peer * squares(fixes) / squares(few)
    note = f"peer measured on {few['user_id'].nunique()} users, scaled by fixes squared"
    return [
        Row(f"{name}, file to regions", seconds, "s", PEER, scaled, scaled / seconds, "20 x", note),
        Row(f"{name}, the same, time", seconds, "s", goal="< 60", note="compiled code in cache"),
        Row(f"{name}, the same, peak memory", peak, "MiB", goal="< 2,000"),
        Row("the sampled users, in memory", ours, "s", PEER, peer, peer / ours, "20 x"),
    ]


def run(quick: bool = False, data: Path | None = None) -> list[Row]:
    """Measure T-Drive where `data` (or the usual folder) holds it, else made-up fixes."""
    usual = Path(__file__).parents[2] / "shared" / "data"
    path = (data or Path(os.environ.get("DPREGIONS_DATA", usual))) / "tdrive.parquet"
    if path.exists() and not quick:
        return measure("T-Drive (9 M fixes)", path, 150)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fixes.parquet"
        made_up_fixes(20 if quick else 2000).to_parquet(path)
        return measure("made-up fixes", path, 5 if quick else 150)


if __name__ == "__main__":
    given = [Path(arg) for arg in sys.argv[1:] if not arg.startswith("-")]
    show("GPS fixes to regions", run("--quick" in sys.argv, *given))
