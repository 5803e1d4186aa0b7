"""The hot loops of region extraction (numba): where one user's fixes are densest.

Owns the Gaussian kernel density (Scott's rule) at a user's own fixes, its mode, and which
fixes stay near it. One user at a time: nothing here may see two users together, and nothing
may depend on the order of the fixes, so everything starts from `distinct_sorted`.

The mode is the exact argmax at a cost linear in the number of fixes. A density on a grid with
a proven error bound (`_grid_density`) rules out all fixes but a few, and only those are summed
kernel by kernel.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeVar

import numpy as np

if TYPE_CHECKING:
    from dpregions.arrays import Floats, Ints

    F = TypeVar("F")

    def _compiled(function: F) -> F: ...
    def _compiled_fast(function: F) -> F: ...

else:
    from numba import njit

    _compiled = njit(cache=True, nogil=True, error_model="numpy")
    # Reordered sums are allowed only where an error bound, not the last bit, is relied on.
    _compiled_fast = njit(cache=True, nogil=True, error_model="numpy", fastmath=True)

POINTS = 10  # interpolation points per axis; even
STEP = 0.25  # distance of grid nodes, in bandwidths
REACH = 6.5  # kernels are cut off here, in bandwidths: exp(-REACH**2 / 2) is 7e-10
BLOCK = 48.0  # largest side of one grid, in bandwidths
DIRECT = 200  # up to so many distinct fixes, summing all pairs is quicker than a grid
TIED = 1e-12  # densities this close, relatively, are equal: rounding differs by less
TAYLOR = 9  # terms per axis of the local series
CELL = 1 / 16  # side of the local series' cells, in bandwidths
PLATEAU = 64  # cells of candidates looked into at most

_OFFSETS = [a - (POINTS // 2 - 1) for a in range(POINTS)]
_LAGRANGE = np.array([1.0 / math.prod(a - b for b in _OFFSETS if b != a) for a in _OFFSETS])
_TAPS = np.exp(-0.5 * (STEP * np.arange(int(REACH / STEP) + 1)) ** 2)


def grid_error_bound() -> float:
    """Return a bound on the error of `_grid_density`, for fixes of total weight 1.

    In one dimension, interpolating a unit Gaussian g from p equidistant nodes errs by at most
    ``e = max|g^(p)| / p! * prod((i - 1/2)**2) * step**p`` with ``max|g^(p)| = (p - 1)!!``.
    Interpolating on both sides, source and target, errs by at most ``(1 + L) * e``, L the
    Lebesgue constant of the middle interval; and the product of two dimensions by about
    twice that. Cutting the kernel off adds the last two terms.
    """
    half = POINTS // 2
    t = np.linspace(0.0, 1.0, 1001)
    factors = np.array([np.prod([t - b for b in _OFFSETS if b != a], axis=0) for a in _OFFSETS])
    lebesgue = float(np.abs(factors * _LAGRANGE[:, None]).sum(axis=0).max())
    nodes = math.prod((i - 0.5) ** 2 for i in range(1, half + 1)) * STEP**POINTS
    one_sided = math.prod(range(1, POINTS, 2)) / math.factorial(POINTS) * nodes
    cut = lebesgue**2 * math.exp(-0.5 * REACH**2)
    in_one_dimension = (1.0 + lebesgue) * one_sided + cut
    return 2.0 * in_one_dimension + in_one_dimension**2


# Twice the proven bound: rounding in the grid's sums (about 1e-13) is far inside the margin.
_GRID_ERROR = 2.0 * grid_error_bound()


# Loops, not array expressions, below: these compile in seconds, those in most of a minute.


@_compiled
def _ascending(values: Floats) -> Ints:
    """Return the stable order of the values (one sort, compiled once for all uses)."""
    return np.argsort(values, kind="mergesort")


@_compiled
def _span(values: Floats, which: Ints) -> tuple[float, float]:
    """Return the least and the greatest of the chosen values."""
    low = high = values[which[0]]
    for i in which:
        low, high = min(low, values[i]), max(high, values[i])
    return low, high


@_compiled
def distinct_sorted(x: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the distinct coordinates sorted by (x, y), and how many fixes each stands for."""
    by_y = _ascending(y)
    order = by_y[_ascending(x[by_y])]
    ux, uy, weight = np.empty(x.size), np.empty(x.size), np.empty(x.size)
    m = 0
    for i in order:
        if m > 0 and x[i] == ux[m - 1] and y[i] == uy[m - 1]:
            weight[m - 1] += 1.0
        else:
            ux[m], uy[m], weight[m] = x[i], y[i], 1.0
            m += 1
    return ux[:m], uy[:m], weight[:m]


@_compiled
def _moments(x: Floats, y: Floats, weight: Floats) -> tuple[float, float, float, float, float]:
    """Return the weighted means and the summed squares about them: xx, xy, yy."""
    n = mean_x = mean_y = 0.0
    for i in range(x.size):
        n += weight[i]
        mean_x += weight[i] * x[i]
        mean_y += weight[i] * y[i]
    mean_x, mean_y = mean_x / n, mean_y / n
    xx = xy = yy = 0.0
    for i in range(x.size):
        dx, dy = x[i] - mean_x, y[i] - mean_y
        xx += weight[i] * dx * dx
        xy += weight[i] * dx * dy
        yy += weight[i] * dy * dy
    return mean_x, mean_y, xx, xy, yy


@_compiled
def whitened(x: Floats, y: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Return the fixes in units of the kernel: between them it is ``exp(-distance**2 / 2)``.

    The kernel's covariance is that of the fixes times ``n**(-1/3)`` (Scott's rule in two
    dimensions). Where the fixes spread in one direction only, up to the rounding of their
    coordinates, the other axis is 0: the density along that line, as a kernel of any width
    across it gives. Fixes in one place are all at the origin.
    """
    n = 0.0
    largest = 0.0
    zx, zy = np.empty(x.size), np.empty(x.size)
    for i in range(x.size):
        n += weight[i]
        largest = max(largest, abs(x[i]), abs(y[i]))
        # About one of the user's own fixes: exact enough far from the origin.
        zx[i], zy[i] = x[i] - x[0], y[i] - y[0]
    mean_x, mean_y, xx, xy, yy = _moments(zx, zy, weight)
    # Turned along the spread, so that a thin spread is not lost to cancellation.
    angle = 0.5 * math.atan2(2.0 * xy, xx - yy)
    c, s = math.cos(angle), math.sin(angle)
    for i in range(x.size):
        dx, dy = zx[i] - mean_x, zy[i] - mean_y
        zx[i], zy[i] = c * dx + s * dy, c * dy - s * dx
    _, _, xx, xy, yy = _moments(zx, zy, weight)
    scott = n ** (-1.0 / 3.0) / max(n - 1.0, 1.0)
    rounding = 64.0 * 2.0**-52 * largest
    along, across = math.sqrt(xx * scott), 0.0
    slope = 0.0
    if along > rounding:
        slope = xy / xx
        across = math.sqrt(max(yy - xy * slope, 0.0) * scott)
    for i in range(x.size):
        dx, dy = zx[i], zy[i]
        zx[i] = dx / along if along > rounding else 0.0
        zy[i] = (dy - slope * dx) / across if across > max(rounding, 1e-12 * along) else 0.0
    return zx, zy


@_compiled
def all_pairs_density(zx: Floats, zy: Floats, weight: Floats) -> Floats:
    """Return the sum of kernels at every fix, from all pairs."""
    density = weight.copy()
    for i in range(zx.size):
        for j in range(i):
            kernel = math.exp(-0.5 * ((zx[i] - zx[j]) ** 2 + (zy[i] - zy[j]) ** 2))
            density[i] += weight[j] * kernel
            density[j] += weight[i] * kernel
    return density


@_compiled_fast
def _interpolation(t: float, out: Floats, before: Floats) -> None:
    """Write the Lagrange weights of `POINTS` nodes at `t` in their middle interval [0, 1)."""
    product = 1.0
    for a in range(POINTS):
        before[a] = product
        product *= t - (a - (POINTS // 2 - 1))
    product = 1.0
    for a in range(POINTS - 1, -1, -1):
        out[a] = before[a] * product * _LAGRANGE[a]
        product *= t - (a - (POINTS // 2 - 1))


@_compiled_fast
def _blurred_rows(grid: Floats) -> Floats:
    """Return the grid convolved with the kernel across its rows, and transposed."""
    rows, columns = grid.shape
    out, line = np.empty((columns, rows)), np.empty(columns)
    for r in range(rows):
        line[:] = grid[r]
        for d in range(1, _TAPS.size):
            tap = _TAPS[d]
            below, above = r - d, r + d
            if below >= 0 and above < rows:
                for j in range(columns):
                    line[j] += tap * (grid[below, j] + grid[above, j])
            elif below >= 0 or above < rows:
                other = below if below >= 0 else above
                for j in range(columns):
                    line[j] += tap * grid[other, j]
            else:
                break
        out[:, r] = line
    return out


@_compiled_fast
def _grid_density(
    zx: Floats, zy: Floats, weight: Floats, sources: Ints, targets: Ints, out: Floats
) -> None:
    """Write the density at `targets` that `sources` make, within `grid_error_bound`.

    Each source is spread to the nodes around it by interpolation weights, the grid is
    convolved with the kernel, and each target is interpolated from the nodes around it.
    `sources` must hold `targets`.
    """
    x0, x1 = _span(zx, sources)
    y0, y1 = _span(zy, sources)
    rows, columns = int((x1 - x0) / STEP) + 1 + POINTS, int((y1 - y0) / STEP) + 1 + POINTS
    grid = np.zeros((rows, columns))
    along, across, scratch = np.empty(POINTS), np.empty(POINTS), np.empty(POINTS)
    for i in sources:
        u, v = (zx[i] - x0) / STEP, (zy[i] - y0) / STEP
        r, c = int(u), int(v)
        _interpolation(u - r, along, scratch)
        _interpolation(v - c, across, scratch)
        for p in range(POINTS):
            share = along[p] * weight[i]
            for q in range(POINTS):
                grid[r + p, c + q] += share * across[q]
    grid = _blurred_rows(_blurred_rows(grid))
    for i in targets:
        u, v = (zx[i] - x0) / STEP, (zy[i] - y0) / STEP
        r, c = int(u), int(v)
        _interpolation(u - r, along, scratch)
        _interpolation(v - c, across, scratch)
        density = 0.0
        for p in range(POINTS):
            part = 0.0
            for q in range(POINTS):
                part += grid[r + p, c + q] * across[q]
            density += part * along[p]
        out[i] = density


@_compiled
def _within(zx: Floats, zy: Floats, targets: Ints) -> Ints:
    """Return the fixes that can reach any of the targets."""
    left, right = _span(zx, targets)
    low, high = _span(zy, targets)
    near = np.empty(zx.size, np.int64)
    m = 0
    for i in range(zx.size):
        if (
            left - REACH <= zx[i] <= right + REACH  # nothing beyond matters
            and low - REACH <= zy[i] <= high + REACH
        ):
            near[m] = i
            m += 1
    return near[:m]


@_compiled
def _approximate_density(zx: Floats, zy: Floats, weight: Floats) -> Floats:
    """Return the density within the grid's error, or -1 where the mode cannot be.

    Outliers can stretch the plane over thousands of bandwidths, so it is cut into blocks.
    The densest go first; a block is skipped when all fixes that can reach it together weigh
    less than a density already found.
    """
    everyone = np.arange(zx.size)
    x0, x1 = _span(zx, everyone)
    y0, y1 = _span(zy, everyone)
    columns, rows = int((x1 - x0) / BLOCK) + 1, int((y1 - y0) / BLOCK) + 1
    density = np.full(zx.size, -1.0)
    if columns == 1 and rows == 1:
        _grid_density(zx, zy, weight, everyone, everyone, density)
        return density
    # A margin of empty blocks all around spares the neighbours' sum its edge cases.
    block = np.empty(zx.size, np.int64)
    mass = np.zeros((columns + 2) * (rows + 2))
    total = 0.0
    for i in range(zx.size):
        column = int((zx[i] - x0) / (x1 - x0) * columns) if columns > 1 else 0
        row = int((zy[i] - y0) / (y1 - y0) * rows) if rows > 1 else 0
        block[i] = (min(column, columns - 1) + 1) * (rows + 2) + min(row, rows - 1) + 1
        mass[block[i]] += weight[i]
        total += weight[i]
    found = 0.0
    for b in _ascending(-mass):
        if mass[b] == 0.0:
            break
        reaching = 2.0 * _GRID_ERROR * total
        for column in range(-1, 2):
            for row in range(-1, 2):
                reaching += mass[b + column * (rows + 2) + row]
        if reaching >= found:
            targets = np.flatnonzero(block == b)
            _grid_density(zx, zy, weight, _within(zx, zy, targets), targets, density)
            found = max(found, _span(density, targets)[1])
    return density


@_compiled
def _summed_density(zx: Floats, zy: Floats, weight: Floats, px: float, py: float) -> float:
    density = 0.0
    for j in range(zx.size):
        density += weight[j] * math.exp(-0.5 * ((zx[j] - px) ** 2 + (zy[j] - py) ** 2))
    return density


@_compiled
def _series_density(zx: Floats, zy: Floats, weight: Floats, targets: Ints, out: Floats) -> None:
    """Write the density at targets in one cell of side `CELL`, from its Taylor series there.

    For many fixes in one spot. Truncation is below rounding: with |d| <= 1/32 an axis errs by
    ``max|He_9| / 9! * |d|**9``, about 1e-16 of a kernel.
    """
    left, right = _span(zx, targets)
    low, high = _span(zy, targets)
    cx, cy = 0.5 * (left + right), 0.5 * (low + high)
    series = np.zeros((TAYLOR, TAYLOR))
    a, b = np.empty(TAYLOR), np.empty(TAYLOR)
    for j in range(zx.size):
        u, v = cx - zx[j], cy - zy[j]
        a[0], b[0] = weight[j] * math.exp(-0.5 * (u * u + v * v)), 1.0
        a[1], b[1] = -u * a[0], -v
        for p in range(2, TAYLOR):
            a[p] = -(u * a[p - 1] + a[p - 2]) / p
            b[p] = -(v * b[p - 1] + b[p - 2]) / p
        for p in range(TAYLOR):
            for q in range(TAYLOR):
                series[p, q] += a[p] * b[q]
    for i in targets:
        u, v = zx[i] - cx, zy[i] - cy
        density = 0.0
        for p in range(TAYLOR - 1, -1, -1):
            part = 0.0
            for q in range(TAYLOR - 1, -1, -1):
                part = part * v + series[p, q]
            density = density * u + part
        out[i] = density


@_compiled
def _refined(zx: Floats, zy: Floats, weight: Floats, rough: Floats, candidates: Ints) -> Floats:
    """Return densities to rounding at `candidates`, by sum or by local series; -1 elsewhere.

    Candidates are taken cell by cell, the most promising first. Real fixes need a few cells; a
    plateau (a ring, a lattice) would need thousands, all equal but for the grid's error, so
    after `PLATEAU` cells the rest is let go.
    """
    density = np.full(zx.size, -1.0)
    y0, y1 = _span(zy, candidates)
    x0 = _span(zx, candidates)[0]
    cell = np.empty(candidates.size)
    for c in range(candidates.size):
        i = candidates[c]
        column, row = math.floor((zx[i] - x0) / CELL), math.floor((zy[i] - y0) / CELL)
        cell[c] = column * (math.floor((y1 - y0) / CELL) + 1.0) + row
    order = _ascending(cell)
    first, best = np.empty(candidates.size + 1, np.int64), np.empty(candidates.size)
    groups = 0
    for c in range(candidates.size):
        if c == 0 or cell[order[c]] != cell[order[c - 1]]:
            first[groups], best[groups] = c, 0.0
            groups += 1
        best[groups - 1] = min(best[groups - 1], -rough[candidates[order[c]]])
    first[groups] = candidates.size
    for g in _ascending(best[:groups])[:PLATEAU]:
        group = candidates[order[first[g] : first[g + 1]]]
        if group.size > 8:
            _series_density(zx, zy, weight, group, density)
        else:
            for i in group:
                density[i] = _summed_density(zx, zy, weight, zx[i], zy[i])
    return density


@_compiled
def mode_index(zx: Floats, zy: Floats, weight: Floats) -> int:
    """Return which of the whitened fixes is densest; of equally dense ones, the first."""
    if zx.size <= DIRECT:
        density = all_pairs_density(zx, zy, weight)
    else:
        rough = _approximate_density(zx, zy, weight)
        least = rough.max() - 2.0 * _GRID_ERROR * weight.sum()
        candidates = np.flatnonzero(rough >= max(least, 0.0))
        density = _refined(zx, zy, weight, rough, candidates)
    least = density.max() * (1.0 - TIED)
    for i in range(zx.size):
        if density[i] >= least:
            return i
    return 0


@_compiled
def near_mode(
    x: Floats, y: Floats, weight: Floats, mode: int, k: int, radius: float, diameter: float
) -> Ints:
    """Return the distinct fixes among the k nearest the mode and within `radius` of it.

    Of fixes equally far the first in (x, y) is nearer. Two fixes opposite each other at just
    the radius can be farther apart than `diameter` by rounding; then all at the rim go.
    """
    inside, square = np.empty(x.size, np.int64), np.empty(x.size)
    m = 0
    for i in range(x.size):
        square[m] = (x[i] - x[mode]) ** 2 + (y[i] - y[mode]) ** 2
        if square[m] <= radius * radius:
            inside[m] = i
            m += 1
    order = _ascending(square[:m])
    kept, rim = 0, 0
    count = 0.0
    while kept < m and count < k:
        count += weight[inside[order[kept]]]
        rim += square[order[kept]] >= radius * radius * (1.0 - 1e-12)
        kept += 1
    nearest = inside[order[:kept]]
    for i in nearest[kept - rim :]:
        for j in nearest[kept - rim :]:
            dx, dy = x[i] - x[j], y[i] - y[j]
            if math.hypot(dx, dy) > diameter or math.sqrt(dx * dx + dy * dy) > diameter:
                return nearest[: kept - rim]
    return nearest


@_compiled
def extract(
    x: Floats,
    y: Floats,
    bounds: Ints,
    k: int,
    radius: float,
    diameter: float,
    slots: Ints,
    out: Floats,
    counts: Ints,
) -> None:
    """Write the fixes each group keeps to its slots of `out`, and how many to `counts`.

    Group g holds fixes ``bounds[g]:bounds[g + 1]`` and owns the rows of `out` from
    ``slots[g]``, at least min(k, its fixes) of them.
    """
    for g in range(bounds.size - 1):
        ux, uy, weight = distinct_sorted(x[bounds[g] : bounds[g + 1]], y[bounds[g] : bounds[g + 1]])
        zx, zy = whitened(ux, uy, weight)
        mode = mode_index(zx, zy, weight)
        kept = near_mode(ux, uy, weight, mode, k, radius, diameter)
        for i in range(kept.size):
            out[slots[g] + i, 0], out[slots[g] + i, 1] = ux[kept[i]], uy[kept[i]]
        counts[g] = kept.size


def nearest_the_mode(xy: Floats, k: int) -> tuple[Floats, Floats]:
    """Return the mode of some fixes, and the distinct ones among the k nearest it."""
    ux, uy, weight = distinct_sorted(xy[:, 0].copy(), xy[:, 1].copy())
    mode = mode_index(*whitened(ux, uy, weight), weight)
    places = np.column_stack([ux, uy])
    reach = np.sqrt(((places - places[mode]) ** 2).sum(axis=1).max())
    return places[mode], places[near_mode(ux, uy, weight, mode, k, 2 * reach + 1, np.inf)]
