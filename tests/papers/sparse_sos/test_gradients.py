"""Gradients: torch's gradcheck, the dense reference, symmetries, the peer."""

import numpy as np
import pytest
import torch

from encore.papers.sparse_sos import (
    BlockSDPLayer,
    DenseKKTLayer,
    DiffcpLayer,
    SOSLayer,
    SOSProgram,
    SparsePolynomial,
    maxcut_program,
    pendulum_program,
)
from encore.papers.sparse_sos.chains import chained_quartic
from encore.papers.sparse_sos.graphs import partial_k_tree
from encore.papers.sparse_sos.instances import make
from encore.papers.sparse_sos.solver import solve as solve_program

ALL = ("bound", "moments", "gram")


def outputs_of(layer):
    def function(*inputs):
        output = layer(*inputs)
        return output.bound, output.moments, *output.gram

    return function


def test_gradcheck_of_a_batch():
    poly = chained_quartic(4, 0)
    layer = SOSLayer(SOSProgram.build(poly.exponents), mu=1e-3, outputs=ALL)
    coeffs = torch.tensor(np.stack([poly.coeffs, poly.coeffs + 0.05]), requires_grad=True)
    assert torch.autograd.gradcheck(outputs_of(layer), (coeffs,), eps=1e-5, atol=1e-5, rtol=1e-3)


def test_gradcheck_in_normaliser_and_inequalities():
    instance = make("pendulum_swing", 3, 1)
    layer = SOSLayer(pendulum_program(), mu=1e-2, outputs=ALL)
    inputs = [
        torch.tensor(part)[None].requires_grad_()
        for part in (instance.coeffs, instance.norm_coeffs, instance.data)
    ]
    assert torch.autograd.gradcheck(outputs_of(layer), inputs, eps=1e-5, atol=1e-4, rtol=1e-3)


def test_gradcheck_of_a_block_program():
    graph = partial_k_tree(7, 2, 0.9, 0)
    layer = BlockSDPLayer(maxcut_program(graph), mu=1e-2, outputs=ALL)
    weights = torch.ones(1, graph.number_of_edges(), dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(outputs_of(layer), (weights,), eps=1e-5, atol=1e-5, rtol=1e-3)


@pytest.mark.parametrize(
    ("task", "size"),
    [("chains", 6), ("packaged_graphs", 34), ("arms", 3), ("oscillators", 3), ("pose_loops", 7)],
)
def test_sparse_equals_dense(task, size):
    instance = make(task, size, 0)
    mu = 1e-4 * np.abs(instance.coeffs).max()
    parts = (instance.coeffs, instance.norm_coeffs, instance.data)
    found = []
    for kind in (SOSLayer, DenseKKTLayer):
        inputs = [torch.tensor(part)[None].requires_grad_() for part in parts]
        output = kind(instance.program, mu=mu, outputs=ALL)(*inputs)
        rng = np.random.default_rng(0)
        loss = output.bound.sum() + sum(
            (torch.tensor(rng.normal(size=gram.shape)) * gram).sum() for gram in output.gram
        )
        loss.backward()
        found.append(torch.cat([x.grad.ravel() for x in inputs]))
    assert torch.linalg.norm(found[0] - found[1]) < 1e-5 * torch.linalg.norm(found[1])


def test_the_reused_factor_gives_the_same_gradient():
    from encore.papers.sparse_sos.evaluation import random_loss
    from encore.papers.sparse_sos.implicit import certificate_gradient

    instance = make("chains", 12, 3)
    p, q, data = instance.split(instance.numbers)
    solution = solve_program(instance.program, p, 1e-6, q=q, data=data)
    loss, zero = random_loss(solution, 0), np.zeros(len(p))
    old, new = (certificate_gradient(solution, 0.0, zero, loss, reuse=r).p for r in (True, False))
    assert np.abs(old - new).max() < 1e-7 * np.abs(new).max()


def test_moments_are_the_gradient_of_the_bound(solve):
    poly = chained_quartic(5, 1)
    output, coeffs = solve(poly, mu=1e-7, outputs=("bound",))
    output.bound.sum().backward()
    at = output.program.coeff_slots
    assert torch.equal(coeffs.grad[0], output.moments[0, at])
    assert not output.moments.requires_grad
    assert output.gram is None


def test_a_scalar_loss_keeps_no_gram_block(solve):
    output, _ = solve(chained_quartic(6, 0), outputs=("bound",))
    kept = output.bound.grad_fn.saved_tensors
    assert sum(part.numel() for part in kept) <= output.moments.numel() + 1
    assert not hasattr(output.bound.grad_fn, "items")


def test_the_gradient_vanishes_along_an_exact_symmetry(solve):
    # p(x + t) has the same bound for every t: its derivative in t is zero
    poly = chained_quartic(4, 2)
    slope = sum((poly.derivative(i) for i in range(1, 4)), poly.derivative(0))
    output, _ = solve(poly, mu=1e-8, outputs=("bound",))
    output.bound.sum().backward()
    direction = SparsePolynomial(
        np.concatenate([poly.exponents, slope.exponents]),
        np.concatenate([np.zeros(len(poly.coeffs)), slope.coeffs]),
    ).combined()
    known = {tuple(row) for row in poly.exponents.tolist()}
    inside = np.array([tuple(row) in known for row in direction.exponents.tolist()])
    moment = 0.0
    monomials = {tuple(row): k for k, row in enumerate(output.program.monomials.tolist())}
    for row, c in zip(direction.exponents.tolist(), direction.coeffs, strict=True):
        moment += c * output.moments[0, monomials[tuple(row)]].item()
    assert inside.any()
    assert abs(moment) < 1e-6


def test_the_peer_has_the_same_bound_and_gradient():
    poly = chained_quartic(5, 0)
    program = SOSProgram.build(poly.exponents)
    found = []
    for layer in (SOSLayer(program), DiffcpLayer(program, "dense"), DiffcpLayer(program, "lsqr")):
        coeffs = torch.tensor(poly.coeffs)[None].requires_grad_()
        output = layer(coeffs)
        output.bound.sum().backward()
        found.append((output.bound.item(), coeffs.grad))
    for bound, gradient in found[1:]:
        assert bound == pytest.approx(found[0][0], abs=1e-4)
        assert torch.allclose(gradient, found[0][1], atol=1e-2)
    with pytest.raises(ValueError, match="mode='fast'"):
        DiffcpLayer(program, "fast")
