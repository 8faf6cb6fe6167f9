"""Sparse multivariate polynomials as a table of exponents and a vector of coefficients."""

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import networkx as nx
import numpy as np


@dataclass(frozen=True, eq=False)
class SparsePolynomial:
    """sum_t coeffs[t] * prod_i x_i ** exponents[t, i].

    Args:
        exponents: (T, n) non-negative integers; rows may repeat (their coefficients then add up).
        coeffs: (T,) real numbers, kept as float64.

    Raises:
        TypeError: complex coefficients.
        ValueError: shapes that do not fit, negative exponents, a coefficient that is not finite.
    """

    exponents: np.ndarray
    coeffs: np.ndarray

    def __post_init__(self) -> None:
        exponents = check_exponents(self.exponents)
        coeffs = np.asarray(self.coeffs)
        if np.iscomplexobj(coeffs):
            raise TypeError("coeffs must be real, got complex numbers")
        coeffs = coeffs.astype(float)
        if coeffs.shape != exponents.shape[:1]:
            raise ValueError(f"coeffs must be ({len(exponents)},), got shape {coeffs.shape}")
        if not np.isfinite(coeffs).all():
            raise ValueError(f"coeffs[{np.flatnonzero(~np.isfinite(coeffs))[0]}] is not finite")
        object.__setattr__(self, "exponents", exponents)
        object.__setattr__(self, "coeffs", coeffs)

    @property
    def num_variables(self) -> int:
        """n, the number of variables."""
        return self.exponents.shape[1]

    @property
    def degree(self) -> int:
        """Largest total degree of a term (0 without terms)."""
        return int(self.exponents.sum(1).max(initial=0))

    def evaluate(self, x: np.ndarray) -> np.ndarray:
        """Values (...,) at points x (..., n)."""
        x = np.asarray(x, float)
        if x.shape[-1:] != (self.num_variables,):
            raise ValueError(f"x must be (..., {self.num_variables}), got shape {x.shape}")
        powers = np.ones((*x.shape[:-1], len(self.coeffs)))
        for i in range(self.num_variables):
            used = np.flatnonzero(self.exponents[:, i])
            powers[..., used] *= x[..., i, None] ** self.exponents[used, i]
        return powers @ self.coeffs

    def derivative(self, variable: int) -> "SparsePolynomial":
        """Partial derivative in one variable."""
        rows = self.exponents[:, variable] > 0
        exponents = self.exponents[rows].copy()
        coeffs = self.coeffs[rows] * exponents[:, variable]
        exponents[:, variable] -= 1
        return SparsePolynomial(exponents, coeffs)

    def combined(self) -> "SparsePolynomial":
        """The same polynomial with one row per monomial, in lexicographic order, zeros kept."""
        exponents, index = np.unique(self.exponents, axis=0, return_inverse=True)
        return SparsePolynomial(exponents, np.bincount(index, self.coeffs, len(exponents)))

    def on(self, support: np.ndarray) -> np.ndarray:
        """Coefficients (T,) on the rows of a support (T, n) without repeated rows.

        Raises:
            ValueError: a term is not in the support.
        """
        places = {tuple(row): t for t, row in enumerate(support.tolist())}
        result = np.zeros(len(support))
        for row, coeff in zip(self.exponents.tolist(), self.coeffs, strict=True):
            if tuple(row) in places:
                result[places[tuple(row)]] += coeff
            elif coeff:
                raise ValueError(f"term {term_name(row)} is not in the support")
        return result

    def support_graph(self) -> nx.Graph:
        """Variables are vertices; two are joined if some term holds both."""
        return support_graph([self.exponents], self.num_variables)

    @classmethod
    def variables(cls, n: int) -> list["SparsePolynomial"]:
        """The n coordinate functions."""
        return [cls(row[None], np.ones(1)) for row in np.eye(n, dtype=int)]

    @classmethod
    def constant(cls, value: float, n: int) -> "SparsePolynomial":
        """A constant in n variables."""
        return cls(np.zeros((1, n), int), np.array([value]))

    @classmethod
    def from_sympy(cls, expression: Any, symbols: Any) -> "SparsePolynomial":
        """From a sympy expression that is polynomial in ``symbols`` (their order is that of x)."""
        from sympy import Poly

        terms = Poly(expression, *symbols).terms()
        exponents, coeffs = zip(*terms, strict=True)
        return cls(np.array(exponents), np.array([float(c) for c in coeffs]))

    def __add__(self, other: Any) -> "SparsePolynomial":
        other = self._coerce(other)
        exponents = np.concatenate([self.exponents, other.exponents])
        return SparsePolynomial(exponents, np.concatenate([self.coeffs, other.coeffs])).combined()

    def __mul__(self, other: Any) -> "SparsePolynomial":
        other = self._coerce(other)
        exponents = self.exponents[:, None, :] + other.exponents[None, :, :]
        coeffs = np.outer(self.coeffs, other.coeffs).ravel()
        return SparsePolynomial(exponents.reshape(-1, self.num_variables), coeffs).combined()

    def __neg__(self) -> "SparsePolynomial":
        return SparsePolynomial(self.exponents, -self.coeffs)

    def __sub__(self, other: Any) -> "SparsePolynomial":
        return self + (-self._coerce(other))

    __radd__ = __add__
    __rmul__ = __mul__

    def __rsub__(self, other: Any) -> "SparsePolynomial":
        return (-self) + other

    def __pow__(self, power: int) -> "SparsePolynomial":
        result = SparsePolynomial.constant(1.0, self.num_variables)
        for _ in range(power):
            result = result * self
        return result

    def _coerce(self, other: Any) -> "SparsePolynomial":
        if not isinstance(other, SparsePolynomial):
            return SparsePolynomial.constant(float(other), self.num_variables)
        if other.num_variables != self.num_variables:
            raise ValueError(
                f"polynomials in {self.num_variables} and in {other.num_variables} variables do not mix"
            )
        return other


def check_exponents(exponents: Any) -> np.ndarray:
    """The exponents as (T, n) integers; ``ValueError`` on another shape or negative entries."""
    result = np.asarray(exponents)
    if result.ndim != 2 or not result.shape[1] or not np.issubdtype(result.dtype, np.integer):
        raise ValueError(f"exponents must be (T, n) integers, got {result.dtype} {result.shape}")
    if (result < 0).any():
        raise ValueError(f"exponents row {np.argwhere(result < 0)[0, 0]} is negative")
    return result.astype(int)


def support_graph(supports: list[np.ndarray], n: int, whole: bool = False) -> nx.Graph:
    """Join variables that share a row of a support, or (``whole``) a support at all."""
    graph = nx.empty_graph(n)
    for support in supports:
        rows = support.sum(0, keepdims=True) if whole else support
        for row in rows:
            graph.add_edges_from(combinations(np.flatnonzero(row).tolist(), 2))
    return graph


def term_name(exponents: Any) -> str:
    """A monomial as text, such as ``x0*x5^2``."""
    parts = [f"x{i}" + (f"^{e}" if e > 1 else "") for i, e in enumerate(exponents) if e]
    return "*".join(parts) or "1"
