"""The direct SDP as a program of its own: model, solver, one file in and one file out.

Run as ``python sdp_solver.py FOLDER`` by ``encore.papers.lyapunov_observer.sdp``; imports nothing but
numpy and cvxpy, so that a cut-off process costs little.
"""

import json
import sys
import time
from pathlib import Path

import cvxpy as cp
import numpy as np

STARTED = "started"


def inequality(hidden, P, Y, Z, A_e, C_e, rho):
    """Multipliers and H as cvxpy expressions; Y = P W_{L+1} and Z = P W_{L+2} keep H linear."""
    core = P @ A_e - Z @ C_e
    widths = [len(weight) for weight in hidden]
    layers = [cp.Variable(width, nonneg=True) for width in widths]
    m, count = len(A_e), len(hidden)
    blocks = [[None] * (count + 1) for _ in range(count + 1)]
    blocks[0][0] = core + core.T + rho * P
    for i, (layer, weight) in enumerate(zip(layers, hidden, strict=True), start=1):
        blocks[i][i] = -2 * cp.diag(layer)
        blocks[i][i - 1] = cp.diag(layer) @ (weight @ C_e if i == 1 else weight)
    if count:
        last = blocks[count][0]
        blocks[count][0] = -Y.T if last is None else last - Y.T
    sizes = [m, *widths]
    for i in range(count + 1):
        for j in range(i):
            if blocks[i][j] is None:
                blocks[i][j] = np.zeros((sizes[i], sizes[j]))
            blocks[j][i] = blocks[i][j].T
    H = cp.bmat(blocks)
    return layers, (H + H.T) / 2


def solve_file(folder: str) -> None:
    """Read given.npz and options.json in ``folder``, solve, write answer.npz there."""
    options = json.loads(Path(folder, "options.json").read_text(encoding="utf-8"))
    with np.load(Path(folder, "given.npz"), allow_pickle=False) as archive:
        given = dict(archive)
    hidden = [given[f"W{i}"] for i in range(options["layers"])]
    A_e, C_e = given["A_e"], given["C_e"]
    sys.stdout.write(STARTED + "\n")
    sys.stdout.flush()
    start, m = time.perf_counter(), len(A_e)
    P = cp.Variable((m, m), symmetric=True)
    Y = cp.Variable((m, len(hidden[-1]))) if hidden else None
    Z = cp.Variable((m, len(C_e)))
    layers, H = inequality(hidden, P, Y, Z, A_e, C_e, options["rho"])
    negative = H << -options["margin"] * np.eye(H.shape[0])
    problem = cp.Problem(cp.Minimize(0), [negative, P >> options["floor"] * np.eye(m)])
    try:
        problem.solve(solver=options["solver"])
        status = problem.status
    except cp.SolverError as error:
        status = f"solver error: {error}"
    answer = {"status": np.array(status), "seconds": np.array(time.perf_counter() - start)}
    if P.value is not None:
        answer |= {"P": (P.value + P.value.T) / 2, "Z": Z.value}
        answer |= {"Y": Y.value} if hidden else {}
        answer |= {f"L{i}": layer.value for i, layer in enumerate(layers)}
    np.savez(Path(folder, "answer.npz"), **answer)


if __name__ == "__main__":
    solve_file(sys.argv[1])
