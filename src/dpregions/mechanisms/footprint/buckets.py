"""Buckets: every region in the area falls into exactly one, so their counts have sensitivity 1.

A bucket is a letter (a footprint's size, or its whole pattern) at a place. Owns how buckets
are numbered, which bucket a region is in, how counts of buckets become an Euler array, and how
a query weighs them. All of it is public but the numbers of regions' footprints.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

from dpregions.errors import Argument, PrivacyError
from dpregions.mechanisms.footprint.shapes import groups_of_patterns
from dpregions.mechanisms.footprint.sizes import filed_under

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dpregions.arrays import Floats, Ints
    from dpregions.mechanisms.footprint.catalogue import Catalogue

Alphabet = Literal["sizes", "patterns"]

LIMIT = 1 << 23
"""Most buckets of a strategy that lists them all: each may get noise of its own, a few
microseconds a draw. A tree lists none but those it opens."""

MOST_CELLS_WIDE = 24
"""Widest footprint: beyond, the catalogue of patterns no longer fits a usual machine."""


def n_buckets_of_sizes(side: int, n_rows: int, n_cols: int) -> int:
    """Return how many buckets a grid has where letters are sizes, up to `side` cells wide."""
    tall, wide = min(side, n_rows), min(side, n_cols)
    return (tall * n_rows - tall * (tall - 1) // 2) * (wide * n_cols - wide * (wide - 1) // 2)


def can_be_listed(side: int, n_rows: int, n_cols: int) -> bool:
    """Whether a grid has few enough buckets, and narrow enough ones, for arrays of all of them."""
    return n_buckets_of_sizes(side, n_rows, n_cols) <= LIMIT and side <= MOST_CELLS_WIDE


def refuse_too_many(side: int, n_rows: int, n_cols: int) -> int:
    """Refuse a grid with too many buckets, or too wide ones, before anything is made for it.

    Return how many it has where letters are sizes.
    """
    n = n_buckets_of_sizes(side, n_rows, n_cols)
    if can_be_listed(side, n_rows, n_cols):
        return n
    limit = (
        f"{n:,} buckets, more than {LIMIT:,}"
        if n > LIMIT
        else f"footprints more than {MOST_CELLS_WIDE} cells wide, and {n:,} buckets"
    )
    raise PrivacyError(
        f"a grid of {n_rows} x {n_cols} cells with regions up to {side} cells wide has {limit}: "
        f"use larger cells, a smaller area or a smaller ",
        Argument("max_diameter"),
    )


@dataclass(frozen=True, eq=False)
class Buckets:
    """The buckets of a grid for one alphabet.

    Attributes
    ----------
    heights, widths : int64
        Of each letter's footprint.
    weights : float64
        Prior probability of each letter, over all.
    means : float64, (letters, 2 * side - 1, 2 * side - 1)
        Mean Euler array of each letter.
    starts : int64
        Letter `i` has buckets ``starts[i]:starts[i + 1]``, row by row of its lower left cell.
    """

    catalogue: Catalogue
    alphabet: Alphabet
    n_rows: int
    n_cols: int
    heights: Ints
    widths: Ints
    weights: Floats
    means: Floats
    starts: Ints

    @classmethod
    def of(cls, catalogue: Catalogue, alphabet: Alphabet, n_rows: int, n_cols: int) -> Buckets:
        """Return the buckets of a grid of `n_rows` x `n_cols` cells."""
        if alphabet == "patterns":
            h, w, means = catalogue.heights, catalogue.widths, catalogue.pattern_arrays()
            weights = catalogue.weights * catalogue.prior[h, w]
        else:
            h, w = np.nonzero(catalogue.last > catalogue.first)
            means, weights = catalogue.means_of(h, w), catalogue.prior[h, w]
        fits = (h <= n_rows) & (w <= n_cols)
        h, w, means, weights = h[fits], w[fits], means[fits], weights[fits]
        n = (n_rows - h + 1) * (n_cols - w + 1)
        starts = np.concatenate([[0], np.cumsum(n)])
        if starts[-1] > LIMIT:
            raise PrivacyError(f"{starts[-1]:,} buckets are more than {LIMIT:,}")
        return cls(catalogue, alphabet, n_rows, n_cols, h, w, weights, means, starts)

    def __len__(self) -> int:
        return int(self.starts[-1])

    def shaped_as(self, known: Catalogue) -> Buckets:
        """Return the same buckets, of sizes, with another mix of the same patterns."""
        return replace(self, catalogue=known, means=known.means_of(self.heights, self.widths))

    @property
    def side(self) -> int:
        """Cells of the widest footprint."""
        return self.catalogue.side

    @cached_property
    def letters(self) -> Ints:
        """The letter of each bucket."""
        return np.repeat(np.arange(len(self.heights)), np.diff(self.starts))

    @cached_property
    def places(self) -> tuple[Ints, Ints]:
        """Row and column of the lower left cell of each bucket."""
        within = np.arange(len(self)) - self.starts[self.letters]
        across = (self.n_cols - self.widths + 1)[self.letters]
        return within // across, within % across

    @cached_property
    def centres(self) -> tuple[Ints, Ints]:
        """Row and column of the cell in the middle of each bucket's footprint."""
        row, col = self.places
        height, width = self.heights[self.letters], self.widths[self.letters]
        return row + (height - 1) // 2, col + (width - 1) // 2

    def number(self, letter: Ints, row: Ints, col: Ints) -> Ints:
        """Return the bucket of a letter at a place."""
        return self.starts[letter] + row * (self.n_cols - self.widths[letter] + 1) + col

    def numbers(self, places: Ints, spans: NDArray[np.int16] | None) -> Ints:
        """Return the bucket of each footprint. Secret where footprints are.

        `places` are row, column, height and width in cells; `spans` as in the catalogue, where
        letters are patterns.
        """
        from dpregions.mechanisms.footprint import kernel

        if self.alphabet == "sizes":
            row, col, height, width = places.T
            h, w = self.filed[height, width].T
            return self.number(self.letter_of_size[h, w], row, col)
        c, across = self.catalogue, self.n_cols - self.widths + 1
        return kernel.numbers_of_patterns(
            places, spans, self.filed, c.first, c.last, c.spans, c.often,
            self.letter_of_pattern, self.starts, across,
        )  # fmt: skip

    def shapes(self, number: Ints) -> Ints:
        """Return the group of shapes of some buckets, where letters are patterns."""
        return groups_of_patterns(self.catalogue)[self.patterns[self._letter_of(number)]]

    def of_bodies(self, pattern: Ints, row: Ints, col: Ints) -> Ints:
        """Return the bucket of each pattern of the catalogue at a place."""
        if self.alphabet == "patterns":
            return self.number(self.letter_of_pattern[pattern], row, col)
        h, w = self.catalogue.heights[pattern], self.catalogue.widths[pattern]
        return self.number(self.letter_of_size[h, w], row, col)

    def within(self, coarser: Buckets, number: Ints) -> Ints:
        """Return the bucket of a coarser alphabet, or of the same, that each bucket is part of."""
        if coarser.alphabet == self.alphabet:
            return number
        return coarser.of_bodies(self.patterns[self._letter_of(number)], *self._place_of(number))

    def points(self, number: Ints) -> tuple[Ints, Ints, Ints, Ints]:
        """Return centre cell, row and column, and size, height and width, of some buckets."""
        letter, (row, col) = self._letter_of(number), self._place_of(number)
        height, width = self.heights[letter], self.widths[letter]
        return row + (height - 1) // 2, col + (width - 1) // 2, height, width

    def _letter_of(self, number: Ints) -> Ints:
        return np.searchsorted(self.starts, number, side="right") - 1

    def _place_of(self, number: Ints) -> tuple[Ints, Ints]:
        letter = self._letter_of(number)
        return np.divmod(number - self.starts[letter], self.n_cols - self.widths[letter] + 1)

    @cached_property
    def filed(self) -> Ints:
        """The footprint a region is filed under: its own, or cut down to one with a witness."""
        return filed_under(self.catalogue.last > self.catalogue.first)

    @cached_property
    def letter_of_size(self) -> Ints:
        """The letter of each footprint size, where letters are sizes."""
        table = np.zeros((self.catalogue.side + 1,) * 2, np.int64)
        table[self.heights, self.widths] = np.arange(len(self.heights))
        return table

    @cached_property
    def patterns(self) -> Ints:
        """The catalogue's pattern of each letter, where letters are patterns."""
        c = self.catalogue
        return np.flatnonzero((c.heights <= self.n_rows) & (c.widths <= self.n_cols))

    @cached_property
    def letter_of_pattern(self) -> Ints:
        """The letter of each of the catalogue's patterns, where letters are patterns."""
        table = np.zeros(len(self.catalogue), np.int64)
        table[self.patterns] = np.arange(len(self.patterns))
        return table

    def expand(self, values: Floats) -> Floats:
        """Return the Euler array of bucket counts, each with its letter's mean pattern."""
        from dpregions.mechanisms.footprint import kernel

        out = np.zeros((2 * self.n_rows - 1, 2 * self.n_cols - 1))
        row, col = self.places
        kernel.add_means(values, row, col, self.letters, self.heights, self.widths, self.means, out)
        return out

    @cached_property
    def tables(self) -> list[Floats]:
        """Each letter's summed-area table of its signed mean: any rectangle's chance by corners.

        A row and a column of 0 come first.
        """
        size = self.means.shape[1]
        signs = (-1.0) ** np.add.outer(np.arange(size), np.arange(size))
        tables = np.zeros((len(self.means), size + 1, size + 1))
        tables[:, 1:, 1:] = np.cumsum(np.cumsum(self.means * signs, axis=1), axis=2)
        sizes = zip(tables, self.heights, self.widths, strict=True)
        return [table[: 2 * h, : 2 * w] for table, h, w in sizes]

    def weigh(self, signs: NDArray[np.int8]) -> Floats:
        """Return what a body in each bucket is expected to add to a query: how `expand` weighs it.

        For a rectangle, the prior chance that the body touches it. `signs` is the query as a
        doubled array: 1 at its faces and vertices, -1 at its edges, 0 elsewhere.
        """
        from dpregions.mechanisms.footprint import kernel

        row, col = self.places
        return kernel.weigh_means(
            signs, row, col, self.letters, self.heights, self.widths, self.means
        )
