"""Exact order-constrained fits: the histogram nearest to a noisy one, vertex <= edge <= face.

Owns the two programs of the paper's LinProg step: an edge is at most each of its two faces, a
vertex at most each of its edges, every count is at least 0. C3 (faces - edges + vertex >= 0 about
every vertex) then holds by itself: pair each of its edges with a face of its own. On a doubled grid
array (even/even = face, odd/odd = vertex, mixed = edge) places say what lies above what; on any
other partition lists do. Both have one bisection, and give one result where both hold.
It must never see anything but noisy counts, and never approximate: no tolerance, no seed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from dpregions.geometry.doubled import doubled_array

# Threshold decomposition, the lemma under every L1 function here. Write |x - y| as the measure of
# the levels t at which exactly one of x >= t and y >= t holds. Summed over components, the L1
# distance splits into one cost per level, and only through the up-set U(t) = {x >= t}. So x is a
# fit exactly when each U(t) is a cheapest up-set of its level: a minimum cut. The smallest
# cheapest up-sets shrink as t grows, and so do the largest: they are the level sets of the lowest
# and of the highest fit. Three consequences:
# - Levels between two neighbouring input values share one cost, so only input values matter, and
#   rounding a fit of integers down gives a fit: it has the same level sets at integer t.
# - x >= 0 only forces U(t) to be everything for t <= 0. The levels above 0 do not tell y from
#   max(y, 0), so cutting the input at 0, or cutting the free fit at 0, is exact.
# - U(t) known, its inside is settled by the levels above t, its outside by those below: bisect.


def fit_l1(noisy: ArrayLike) -> NDArray[Any]:
    """Fit the order V <= E <= F and x >= 0 with the least sum of absolute changes.

    The program has many optima; this is the mean of the lowest and the highest one, rounded
    down for integer input, which is an optimum again.

    Parameters
    ----------
    noisy : array_like
        Doubled grid array of shape ``(2R-1, 2C-1)``: integers or finite floats, any sign.

    Returns
    -------
    ndarray
        Same shape; int64 for integer input, float64 for float input.

    Raises
    ------
    InputError
        If the shape is not that of a doubled grid, or a value is not finite or too large.
    InputTypeError
        If the input is not an array of real numbers.

    Examples
    --------
    A vertex above everything around it costs least when it alone gives way:

    >>> fit_l1([[2, 1, 2], [1, 9, 1], [2, 1, 2]])
    array([[2, 1, 2],
           [1, 1, 1],
           [2, 1, 2]])
    """
    return middle_fit(*l1_range(noisy))


def middle_fit(lowest: NDArray[Any], highest: NDArray[Any]) -> NDArray[Any]:
    """Return the mean of the lowest and the highest L1 fit, for integers its floor."""
    # Integers must not overflow. Float addition and halving round monotonically, so the mean of
    # floats keeps the order, which low + (high - low) / 2 might not.
    whole = lowest.dtype == np.int64
    mean: NDArray[Any] = lowest + (highest - lowest) // 2 if whole else (lowest + highest) / 2
    return mean


def l1_range(noisy: ArrayLike) -> tuple[NDArray[Any], NDArray[Any]]:
    """Find the lowest and the highest of all L1 fits; every other lies between them.

    Parameters
    ----------
    noisy : array_like
        As for `fit_l1`.

    Returns
    -------
    lowest, highest : ndarray
        Both are fits themselves, and all their values occur in ``max(noisy, 0)``.
    """
    values, rank, top = _ranks(doubled_array(noisy))
    lowest = _lowest(rank.ravel(), rank.shape[1], top.bit_length())
    # Highest fit = lowest fit upside down: values negated, order reversed, faces at the bottom.
    # One more border row moves the faces to odd/odd, where `_lowest` expects the bottom; the
    # border itself is on top of the reversed order with the top value, so it constrains nothing.
    flipped = np.pad(top - rank, 1, constant_values=top)
    highest = top - _lowest(flipped.ravel(), flipped.shape[1], top.bit_length())
    highest = highest.reshape(flipped.shape)[1:-1, 1:-1]
    return values[lowest.reshape(rank.shape)], values[highest]


def listed_l1_range(
    noisy: NDArray[Any], above: tuple[Any, Any], below: tuple[Any, Any]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Find what `l1_range` does, of counts in a row and lists of which lie above and below which.

    Parameters
    ----------
    noisy : array
        Checked counts, int64 or float64.
    above, below : pairs of arrays
        Offsets and members: all components above (below) component u, not only the next, are
        ``members[offsets[u]:offsets[u + 1]]``.
    """
    values, rank, top = _ranks(noisy)
    lowest = _listed_lowest(rank, *above, top.bit_length())
    highest = top - _listed_lowest(top - rank, *below, top.bit_length())
    return values[lowest], values[highest]


def _ranks(noisy: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any], int]:
    """Return the distinct values of max(noisy, 0), which one each count is, and the last."""
    counts = np.maximum(noisy, 0)
    values, rank = np.unique(counts, return_inverse=True)
    index = np.int32 if counts.size < 2**30 else np.int64
    return values, rank.reshape(counts.shape).astype(index), len(values) - 1


def fit_linf(noisy: ArrayLike) -> NDArray[np.float64]:
    """Fit the order V <= E <= F and x >= 0 with the least largest change.

    At each component: the mean of the largest value at or below it in the order and the smallest
    value at or above it, cut at 0.

    Parameters
    ----------
    noisy : array_like
        As for `fit_l1`.

    Returns
    -------
    ndarray
        Same shape, float64: integer input gives whole and half numbers, exact below ``2**52``.

    Raises
    ------
    InputError, InputTypeError
        As for `fit_l1`.

    Examples
    --------
    >>> fit_linf([[4, 3, 4], [3, 8, 3], [4, 3, 4]])
    array([[6. , 5.5, 6. ],
           [5.5, 5.5, 5.5],
           [6. , 5.5, 6. ]])
    """
    # No fit changes less than h = half the largest fall y_u - y_v over u <= v, nor, as x >= 0,
    # less than -y_v. The mean changes at most h: below <= y + 2h and above >= y - 2h, while
    # above <= y <= below. Cutting the mean at 0 moves it past y only where y < 0, to distance
    # -y. (Cutting y first would not do: vertex 10 over edges -10 must become 0, not 5.)
    below = doubled_array(noisy).astype(np.float64)
    above = below.copy()
    # What lies below a face is its 3 x 3 block, below an edge its three-entry line: both are a
    # pass over columns after a pass over rows. Even lines are above odd ones.
    for axis in (0, 1):
        highs, lows = below.swapaxes(0, axis), above.swapaxes(0, axis)
        for side in (slice(None, -1, 2), slice(2, None, 2)):
            np.maximum(highs[side], highs[1::2], out=highs[side])
            np.minimum(lows[1::2], lows[side], out=lows[1::2])
    below += above
    below /= 2
    return np.maximum(below, 0, out=below)


def listed_linf(
    noisy: NDArray[Any], above: tuple[Any, Any], below: tuple[Any, Any]
) -> NDArray[np.float64]:
    """Fit as `fit_linf` does, counts in a row by lists as for `listed_l1_range`."""
    fit: NDArray[np.float64] = _listed_mean(noisy.astype(np.float64), *above, *below)
    return fit


@njit(cache=True, nogil=True)
def _listed_mean(counts, above, above_members, below, below_members):  # type: ignore[no-untyped-def]
    """Return the mean of the most below and the least above each component, cut at 0."""
    fit = np.empty_like(counts)
    for u in range(counts.size):
        most = least = counts[u]
        for k in range(below[u], below[u + 1]):
            most = max(most, counts[below_members[k]])
        for k in range(above[u], above[u + 1]):
            least = min(least, counts[above_members[k]])
        fit[u] = max((most + least) / 2, 0.0)
    return fit


# The lowest L1 fit of values 0 .. 2**bits - 1, by bisection. `fit` holds the bits settled so far,
# highest first; two components are in the same open block when these agree. A round settles the
# next bit of every block at once. Its level makes each component a source (at or above the level;
# its bit set) or a sink (below); a source under a sink of its block is a conflict, and the
# components that an up-set puts on the wrong side are a cover of the conflicts. So a cheapest
# up-set is a smallest cover, which a maximum matching of sources and sinks finds (Koenig): the
# smallest one is what alternating paths reach from the unmatched sources.


@njit(cache=True, nogil=True)
def _open_round(rank, bit, fit, mate, via):  # type: ignore[no-untyped-def]
    """Set the bit of every source, and keep the pairs of the last round that are in conflict."""
    for u in range(rank.size):
        via[u] = -1
        if rank[u] >= fit[u] + bit:
            fit[u] += bit
    # No cut parts a matched pair, so the pairs of the last round are still in one block:
    # those still in conflict stay matched.
    for u in range(rank.size):
        if mate[u] >= 0 and fit[u] == fit[mate[u]]:
            mate[u] = -1


@njit(cache=True, nogil=True)
def _close_round(bit, fit, mate, via):  # type: ignore[no-untyped-def]
    """Move what the smallest cover moves: sinks on paths, sources whose mates are on none."""
    for u in range(fit.size):
        if not fit[u] & bit:
            if via[u] >= 0:
                fit[u] += bit
        elif mate[u] >= 0 and via[mate[u]] < 0:
            fit[u] -= bit


@njit(cache=True, nogil=True)
def _lowest(rank, width, bits):  # type: ignore[no-untyped-def]
    """Lowest L1 fit on a flat doubled array."""
    fit = np.zeros_like(rank)
    mate = np.full_like(rank, -1)
    via = np.empty_like(rank)
    queue = np.empty_like(rank)
    for shift in range(bits - 1, -1, -1):
        bit = 1 << shift
        _open_round(rank, bit, fit, mate, via)
        for u in range(rank.size):
            if fit[u] & bit and mate[u] < 0:
                _match(u, fit, bit, mate, via, queue, width)
        _close_round(bit, fit, mate, via)
    return fit


@njit(cache=True, nogil=True)
def _listed_lowest(rank, above, members, bits):  # type: ignore[no-untyped-def]
    """Lowest L1 fit by lists of what lies above."""
    fit = np.zeros_like(rank)
    mate = np.full_like(rank, -1)
    via = np.empty_like(rank)
    queue = np.empty_like(rank)
    for shift in range(bits - 1, -1, -1):
        bit = 1 << shift
        _open_round(rank, bit, fit, mate, via)
        for u in range(rank.size):
            if fit[u] & bit and mate[u] < 0 and above[u] < above[u + 1]:
                _listed_match(u, fit, bit, mate, via, queue, above, members)
        _close_round(bit, fit, mate, via)
    return fit


@njit(cache=True, nogil=True)
def _match(source, fit, bit, mate, via, queue, width):  # type: ignore[no-untyped-def]
    """Match `source` to a sink along a shortest alternating path, or leave its search in `via`.

    `via[v]` is the source from which sink v was reached. A search that fails keeps its marks: no
    later path can pass there, since it would have to end at a free sink. So failures cost
    linear time in all. A success of length L looks at O(L**2) entries, as each step goes to a
    neighbour on the grid, and shortest paths are short: O(n log(n)**2) in total for n sources
    (Bernstein, Holm and Rotenberg, J. ACM 66(5), 2019).
    """
    seen = done = 0
    u = source
    while True:
        # Above an odd row or column lie both its neighbours and itself: a vertex has all eight
        # components around it above, an edge two, a face none. u itself never is its own sink.
        rows, columns = u // width % 2, u % width % 2
        for i in range(-rows, rows + 1):
            for j in range(-columns, columns + 1):
                v = u + i * width + j
                if fit[v] != fit[u] - bit or via[v] >= 0:
                    continue
                via[v] = u
                queue[seen] = v
                seen += 1
                if mate[v] < 0:
                    _turn_path(v, seen, mate, via, queue)
                    return
        if done == seen:
            return
        u = mate[queue[done]]
        done += 1


@njit(cache=True, nogil=True)
def _listed_match(source, fit, bit, mate, via, queue, above, members):  # type: ignore[no-untyped-def]
    """Do what `_match` does, by lists of what lies above."""
    seen = done = 0
    u = source
    while True:
        for k in range(above[u], above[u + 1]):
            v = members[k]
            if fit[v] != fit[u] - bit or via[v] >= 0:
                continue
            via[v] = u
            queue[seen] = v
            seen += 1
            if mate[v] < 0:
                _turn_path(v, seen, mate, via, queue)
                return
        if done == seen:
            return
        u = mate[queue[done]]
        done += 1


@njit(cache=True, nogil=True, inline="always")  # a call costs a third of the fit
def _turn_path(v, seen, mate, via, queue):  # type: ignore[no-untyped-def]
    """Match along the path that ends at the free sink v, and take the search's marks away."""
    while v >= 0:
        u = via[v]
        mate[v], mate[u], v = u, v, mate[u]
    for k in range(seen):
        via[queue[k]] = -1
