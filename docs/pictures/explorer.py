"""``python -m docs.pictures.explorer``: take the pictures of the explorer again, in docs/images.

They are screenshots of the HTML file of a made-up city, so they need chromium and playwright.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

import dpregions as dpr

IMAGES = Path(__file__).parents[1] / "images"
_SAVED = "c:6-11,7-13~City%20centre;c:14-18,2-5~Harbour;c:3-9,1-4~West"
_FLAGS = ["--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--no-sandbox"]
_SHOTS = {
    "explorer": {"viewport": {"width": 1280, "height": 800}},
    "explorer_dark": {"viewport": {"width": 1280, "height": 800}, "color_scheme": "dark"},
    "explorer_phone": {"viewport": {"width": 390, "height": 844}, "has_touch": True},
}


def take(folder: Path) -> None:
    """Save the screenshots: by day, in the dark, on a phone."""
    from playwright.sync_api import sync_playwright

    grid = dpr.Grid.around(9.0, 48.5, side="20km", cell_size="1km")
    city = dpr.release(dpr.synthetic.regions(10_000), grid, epsilon=1, max_diameter="2km")
    with tempfile.TemporaryDirectory() as made, sync_playwright() as playwright:
        page_file = Path(made) / "city.html"
        city.explore("City").save(page_file)
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=_FLAGS)
        for name, options in _SHOTS.items():
            page = browser.new_context(offline=True, **options).new_page()
            page.goto(f"{page_file.as_uri()}#a=c:6-11,7-13~City%20centre&q={_SAVED}")
            page.wait_for_selector("body.settled")
            page.wait_for_timeout(500)
            page.screenshot(path=folder / f"{name}.png")
        browser.close()


if __name__ == "__main__":
    take(Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES)
