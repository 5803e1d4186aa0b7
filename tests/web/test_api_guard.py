"""What every request passes and every response carries: host names, tokens, headers, the log."""

from __future__ import annotations

import json
import logging
import re

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient

from dpregions.web.app import make_app
from dpregions.web.page_routes import STATIC
from dpregions.web.settings import Settings
from support.served import Served, city, later_city, problem_in, serving

TOKEN = "correct-horse-battery"
EVERYWHERE = ["/", "/api", "/healthz", "/openapi.json", "/static/api.css", "/nowhere"]


@pytest.fixture(scope="module")
def served() -> Served:
    with serving({"city": city()}) as found:
        yield found


@pytest.mark.parametrize("path", EVERYWHERE)
def test_every_response_has_the_headers(served, path):
    headers = served.client.get(path).headers
    policy = dict(part.split(" ", 1) for part in headers["content-security-policy"].split("; "))
    assert policy["default-src"] == "'none'" and policy["script-src"] == "'self'"
    assert "unsafe" not in headers["content-security-policy"]
    assert policy["frame-ancestors"] == policy["base-uri"] == policy["form-action"] == "'none'"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-opener-policy"] == "same-origin"
    assert "access-control-allow-origin" not in headers


@pytest.mark.parametrize(
    "name", ["evil.example", "127.0.0.1.evil.example", "0.0.0.0", "10.0.0.5", ""]
)
def test_another_host_name_is_refused(served, name):
    for path in ("/", "/api/v1/releases", "/static/api.css"):
        problem = problem_in(served.client.get(path, headers={"Host": name}), 421)
        assert "allowed" in problem["detail"]


@pytest.mark.parametrize("name", ["localhost:8000", "127.0.0.1", "[::1]:8000", "LOCALHOST"])
def test_this_machine_is_answered_under_its_own_names(served, name):
    assert served.client.get("/healthz", headers={"Host": name}).status_code == 200


def test_a_server_for_others_answers_to_its_addresses_and_the_names_it_was_given():
    with serving({"city": city()}, host="0.0.0.0", names=("map.example",)) as served:
        for name, status in (("map.example", 200), ("10.0.0.5", 200), ("evil.example", 421)):
            assert served.client.get("/healthz", headers={"Host": name}).status_code == status


def test_without_the_token_nothing_is_told_of_a_release():
    with serving({"city": city()}, token=TOKEN) as served:
        client = served.client
        paths = [served.at(p) for p in ("count", "page.json", "components.bin", "release.parquet")]
        for path in ("/api/v1/releases", "/api/v1/overlay", *paths):
            for headers in ({}, {"Authorization": "Bearer wrong"}, {"Cookie": "dpregions_token=x"}):
                response = client.get(path, headers=headers)
                assert problem_in(response, 401)["title"] == "A token is missing or wrong"
                assert response.headers["www-authenticate"] == "Bearer"
        assert served.ids[0] not in client.get("/").text + client.get("/openapi.json").text
        assert client.get("/r/nothing-1234567").status_code == 200, "nor which there are"


@pytest.mark.parametrize("how", ["mounted", "root_path"])
def test_below_another_path_the_token_is_asked_for_too(how):
    """As another application mounts it, and as `uvicorn --root-path` says it."""
    app = make_app({"city": city()}, settings=Settings(token=TOKEN))
    outer = Starlette(routes=[Mount("/dp", app)]) if how == "mounted" else app
    root = "" if how == "mounted" else "/dp"
    client = TestClient(outer, base_url="http://127.0.0.1:8000", root_path=root)
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    (id,) = app.state.serving.shelf
    for path in ("releases", "overlay", f"releases/{id}/release.parquet"):
        problem_in(client.get(f"/dp/api/v1/{path}"), 401)
        assert client.get(f"/dp/api/v1/{path}", headers=bearer).status_code == 200
    for path in ("/dp/", "/dp/api", "/dp/healthz", "/dp/openapi.json", "/dp/static/api.css"):
        assert client.get(path).status_code == 200


def test_what_is_not_known_to_be_open_asks_for_the_token():
    app = make_app({"city": city()}, settings=Settings(token=TOKEN))

    @app.get("/api/v2/new")
    async def new() -> str:
        return "counts"

    client = TestClient(app, base_url="http://127.0.0.1:8000")
    for path in ("/api/v2/new", "/nowhere", "//api/v1/releases", "/API/v1/releases"):
        problem_in(client.get(path), 401)


def test_the_token_is_taken_from_the_header_and_kept_as_a_cookie_that_no_script_reads():
    with serving({"city": city()}, token=TOKEN) as served:
        client, bearer = served.client, {"Authorization": f"Bearer {TOKEN}"}
        assert client.get("/api/v1/releases", headers=bearer).status_code == 200
        problem_in(client.post("/api/v1/session"), 401)
        response = client.post("/api/v1/session", headers=bearer)
        assert response.status_code == 204
        cookie = response.headers["set-cookie"].lower()
        assert "httponly" in cookie and "samesite=strict" in cookie
        assert client.get("/api/v1/releases").status_code == 200, "by the cookie"


def test_no_origin_may_ask_unless_it_was_named():
    origin = {"Origin": "https://city.example"}
    with serving({"city": city()}, cors=("https://city.example",), token=TOKEN) as served:
        client = served.client
        found = client.get("/api/v1/releases", headers=origin)
        assert problem_in(found, 401), "a script may read why"
        assert found.headers["access-control-allow-origin"] == "https://city.example"
        other = client.get("/api/v1/releases", headers={"Origin": "https://other.example"})
        assert "access-control-allow-origin" not in other.headers
        asked = origin | {
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "authorization,content-type",
        }
        assert client.options("/api/v1/releases", headers=asked).status_code == 200


def test_a_site_that_was_named_may_show_the_page_in_a_frame():
    with serving({"city": city()}, embed=("https://city.example",)) as served:
        policy = served.client.get("/api").headers["content-security-policy"]
        assert policy.endswith("frame-ancestors https://city.example")


def test_the_log_has_the_route_and_never_what_was_asked(served, caplog):
    caplog.set_level(logging.INFO, "dpregions.web")
    served.json("count", bbox="10.99,48.48,11.02,48.50", crs="EPSG:4326")
    served.client.get("/secret-path?x=10.99", headers={"Authorization": "Bearer s3cret"})
    lines = [r.getMessage() for r in caplog.records if r.name == "dpregions.web"]
    assert re.fullmatch(r"GET /api/v1/releases/\{id\}/count 200 \d+\.\d ms", lines[0])
    assert re.fullmatch(r"GET - 404 \d+\.\d ms", lines[1])


def test_what_never_changes_is_kept_for_ever_and_sent_once(served):
    for name in ("page.json", "components.bin", "intervals.bin?block=2", "release.parquet"):
        first = served.client.get(served.at(name))
        assert "immutable" in first.headers["cache-control"]
        again = served.client.get(served.at(name), headers={"If-None-Match": first.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        plain = served.client.get(served.at(name), headers={"Accept-Encoding": "identity"})
        assert plain.content == first.content and "content-encoding" not in plain.headers
    for path in ("/", "/api", "/static/api.css"):  # an upgrade brings others
        assert served.client.get(path).headers["cache-control"] == "no-cache"


def test_with_a_token_no_cache_on_the_way_keeps_anything():
    with serving({"city": city()}, token=TOKEN) as served:
        bearer = {"Authorization": f"Bearer {TOKEN}"}
        found = served.client.get(served.at("components.bin"), headers=bearer)
        assert found.headers["cache-control"].startswith("private")


def test_one_release_is_shown_at_once_and_several_are_listed():
    with serving({"city": city()}) as served:
        response = served.client.get("/", follow_redirects=False)
        assert response.headers["location"] == f"/r/{served.ids[0]}"
    with serving({"city": city(), "later": later_city()}) as served:
        assert served.client.get("/", follow_redirects=False).status_code == 200


def test_the_page_of_the_api_has_no_script_and_nothing_from_elsewhere(served):
    text = served.client.get("/api").text
    assert "<script" not in text and "style=" not in text and "<style" not in text
    links = re.findall(r'(?:href|src)="([^"]+)"', text)
    assert all(link.startswith(("/", "data:,")) for link in links)
    assert (STATIC / "api.html").read_text() == text


def test_every_route_on_the_page_of_the_api_is_there(served):
    page = served.client.get("/api").text
    known = set(served.client.get("/openapi.json").json()["paths"])
    shown = re.findall(r"http://127\.0\.0\.1:8000(/api/v1/[\w./-]+)", page)
    assert len(shown) >= 8
    for path in shown:
        template = re.sub(r"releases/[a-z]+-[0-9a-f]{7}", "releases/{id}", path)
        template = re.sub(r"export\.\w+", "export.{suffix}", template)
        assert template in known, path


def test_the_openapi_document_describes_problems_in_their_own_form(served):
    document = served.client.get("/openapi.json").json()
    assert "HTTPValidationError" not in json.dumps(document)
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            assert "application/problem+json" in json.dumps(operation["responses"]), (path, method)


def test_settings_are_safe_by_default():
    settings = Settings()
    assert settings.host == "127.0.0.1"
    assert not (settings.cors or settings.embed or settings.names)
