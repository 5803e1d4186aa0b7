"""Debian's chromium under Playwright, offline pages, and the page's files on loopback.

Nothing is downloaded, and the pages' own Content-Security-Policy stays in force: so no test may
wait by a function that is evaluated from text.
"""

from __future__ import annotations

import functools
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import dpregions.page

STATIC = Path(dpregions.page.__file__).parent / "static"
HOW_TO_GET_IT = "as root, apt-get install chromium; and pip install playwright"
DESKTOP = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 844}
_FLAGS = (
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--ignore-gpu-blocklist",
    "--no-sandbox",
    "--disable-background-networking",
)


def chromium() -> str | None:
    """Where chromium is, None where it is not; Playwright's own is never used."""
    return shutil.which("chromium")


@contextmanager
def launched() -> Iterator[Any]:
    """A browser."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=list(_FLAGS))
        yield browser
        browser.close()


_NO_WEBGL = """() => {
  const plain = HTMLCanvasElement.prototype.getContext;
  HTMLCanvasElement.prototype.getContext = function (kind, ...rest) {
    return kind.startsWith("webgl") ? null : plain.call(this, kind, ...rest);
  };
}"""


@dataclass
class Watched:
    """A page, and what it complained of or asked of others than `home`."""

    page: Any
    home: tuple[str, ...]
    troubles: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.troubles.append(str(error)))
        self.page.on("request", self._asked)

    def _said(self, message: Any) -> None:
        if message.type in ("error", "warning") and "GPU stall" not in message.text:
            self.troubles.append(f"{message.type}: {message.text}")

    def _asked(self, request: Any) -> None:
        if not request.url.startswith((*self.home, "blob:", "data:")):
            self.troubles.append(f"asked {request.url}")


@contextmanager
def opened(
    browser: Any, address: str, *, home: tuple[str, ...] = (), webgl: bool = True, **options: Any
) -> Any:
    """A page that has settled; what it complains of fails the test."""
    context = browser.new_context(**{"viewport": DESKTOP} | options)
    if not webgl:
        context.add_init_script(f"({_NO_WEBGL})()")
    try:
        watched = Watched(context.new_page(), home or (address.partition("#")[0],))
        watched.page.set_default_timeout(8_000)
        watched.page.goto(address)
        watched.page.wait_for_selector("body.settled", timeout=30_000)
        yield watched.page
        assert watched.troubles == []
    finally:
        context.close()


class _Quiet(SimpleHTTPRequestHandler):
    extensions_map = SimpleHTTPRequestHandler.extensions_map | {".mjs": "text/javascript"}

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def files_served(folder: Path = STATIC) -> Iterator[str]:
    """A folder on loopback: modules cannot be imported from files."""
    handler = functools.partial(_Quiet, directory=str(folder))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def answer_of(page: Any) -> int:
    """The count in the panel."""
    return int(page.inner_text(".count").replace(",", ""))


def ends_of(page: Any) -> tuple[int, int]:
    """The ends of the interval in the panel."""
    low, _, high = page.inner_text(".ends").splitlines()
    return int(low.replace(",", "")), int(high.replace(",", ""))


def boxes_of(page: Any) -> tuple[int, int, int, int]:
    """The rows and columns in the number boxes."""
    row0, row1, col0, col1 = (int(page.input_value(f"#box-{k}")) for k in ("r0", "r1", "c0", "c1"))
    return row0, row1, col0, col1


def place_of(page: Any, row: float, col: float) -> tuple[float, float]:
    """Where rows and columns of the grid are in the window."""
    box = page.locator("#map").bounding_box()
    x, y = page.evaluate("([row, col]) => window.explorer.view.toPixel(row, col)", [row, col])
    return box["x"] + x, box["y"] + y


def draw_with(page: Any, tool: str) -> None:
    """Choose a drawing tool, and wait for its library: it is loaded when it is first used."""
    page.click(f"#tools >> text={tool}")
    for _ in range(200):
        if page.evaluate("() => explorer.drawing.draw?.getMode()") == tool.lower():
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"{tool} was never ready")
