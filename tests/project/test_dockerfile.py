"""The Dockerfile of `serve`: what it promises about users, files, health and what it is made of."""

from __future__ import annotations

import json
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docker" / "Dockerfile").read_text()
LINES = re.sub(r"\\\n\s*", "", re.sub(r"^#.*\n", "", TEXT, flags=re.MULTILINE)).splitlines()
STEPS = [tuple(line.split(None, 1)) for line in LINES if line.strip()]
LAST = max(i for i, (step, _) in enumerate(STEPS) if step == "FROM")


def steps(name: str, of=STEPS) -> list[str]:
    return [rest for step, rest in of if step == name]


def test_its_base_is_pinned_and_the_same_in_both_stages():
    images = {rest.split()[0] for rest in steps("FROM")}
    (image,) = images
    assert re.fullmatch(r"python:3\.\d+\.\d+-slim-\w+", image)


def test_the_server_runs_as_a_user_without_rights_by_number():
    users = steps("USER", STEPS[LAST:])
    assert users and all(user.isdigit() and int(user) >= 1000 for user in users)
    order = [step for step, _ in STEPS[LAST:]]
    assert "RUN" not in order[order.index("USER") :], "nothing is installed by the server's user"


def test_it_says_whether_it_is_healthy_by_its_own_route():
    (check,) = steps("HEALTHCHECK")
    command = json.loads(check[check.index("CMD ") + 4 :])
    (port,) = steps("EXPOSE")
    assert f"http://127.0.0.1:{port}/healthz" in command[-1]
    compile(command[-1], "healthcheck", "exec")
    entry = json.loads(steps("ENTRYPOINT")[0])
    assert entry[:2] == ["dpregions", "serve"] and entry[entry.index("--port") + 1] == port


def test_it_installs_readers_and_the_server_and_nothing_for_curators():
    (install,) = (rest for rest in steps("RUN") if "pip install" in rest)
    assert re.search(r'"\.\[web\]"', install)
    assert not re.search(r"\[(curator|all)|numba|opendp", install)


def test_no_secret_and_no_data_is_in_it():
    assert not re.search("token|password|secret|key=", TEXT, re.IGNORECASE)
    copied = {name for rest in steps("COPY") for name in rest.split()[:-1]}
    assert copied == {
        "pyproject.toml",
        "README.md",
        "LICENSE",
        "src",
        "--from=build",
        "/opt/dpregions",
    }
    kept = [
        line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line[0] == "!"
    ]
    assert set(kept) == {"pyproject.toml", "README.md", "LICENSE", "src"}
    assert not steps("ADD")


def test_it_writes_nothing_where_the_file_system_is_read_only():
    assert "PYTHONDONTWRITEBYTECODE=1" in " ".join(steps("ENV", STEPS[LAST:]))
    told = (ROOT / "docs" / "how-to" / "readers.md").read_text()
    assert "--read-only" in told and "/releases:ro" in told and "--cap-drop ALL" in told
