"""The lemma that bounds how far one region moves an Euler histogram."""

from __future__ import annotations

import math
from fractions import Fraction

from dpregions.choices import Neighbours
from dpregions.lengths import positive, quotient, whole_number
from dpregions.privacy.budget import PrivacyUnit


def cells_spanned(max_diameter: Fraction | float, cell_size: Fraction | float) -> int:
    """Return k = ceil(max_diameter / cell_size), the bound in cells that intake enforces.

    Both count at their decimal face value: 2.1 over 0.7 is 3, where floats say 4. What is whole
    up to float error is whole, as it is where the bound is enforced: 2 over 20/30 is 3.
    """
    bound, cell = positive(max_diameter, "max_diameter"), positive(cell_size, "cell_size")
    return math.ceil(quotient(bound, cell))


def euler_sensitivity(
    k: int,
    neighbours: Neighbours = "add-remove",
    n_rows: int | None = None,
    n_cols: int | None = None,
) -> int:
    """Return the L1 sensitivity of the Euler histogram for regions at most k cells wide and high.

    Lemma. Let each region's extent be at most k cell sides in x and in y. Then neighbouring
    datasets have Euler histograms at L1 distance at most factor * (2k+1)**2.

    Proof. By the boundary rule each coordinate lies in exactly one cell, so an interval of
    length at most k cells lies in at most k + 1 consecutive cells and crosses at most the k
    lines between them: it touches at most 2k + 1 doubled rows, and likewise columns. A
    component is one doubled row and one doubled column, so a region touches at most
    (2k+1)**2 of them, and adds at most 1 to each. A grid with fewer doubled rows (2 n_rows - 1)
    or columns cuts the product down. Add-remove neighbours differ by one region; replace-one
    neighbours by one taken away and one added, hence the factor 2 (the triangle inequality,
    reached by two regions without a common component).

    Parameters
    ----------
    k : int
        The bound that was *enforced* on every region, in whole cells (see `cells_spanned`).
    neighbours : {"add-remove", "replace-one"}
        The neighbour relation.
    n_rows, n_cols : int, optional
        The grid's size in cells, if it is to cut the bound down.

    Examples
    --------
    >>> [euler_sensitivity(k) for k in (1, 2, 3, 13)]
    [9, 25, 49, 729]
    """
    reach = 2 * whole_number(k, "k") + 1
    rows = reach if n_rows is None else min(reach, 2 * whole_number(n_rows, "n_rows") - 1)
    cols = reach if n_cols is None else min(reach, 2 * whole_number(n_cols, "n_cols") - 1)
    return rows * cols * PrivacyUnit(neighbours).sensitivity_factor


def partition_sensitivity(touched: int, neighbours: Neighbours = "add-remove") -> int:
    """Return the L1 sensitivity of an Euler histogram on any partition.

    A region adds at most 1 to each component that it touches, and nothing elsewhere. Two regions
    differ under "replace-one", hence the factor 2.

    Parameters
    ----------
    touched : int
        The most components that a region touches, *enforced*: by the bound on its diameter (see
        `geometry.jung.most_touched`), or by a cap.
    neighbours : {"add-remove", "replace-one"}
        The neighbour relation.

    Examples
    --------
    >>> partition_sensitivity(71), partition_sensitivity(71, "replace-one")
    (71, 142)
    """
    return whole_number(touched, "touched") * PrivacyUnit(neighbours).sensitivity_factor
