"""The libraries that the page brings: as they were published, with their licences."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path

import pytest

import dpregions.page

STATIC = Path(dpregions.page.__file__).parent / "static"
VENDOR = STATIC / "vendor"
PACKAGES = json.loads((VENDOR / "vendor.json").read_text())


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package["name"])
def test_files_are_those_whose_checksums_were_noted(package):
    assert package["version"] in package["tarball"] and len(package["sha512"]) == 88
    for entry in package["files"]:
        content = (VENDOR / entry["file"]).read_bytes()
        digest = base64.b64encode(hashlib.sha512(content).digest()).decode()
        assert digest == entry["sha512"], entry["file"]


def test_every_file_is_noted_and_every_package_has_its_licence():
    noted = {entry["file"] for package in PACKAGES for entry in package["files"]}
    there = {path.name for path in VENDOR.iterdir()}
    assert there == noted | {"vendor.json", "LICENCES"}
    licences = (VENDOR / "LICENCES").read_text()
    assert all(package["name"] in licences for package in PACKAGES)


def test_the_page_names_no_address_of_the_network():
    for path in STATIC.glob("*.*"):
        text = path.read_text(encoding="utf-8")
        found = re.findall(r"https?://(?!127\.0\.0\.1|www\.w3\.org/2000/svg)[^\s\"]+", text)
        assert found == [], path.name
