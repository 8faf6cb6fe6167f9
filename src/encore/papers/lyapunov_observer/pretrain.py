"""Stage 1: make V decrease at sampled error states (point-guided Lyapunov pre-training)."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from encore.papers.lyapunov_observer.lyapunov import F_V, decrease, sample_shell
from encore.papers.lyapunov_observer.observer import NeuralObserver

FLOOR = 0.01  # P = L L' + FLOOR I
CHECK_EVERY = 20
TEST_STREAM = 10_000_019  # the points that measure violations are drawn from another stream


@dataclass(frozen=True)
class PointReport:
    """Outcome of stage 1.

    violation_rate: share of fresh points of the shell with F_V > 0.
    margin_rate: share of them with F_V > -xi.
    steps: optimiser steps until a stopping check found no point with F_V > -xi, or the limit.
    seconds: wall time of training, without the final measurement.
    """

    violation_rate: float
    margin_rate: float
    steps: int
    seconds: float


def pretrain_pointwise(
    obs: NeuralObserver,
    rho: float = 0.2,
    M_w: float = 1.0,
    xi: float = 0.1,
    gamma: float = 1e-4,
    r_min: float = 1.0,
    r_max: float = 5.0,
    *,
    learning_rate: float = 1e-2,
    batch: int = 512,
    max_steps: int = 4000,
    check_points: int = 4096,
    test_points: int = 20_000,
    seed: int = 0,
    dtype: torch.dtype = torch.float32,
) -> PointReport:
    """Train the weights and P = LL' + 0.01 I of ``obs`` in place; returns what was reached.

    Loss: mean relu(F_V(eta) + xi) + gamma |theta|^2 at ``batch`` fresh error states per Adam step,
    direction uniform, radius uniform in [r_min, r_max]. Every 20 steps ``check_points`` fresh
    points are tested; training stops when none has F_V > -xi. Steps are taken in ``dtype``; the
    reported rates are measured in float64. Source: arXiv 2609.30819, stage 1.

    Raises
    ------
    ValueError: rho, M_w, xi or gamma negative, or not 0 < r_min < r_max.
    """
    for name, value in (("rho", rho), ("M_w", M_w), ("xi", xi), ("gamma", gamma)):
        if not value >= 0:
            raise ValueError(f"{name} must be >= 0, got {value}")
    generator = torch.Generator().manual_seed(seed)
    weights = [weight.to(dtype, copy=True).requires_grad_() for weight in obs.weights]
    factor = torch.from_numpy(initial_factor(obs)).to(dtype).requires_grad_()
    A_e, C_e = (torch.from_numpy(matrix).to(dtype) for matrix in (obs.A_e, obs.C_e))
    floor = FLOOR * torch.eye(obs.size, dtype=dtype)
    optimizer = torch.optim.Adam([*weights, factor], lr=learning_rate, foreach=True)

    def worst(count):
        L = factor.tril()
        eta = sample_shell(count, obs.size, r_min, r_max, generator, dtype)
        P = L @ L.T + floor
        return decrease(weights, obs.net.act, A_e, C_e, P, eta, rho, obs.eps * M_w)

    start, steps = time.perf_counter(), 0
    while steps < max_steps:
        decay = sum(weight.square().sum() for weight in weights)
        loss = torch.relu(worst(batch) + xi).mean() + gamma * decay
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps += 1
        if steps % CHECK_EVERY == 0:
            with torch.no_grad():
                if not (worst(check_points) > -xi).any():
                    break
    seconds = time.perf_counter() - start
    L = factor.detach().tril().double().numpy()
    store(obs, weights, L @ L.T + FLOOR * np.eye(obs.size))
    eta = sample_shell(
        test_points, obs.size, r_min, r_max, torch.Generator().manual_seed(seed + TEST_STREAM)
    )
    value = F_V(obs, eta, rho, M_w)
    rates = [float((value > limit).double().mean()) for limit in (0.0, -xi)]
    return PointReport(*rates, steps, seconds)


def initial_factor(obs: NeuralObserver) -> np.ndarray:
    """Lower triangular L with L L' + 0.01 I = obs.P, or the identity when there is no P."""
    if obs.P is None:
        return np.eye(obs.size)
    return np.linalg.cholesky(obs.P - FLOOR * np.eye(obs.size))


def store(obs: NeuralObserver, weights: Sequence, P: np.ndarray, multipliers=None) -> None:
    """Write trained weights, P and multipliers into the observer."""
    with torch.no_grad():
        for parameter, weight in zip(obs.net.weights, weights, strict=True):
            parameter.copy_(torch.as_tensor(weight))
    obs.P, obs.multipliers = np.array(P), multipliers
