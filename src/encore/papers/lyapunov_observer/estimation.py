"""Estimation error of neural observers in closed loop."""

from collections.abc import Sequence

import numpy as np

from encore.papers.lyapunov_observer.observer import NeuralObserver
from encore.papers.lyapunov_observer.simulate import closed_loop, draw_trials

STABLE = 2.0  # largest product of step and fastest rate; classical Runge-Kutta is stable up to 2.78


def fastest_rate(obs: NeuralObserver) -> float:
    """Largest eigenvalue modulus (1/s) of the error dynamics, linearised at 0 and saturated."""
    weights, slope = [weight.numpy() for weight in obs.weights], np.eye(obs.system.n_y)
    for weight in weights[:-1]:
        slope = weight @ slope
    gains = [weights[-1]] + ([weights[-1] + slope] if len(weights) > 1 else [])
    moduli = [np.abs(np.linalg.eigvals(obs.A_e - gain @ obs.C_e)).max() for gain in gains]
    return float(max(moduli) / obs.eps)


def estimation_errors(
    observers: Sequence[NeuralObserver],
    seeds: Sequence[int],
    *,
    trials: int,
    seconds: float,
    dt: float,
) -> dict[str, np.ndarray]:
    """Closed-loop estimation error of one observer per seed, on trials drawn from that seed.

    Arrays (len(seeds),): ``estimation_mse``, the time average of |x - xhat|^2 + |d - dhat|^2 over
    successful trials (NaN without any), and ``success_rate``, the share of trials with |x| <= 3 throughout.
    The step is ``dt``, or less where an observer is so fast that the integration would be unstable.
    """
    system = observers[0].system
    dt = min(dt, STABLE / max(map(fastest_rate, observers)))
    draws = draw_trials(system, trials, list(seeds))
    outcome = closed_loop(system, list(observers), draws, seconds=seconds, dt=dt)
    total, count = outcome.state_mse + outcome.disturbance_mse, outcome.success.sum(axis=-1)
    sums = np.where(outcome.success, total, 0.0).sum(axis=-1)
    mse = np.divide(sums, count, out=np.full(len(count), np.nan), where=count > 0)
    return {"estimation_mse": mse, "success_rate": outcome.success.mean(axis=-1)}
