"""Is the gradient right, and is the certificate?"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from encore.papers.sparse_sos.certificate import check_blocks
from encore.papers.sparse_sos.cone import Grams
from encore.papers.sparse_sos.conic import ClarabelForm
from encore.papers.sparse_sos.dense import DenseKKT
from encore.papers.sparse_sos.implicit import Gradient, bound_gradient, certificate_gradient
from encore.papers.sparse_sos.instances import Instance, dense_chain
from encore.papers.sparse_sos.program import Program
from encore.papers.sparse_sos.solver import Solution, solve

STENCIL = np.array([[-2, 1 / 12], [-1, -2 / 3], [1, 2 / 3], [2, -1 / 12]])  # fourth order


def solved(instance: Instance, mu: float, numbers: np.ndarray | None = None) -> Solution:
    """The centred solution of an instance (or of other numbers on its program)."""
    p, q, data = instance.split(instance.numbers if numbers is None else numbers)
    return solve(instance.program, p, mu, q=q, data=data)


def random_loss(solution: Solution, seed: int) -> Grams:
    """Random symmetric G_k of the certificate loss sum <G_k, Q_k>, normal entries."""
    rng = np.random.default_rng(seed)
    parts = [rng.normal(size=gram.shape) for gram in solution.grams]
    return [(part + part.swapaxes(-1, -2)) / 2 for part in parts]


def pulled_back(instance: Instance, gradient: Gradient) -> np.ndarray:
    """The gradient in an instance's numbers."""
    program = instance.program
    parts = (gradient.p @ program.objective, gradient.q @ program.norm_map, gradient.data)
    return np.concatenate(parts)


def gradient_rows(instance: Instance, mu: float, step: float, seed: int) -> dict[str, float]:
    """Relative differences of gradients, with mu in units of the largest coefficient.

    Returns:
        kkt_error: certificate loss, sparse against dense KKT (2-norms).
        fd_error: the same against central differences along five random relative changes of all numbers.
        scalar_fd_error: moments-only gradient against central differences of the centred value.
    """
    mu *= np.abs(instance.coeffs).max()
    solution, rng = solved(instance, mu), np.random.default_rng(seed + 1)
    loss, zero = random_loss(solution, seed), np.zeros(instance.program.cone.num_variables)
    ours = pulled_back(instance, certificate_gradient(solution, 0.0, zero, loss))
    dense = DenseKKT(solution.cone, solution.q).gradient(solution, 0.0, zero, loss)
    scalar = pulled_back(instance, bound_gradient(solution))
    directions = rng.normal(size=(5, len(ours))) * instance.numbers
    found = np.zeros((5, 2))
    for k, direction in enumerate(directions):
        for shift, weight in STENCIL:
            near = solved(instance, mu, instance.numbers + step * shift * direction)
            values = [_inner(loss, near.grams), centred_value(near)]
            found[k] += weight / step * np.array(values)
    return {
        "kkt_error": relative(pulled_back(instance, dense), ours),
        "fd_error": relative(found[:, 0], directions @ ours),
        "scalar_fd_error": relative(found[:, 1], directions @ scalar),
    }


def relative(value: np.ndarray, reference: np.ndarray) -> float:
    """|value - reference| / |reference| in the 2-norm."""
    return float(np.linalg.norm(value - reference) / np.linalg.norm(reference))


def _inner(left: Grams, right: Grams) -> float:
    return sum(float((a * b).sum()) for a, b in zip(left, right, strict=True))


def centred_value(solution: Solution) -> float:
    """p . y - mu sum_k logdet M_k(y), whose gradient needs the moments only."""
    logs = sum(float(np.linalg.slogdet(w)[1].sum()) for w in solution.inverses)
    return solution.bound + solution.mu * (solution.cone.cone.order + logs)


def envelope_gap(instance: Instance, mu: float) -> float:
    """Moments-only gradient against the implicit gradient of the bound itself, relative."""
    solution = solved(instance, mu)
    zero = np.zeros(instance.program.cone.num_variables)
    none = [np.zeros_like(gram) for gram in solution.grams]
    full = pulled_back(instance, certificate_gradient(solution, 1.0, zero, none))
    return relative(pulled_back(instance, bound_gradient(solution)), full)


def reference_value(program: Program, p: np.ndarray, q: np.ndarray, data: np.ndarray) -> float:
    """The relaxation's value by Clarabel alone to tight tolerances."""
    shift = float(p @ q) / float(q @ q)
    p = p - shift * q
    scale = np.abs(p).max()
    form = ClarabelForm(program.cone.at(data), q)
    return scale * float(form.solve(p / scale, 1e-9, 1e-9).obj_val) + shift


def quality_rows(instance: Instance, mu: float, seed: int) -> dict[str, float]:
    """How good and how sure the bound is.

    Returns:
        bound_gap: (value - bound) / max(1, |value|), where value is Clarabel's, or the least value found
            by search where that is smaller (the relaxation cannot lie above it).
        violation: 1 if the rigorous bound lies above the least value found by search, else 0.
        search_gap: (that least value - rigorous bound) / max(1, |least value|).
        min_eig, rigorous_bound: from ``verify_certificate``.
        fill: entries of the backward's sparse factor per entry of the cliques' pattern.
    """
    p, q, data = instance.split(instance.numbers)
    solution = solved(instance, mu)
    blocks = instance.program.cone.split(solution.grams)
    report = check_blocks(instance.program, instance.coeffs, q, data, blocks, solution.bound)
    least = instance.search(blocks, seed)
    value = min(reference_value(instance.program, p, q, data), least)
    return {
        "bound_gap": (value - solution.bound) / max(1.0, abs(value)),
        "violation": float(report.rigorous_bound > least),
        "search_gap": (least - report.rigorous_bound) / max(1.0, abs(least)),
        "min_eig": report.min_eig,
        "rigorous_bound": report.rigorous_bound,
        "fill": fill(solution),
    }


def fill(solution: Solution) -> float:
    """Entries of the sparse factor L per entry of the lower triangle of the cliques' pattern."""
    pattern = solution.hessian().nnz
    return solution.factor.lu.L.nnz / ((pattern + len(solution.y)) / 2)


def dense_certificate_gap(n: int, seed: int, instance: Instance) -> float:
    """Value with one dense Gram block minus value with sparse ones, relative."""
    dense = dense_chain(n, seed)
    values = [reference_value(x.program, *x.split(x.numbers)) for x in (dense, instance)]
    return (values[0] - values[1]) / max(1.0, abs(values[0]))


def checks(instances: list[tuple[Instance, int]], plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """All rows of a data set: gradients and quality of each (instance, seed)."""
    for instance, seed in instances:
        factors = {"seed": seed, "name": instance.name, "size": instance.size}
        numbers: dict[str, float] = {}
        if instance.size <= plan["gradient_size"]:
            numbers |= gradient_rows(instance, plan["mu_gradient"], plan["step"], seed)
        numbers |= quality_rows(instance, plan["mu"], seed)
        for metric, value in numbers.items():
            yield {"method": "sparse", "metric": metric, "value": value, **factors}
        for mu in plan["mu_envelope"]:
            gap = envelope_gap(instance, mu)
            yield {
                "method": "moments_only",
                "metric": "envelope_gap",
                "value": gap,
                "mu": mu,
                **factors,
            }
