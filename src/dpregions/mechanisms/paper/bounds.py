"""How far the paper's pipeline can be from the exact histogram, before any data is touched.

Owns the high-probability bounds on max |count - exact count| after each step (DiffPriv,
LinProg, Round) and their proofs. Every argument is public; nothing here reads data or draws
noise. Two sets of constants stand side by side:

"paper"
    Those of Fanaeepour and Rubinstein's Theorems 1 and 2, rounding lemma and final corollary:
    sensitivity 4.5 k (k+1), the union bound over continuous Laplace tails, a factor 2 for LinProg
    (the triangle inequality: the fit is no further from the noisy counts than the exact ones are)
    and 1/2 for Round. Theorem 2 is about the L-infinity program alone.
"tight"
    Our own: sensitivity (2k+1)**2, the exact law of the largest of n independent integer
    draws, no factor for LinProg and nothing for Round. This is what the software's noise obeys.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Literal, TypeAlias

from dpregions.choices import refuse_other
from dpregions.errors import PrivacyError
from dpregions.lengths import whole_number
from dpregions.mechanisms.paper.sensitivity import cells_spanned, euler_sensitivity
from dpregions.privacy import law
from dpregions.privacy.budget import Budget, PrivacyUnit
from dpregions.privacy.noise import scale_for

if TYPE_CHECKING:
    from dpregions.choices import Neighbours
    from dpregions.privacy.budget import BudgetLike

Constants: TypeAlias = Literal["tight", "paper"]
Step: TypeAlias = Literal["diff-priv", "lin-prog", "round"]


def n_components(n_rows: int, n_cols: int) -> int:
    """Return how many faces, inner edges and inner vertices a grid has."""
    return (2 * whole_number(n_rows, "n_rows") - 1) * (2 * whole_number(n_cols, "n_cols") - 1)


def paper_sensitivity(k: int, neighbours: Neighbours = "add-remove") -> int:
    """Return 4.5 k (k+1), the paper's printed bound on the components a region touches.

    It is the effect of adding or removing one region, although the paper's neighbours replace
    one; under "replace-one" it is doubled here, as it has to be. Equal to (2k+1)**2 for k = 1
    and larger above.
    """
    k = whole_number(k, "k")
    return 9 * k * (k + 1) // 2 * PrivacyUnit(neighbours).sensitivity_factor


def diff_priv_bound(
    components: int,
    epsilon: BudgetLike,
    sensitivity: int,
    failure: float,
    *,
    constants: Constants = "tight",
) -> float:
    """Bound max |noisy - exact| over all components after DiffPriv (the paper's Theorem 1).

    Cutting negative counts to 0 moves none away from its exact count, which is not negative,
    so the bound on the noise is the bound on the step.

    Parameters
    ----------
    components : int
        How many counts are noised.
    epsilon : number or Budget
        The privacy loss.
    sensitivity : int
        The L1 sensitivity the noise is calibrated to.
    failure : float
        The probability, in (0, 1), with which the bound may be exceeded.
    constants : {"tight", "paper"}
        "paper": (sensitivity / epsilon) * log(components / failure), from a union bound over
        continuous Laplace tails. Integer noise obeys it once it is rounded up. "tight": the
        smallest whole m with 1 - (1 - P(|Y| > m))**components <= failure, from the exact
        integer tail; no smaller number is a bound.

    Returns
    -------
    float
        Holds for all components at once with probability at least 1 - failure.
    """
    components = whole_number(components, "components")
    if not 0 < failure < 1:
        raise PrivacyError(
            f"failure must lie strictly between 0 and 1, got {failure!r}: it is the probability "
            "with which the bound may be exceeded, for example 0.05."
        )
    refuse_other(constants, Constants, "constants")
    if constants == "paper":
        scale = whole_number(sensitivity, "sensitivity") / Budget(epsilon).epsilon
        return float(scale) * math.log(components / failure)
    return float(law.max_half_width(components, scale_for(epsilon, sensitivity), failure=failure))


def lin_prog_bound(
    components: int,
    epsilon: BudgetLike,
    sensitivity: int,
    failure: float,
    *,
    constants: Constants = "tight",
) -> float:
    """Bound max |fitted - exact| after LinProg.

    "paper" is twice the bound of DiffPriv, for the L-infinity norm: the exact histogram H is
    feasible, so the fit x of the noisy y has |x - y| <= |y - H|, which is the paper's Theorem 2,
    and |x - H| <= |x - y| + |y - H| <= 2 |y - H|, which its corollary goes on with.

    "tight" drops the 2, for both norms. With M = max |y - H| the input lies between H - M and
    H + M. The L-infinity closed form and the lowest and highest L1 optimum are monotone in
    their input and move with a constant added to it; H satisfies the order, so H + M is its own
    fit, and H - M is its own fit but for negative values, which are raised to 0. The fit of y
    therefore lies between H - M and H + M.

    Parameters are those of `diff_priv_bound`.
    """
    noise = diff_priv_bound(components, epsilon, sensitivity, failure, constants=constants)
    return 2 * noise if constants == "paper" else noise


def rounding_bound(before: float, *, constants: Constants = "tight") -> float:
    """Bound max |rounded - exact| from a bound on max |fitted - exact| (the rounding lemma).

    "paper": rounding moves a value by at most 1/2, so before + 1/2. "tight": rounding to the
    nearest whole number is monotone and leaves whole numbers alone, and exact counts are
    whole, so H - M <= x <= H + M gives the same with M rounded: floor(before + 1/2), which is
    `before` itself where that is whole.
    """
    refuse_other(constants, Constants, "constants")
    if not before >= 0:
        raise PrivacyError(f"A bound on an error is a number of 0 or more, got {before!r}.")
    return before + 0.5 if constants == "paper" else float(math.floor(before + 0.5))


def round_bound(
    components: int,
    epsilon: BudgetLike,
    sensitivity: int,
    failure: float,
    *,
    constants: Constants = "tight",
) -> float:
    """Bound max |published - exact| after all steps (the paper's final corollary).

    The rounding lemma on top of the bound after LinProg. Parameters are those of `diff_priv_bound`.
    """
    fitted = lin_prog_bound(components, epsilon, sensitivity, failure, constants=constants)
    return rounding_bound(fitted, constants=constants)


def utility_bound(
    side: Fraction | float,
    cell_size: Fraction | float,
    max_diameter: Fraction | float,
    epsilon: BudgetLike,
    failure: float,
    *,
    neighbours: Neighbours = "add-remove",
    step: Step = "round",
    constants: Constants = "tight",
) -> float:
    """Bound the error of every count of the paper's pipeline on a square area.

    Parameters
    ----------
    side, cell_size, max_diameter : number
        The area's side, the cells' side and the largest diameter of a region, in one unit. An
        area that is no whole number of cells counts as the cells that cover it.
    epsilon : number or Budget
        The privacy loss.
    failure : float
        The probability, in (0, 1), with which the bound may be exceeded.
    neighbours : {"add-remove", "replace-one"}
        The neighbour relation the noise is calibrated for.
    step : {"diff-priv", "lin-prog", "round"}
        After which step.
    constants : {"tight", "paper"}
        Ours, which the software's noise obeys, or the paper's (see the module).

    Returns
    -------
    float
        With probability at least 1 - failure no component is further than this from its
        exact count. It bounds single components: the answer to a query sums many.

    Examples
    --------
    >>> utility_bound(20, 1, 2, epsilon=1, failure=0.05)
    257.0
    >>> round(utility_bound(20, 1, 2, epsilon=1, failure=0.05, constants="paper"), 1)
    557.9
    """
    refuse_other(step, Step, "step")
    n = cells_spanned(side, cell_size)
    k = cells_spanned(max_diameter, cell_size)
    refuse_other(constants, Constants, "constants")
    if constants == "paper":
        sensitivity = paper_sensitivity(k, neighbours)
    else:
        sensitivity = euler_sensitivity(k, neighbours, n, n)
    bound = {"diff-priv": diff_priv_bound, "lin-prog": lin_prog_bound, "round": round_bound}[step]
    return bound(n_components(n, n), epsilon, sensitivity, failure, constants=constants)
