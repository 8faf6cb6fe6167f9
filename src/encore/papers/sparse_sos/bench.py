"""Times of the backward: sparse, dense and peer, interleaved in one process, and of the forward's parts."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from encore.papers.sparse_sos.conic import ClarabelForm
from encore.papers.sparse_sos.dense import DenseKKT, DenseNewton
from encore.papers.sparse_sos.implicit import bound_gradient, certificate_gradient
from encore.papers.sparse_sos.instances import Instance
from encore.papers.sparse_sos.peer import DiffcpForm
from encore.papers.sparse_sos.solver import solve


def interleaved(tasks: dict[str, Callable[[], Any]], repeats: dict[str, int]) -> dict[str, float]:
    """Least CPU milliseconds of each task, run in turns after one warm-up round."""
    best = dict.fromkeys(tasks, np.inf)
    for name, task in tasks.items():
        if repeats[name] > 1:
            task()
    for turn in range(max(repeats.values())):
        for name, task in tasks.items():
            if turn < repeats[name]:
                start = time.process_time_ns()
                task()
                best[name] = min(best[name], (time.process_time_ns() - start) / 1e6)
    return best


def backward_times(instance: Instance, mu: float, plan: dict[str, Any]) -> dict[str, float]:
    """Milliseconds of one backward of a certificate loss by every method (bound: of the bound).

    Methods: sparse assembles, factors and solves; sparse_reuse takes the forward's last factor; dense_kkt
    is LAPACK's LU of the whole KKT matrix, dense_cholesky LAPACK's Cholesky of the Newton matrix that
    sparse factors; diffcp_* are the peer. ``plan`` holds the largest system for each dense method, and
    mu is in units of the largest coefficient.
    """
    p, q, data = instance.split(instance.numbers)
    solution = solve(instance.program, p, mu * np.abs(p).max(), q=q, data=data)
    rng = np.random.default_rng(0)
    loss = [rng.normal(size=gram.shape) for gram in solution.grams]
    loss = [(part + part.swapaxes(-1, -2)) / 2 for part in loss]
    zero = np.zeros(len(p))
    tasks: dict[str, Callable[[], Any]] = {
        "sparse": lambda: certificate_gradient(solution, 0.0, zero, loss, reuse=False),
        "sparse_reuse": lambda: certificate_gradient(solution, 0.0, zero, loss),
        "bound": lambda: bound_gradient(solution),
    }
    repeats = {"sparse": plan["repeats"], "sparse_reuse": plan["repeats"], "bound": plan["repeats"]}
    sizes = instance.program.block_sizes
    entries = len(p) + sum(s * (s + 1) // 2 for s in sizes)
    if len(p) <= plan["max_cholesky"]:
        newton = DenseNewton(solution.cone)
        tasks["dense_cholesky"] = lambda: newton.gradient(solution, 0.0, zero, loss)
        repeats["dense_cholesky"] = plan["repeats"]
    if entries <= plan["max_kkt"]:
        kkt = DenseKKT(solution.cone, solution.q)
        tasks["dense_kkt"] = lambda: kkt.gradient(solution, 0.0, zero, loss)
        repeats["dense_kkt"] = plan["repeats"] if entries < 2000 else plan["large_repeats"]
    if entries <= plan["max_peer"] and not len(instance.data) and len(instance.norm_coeffs) == 1:
        blocks = instance.program.cone.split(loss)
        for mode in ("dense", "lsqr"):
            form = DiffcpForm(instance.program, mode)
            found = form.solve(p)
            tasks[f"diffcp_{mode}"] = lambda form=form, found=found: form.gradient(
                found, zero, blocks
            )
            repeats[f"diffcp_{mode}"] = plan["large_repeats"]
    return interleaved(tasks, repeats)


def forward_times(instance: Instance, mu: float, repeats: int) -> dict[str, float]:
    """Milliseconds of Clarabel alone and of the whole forward, its set-up reused by both."""
    p, q, data = instance.split(instance.numbers)
    p = p / np.abs(p).max()
    cone = instance.program.cone.at(data)
    form = ClarabelForm(cone, q)
    tasks = {
        "clarabel": lambda: form.solve(p, mu * cone.cone.order),
        "forward": lambda: solve(instance.program, p, mu, q=q, data=data, form=form),
    }
    return interleaved(tasks, dict.fromkeys(tasks, repeats))


def batch_times(build: Callable[[], Instance], items: int, mu: float) -> dict[str, float]:
    """CPU milliseconds per item of a batch that shares one structure, and of separate builds."""

    def shared() -> None:
        instance = build()
        p, q, data = instance.split(instance.numbers)
        form = ClarabelForm(instance.program.cone.at(data), q)
        for k in range(items):
            certificate(instance, p * (1 + 1e-3 * k), form)

    def separate() -> None:
        for k in range(items):
            instance = build()
            p, _, _ = instance.split(instance.numbers)
            certificate(instance, p * (1 + 1e-3 * k), None)

    def certificate(instance: Instance, p: np.ndarray, form: ClarabelForm | None) -> None:
        solution = solve(instance.program, p, mu, form=form)
        certificate_gradient(solution, 0.0, np.zeros(len(p)), solution.grams)

    tasks = {"batch_shared": shared, "batch_separate": separate}
    found = interleaved(tasks, {"batch_shared": 2, "batch_separate": 1})
    return {name: value / items for name, value in found.items()}
