"""A release as one HTML file: the page, its libraries and all numbers, for any browser, offline.

Libraries and numbers lie in the file as gzip in base64. One script opens them; the file's policy
allows it by its digest and lets nothing be loaded from anywhere.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
import tempfile
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpregions.errors import DPRegionsError
from dpregions.page import payload
from dpregions.page.bodies import bodies

if TYPE_CHECKING:
    from dpregions.releases.published import Release

STATIC = Path(__file__).parent / "static"
"""The page's own files; `vendor/` below has the libraries."""

_LIBRARIES = {
    "maplibre": "vendor/maplibre-gl.mjs",
    "worker": "vendor/maplibre-gl-worker.mjs",
    "draw": "vendor/terra-draw.js",
    "adapter": "vendor/terra-draw-adapter.js",
    "land": "vendor/land-110m.json",
}
"""What the page asks for by these names; a basemap needs a server, and so does its reader."""

_STYLES = ("vendor/maplibre-gl.css", "page.css")
_IMPORT = re.compile(r'(?:from|import) ?"\./([\w.-]+)"')
_MOST_BODIES = 400_000
"""Bytes of bodies, compressed."""
_MOST_FINE = 200_000
"""Cells up to which the intervals of blocks are not coarse: on more the file would grow large."""


def page_html(
    release: Release,
    *,
    name: str = "release",
    checksum: str | None = None,
    confidence: float = 0.95,
    live: bool = False,
) -> str:
    """Return the explorer of one release as the text of an HTML file.

    It has the counts of all rectangles of cells; intervals of all of them where there are few,
    else of all blocks of cells; and the published bodies, where they are not too many.

    Parameters
    ----------
    release : Release
    name : str
        What the page calls it.
    checksum : str, optional
        The SHA-256 of the release's file; by default that of the file it makes when saved.
    confidence : float
        Of the intervals.
    live : bool
        Whether a notebook's kernel answers what the file does not know.
    """
    said = payload.described(
        release, name=name, checksum=checksum or _checksum(release), confidence=confidence
    )
    parts: dict[str, Any] = {"said": said} | {
        part: _text(content) for part, content in _numbers(release, said, confidence).items()
    }
    style = "\n".join((STATIC / sheet).read_text(encoding="utf-8") for sheet in _STYLES)
    script = (STATIC / "single_file.js").read_text(encoding="utf-8")
    policy = "; ".join(
        [
            "default-src 'none'",
            f"script-src '{_digest(script)}' blob:",
            f"style-src '{_digest(style)}'",
            "img-src data: blob:",
            "connect-src blob:",
            "worker-src blob: data:",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )
    page = (STATIC / "index.html").read_text(encoding="utf-8")
    page = re.sub(r'<(link rel="stylesheet"|script )[^>]*>(</script>)?\n', "", page)
    head = (
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f"<style>{style}</style>\n</head>"
    )
    modules = _text(json.dumps(_modules()).encode())
    mark = " data-live" if live else ""
    body = (
        f'<script type="text/plain" id="modules">{modules}</script>\n'
        f'<script type="application/json" id="release"{mark}>{_safe(parts)}</script>\n'
        f'<script type="module">{script}</script>\n</body>'
    )
    title = f"<title>{escape(name)} · dpregions explorer</title>"
    page = re.sub("<title>.*</title>", lambda _: title, page)
    page = page.replace("</head>", head, 1).replace("</body>", body, 1)
    return _with_statement(page, release)


def _checksum(release: Release) -> str | None:
    """Return the SHA-256 of a release's file, which is the same whenever it is saved."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "release.parquet"
        try:
            release.save(path)
        except DPRegionsError:  # some that are asked elsewhere have no file
            return None
        return hashlib.sha256(path.read_bytes()).hexdigest()


def _numbers(release: Release, said: dict[str, Any], confidence: float) -> dict[str, bytes]:
    """Return what the page shows, by part."""
    if "grid" not in said:
        cells = json.dumps(payload.cells(release, confidence), allow_nan=False)
        return {"cells": cells.encode()}
    parts = {"components": payload.components(release)}
    if not release.covert:
        coarse = said["grid"]["rows"] * said["grid"]["cols"] > _MOST_FINE
        for block in said["blocks"]:
            parts[f"ends{block}"] = payload.intervals(release, block, confidence, coarse=coarse)
        if said["every_rectangle"]:
            parts["rectangles"] = payload.rectangle_intervals(release, confidence)
    held = bodies(release)
    if held is not None and len(_packed(held)) <= _MOST_BODIES:
        parts["bodies"] = held
    return parts


def _modules() -> dict[str, Any]:
    """Return the page's modules, each after those that it imports, and the libraries."""
    own = {path.name: path.read_text(encoding="utf-8") for path in sorted(STATIC.glob("*.js"))}
    for entry in ("server.js", "single_file.js", "live.js"):
        del own[entry]
    ordered: dict[str, str] = {}

    def add(name: str) -> None:
        if name not in ordered:
            for needed in _IMPORT.findall(own[name]):
                add(needed)
            ordered[name] = own[name]

    add("main.js")
    libraries = {
        name: (STATIC / path).read_text(encoding="utf-8") for name, path in _LIBRARIES.items()
    }
    return {"own": list(ordered.items()), "libraries": libraries}


def _with_statement(page: str, release: Release) -> str:
    """Put the privacy statement into the file, where those read it whose browser runs no script."""
    said = f"<pre>{escape(release.describe())}</pre>"
    return page.replace("</noscript>", f"{said}</noscript>", 1)


def _packed(content: bytes) -> bytes:
    return gzip.compress(content, 9, mtime=0)


def _text(content: bytes) -> str:
    return base64.b64encode(_packed(content)).decode("ascii")


def _safe(values: Any) -> str:
    """Return JSON that nothing in it can end the element that holds it."""
    return json.dumps(values, allow_nan=False).replace("<", "\\u003c")


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")
