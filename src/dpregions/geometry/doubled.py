"""The doubled array of a grid: how it is checked, made of spans, and summed over rectangles.

A grid of R x C cells has (2R-1, 2C-1) components: even/even entries are faces, odd/odd ones inner
vertices, mixed ones inner edges. Nothing here knows whether counts are secret or released.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from dpregions.errors import InputError, InputTypeError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from dpregions.geometry.outlines import Outlines


def doubled_array(counts: ArrayLike, shape: tuple[int, ...] | None = None) -> NDArray[Any]:
    """Return counts as int64 or float64 of odd sides, or say why they cannot be.

    Narrow and unsigned integers become int64: sums of them must neither wrap nor lose a sign. The
    limits keep a value's negative and the sum of two floats in range. With `shape` counts are of
    exactly that shape instead: a partition that is not a grid has them in one row.
    """
    try:
        array = np.asarray(counts)
    except ValueError as error:
        raise InputTypeError(
            f"counts must be a rectangular 2-D array of numbers: {error}"
        ) from None
    if array.dtype.kind not in "iuf":
        raise InputTypeError(f"counts must be numbers, got an array of dtype {array.dtype}")
    if shape is not None and array.shape != shape:
        raise InputError(
            f"counts of this partition have the shape {shape}, one for each face, edge and "
            f"vertex, not {array.shape}"
        )
    if shape is None and (array.ndim != 2 or array.shape[0] % 2 == 0 or array.shape[1] % 2 == 0):
        raise InputError(
            f"counts of an R x C grid have the odd shape (2R-1, 2C-1), not {array.shape}: "
            f"pass the doubled array of faces, edges and vertices, not the cells alone"
        )
    if array.dtype.kind == "f":
        array = array.astype(np.float64, copy=False)
        if not np.isfinite(array).all():
            raise InputError("counts hold NaN or infinite values: pass finite numbers")
    limit = float(np.finfo(np.float64).max) / 2 if array.dtype.kind == "f" else 2**63 - 1
    if array.max() > limit or array.min() < -limit:
        raise InputError(f"counts must be between {-limit} and {limit}")
    return array if array.dtype.kind == "f" else array.astype(np.int64, copy=False)


class SignedTable:
    """The summed-area table of a signed doubled array: F - E + V of any rectangle of cells.

    The sign of entry (i, j) is (-1)**(i+j): faces and vertices add, edges subtract. The type of
    the counts is kept: floats are added as floats.
    """

    def __init__(self, counts: NDArray[Any]) -> None:
        self.counts = counts
        self._sums = np.zeros((counts.shape[0] + 1, counts.shape[1] + 1), counts.dtype)
        inner = self._sums[1:, 1:]
        inner[...] = counts
        np.negative(inner[1::2], out=inner[1::2])
        np.negative(inner[:, 1::2], out=inner[:, 1::2])
        np.cumsum(inner, axis=0, out=inner)
        np.cumsum(inner, axis=1, out=inner)

    def rectangles(self, row0: Any, row1: Any, col0: Any, col1: Any) -> NDArray[Any]:
        """Return F - E + V inside rectangles of cells, ends included, none of them empty."""
        top, right, left, bottom = 2 * row1 + 1, 2 * col1 + 1, 2 * col0, 2 * row0
        t = self._sums
        found: NDArray[Any] = t[top, right] - t[bottom, right] - t[top, left] + t[bottom, left]
        return found

    def answers(self, rectangles: NDArray[np.int64]) -> NDArray[Any]:
        """Return F - E + V of rectangles, whose rows are ``row0, row1, col0, col1``."""
        return self.rectangles(*rectangles)

    def rectangle(self, row0: int, row1: int, col0: int, col1: int) -> Any:
        """Return what `rectangles` does, of one, as a Python number."""
        top, right, left, bottom = 2 * row1 + 1, 2 * col1 + 1, 2 * col0, 2 * row0
        at = self._sums.item
        return at(top, right) - at(bottom, right) - at(top, left) + at(bottom, left)


_COMPILED = 1 << 20
"""Lines of patterns from which on they are counted by a compiled loop; to load that takes longer
than to count fewer, and whoever only asks a release needs no compiler."""


class Edges(NamedTuple):
    """Values of a grid's inner edges by direction."""

    vertical: NDArray[Any]
    """Between a cell and its right neighbour: shape ``(n_rows, n_cols - 1)``."""
    horizontal: NDArray[Any]
    """Between a cell and its upper neighbour: shape ``(n_rows - 1, n_cols)``."""


class SpanCounts:
    """Counts of bodies on a grid while they are added: differences along the doubled rows.

    Parts are summed in any order with ``+=``; `histogram` leaves them as they are.
    """

    def __init__(self, n_rows: int, n_cols: int) -> None:
        self._shape = n_rows, n_cols
        self._steps = np.zeros((2 * n_rows - 1, 2 * n_cols), np.int64)

    def add(self, outlines: Outlines) -> None:
        """Add bodies by their outlines."""
        from dpregions.geometry.touch_kernel import add_bodies

        add_bodies(outlines.xy, outlines.offsets, *self._shape, self._steps)

    def add_patterns(
        self,
        row: NDArray[np.int64],
        col: NDArray[np.int64],
        spans: NDArray[np.int16],
        which: NDArray[np.int64],
        times: NDArray[np.int64],
    ) -> None:
        """Add bodies by their patterns: `which` of the `spans`, in the form of `footprints`.

        `row` and `col` are the lower left cells of their footprints.
        """
        if spans.shape[1] * len(which) > _COMPILED:
            from dpregions.geometry.touch_kernel import add_patterns

            add_patterns(spans, which, row, col, times, self._steps)
            return
        body, line = np.nonzero(spans[which, :, 0] <= spans[which, :, 1])
        first, last = (spans[which[body], line] + col[body, None]).T
        at = 2 * row[body] + line
        np.add.at(self._steps, (at, 2 * first), times[body])
        np.subtract.at(self._steps, (at, 2 * last + 1), times[body])

    def __iadd__(self, other: SpanCounts) -> Self:
        """Add what another part on the same grid counted."""
        self._steps += other._steps
        return self

    def __mul__(self, times: int) -> SpanCounts:
        """Return what so many bodies give where there is one."""
        made = SpanCounts(*self._shape)
        made._steps = times * self._steps
        return made

    def entries(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return where differences are not 0, and their values."""
        index = np.flatnonzero(self._steps)
        return index, self._steps.ravel()[index]

    def add_entries(self, index: NDArray[np.int64], value: NDArray[np.int64]) -> None:
        """Add differences of other parts."""
        np.add.at(self._steps.reshape(-1), index, value)

    def histogram(self) -> NDArray[np.int64]:
        """Return the doubled array of what was added."""
        return np.cumsum(self._steps, axis=1)[:, :-1]

    def settled(self) -> NDArray[np.int64]:
        """Return the doubled array in the memory of the differences: nothing can be added then."""
        whole, self._steps = self._steps, np.empty((0, 0), np.int64)
        return np.cumsum(whole, axis=1, out=whole)[:, :-1]

    @property
    def nbytes(self) -> int:
        """How much memory it holds."""
        return self._steps.nbytes
