"""Chained polynomials: random quartics, Rosenbrock, Broyden tridiagonal."""

from itertools import combinations_with_replacement

import numpy as np
from scipy import optimize

from encore.papers.sparse_sos.polynomial import SparsePolynomial

SPREAD = 0.3  # of the random coefficients


def chained_quartic(n: int, seed: int, width: int = 3) -> SparsePolynomial:
    """sum x_i^4 plus N(0, 0.3^2) times every monomial of degree 1..3 in ``width`` consecutive variables."""
    if n < width:
        raise ValueError(f"n={n}; expected at least width={width} variables")
    rng = np.random.default_rng(seed)
    rows = {tuple(row): 1.0 for row in (4 * np.eye(n, dtype=int)).tolist()}
    for start in range(n - width + 1):
        for degree in (1, 2, 3):
            for chosen in combinations_with_replacement(range(start, start + width), degree):
                row = tuple(np.bincount(chosen, minlength=n).tolist())
                if row not in rows:
                    rows[row] = SPREAD * rng.normal()
    return SparsePolynomial(np.array(list(rows)), np.array(list(rows.values())))


def chained_rosenbrock(n: int) -> SparsePolynomial:
    """sum_i 100 (x_{i+1} - x_i^2)^2 + (1 - x_i)^2 over i < n; its minimum is 0."""
    x = SparsePolynomial.variables(n)
    parts = [100 * (x[i + 1] - x[i] ** 2) ** 2 + (1 - x[i]) ** 2 for i in range(n - 1)]
    return sum(parts[1:], parts[0])


def broyden_tridiagonal(n: int) -> SparsePolynomial:
    """sum_i ((3 - 2 x_i) x_i - x_{i-1} - 2 x_{i+1} + 1)^2 with x_0 = x_{n+1} = 0."""
    x = [SparsePolynomial.constant(0.0, n), *SparsePolynomial.variables(n)]
    x.append(x[0])
    parts = [((3 - 2 * x[i]) * x[i] - x[i - 1] - 2 * x[i + 1] + 1) ** 2 for i in range(1, n + 1)]
    return sum(parts[1:], parts[0])


def local_minimum(poly: SparsePolynomial, searches: int, seed: int) -> float:
    """The least value that L-BFGS finds from ``searches`` starts, N(0, 1) in every variable."""
    rng = np.random.default_rng(seed)
    width = max(int((poly.exponents > 0).sum(1).max(initial=1)), 1)
    order = np.argsort(-poly.exponents, axis=1, kind="stable")[:, :width]
    powers = np.take_along_axis(poly.exponents, order, 1)

    def value_and_gradient(x: np.ndarray) -> tuple[float, np.ndarray]:
        factors = x[order] ** powers
        slopes = powers * x[order] ** np.maximum(powers - 1, 0)
        gradient = np.zeros(len(x))
        for i in range(width):
            others = np.delete(factors, i, axis=1).prod(1)
            gradient += np.bincount(
                order[:, i], poly.coeffs * slopes[:, i] * others, minlength=len(x)
            )
        return float(poly.coeffs @ factors.prod(1)), gradient

    starts = rng.normal(size=(searches, poly.num_variables))
    found = (optimize.minimize(value_and_gradient, x, jac=True, method="L-BFGS-B") for x in starts)
    return min(float(result.fun) for result in found)
