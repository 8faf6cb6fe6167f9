"""Costs of the learning side of lyapunov_observer; prints ratios of one run, asserts nothing.

Run: python tests/benchmarks/bench_lyapunov_observer.py (set OMP_NUM_THREADS=1).
"""

import time

import numpy as np
import torch

from encore.papers.lyapunov_observer import (
    NeuralObserver,
    ObserverNet,
    UncertainLTI,
    finetune_lmi,
    pretrain_pointwise,
)
from encore.papers.lyapunov_observer.observer import pack, unpack
from encore.papers.lyapunov_observer.simulate import closed_loop, draw_trials

RHO = 0.2


def plant() -> UncertainLTI:
    """Four states and two disturbances, the size of the aircraft models."""
    A = np.array(
        [[-0.01, -0.06, 0.0, -0.3], [0.0, -0.8, 1.0, 0.0], [0.0, 12.0, -0.4, 0.0], [0, 0, 1, 0]]
    )
    return UncertainLTI(A, np.eye(4)[:, 1:3], np.eye(4), np.eye(4)[:, 1:3])


def fresh(hidden=(32, 64, 32)) -> NeuralObserver:
    """An untrained observer."""
    return NeuralObserver(plant(), ObserverNet(4, 4, 2, hidden, seed=0), 0.1)


def through_eigh(obs: NeuralObserver, iterations: int) -> float:
    """Milliseconds per iteration of the same descent, differentiated through torch.linalg.eigh."""
    A_e, C_e = torch.from_numpy(obs.A_e), torch.from_numpy(obs.C_e)
    weights = [w.clone().requires_grad_() for w in obs.weights]
    L = torch.eye(6, dtype=torch.float64).requires_grad_()
    logs = [torch.zeros(h, dtype=torch.float64).requires_grad_() for h in obs.net.hidden]
    optimizer = torch.optim.Adam([{"params": [*weights, L]}, {"params": logs, "lr": 3e-2}], lr=2e-3)
    sizes = np.cumsum([0, 6, *obs.net.hidden])
    start = time.perf_counter()
    for _ in range(iterations):
        factor = L.tril()
        P = factor @ factor.T + 0.01 * torch.eye(6, dtype=torch.float64)
        PA = P @ (A_e - weights[-1] @ C_e)
        H = torch.zeros(sizes[-1], sizes[-1], dtype=torch.float64)
        H[:6, :6] = PA + PA.T + RHO * P
        for i, log in enumerate(logs):
            here, before = slice(sizes[i + 1], sizes[i + 2]), slice(sizes[i], sizes[i + 1])
            block = log.exp()[:, None] * (weights[i] @ C_e if i == 0 else weights[i])
            H[here, here] = torch.diag(-2 * log.exp())
            H[here, before], H[before, here] = block, block.T
        last = -P @ weights[-2]
        H[:6, here], H[here, :6] = last, last.T
        loss = torch.logsumexp(20 * torch.linalg.eigh(H)[0][-8:], 0) / 20
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return (time.perf_counter() - start) / iterations * 1e3


def main() -> None:
    """Print every row."""
    torch.set_num_threads(1)
    for name, hidden in (
        ("128 neurons", (32, 64, 32)),
        ("576 neurons", (32, 64, 64, 128, 128, 64, 64, 32)),
    ):
        count = 100 if len(hidden) == 3 else 10
        report = finetune_lmi(fresh(hidden), RHO, max_iterations=count)
        ours = report.seconds / report.iterations * 1e3
        peer = through_eigh(fresh(hidden), count)
        print(
            f"LMI iteration, {name}: {ours:.2f} ms; through eigh {peer:.2f} ms; ratio {peer / ours:.1f}"
        )
    report = pretrain_pointwise(fresh(), RHO, 2.2, max_steps=200, xi=10.0)
    print(f"stage 1 step, batch 512: {report.seconds / report.steps * 1e3:.2f} ms")
    obs = fresh()
    finetune_lmi(obs, RHO)
    start = time.perf_counter()
    closed_loop(obs.system, obs, draw_trials(obs.system, 100, 0), seconds=100.0, dt=0.01)
    print(f"100 trials x 10,000 steps, small net: {time.perf_counter() - start:.1f} s (target 8 s)")
    start = time.perf_counter()
    for _ in range(100):
        unpack(pack({"a/b": obs}))
    print(f"pack and unpack: {(time.perf_counter() - start) * 10:.2f} ms")


if __name__ == "__main__":
    main()
