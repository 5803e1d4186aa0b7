"""Bad requests: each gets a 4xx of one form, with a sentence that says what to do instead."""

from __future__ import annotations

import asyncio
import json
import threading

import numpy as np
import pytest
import shapely

from dpregions.web.problems import Problem
from dpregions.web.settings import Limits
from dpregions.web.work import Workshop
from support.served import Served, city, collection, feature, problem_in, serving

SPREAD = np.random.default_rng(0).uniform([10.96, 48.47], [11.04, 48.52], (9000, 2))
"""Places all over the city: a line from each to the next crosses everything."""
POINT = {"type": "Point", "coordinates": [11.0, 48.49]}


@pytest.fixture(scope="module")
def served() -> Served:
    with serving({"city": city()}) as found:
        yield found


@pytest.mark.parametrize(
    ("status", "kind", "said", "params"),
    [
        (400, "parameter", "got none", {}),
        (400, "parameter", "cells and bbox", {"cells": "0,1,0,1", "bbox": "1,1,2,2"}),
        (400, "parameter", "no parameter 'cels'", {"cels": "0,1,0,1"}),
        (400, "parameter", "given twice", {"cells": ["0,1,0,1", "2,3,2,3"]}),
        (400, "parameter", "does not go with cells", {"cells": "0,1,0,1", "crs": "EPSG:4326"}),
        (400, "parameter", "radius goes with point", {"bbox": "1,1,2,2", "radius": "5"}),
        (422, "parameter", "four whole numbers", {"cells": "0,1,0"}),
        (422, "parameter", "four whole numbers", {"cells": "-1,1,0,1"}),
        (422, "reversed", "lower first", {"cells": "3,1,0,1"}),
        (422, "input", "first and last row lie within 0..11", {"cells": "0,12,0,1"}),
        (422, "reversed", "west 9.03 > east 8.96", {"bbox": "9.03,48,8.96,49"}),
        (422, "reversed", "south 49 > north 48", {"bbox": "8,49,9,48"}),
        (422, "not-finite", "nan", {"bbox": "nan,48,9,49"}),
        (422, "not-finite", "1e999", {"bbox": "8,48,9,1e999"}),
        (422, "parameter", "west,south,east,north", {"bbox": "8,48,9"}),
        (422, "unknown-crs", "no CRS that pyproj reads", {"bbox": "8,48,9,49", "crs": "EPSG:1"}),
        (422, "unknown-crs", "an authority and a code", {"bbox": "8,48,9,49", "crs": "/etc/x"}),
        (422, "unknown-crs", "far from the grid's area", {"bbox": "1,1,9,9", "crs": "EPSG:2193"}),
        (422, "parameter", "above 0", {"point": "1,2", "radius": "0"}),
        (422, "parameter", "snap is one of", {"bbox": "8,48,9,49", "snap": "x"}),
        (422, "confidence", "from 0.5 to 0.999", {"cells": "0,1,0,1", "confidence": "1"}),
        (422, "not-finite", "not finite", {"cells": "0,1,0,1", "confidence": "nan"}),
        (422, "query", "no WKT", {"coords": "POLYGON((0 0"}),
        (422, "query", "no WKT", {"coords": "CIRCULARSTRING(0 0, 1 1, 2 0)"}),
        (422, "not-finite", "not finite", {"coords": "POINT(nan 3)"}),
        (422, "query", "no circle", {"point": "1e308,1e308", "radius": "1e308"}),
        (
            422,
            "query",
            "nest deeper",
            {"coords": "GEOMETRYCOLLECTION(" * 20 + "POINT(0 0)" + ")" * 20},
        ),
        (422, "query", "not finite or is more than", {"bbox": "0,95,1,99", "crs": "EPSG:4326"}),
    ],
)
def test_a_bad_question_is_refused_with_what_to_do(served, status, kind, said, params):
    found = served.problem("count", status, **params)
    assert found["type"] == f"/problems/{kind}"
    assert said in found["detail"]


@pytest.mark.parametrize("geometry", [None, {}, {"type": "Circle"}, {"type": "Point"}])
def test_a_feature_without_a_geometry_that_is_read_is_named(served, geometry):
    found = problem_in(served.post(collection(feature(POINT), feature(geometry))), 422)
    assert "features[1]" in found["detail"]


@pytest.mark.parametrize(
    ("status", "said", "body"),
    [
        (400, "no JSON", b"{"),
        (400, "no JSON", b"\xff\xfe"),
        (422, "nests deeper than 16", b"[" * 100_000),
        (422, "nests deeper than 16", b"[" * 20 + b"]" * 20),
        (422, "NaN", json.dumps(feature({"type": "Point", "coordinates": [float("nan"), 1]}))),
        (
            422,
            "not finite",
            b'{"type":"Feature","geometry":{"type":"Point","coordinates":[1e999,1]}}',
        ),
        (422, "not finite: '1e400'", json.dumps(feature(POINT, x=8)).replace("8}", "1e400}")),
        (
            422,
            "not finite: '-1e400'",
            json.dumps({**feature(POINT), "id": 8}).replace("8}", "-1e400}"),
        ),
        (422, r"\ud800 alone", json.dumps(feature(POINT, name="\ud800"))),
        (422, r"\udfff alone", json.dumps(feature(POINT, **{"\udfff": 1}))),
        (422, r"\ud800 alone", json.dumps({**feature(POINT), "id": ["\ud800"]})),
        (422, r"\ud800 alone", b'["\xed\xa0\x80"]'),
        (422, "no numbers", feature({"type": "Point", "coordinates": ["1", 2]})),
        (422, "two numbers", feature({"type": "Point", "coordinates": [1]})),
        (422, "no lists", feature({"type": "Polygon", "coordinates": 3})),
        (422, "rings need four", feature({"type": "Polygon", "coordinates": [[[0, 0], [1, 1]]]})),
        (422, "without geometries", feature({"type": "GeometryCollection"})),
        (422, "a geometry alone", POINT),
        (422, "no list of features", {"type": "FeatureCollection"}),
        (422, "features[0] is no GeoJSON Feature", collection(POINT)),
        (422, "properties that are no object", {**feature(POINT), "properties": 3}),
        (422, "features[0]: ", feature({"type": "Point", "coordinates": [11, 95]})),
    ],
)
def test_a_bad_body_is_refused_with_what_to_do(served, status, said, body):
    body = body.encode() if isinstance(body, str) else body
    for path in ("count", "count.csv"):
        assert said in problem_in(served.post(body, path=path), status)["detail"]


def test_a_million_vertices_are_refused_before_a_shape_is_made(served):
    line = feature({"type": "LineString", "coordinates": [[11, 48.49]] * 60_000})
    assert "10,000 vertices" in problem_in(served.post(line), 413)["detail"]
    wkt = "LINESTRING(" + ",".join(["11 48"] * 5_000) + ")"
    with serving({"city": city()}, limits=Limits(vertices=4_000)) as strict:
        assert "4,000 vertices" in strict.problem("area", 422, coords=wkt)["detail"]


def test_more_features_than_the_limit_are_refused(served):
    found = problem_in(served.post(collection(*[feature(POINT)] * 1001)), 413)
    assert "1,000 features, got 1,001" in found["detail"]


def test_no_more_of_a_body_is_read_than_the_limit(served):
    """The check of its size is made on the way: what follows is never asked for."""
    read = 0

    def parts():
        nonlocal read
        for _ in range(1000):
            read += 1
            yield b" " * 65_536

    headers = {"Content-Type": "application/json"}
    response = served.client.post(served.at("count"), content=parts(), headers=headers)
    assert "1,048,576 bytes" in problem_in(response, 413)["detail"]


def test_a_body_of_another_kind_is_refused(served):
    response = served.client.post(served.at("count"), content=b"{}")
    assert "Content-Type" in problem_in(response, 415)["detail"]


def test_what_is_not_there_is_said_in_the_same_form(served):
    client = served.client
    assert "no release 'x'" in problem_in(client.get("/api/v1/releases/x/count"), 404)["detail"]
    assert "see /api" in problem_in(client.get("/nowhere"), 404)["detail"]
    assert problem_in(client.get("/static/nothing.js"), 404)
    assert problem_in(client.delete(served.at("count")), 405)["title"]
    assert problem_in(client.get("/r/nothing-1234567"), 404)
    assert "block must be" in served.problem("intervals.bin", 422, block=3)["detail"]
    assert "no exports as 'exe'" in served.problem("export.exe", 404)["detail"]


def test_a_path_is_never_an_id(served):
    for name in ("%2e%2e%2fcity", "..%2f..%2fetc%2fpasswd", "/etc/passwd"):
        assert served.client.get(f"/api/v1/releases/{name}/release.parquet").status_code == 404
        assert served.client.get(f"/static/{name}").status_code == 404


def test_a_shape_around_more_cells_than_the_limit_is_refused():
    with serving({"city": city()}, limits=Limits(cells=20)) as served:
        found = served.problem(
            "count", 422, bbox="10.9,48.4,11.1,48.6", crs="EPSG:4326", snap="drawn"
        )
        assert "of at most 20" in found["detail"]
        assert served.json("count", bbox="10.9,48.4,11.1,48.6", crs="EPSG:4326")["count"] > 0


@pytest.mark.parametrize(
    ("said", "shape"),
    [
        ("crosses itself", shapely.Polygon(SPREAD[:400])),
        ("crosses itself", shapely.Polygon(SPREAD[:9000])),
        ("sides pass about", shapely.LineString(SPREAD)),
        ("sides pass about", shapely.MultiPoint(SPREAD)),
    ],
)
@pytest.mark.parametrize("snap", ["drawn", "touched", "enclosing"])
def test_a_shape_that_would_take_minutes_is_refused_at_once(served, said, shape, snap):
    found = problem_in(served.post(feature(shapely.geometry.mapping(shape)), snap=snap), 422)
    assert said in found["detail"]


def test_a_polygon_that_crosses_itself_a_few_times_is_repaired(served):
    bow = shapely.Polygon([(10.97, 48.48), (11.03, 48.5), (11.03, 48.48), (10.97, 48.5)])
    found = served.post(feature(shapely.geometry.mapping(bow))).json()
    assert found["properties"]["dpregions"]["count"] == city().count(bow, crs=4326)
    two = shapely.MultiPolygon([bow, shapely.box(10.98, 48.47, 11, 48.49)])
    assert served.post(feature(shapely.geometry.mapping(two))).status_code == 200


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("point", "radius"), [("0,0", "1e308"), ("1e300,0", "1e300"), ("1e308,1e308", "1e308")]
)
def test_a_circle_of_no_finite_size_is_refused_without_a_warning(served, point, radius):
    for snap in ("drawn", "touched", "enclosing"):
        assert served.problem("count", 422, point=point, radius=radius, snap=snap)


BOW = "((10.97 48.48,11.03 48.5,11.03 48.48,10.97 48.5,10.97 48.48))"
"""A polygon that crosses itself."""


@pytest.mark.parametrize(
    ("coords", "same"),
    [
        (f"MULTIPOLYGON({BOW},EMPTY)", f"POLYGON{BOW}"),
        (f"POLYGON({BOW[1:-1]},EMPTY)", f"POLYGON{BOW}"),
        (
            f"{'GEOMETRYCOLLECTION(' * 3}POLYGON{BOW},POLYGON EMPTY,POINT EMPTY{')' * 3}",
            f"POLYGON{BOW}",
        ),
        ("MULTILINESTRING((11 48.49,11 48.49))", "POINT(11 48.49)"),
        (f"LinearRing{BOW[1:-1]}", f"LINESTRING{BOW[1:-1]}"),
        (f"GEOMETRYCOLLECTION(LINEARRING{BOW[1:-1]})", f"LINESTRING{BOW[1:-1]}"),
    ],
)
@pytest.mark.parametrize("snap", ["drawn", "touched", "enclosing"])
def test_empty_parts_rings_and_collections_are_repaired_too(served, coords, same, snap):
    given = {"crs": "EPSG:4326", "snap": snap}
    found, wanted = (served.json("count", coords=text, **given) for text in (coords, same))
    names = ("count", "low", "high", "outside", "answered")
    assert [found[name] for name in names] == [wanted[name] for name in names]
    assert not wanted["outside"]


def test_an_empty_ring_or_part_of_a_geojson_is_left_out(served):
    bow = shapely.geometry.mapping(shapely.from_wkt(f"POLYGON{BOW}"))
    wanted = served.post(feature(bow)).json()["properties"]["dpregions"]["count"]
    ring = feature({"type": "Polygon", "coordinates": [*bow["coordinates"], []]})
    part = feature({"type": "MultiPolygon", "coordinates": [bow["coordinates"], []]})
    for body in (ring, part):
        response = served.post(body)
        assert response.status_code == 200, response.text
        assert response.json()["properties"]["dpregions"]["count"] == wanted


def test_work_ends_between_features_when_its_time_is_over():
    with serving({"city": city()}, limits=Limits(seconds=0.0)) as served:
        found = problem_in(served.post(collection(feature(POINT))), 413)
        assert "longer than 0 seconds" in found["detail"]


def test_who_comes_when_the_queue_is_full_is_told_so_at_once():
    release = threading.Event()

    async def crowd():
        workshop = Workshop(Limits(at_work=1, waiting=1, seconds=30))
        first = [asyncio.ensure_future(workshop.do(lambda _: release.wait(30))) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(Problem) as refused:
            await workshop.do(lambda _: None)
        release.set()
        await asyncio.gather(*first)
        assert await workshop.do(lambda _: "done") == "done", "there is room again"
        workshop.close()
        return refused.value

    problem = asyncio.run(crowd())
    assert (problem.status, problem.headers) == (429, {"Retry-After": "1"})


def test_a_thread_that_goes_on_after_its_time_still_counts_as_work():
    release = threading.Event()

    async def slow():
        workshop = Workshop(Limits(at_work=1, waiting=0, seconds=0.05))
        with pytest.raises(Problem) as over:
            await workshop.do(lambda _: release.wait(30))
        with pytest.raises(Problem) as full:
            await workshop.do(lambda _: None)
        release.set()
        workshop.close()
        return over.value.status, full.value.status

    assert asyncio.run(slow()) == (413, 429)


def test_intervals_of_a_cold_release_are_for_later_and_healthz_says_so():
    from starlette.testclient import TestClient

    from dpregions.web.app import make_app

    app = make_app({"city": city()})
    client = TestClient(app, base_url="http://127.0.0.1")  # without its start, nothing is prepared
    (id,) = app.state.serving.shelf
    response = client.get(f"/api/v1/releases/{id}/count", params={"cells": "0,1,0,1"})
    assert "ready in about" in problem_in(response, 503)["detail"]
    assert int(response.headers["retry-after"]) >= 1
    assert client.get("/healthz").json() == {"status": "ok", "ready": False}
    assert client.get(f"/api/v1/releases/{id}/components.bin").status_code == 200, "counts are"


def test_what_nobody_foresaw_is_a_500_without_its_text(served, caplog):
    app = served.client.app

    @app.get("/boom")
    async def boom() -> None:
        raise RuntimeError("POLYGON((11 48, ...")

    found = problem_in(served.client.get("/boom"), 500)
    assert "POLYGON" not in json.dumps(found) + caplog.text
    assert "unforeseen RuntimeError" in caplog.text
