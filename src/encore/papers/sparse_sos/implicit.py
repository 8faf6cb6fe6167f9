"""Gradients of a solved program: of the bound from the moments alone, of the certificate by one solve.

At the centre p - bound q = sum_k A_k'(Q_k) with Q_k = mu M_k(y)^-1 and q . y = 1. The envelope theorem
gives the gradient of p . y - mu sum_k logdet M_k(y): no matrix is touched. For a loss of moments,
Gram blocks and bound, the adjoint of the linearised equations is

    H u + t q = r,   q . u = - d loss / d bound,   r = d loss / d y - sum_k A_k'(M_k^-1 G_k Q_k),

with H = sum_k A_k' (M_k^-1 x Q_k) A_k, whose pattern is that of the cliques.
"""

from dataclasses import dataclass

import numpy as np

from encore.papers.sparse_sos.cone import Grams
from encore.papers.sparse_sos.solver import Solution


@dataclass(frozen=True)
class Gradient:
    """Derivatives of a loss in the objective p (N,), the normaliser q (N,) and the data (D,)."""

    p: np.ndarray
    q: np.ndarray
    data: np.ndarray


def bound_gradient(solution: Solution) -> Gradient:
    """Gradient of the bound from the moments (exact for p . y - mu sum logdet, O(mu) off for the bound)."""
    return Gradient(
        solution.y,
        -solution.bound * solution.y,
        -solution.cone.slot_gradient(solution.grams, solution.y),
    )


def adjoint_right(solution: Solution, moments: np.ndarray, grams: Grams) -> np.ndarray:
    """r of the module's equation for adjoints of moments (N,) and Gram blocks (stacked, symmetric)."""
    pulled = [w @ g @ z for w, g, z in zip(solution.inverses, grams, solution.grams, strict=True)]
    return moments - solution.cone.adjoint(pulled)


def certificate_gradient(
    solution: Solution, bound: float, moments: np.ndarray, grams: Grams, reuse: bool = True
) -> Gradient:
    """Gradient of a loss of the whole certificate.

    Args:
        bound, moments, grams: derivatives of the loss in the bound, y (N,) and the Gram blocks
            (stacked by shape, symmetric).
        reuse: use the forward's last factor; False assembles and factors H anew.
    """
    q = solution.q
    right = adjoint_right(solution, moments, grams)
    solve = solution.solver(reuse)
    w, v = solve(right), solve(q)
    t = (q @ w + bound) / (q @ v)
    u = w - t * v
    return assemble(solution, u, t, grams)


def assemble(solution: Solution, u: np.ndarray, t: float, grams: Grams) -> Gradient:
    """The gradient from the adjoint solution (u, t)."""
    data = np.zeros_like(solution.cone.data)
    if len(data):
        pulled = [
            -w @ (m + g) @ z
            for w, m, g, z in zip(
                solution.inverses, solution.cone.matrices(u), grams, solution.grams, strict=True
            )
        ]
        data = solution.cone.slot_gradient(pulled, solution.y)
        data = data + solution.cone.slot_gradient(solution.grams, u)
    return Gradient(-u, solution.bound * u - t * solution.y, data)
