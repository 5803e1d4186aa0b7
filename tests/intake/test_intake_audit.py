"""Audits from the file on: what is read and noised leaks no more than claimed, id by odd id.

One user more in a file changes the counts by that user alone, or the audit of reading and noise
together exceeds the claim: two users taken for one are worth 2 epsilon, as a mutant shows.
"""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
import shapely

import dpregions as dpr
from dpregions.mechanisms.paper.sensitivity import euler_sensitivity
from dpregions.privacy.seeded import StudyNoise
from support.auditing import audit, audit_by_component

GRID = dpr.Grid(0, 0, 1, n_rows=1, n_cols=4)
LEFT, RIGHT = shapely.box(0.7, 0.2, 1.3, 0.4), shapely.box(2.7, 0.2, 3.3, 0.4)
SENSITIVITY = euler_sensitivity(1, "add-remove", 1, 4)
NOISE = StudyNoise(13)
CROWD = 40


def histogram(source, user_id="user_id"):
    return dpr.EulerHistogram.from_regions(source, GRID, user_id=user_id, max_diameter=1).counts


def noised(counts, draws):
    """The release's calibration with study noise, which is fast; the noise has its own audit."""
    stacked = np.broadcast_to(counts, (draws, *counts.shape))
    return NOISE.add(stacked, epsilon=1, sensitivity=SENSITIVITY)


def by_geojson(folder, rows):
    """Write ids as they are spelled: a number, or text in quotes."""
    shapes = [json.dumps(shape.__geo_interface__) for _, shape in rows]
    features = [
        f'{{"type": "Feature", "properties": {{"user_id": {user}}}, "geometry": {shape}}}'
        for (user, _), shape in zip(rows, shapes, strict=True)
    ]
    text = f'{{"type": "FeatureCollection", "crs": null, "features": [{", ".join(features)}]}}'
    (folder / "a.geojson").write_text(text)
    return histogram(dpr.open_regions(folder / "a.geojson"))


def by_csv(folder, rows):
    lines = [user + f',"{shape.wkt}"'.encode() for user, shape in rows]
    (folder / "a.csv").write_bytes(b"\n".join([b"user_id,wkt", *lines, b""]))
    return histogram(dpr.open_regions(folder / "a.csv"))


def by_arrow(folder, rows):
    ids = pa.array([user for user, _ in rows])
    return histogram([shape for _, shape in rows], user_id=ids)


LONG = 1_234_567_890_123_456_000

PATHS = {
    "GeoJSON, a fraction beside long numbers": (by_geojson, [str(LONG), str(LONG + 1)], "1.5"),
    "GeoJSON, text beside dates": (by_geojson, ['"2020-01-01"', '"2020/01/01"'], '"x"'),
    "CSV that is not UTF-8": (by_csv, ["José".encode("latin-1"), "Josè".encode("latin-1")], b"x"),
    "Arrow, a null beside long numbers": (by_arrow, [LONG, LONG + 1], None),
}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("turned", [False, True])
def test_one_user_more_in_a_file_leaks_at_most_the_claim(path, turned, tmp_path):
    read, users, odd = PATHS[path]
    places = (RIGHT, LEFT) if turned else (LEFT, RIGHT)
    whole = [*zip(users, places, strict=True), (odd, LEFT)]
    for missing in range(len(whole)):
        pair = read(tmp_path, whole), read(tmp_path, whole[:missing] + whole[missing + 1 :])
        assert audit(noised, *pair, pair) <= 1
        if not np.array_equal(*pair):
            assert 0.7 < audit_by_component(noised, *pair, pair) <= 1


def test_mutant_that_takes_two_users_for_one_is_caught_by_the_audit(tmp_path):
    """What a reader did that replaced bytes, or rounded numbers, as floats do."""
    found = []
    for places in ((LEFT, RIGHT), (RIGHT, LEFT)):
        rows = list(zip([float(LONG), float(LONG + 1)], places, strict=True))
        whole = [(int(user), shape) for user, shape in rows]
        pair = by_arrow(tmp_path, whole), by_arrow(tmp_path, whole[:1])
        found.append(audit(noised, *pair, pair))
    assert max(found) > 1.3


@pytest.mark.parametrize("method", ["paper", "footprint"])
def test_a_thousand_users_of_long_ids_are_a_thousand_whoever_joins_them(method, tmp_path):
    """The whole path: one user with id 1.5 once made six users of a thousand."""
    rows = [(str(LONG + i), LEFT) for i in range(CROWD)]
    path = tmp_path / "a.geojson"
    for extra in ([], [("1.5", RIGHT)], [('"x"', RIGHT)]):
        counts = by_geojson(tmp_path, [*rows, *extra])
        assert counts.max() == CROWD
        made = dpr.release(dpr.open_regions(path), GRID, epsilon=20, max_diameter=1, method=method)
        assert abs(made.count(0, 0, 2, 1) - CROWD) <= 10
