"""Sources opened as `open_regions` opens them, with chunks that a test chooses."""

from __future__ import annotations

from dpregions.crs import read_crs
from dpregions.intake.sources.opening import open_requested
from dpregions.intake.sources.requests import Request


def open_in_chunks(source, *, crs=None, **asked):
    """Open a source; besides `open_regions`' arguments, `chunk_rows` and `csv_block` are taken."""
    stated = None if crs is None else read_crs(crs)
    return open_requested(source, Request(crs=stated, **asked))
