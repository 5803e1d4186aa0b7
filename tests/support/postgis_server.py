"""PostgreSQL with PostGIS from the system's packages, in a temporary folder, on loopback."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HOW_TO_GET_IT = "apt-get install postgresql postgresql-postgis (or run `make system` as root)"


def binaries() -> Path | None:
    """Return the folder of the newest PostgreSQL that has PostGIS, if there is one."""
    found = []
    for folder in Path("/usr/lib/postgresql").glob("*/bin"):
        version = folder.parent.name
        control = Path(f"/usr/share/postgresql/{version}/extension/postgis.control")
        if version.isdigit() and control.exists() and (folder / "initdb").exists():
            found.append((int(version), folder))
    return max(found)[1] if found else None


def as_somebody(*command: str | Path) -> list[str]:
    """Return a command as it must be run: PostgreSQL refuses to be root."""
    words = [str(word) for word in command]
    return ["runuser", "-u", "postgres", "--", *words] if os.geteuid() == 0 else words


@contextmanager
def running(binaries: Path, password: str) -> Iterator[str]:
    """Give the URL of a fresh server's database with PostGIS; stop it and remove it after."""
    folder = Path(tempfile.mkdtemp(prefix="dpregions-postgis-"))
    data = folder / "data"
    secret = folder / "password"
    secret.write_text(password)
    if os.geteuid() == 0:
        owner = pwd.getpwnam("postgres")
        for path in (folder, secret):
            os.chown(path, owner.pw_uid, owner.pw_gid)
    # Bound for a moment to find a free port; PostgreSQL takes it right after.
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    try:
        _run(binaries / "initdb", "-D", data, "-U", "curator", "-A", "scram-sha-256",
             f"--pwfile={secret}", "-E", "UTF8", "--locale=C", "--no-sync")  # fmt: skip
        options = (
            f"-c listen_addresses=127.0.0.1 -c port={port} -c unix_socket_directories={folder} "
            f"-c fsync=off -c max_connections=20 -c shared_buffers=16MB"
        )
        log = folder / "log"
        _run(binaries / "pg_ctl", "-D", data, "-w", "-t", "60", "-l", log, "-o", options, "start")
        try:
            yield f"postgresql://curator:{password}@127.0.0.1:{port}/postgres"
        finally:
            _run(binaries / "pg_ctl", "-D", data, "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run(*command: str | Path) -> None:
    done = subprocess.run(
        as_somebody(*command), cwd="/", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    assert done.returncode == 0, f"{Path(str(command[0])).name} failed"
