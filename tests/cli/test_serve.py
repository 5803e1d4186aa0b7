"""The command `serve`: it starts, answers, logs no question, and ends when it is told to."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

import dpregions as dpr
from support.command_line import run
from support.small_releases import study


@pytest.fixture(scope="module")
def city(tmp_path_factory):
    path = tmp_path_factory.mktemp("releases") / "city.parquet"
    study().save(path)
    return path


def started(*args):
    """The command in a process of its own, and the address that it prints."""
    command = [sys.executable, "-m", "dpregions.cli.app", "serve", *map(str, args)]
    process = subprocess.Popen(
        [*command, "--port", "0", "--no-open"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    line = process.stdout.readline()
    found = re.search(r"at (http://127\.0\.0\.1:\d+)/(?:#token=(\S+))?", line)
    assert found, line + process.stderr.read()
    return process, found[1], found[2]


def test_it_serves_until_it_is_told_to_end_and_logs_no_question(city):
    process, at, _ = started(city)
    with process:
        (told,) = json.load(urlopen(f"{at}/api/v1/releases"))["releases"]
        url = f"{at}/api/v1/releases/{told['id']}/release.parquet"
        assert urlopen(url).read() == city.read_bytes()
        urlopen(f"{at}/healthz?secret=12345")
        process.send_signal(signal.SIGINT)
        out, log = process.communicate(timeout=30)
    assert process.returncode == 0 and out == ""
    assert "GET /api/v1/releases/{id}/release.parquet 200" in log
    assert "12345" not in log and "Traceback" not in log


def test_a_token_is_made_on_request_and_needed_then(city):
    process, at, token = started(city, "--token", "new", "--no-log")
    with process:
        with pytest.raises(HTTPError, match="401"):
            urlopen(f"{at}/api/v1/releases")
        asked = Request(f"{at}/api/v1/releases", headers={"Authorization": f"Bearer {token}"})
        assert urlopen(asked).status == 200
        process.terminate()
        _, log = process.communicate(timeout=30)
    assert "GET" not in log and len(token) >= 24


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--token", "short"), "16 to 200 letters"),
        (("--cors", "example.org"), "no origin"),
        (("--embed", "https://a.org; script-src *"), "no origin"),
        (("--embed", "*"), "no origin"),
        (("--overlay", "nothing.geojson"), "cannot be read"),
        (("--basemap", "nothing.pmtiles"), "cannot be read"),
        (("--host", "203.0.113.7"), "cannot be listened on"),
    ],
)
def test_what_would_be_unsafe_or_cannot_work_is_refused(city, args, said):
    done = run("serve", city, "--no-open", "--port", "0", *args)
    assert done.exit_code == 2 and said in done.stderr


def test_a_port_in_use_is_named(city):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run("serve", city, "--no-open", "--port", port)
    assert done.exit_code == 2 and f"--port {port} cannot be listened on" in done.stderr


def test_what_is_no_release_is_refused_before_anything_listens(tmp_path):
    (tmp_path / "x.parquet").write_bytes(b"PAR1")
    done = run("serve", tmp_path / "x.parquet", "--no-open")
    assert done.exit_code == 2 and "x.parquet" in done.stderr


def test_a_server_holds_nothing_that_reads_regions(city):
    """What a process has loaded once it has answered: only what reads releases."""
    code = (
        "from fastapi.testclient import TestClient\n"
        "from dpregions.web.app import make_app\n"
        f"app = make_app([{str(city)!r}])\n"
        "with TestClient(app, base_url='http://127.0.0.1') as client:\n"
        "    assert client.get('/').status_code == 200\n"
    )
    secret = ("intake", "euler", "extraction", "engines", "curator", "releases.make", "synthetic")
    names = [f"dpregions.{name}" for name in secret]
    report = f"import sys; print([n for n in {names} if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code + report], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr
    assert dpr.load(city).private is False
