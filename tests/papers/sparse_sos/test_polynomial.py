"""Polynomials and chordal cliques: against sympy, networkx and their definitions."""

import networkx as nx
import numpy as np
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

from encore.papers.sparse_sos import SparsePolynomial, chordal_cliques
from encore.papers.sparse_sos.chordal import check_running_intersection

polynomials = st.integers(0, 10_000).map(
    lambda seed: SparsePolynomial(
        np.random.default_rng(seed).integers(0, 4, size=(6, 3)),
        np.random.default_rng(seed + 1).normal(size=6),
    )
)


@settings(max_examples=30, deadline=None)
@given(polynomials, polynomials)
def test_arithmetic_commutes_with_evaluation(p, q):
    x = np.random.default_rng(0).uniform(-1, 1, size=(5, 3))
    assert np.allclose((p * q).evaluate(x), p.evaluate(x) * q.evaluate(x))
    assert np.allclose((p - 2 * q + 1).evaluate(x), p.evaluate(x) - 2 * q.evaluate(x) + 1)
    step = 1e-6 * np.eye(3)[1]
    slope = (p.evaluate(x + step) - p.evaluate(x - step)) / 2e-6
    assert np.allclose(p.derivative(1).evaluate(x), slope, atol=1e-6)


def test_agrees_with_sympy():
    a, b = sympy.symbols("a b")
    poly = SparsePolynomial.from_sympy((a - 2 * b) ** 3 + a * b - 1, (a, b))
    assert poly.evaluate(np.array([1.5, -0.5])) == pytest.approx(2.5**3 - 0.75 - 1)
    assert poly.degree == 3


def test_bad_polynomials_are_refused():
    with pytest.raises(TypeError, match="complex"):
        SparsePolynomial(np.array([[2]]), np.array([1j]))
    with pytest.raises(ValueError, match=r"coeffs\[1\] is not finite"):
        SparsePolynomial(np.array([[2], [1]]), np.array([1.0, np.nan]))
    with pytest.raises(ValueError, match="row 1 is negative"):
        SparsePolynomial(np.array([[2], [-1]]), np.ones(2))
    with pytest.raises(ValueError, match="coeffs must be"):
        SparsePolynomial(np.array([[2], [1]]), np.ones(3))


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 25), st.floats(0.05, 0.6), st.integers(0, 1000), st.booleans())
def test_cliques_are_those_of_a_chordal_extension(n, density, seed, natural):
    graph = nx.gnp_random_graph(n, density, seed=seed)
    cliques = chordal_cliques(graph, "natural" if natural else "mindegree")
    check_running_intersection(cliques)
    filled = nx.empty_graph(n)
    for clique in cliques:
        filled.add_edges_from((a, b) for a in clique for b in clique if a < b)
    assert nx.is_chordal(filled)
    assert all(filled.has_edge(*edge) for edge in graph.edges)
    assert {frozenset(c) for c in nx.find_cliques(filled)} == {frozenset(c) for c in cliques}


def test_cliques_that_do_not_intersect_in_one_are_named():
    with pytest.raises(ValueError, match=r"cliques\[2\] = \(0, 2\) shares \(0, 2\)"):
        check_running_intersection([(0, 1), (1, 2), (0, 2)])
    with pytest.raises(ValueError, match="order='best'"):
        chordal_cliques(nx.path_graph(3), "best")
