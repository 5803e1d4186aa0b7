"""What the border walk must find, without a walk: every bucket weighed, every part gone through."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpregions.geometry.cells import Selection
from dpregions.geometry.grid import Grid
from dpregions.mechanisms.footprint.border import Parts
from dpregions.mechanisms.footprint.buckets import Buckets
from dpregions.mechanisms.footprint.fits import combine, shares_of, signed_fit
from dpregions.mechanisms.footprint.reading import Reading
from dpregions.mechanisms.least_squares import sums


class Wanted(NamedTuple):
    estimate: np.ndarray
    variance: np.ndarray
    spread: np.ndarray
    squares: np.ndarray


def by_all_buckets(reading: Reading, ranges: np.ndarray) -> Wanted:
    """The formula by which rectangles were answered before: chances of all buckets."""
    measured, expected = reading.measured, reading.expected
    tree, finest = measured.hierarchy, measured.finest
    chance = chances(tree.buckets, ranges)
    estimate = chance @ signed_fit(measured, expected)
    held = reading.held
    if finest < len(tree.levels) - 1:
        part, n = tree.part[finest], tree.sizes[finest]
        held = np.bincount(part, held, n)
        share = by_row(part, chance * expected, n) / np.bincount(part, expected, n)
    else:
        share = chance
    either = np.maximum(share * (1 - share), 0)
    return Wanted(estimate, variance(reading, chance), either @ held, either @ held**2)


def chances(buckets: Buckets, ranges: np.ndarray) -> np.ndarray:
    """The chance that a body in each bucket touches each rectangle of cells, all by masks."""
    grid, chosen = Grid(0, 0, 1, buckets.n_rows, buckets.n_cols), Selection(ranges)
    return np.array([buckets.weigh(chosen.signs(i, grid)) for i in range(ranges.shape[1])])


def variance(reading: Reading, chance: np.ndarray) -> np.ndarray:
    """The variance of weighted sums of buckets, from the bottom up, through every part."""
    tree, spread = reading.measured.hierarchy, combine(reading.measured)[1]
    slope = np.zeros_like(chance)
    slope[:, tree.part[-1]] = chance
    rest = np.zeros_like(slope)
    for level in range(len(tree.levels) - 1, 0, -1):
        up, n, s = tree.parent[level - 1], tree.sizes[level - 1], spread[level]
        if np.isinf(s).any():
            slope = by_row(up, slope * shares_of(tree, level, reading.expected), n)
            rest = np.zeros_like(slope)
        else:
            whole = sums(up, s, n)
            mean = by_row(up, slope * s, n) / whole
            rest = by_row(up, rest + slope**2 * s, n) - mean**2 * whole
            slope = mean
    return np.maximum((rest + slope**2 * spread[0]).sum(axis=1), 0)


def by_row(part: np.ndarray, values: np.ndarray, n: int) -> np.ndarray:
    return np.array([np.bincount(part, row, n) for row in values])


def plain_tree(parent: np.ndarray, nodes: np.ndarray) -> Parts:
    """Nodes with their children side by side and nothing between."""
    found, order, depth = nodes.copy(), [0], np.ones(len(nodes), np.int64)
    below: list[list[int]] = [[] for _ in nodes]
    for i, up in enumerate(parent[1:].tolist(), start=1):
        below[up].append(i)
    for at, i in enumerate(order):
        found[at] = nodes[i]
        found["first"][at], found["n"][at] = len(order), len(below[i])
        depth[below[i]] = depth[i] + 1
        order += below[i]
    return Parts(found, int(depth.max()))


def held_in_parts(reading: Reading) -> np.ndarray:
    """What the finest measured parts hold."""
    tree, finest = reading.measured.hierarchy, reading.measured.finest
    return np.bincount(tree.part[finest], reading.held, tree.sizes[finest])
