"""Bounds: closed forms, other solvers, invariances, and inputs that have no bound."""

import cvxpy as cp
import numpy as np
import pytest
import torch

from encore.papers.sparse_sos import (
    BlockSDPLayer,
    BlockStructure,
    InfeasibleSOSError,
    SOSLayer,
    SOSProgram,
    SparsePolynomial,
    verify_certificate,
)
from encore.papers.sparse_sos.chains import (
    broyden_tridiagonal,
    chained_quartic,
    chained_rosenbrock,
    local_minimum,
)

MOTZKIN = np.array([[4, 2], [2, 4], [2, 2], [0, 0]])


def test_double_well(solve):
    output, _ = solve(SparsePolynomial(np.array([[4], [2]]), np.array([1.0, -2.0])))
    assert output.bound.item() == pytest.approx(-1.0, abs=1e-5)


def test_separate_quartics_have_their_exact_minimum(solve):
    rng = np.random.default_rng(3)
    rows, coeffs, least = [], [], 0.0
    for i in range(3):
        c = np.concatenate([[1.0], rng.normal(size=3)])  # x^4 + a x^3 + b x^2 + c x
        roots = np.roots(np.polyder([*c, 0.0]))
        least += np.polyval([*c, 0.0], roots[abs(roots.imag) < 1e-9].real).min()
        rows += [np.eye(3, dtype=int)[i] * power for power in (4, 3, 2, 1)]
        coeffs += c.tolist()
    output, _ = solve(SparsePolynomial(np.array(rows), np.array(coeffs)))
    assert output.bound.item() == pytest.approx(least, abs=1e-4)


@pytest.mark.parametrize("solver", ["clarabel", "barrier"])
def test_the_motzkin_polynomial_has_no_bound(solver):
    layer = SOSLayer(SOSProgram.build(MOTZKIN), solver=solver)
    coeffs = torch.tensor([[1.0, 1.0, -3.0, 1.0]], dtype=torch.float64)
    with pytest.raises(InfeasibleSOSError) as caught:
        layer(coeffs)
    assert caught.value.batch_index == 0


def test_a_failed_item_may_be_nan():
    program = SOSProgram.build(np.array([[2], [1]]))
    layer = SOSLayer(program, on_failure="nan", outputs=("gram",))
    coeffs = torch.tensor([[1.0, -2.0], [-1.0, 0.0]], dtype=torch.float64, requires_grad=True)
    output = layer(coeffs)
    assert output.bound[0].item() == pytest.approx(-1.0, abs=1e-5)
    assert output.bound[1].isnan()
    assert output.status[0] == "centred" != output.status[1]
    output.bound[0].backward()
    assert coeffs.grad[0].isfinite().all()


def test_dense_equals_sparse_on_a_complete_graph(solve):
    poly = chained_quartic(3, 0)
    sparse, _ = solve(poly)
    dense, _ = solve(poly, cliques=[(0, 1, 2)])
    assert torch.equal(sparse.bound, dense.bound)


def test_relabelling_variables_changes_nothing(solve):
    poly, order = chained_quartic(5, 1), np.array([3, 0, 4, 1, 2])
    first, a = solve(poly, mu=1e-4)
    second, b = solve(SparsePolynomial(poly.exponents[:, order], poly.coeffs), mu=1e-4)
    first.bound.sum().backward()
    second.bound.sum().backward()
    assert first.bound.item() == pytest.approx(second.bound.item(), abs=1e-10)
    assert torch.allclose(a.grad, b.grad, atol=1e-8)


def test_broyden_tridiagonal_has_minimum_zero(solve):
    output, _ = solve(broyden_tridiagonal(8), mu=1e-5)
    assert -1.01e-5 * sum(output.program.block_sizes) < output.bound.item() <= 1e-9


def test_rosenbrock_has_no_centre_until_it_is_perturbed(solve):
    poly = chained_rosenbrock(
        6
    )  # its last square takes up all of x4^4: Gram matrices have no interior
    with pytest.raises(InfeasibleSOSError):
        solve(poly, mu=1e-3)
    x = SparsePolynomial.variables(6)
    output, _ = solve(poly + 0.01 * sum((v**4 for v in x[1:]), x[0] ** 4), mu=1e-4)
    assert -0.01 < output.bound.item() <= 0.06


def test_the_barrier_finds_the_same_centre(solve):
    poly = chained_quartic(6, 2)
    first, _ = solve(poly, mu=1e-5)
    program = first.program
    second = SOSLayer(program, mu=1e-5, solver="barrier", outputs=("gram",))(
        torch.tensor(poly.coeffs)[None]
    )
    assert torch.allclose(first.moments, second.moments, atol=1e-8)
    assert all(
        torch.allclose(a, b, atol=1e-8) for a, b in zip(first.gram, second.gram, strict=True)
    )


def test_cvxpy_model_of_the_same_program(solve):
    poly = chained_quartic(5, 4)
    output, _ = solve(poly, mu=1e-7)
    program = output.program
    y = cp.Variable(len(program.monomials))
    rules = [y[0] == 1]
    for index in program.index:
        block = cp.Variable(index.shape, symmetric=True)
        rules += [block >> 0] + [block[i, :] == y[index[i]] for i in range(len(index))]
    problem = cp.Problem(cp.Minimize((program.objective @ poly.coeffs) @ y), rules)
    problem.solve(solver=cp.CLARABEL)
    assert output.bound.item() == pytest.approx(problem.value, abs=1e-5)


def test_inequalities_and_equalities_on_a_circle():
    x, y = SparsePolynomial.variables(2)
    # least x + y on the unit circle with x >= 0 is at (0, -1)
    objective = x + y
    program = SOSProgram.build(
        objective, inequalities=[x], equalities=[x * x + y * y - 1], degree=4
    )
    output = SOSLayer(program, outputs=("gram",))(torch.tensor(objective.coeffs)[None])
    assert output.bound.item() == pytest.approx(-1.0, abs=1e-4)
    report = verify_certificate(objective, output)
    assert -1.001 < report.rigorous_bound <= -1.0 + 1e-12


def test_a_trace_constraint_gives_the_least_eigenvalue():
    matrix = np.random.default_rng(0).normal(size=(4, 4))
    matrix = matrix + matrix.T
    entries = [(i, j) for i in range(4) for j in range(i, 4)]
    costs = [{(i, j): float(matrix[i, j]) * (1 + (i != j)) for i, j in entries}]
    trace = ({(i, i): 1.0 for i in range(4)}, 1.0)
    layer = BlockSDPLayer(BlockStructure(4, costs, [trace]), mu=1e-7)
    bound = layer(torch.ones(1, 1, dtype=torch.float64)).bound.item()
    assert bound == pytest.approx(np.linalg.eigvalsh(matrix)[0], abs=1e-5)


def test_structure_errors():
    with pytest.raises(ValueError, match=r"term x0\*x2 lies in no clique; add an edge"):
        SOSProgram.build(
            np.array([[2, 0, 0], [0, 2, 0], [0, 0, 2], [1, 0, 1]]), cliques=[(0, 1), (1, 2)]
        )
    with pytest.raises(ValueError, match="top degree is 3"):
        SOSProgram.build(np.array([[3], [1]]))
    with pytest.raises(ValueError, match="running-intersection"):
        SOSProgram.build(np.array([[2, 0, 0]]), cliques=[(0, 1), (1, 2), (0, 2)])
    with pytest.raises(ValueError, match=r"x0\^2\*x1 lies in no block"):
        SOSProgram.build(np.array([[2, 1], [2, 0], [0, 4]]))
    x = SparsePolynomial.variables(1)[0]
    with pytest.raises(ValueError, match="contradict"):
        SOSProgram.build(x * x, equalities=[x - 1, x - 2])
    with pytest.raises(ValueError, match=r"entry \(0, 3\) lies outside X"):
        BlockStructure(2, [{(0, 3): 1.0}], []).program()


def test_input_errors(solve):
    layer = SOSLayer(SOSProgram.build(np.array([[4], [2]])))
    with pytest.raises(ValueError, match=r"coeffs must be \(B, 2\), got shape \(1, 3\)"):
        layer(torch.zeros(1, 3))
    with pytest.raises(ValueError, match=r"coeffs\[0, 1\] is nan"):
        layer(torch.tensor([[1.0, float("nan")]]))
    with pytest.raises(TypeError, match="must be real"):
        layer(torch.zeros(1, 2, dtype=torch.complex64))
    with pytest.raises(TypeError, match="torch.Tensor"):
        layer(np.zeros((1, 2)))
    with pytest.raises(ValueError, match="mu=1e-06; expected at least"):
        layer(torch.tensor([[1e8, 1.0]]))
    with pytest.raises(ValueError, match="outputs="):
        SOSLayer(layer.program, outputs=("value",))
    with pytest.raises(ValueError, match="mu=0"):
        SOSLayer(layer.program, mu=0)


def test_types_and_empty_batches():
    layer = SOSLayer(SOSProgram.build(np.array([[4], [2]])), outputs=("gram",))
    output = layer(torch.tensor([[1.0, -2.0]]))
    assert output.bound.dtype == output.gram[0].dtype == torch.float32
    assert layer(torch.tensor([[1, -2]])).bound.dtype == torch.float64
    empty = torch.zeros(0, 2, dtype=torch.float64, requires_grad=True)
    output = layer(empty)
    assert output.bound.shape == (0,)
    assert output.gram[0].shape == (0, 3, 3)
    output.bound.sum().backward()
    assert empty.grad.shape == (0, 2)


def test_local_search_and_rigorous_bound_bracket_the_minimum(solve):
    poly = chained_quartic(8, 5)
    output, _ = solve(poly)
    report = verify_certificate(poly, output)
    assert report.min_eig > 0
    assert report.rigorous_bound <= local_minimum(poly, 30, 0) <= report.rigorous_bound + 0.5
