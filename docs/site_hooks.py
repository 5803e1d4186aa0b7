"""What the site's build adds: the commands' own help, and a script for search without a server."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SHIM = "https://unpkg.com/iframe-worker/shim"
MARKER = "<!-- the commands' own help, put here when the site is built -->"


def on_page_markdown(markdown: str, **_: object) -> str:
    """Replace the marker by what the command line says of itself."""
    if MARKER not in markdown:
        return markdown
    args = [
        sys.executable,
        "-m",
        "typer",
        "dpregions.cli.app",
        "utils",
        "docs",
        "--name",
        "dpregions",
    ]
    made = subprocess.run(args, capture_output=True, text=True, check=True).stdout
    _, _, commands = made.partition("\n## ")
    return markdown.replace(MARKER, "## " + commands)


def on_post_build(config: dict[str, str], **_: object) -> None:
    """Let search without a server use the vendored script, not one from the network."""
    site = Path(config["site_dir"])
    for page in site.rglob("*.html"):
        up = "../" * (len(page.relative_to(site).parts) - 1)
        text = page.read_text(encoding="utf-8")
        page.write_text(text.replace(SHIM, f"{up}vendor/iframe-worker-shim.js"), encoding="utf-8")
