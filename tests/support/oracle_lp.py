"""The paper's LinProg step as a plain linear program: slow, literal, the judge of the fast fits.

Written straight from the formulas, with the h variables and with C3, for scipy's HiGHS.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import OptimizeResult, linprog


def constraints(shape: tuple[int, int]) -> dict[str, sparse.csr_array]:
    """Matrices A of C1, C2 and C3, each meaning ``A @ x <= 0`` for the flattened doubled array."""
    at = np.arange(shape[0] * shape[1]).reshape(shape)
    face, vertex = at[::2, ::2], at[1::2, 1::2]
    level, upright = at[1::2, ::2], at[::2, 1::2]  # edges in odd rows, edges in odd columns

    def rows(*terms: tuple[int, np.ndarray]) -> sparse.csr_array:
        size = terms[0][1].size
        coefficient = np.concatenate([np.full(size, sign) for sign, _ in terms])
        column = np.concatenate([where.ravel() for _, where in terms])
        row = np.tile(np.arange(size), len(terms))
        return sparse.csr_array((coefficient, (row, column)), shape=(size, at.size))

    c1 = [  # edge <= each of its two faces
        rows((1, level), (-1, face[:-1])),
        rows((1, level), (-1, face[1:])),
        rows((1, upright), (-1, face[:, :-1])),
        rows((1, upright), (-1, face[:, 1:])),
    ]
    c2 = [  # vertex <= each of its four edges
        rows((1, vertex), (-1, level[:, :-1])),
        rows((1, vertex), (-1, level[:, 1:])),
        rows((1, vertex), (-1, upright[:-1])),
        rows((1, vertex), (-1, upright[1:])),
    ]
    c3 = rows(  # faces - edges + vertex >= 0 on every 2 x 2 block of cells
        *(
            (-1, face[i : face.shape[0] - 1 + i, j : face.shape[1] - 1 + j])
            for i in (0, 1)
            for j in (0, 1)
        ),
        (1, level[:, :-1]),
        (1, level[:, 1:]),
        (1, upright[:-1]),
        (1, upright[1:]),
        (-1, vertex),
    )
    return {"C1": sparse.vstack(c1), "C2": sparse.vstack(c2), "C3": c3}


def solve(
    noisy: np.ndarray, *, norm: str, method: str = "highs-ds", **options: Any
) -> OptimizeResult:
    """Minimise the sum of h >= |x - noisy| ("l1"), or one h ("linf"), under C1, C2, C3, x >= 0."""
    size = noisy.size
    order = sparse.vstack(list(constraints(noisy.shape).values()))
    one = sparse.eye_array(size)
    h = one if norm == "l1" else sparse.csr_array(np.ones((size, 1)))
    matrix = sparse.block_array(
        [[one, -h], [-one, -h], [order, None]] if order.shape[0] else [[one, -h], [-one, -h]]
    ).tocsr()
    bound = np.concatenate([noisy.ravel(), -noisy.ravel(), np.zeros(order.shape[0])])
    cost = np.concatenate([np.zeros(size), np.ones(h.shape[1])])
    return linprog(cost, A_ub=matrix, b_ub=bound, bounds=(0, None), method=method, options=options)


def objective(noisy: np.ndarray, *, norm: str) -> float:
    """The optimal value of the program."""
    result = solve(noisy, norm=norm)
    assert result.status == 0, result.message
    return float(result.fun)


def violated(counts: np.ndarray) -> list[str]:
    """Names of the constraint families that `counts` breaks; integers are checked exactly."""
    broken = [
        name for name, a in constraints(counts.shape).items() if (a @ counts.ravel() > 0).any()
    ]
    return broken + ["x >= 0"] * bool((counts < 0).any())
