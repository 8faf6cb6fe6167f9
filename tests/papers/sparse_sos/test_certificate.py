"""Certificates: what is proven stays below the truth, and damage is noticed."""

import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from encore.papers.sparse_sos import SOSLayer, SparsePolynomial, verify_certificate
from encore.papers.sparse_sos.certificate import lowest_eigenvalue
from encore.papers.sparse_sos.chains import chained_quartic


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 12), st.integers(-14, 2), st.integers(0, 1000))
def test_the_eigenvalue_bound_is_below_and_close(n, exponent, seed):
    from fractions import Fraction

    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.normal(size=(n, n)))[0]
    matrix = basis @ np.diag(np.logspace(exponent, 1, n)) @ basis.T
    matrix = (matrix + matrix.T) / 2
    proven = lowest_eigenvalue([[Fraction(x) for x in row] for row in matrix.tolist()])
    least = np.linalg.eigvalsh(matrix)[0]
    assert least - 1e-11 < proven <= least + 1e-14


def test_a_wrong_gram_matrix_proves_nothing(solve):
    poly = chained_quartic(5, 0)
    output, _ = solve(poly)
    gram = [part.detach().clone() for part in output.gram]
    gram[0][0] -= 2.0 * torch.eye(gram[0].shape[-1], dtype=torch.float64)
    report = verify_certificate(poly, dataclasses.replace(output, gram=gram))
    assert report.min_eig < 0
    assert report.rigorous_bound == -np.inf
    inside = verify_certificate(poly, dataclasses.replace(output, gram=gram), box=2.0)
    assert -np.inf < inside.rigorous_bound < output.bound.item() - 1.0


def test_a_rounded_gram_matrix_is_repaired(solve):
    poly = chained_quartic(5, 0)
    output, _ = solve(poly, mu=1e-3)
    gram = [part.detach().float().double() for part in output.gram]
    report = verify_certificate(poly, dataclasses.replace(output, gram=gram))
    assert report.max_residual > 1e-9
    assert report.min_eig > 0
    assert report.rigorous_bound == pytest.approx(output.bound.item(), abs=1e-5)


def test_terms_outside_the_program_cost_their_size_on_the_box(solve):
    poly = chained_quartic(4, 1)
    output, _ = solve(poly)
    more = poly + SparsePolynomial(np.array([[0, 3, 0, 3]]), np.array([1e-4]))
    with pytest.raises(ValueError, match=r"x1\^3\*x3\^3 is not in the support"):
        verify_certificate(more, output)
    report = verify_certificate(more, output, box=2.0)
    alone = verify_certificate(poly, output, box=2.0)
    assert report.rigorous_bound == pytest.approx(alone.rigorous_bound - 64e-4, abs=1e-9)


def test_certificate_errors(solve):
    poly = chained_quartic(4, 1)
    output, _ = solve(poly, outputs=("bound",))
    with pytest.raises(ValueError, match="no Gram blocks"):
        verify_certificate(poly, output)
    output, _ = solve(poly)
    with pytest.raises(ValueError, match="box=-1"):
        verify_certificate(poly, output, box=-1)
    with pytest.raises(ValueError, match="coefficients"):
        verify_certificate(np.ones(3), output)


def test_float32_blocks_are_checked_too():
    poly = chained_quartic(4, 0)
    from encore.papers.sparse_sos import SOSProgram

    layer = SOSLayer(SOSProgram.build(poly.exponents), mu=1e-3, outputs=("gram",))
    coeffs = torch.tensor(poly.coeffs, dtype=torch.float32)[None]
    rounded = SparsePolynomial(poly.exponents, coeffs[0].double().numpy())
    report = verify_certificate(rounded, layer(coeffs))
    assert report.min_eig > 0
