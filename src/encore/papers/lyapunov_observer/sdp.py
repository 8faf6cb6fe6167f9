"""The direct approach: fixed random hidden layers, everything else from one semidefinite program."""

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from encore.papers.lyapunov_observer.lmi import assemble, split_multipliers
from encore.papers.lyapunov_observer.observer import NeuralObserver, error_matrices
from encore.papers.lyapunov_observer.pretrain import FLOOR, store

SOLVERS = ("CLARABEL", "SCS")
STARTED = "started"
ONE_THREAD = {
    name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS",
                           "RAYON_NUM_THREADS")
}  # fmt: skip


@dataclass(frozen=True)
class SDPReport:
    """Outcome of the direct SDP.

    finished: the solver ended by itself before the limit. status: the solver's word, or "cut off".
    seconds: from the start of modelling to the end of the solver, or the limit.
    size: side of H. lambda_max: of H at the solution (NaN if there is none).
    weights: W_1 .. W_{L+2}; P, Lambda: the certificate; None without a solution.
    """

    finished: bool
    status: str
    seconds: float
    size: int
    lambda_max: float
    weights: list[np.ndarray] | None
    P: np.ndarray | None
    Lambda: np.ndarray | None


def train_direct_sdp(
    system,
    hidden_weights: Sequence[np.ndarray],
    rho: float = 0.2,
    solver: str = "CLARABEL",
    *,
    eps: float = 0.1,
    margin: float = 1e-3,
    max_seconds: float = 60.0,
) -> SDPReport:
    """Solve H < 0 for P, W_{L+1}, W_{L+2} and the multipliers with fixed W_1 .. W_L (tanh or ReLU).

    In P, Y = P W_{L+1}, Z = P W_{L+2} and Lambda the inequality is linear: one SDP of side n + n_d +
    neurons, here H <= -margin I, P >= 0.01 I, no objective. The solver runs in a process of its own
    on one thread and is killed after ``max_seconds`` (imports excepted).

    Raises
    ------
    ValueError: rho < 0, an unknown solver, hidden weights that do not chain from the outputs.
    """
    if not rho >= 0:
        raise ValueError(f"rho must be >= 0, got {rho}")
    if solver not in SOLVERS:
        raise ValueError(f"solver is {solver!r}; known solvers: {', '.join(SOLVERS)}")
    if not max_seconds > 0:
        raise ValueError(f"max_seconds must be > 0, got {max_seconds}")
    hidden, width = [np.asarray(weight, dtype=np.float64) for weight in hidden_weights], system.n_y
    for i, weight in enumerate(hidden):
        if weight.ndim != 2 or weight.shape[1] != width:
            raise ValueError(f"hidden_weights[{i}] has shape {weight.shape}, expected (., {width})")
        width = len(weight)
    A_e, C_e = error_matrices(system, eps)
    given = {f"W{i}": weight for i, weight in enumerate(hidden)} | {"A_e": A_e, "C_e": C_e}
    options = {"rho": rho, "margin": margin, "floor": FLOOR, "solver": solver}
    options["layers"] = len(hidden)
    answer = _in_subprocess(given, options, max_seconds)
    size = len(A_e) + sum(map(len, hidden))
    if answer is None:
        return SDPReport(False, "cut off", max_seconds, size, float("nan"), None, None, None)
    status, seconds, P = str(answer["status"]), float(answer["seconds"]), answer.get("P")
    if P is None or not np.isfinite(P).all() or np.linalg.eigvalsh(P)[0] <= 0:
        return SDPReport(True, status, seconds, size, float("nan"), None, None, None)
    heads = [np.linalg.solve(P, answer[name]) for name in ("Y", "Z") if name in answer]
    weights = [*hidden, *heads]
    layers = [answer[f"L{i}"] for i in range(len(hidden))]
    H = assemble(weights, layers, P, A_e, C_e, rho)
    flat = np.concatenate(layers) if layers else np.zeros(0)
    return SDPReport(
        True, status, seconds, size, float(np.linalg.eigvalsh(H)[-1]), weights, P, flat
    )


def sdp_observer(obs: NeuralObserver, arrays: Mapping[str, np.ndarray], prefix: str = ""):
    """``obs`` with the solution of ``train_direct_sdp``: "<prefix>W1" .., "P", "Lambda" of arrays."""
    count = len(obs.weights)
    weights = [arrays[f"{prefix}W{i + 1}"] for i in range(count)]
    layers = split_multipliers(arrays[f"{prefix}Lambda"], obs.net.hidden)
    store(obs, weights, arrays[f"{prefix}P"], layers)
    return obs


def lmi_feasibility(weights: Sequence[np.ndarray], A_e, C_e, rho: float, solver="CLARABEL"):
    """Peer of the certificate at fixed weights W_1..W_{L+2}: (t, P, [lambda_i]) by cvxpy.

    Maximises t subject to H <= -t I, P >= t I and trace(P) + sum(lambda) = 1; a certificate exists if
    and only if the optimum t is positive.
    """
    import cvxpy as cp

    from encore.papers.lyapunov_observer.sdp_solver import inequality

    m, t = len(A_e), cp.Variable()
    P = cp.Variable((m, m), symmetric=True)
    Y = P @ weights[-2] if len(weights) > 1 else None
    layers, H = inequality(weights[:-2], P, Y, P @ weights[-1], A_e, C_e, rho)
    total = cp.trace(P) + sum(cp.sum(layer) for layer in layers)
    conditions = [H << -t * np.eye(H.shape[0]), P >> t * np.eye(m), total == 1]
    cp.Problem(cp.Maximize(t), conditions).solve(solver=solver)
    return float(t.value), P.value, [layer.value for layer in layers]


# -- the process that solves ------------------------------------------------------------------------


def _in_subprocess(given, options, max_seconds):
    """Arrays written by ``sdp_solver.py`` in a child process, or None if it was cut off."""
    with tempfile.TemporaryDirectory(prefix="encore-sdp-") as folder:
        np.savez(Path(folder, "given.npz"), **given)
        Path(folder, "options.json").write_text(json.dumps(options), encoding="utf-8")
        child = subprocess.Popen(
            [sys.executable, Path(__file__).with_name("sdp_solver.py"), folder],
            env={**os.environ, **ONE_THREAD}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        try:
            line = child.stdout.readline()  # imports are over
            if line.strip() != STARTED:
                raise RuntimeError(f"the SDP process did not start: {child.stderr.read()}")
            drain = threading.Thread(target=child.stdout.read, daemon=True)
            drain.start()
            code = child.wait(timeout=max_seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:
            child.kill()
            child.wait()
            errors = child.stderr.read()
            child.stderr.close()
        drain.join()
        child.stdout.close()
        if code:
            raise RuntimeError(f"the SDP process failed with code {code}: {errors}")
        with np.load(Path(folder, "answer.npz"), allow_pickle=False) as answer:
            return dict(answer)
