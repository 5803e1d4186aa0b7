"""The published bodies, packed for the page: shapes that repeat, and where each lies.

So a file without a server counts the bodies that touch a drawn area, as the library does. Bodies
are made up to fit the released counts; none is anybody's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dpregions.page.payload import frame_of, packed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dpregions.releases.published import Release

STEPS = 1 << 20
"""Of a cell's side: how finely corners are held, as the library's lattice does."""
MOST = 300_000
"""Distinct bodies that are packed; more do not fit into a file that people send to each other."""


def bodies(release: Release) -> bytes | None:
    """Return the bodies of a release; None where it has none, or too many.

    Distinct outlines, as steps from the lower left cell that each reaches: how many corners, their
    heights, their places along; then for each outline at a place the outline's number, how many
    rows it lies above the one before, its column, and how many bodies there are.
    """
    if not release.asked.answers_shapes:
        return None
    xy, offsets, times = release.outcome.corners()
    if not 0 < len(times) <= MOST:
        return None
    frame = frame_of(release.grid)
    starts, sizes = offsets[:-1], np.diff(offsets)
    steps = np.floor((xy - [frame["xmin"], frame["ymin"]]) / frame["cell"] * STEPS).astype(np.int64)
    corner = np.minimum.reduceat(steps, starts) // STEPS  # column and row of the lower left cell
    steps -= np.repeat(corner * STEPS, sizes, axis=0)
    return _packed_by_shape(steps, starts, sizes, corner, times)


def _packed_by_shape(
    steps: NDArray[np.int64],
    starts: NDArray[np.int64],
    sizes: NDArray[np.int64],
    corner: NDArray[np.int64],
    times: NDArray[np.int64],
) -> bytes:
    known: dict[bytes, int] = {}
    numbers = np.array(
        [
            known.setdefault(steps[at : at + n].tobytes(), len(known))
            for at, n in zip(starts.tolist(), sizes.tolist(), strict=True)
        ]
    )
    outlines = [np.frombuffer(raw, np.int64).reshape(-1, 2) for raw in known]
    # A place may lie beside the area: rows and columns are counted from the lowest.
    key = np.column_stack([corner[:, ::-1], numbers])
    at, which = np.unique(key, axis=0, return_inverse=True)
    times = np.bincount(which.ravel(), times).astype(np.int64)
    low = np.minimum(at[:, :2].min(axis=0), 0)
    rows, cols = (at[:, :2] - low).T
    points = np.concatenate(outlines)
    parts = (
        np.array([len(outline) for outline in outlines]),
        *(points[:, 1], points[:, 0]),
        *(at[:, 2], np.diff(rows, prepend=0), cols, times),
        -low,
    )
    return b"".join(map(packed, parts))
