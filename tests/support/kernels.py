"""The kernels called by hand: bodies in lattice steps -> outlines -> what each touches."""

from __future__ import annotations

import numpy as np

from dpregions.geometry import hull_kernel, touch_kernel
from support.oracle import UNIT


def outlines_of_steps(bodies, shape=(4, 4), bound=-1, drop=False):
    """Return the kernel's outlines of bodies given in steps, on unit cells at the origin."""
    coords = np.array([p for body in bodies for p in body], dtype=np.float64) / UNIT
    starts = np.concatenate([[0], np.cumsum([len(body) for body in bodies])])
    return hull_kernel.outlines(coords.reshape(-1, 2), starts, 0.0, 0.0, 1.0, *shape, bound, drop)


def patterns(xy, offsets, shape):
    """Return the doubled array that each outline adds, by itself."""
    n, (n_rows, n_cols) = offsets.size - 1, shape
    steps = np.zeros((n, 2 * n_rows - 1, 2 * n_cols), np.int64)
    for i in range(n):
        touch_kernel.add_bodies(xy, offsets[i : i + 2], n_rows, n_cols, steps[i])
    return np.cumsum(steps, axis=2)[..., :-1]


def touched_by_kernel(bodies, shape):
    """Return the doubled array of what each body in steps touches, by the kernel."""
    return patterns(*outlines_of_steps(bodies, shape), shape)
