"""One browser for all tests of the page; they are skipped where there is none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from support import browser as support


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Debian's chromium."""
    pytest.importorskip("playwright", reason=support.HOW_TO_GET_IT)
    if support.chromium() is None:
        pytest.skip(f"no chromium: {support.HOW_TO_GET_IT}")
    with support.launched() as launched:
        yield launched
