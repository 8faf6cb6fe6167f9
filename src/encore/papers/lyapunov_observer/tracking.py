"""Trajectory tracking of a vehicle: acceleration feedback, PD on the estimates minus the disturbance.

The same loop flies the quadrotor (height) and steers the vehicle under water (plane), for every method:

    a = a_ref + PID(r - p, v_ref - v) - d_hat,    u = vehicle.command(x, a)

with ``(p, v)`` the measured output, compared with the reference of its own time. Observers have no integral term; PID has no ``d_hat``, the Neural
Lander a fitted one. Each method is a *candidate* with its own gains; all candidates and trials form one
batch.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from encore.papers.lyapunov_observer.baselines import PID, Measurement, NeuralLander

Array = NDArray[np.float64]

RECORDED = ("position", "output", "effective", "disturbance")
LOST = 1e4  # a state or estimate beyond this (SI units) ends the trial


@dataclass(frozen=True)
class Candidate:
    """An observer with the gains of its feedback: ``kp = bandwidth^2``, ``kd = 2 bandwidth``, ``ki``.

    ``parameter`` records what the observer was made with (omega_0, eps, a level, an integral gain),
    ``network`` the seed of a network (0 for the others).
    """

    method: str
    observer: object
    bandwidth: float
    ki: float = 0.0
    parameter: float = 0.0
    network: int = 0


@dataclass(frozen=True)
class Mission:
    """What one batch of trials is asked to do.

    ``x0`` (B, n_x) start of the vehicle; ``reference`` (T, B, 3, k) position, velocity, acceleration at
    the T steps; ``force`` (T, B, n_f) external force (N); ``noise`` (T, B, n_y) added to the output;
    ``dt`` (s); ``latency``, by how many steps the output is old when the controller sees it.
    """

    x0: Array
    reference: Array
    force: Array
    noise: Array
    dt: float
    latency: int = 0


@dataclass(frozen=True)
class Flight:
    """Result over candidates K and trials B: ``rmse`` (K, B) tracking error; ``estimate_rmse`` (K, B)
    error of the disturbance estimate (m/s^2), both NaN where a trial was lost; and, if recorded, time first, ``position``
    (T, K, B, k), ``output`` (T, K, B, n_y), ``effective`` and ``disturbance`` (T, K, B, k).
    """

    rmse: Array
    estimate_rmse: Array
    position: Array | None = None
    output: Array | None = None
    effective: Array | None = None
    disturbance: Array | None = None


def minimum_jerk(start: ArrayLike, end: ArrayLike, duration: float, times: ArrayLike) -> Array:
    """Position, velocity, acceleration (T, 3, k) from ``start`` (k,) to ``end`` (k,), then rest.

    Quintic in time with zero velocity and acceleration at both ends. Raises ``ValueError`` for
    ``duration <= 0``.
    """
    if not duration > 0:
        raise ValueError(f"duration must be positive, got {duration}")
    start, end = np.atleast_1d(np.asarray(start, float)), np.atleast_1d(np.asarray(end, float))
    s = np.clip(np.asarray(times, dtype=float) / duration, 0, 1)[:, None]
    way = end - start
    position = start + way * (10 * s**3 - 15 * s**4 + 6 * s**5)
    velocity = way * (30 * s**2 - 60 * s**3 + 30 * s**4) / duration
    acceleration = way * (60 * s - 180 * s**2 + 120 * s**3) / duration**2
    return np.stack([position, velocity, acceleration], axis=1)


def track(
    make_vehicle,
    candidates: Sequence[Candidate],
    mission: Mission,
    *,
    integral_limit: float = 6.0,
    record: bool = False,
) -> Flight:
    """Run every candidate on the same trials.

    ``make_vehicle(copies)`` gives the vehicle whose per-trial parameters are repeated ``copies`` times.
    An observer may be a list, one for each trial (trial b is run with the b-th). The RMSE is over the
    whole mission, against the true position. Raises ``ValueError`` when there is no candidate or the
    mission's arrays do not fit.
    """
    count, trials = len(candidates), len(mission.x0)
    if count == 0:
        raise ValueError("candidates is empty")
    for name in ("reference", "force", "noise"):
        if getattr(mission, name).shape[1] != trials:
            raise ValueError(
                f"{name} has {getattr(mission, name).shape[1]} trials, x0 has {trials}"
            )
    vehicle = make_vehicle(count)
    k = mission.reference.shape[-1]
    per_row = np.repeat([[c.bandwidth, c.ki] for c in candidates], trials, axis=0)
    pid = PID(per_row[:, :1] ** 2, per_row[:, 1:], 2 * per_row[:, :1], integral_limit)
    banks = _banks(candidates, trials)
    x = np.tile(mission.x0, (count, 1))
    y = vehicle.measure(x) + np.tile(mission.noise[0], (count, 1))
    old = [vehicle.measure(x)] * mission.latency
    xhat, dhat, u = y.copy(), np.zeros((len(x), k)), np.zeros((len(x), k))
    integral = np.zeros((len(x), k))
    error_sum, estimate_sum = np.zeros(len(x)), np.zeros(len(x))
    lost = np.zeros(len(x), dtype=bool)
    log: dict[str, list[Array]] = {name: [] for name in RECORDED if record}
    steps = len(mission.reference)
    for t in range(steps):
        old.append(vehicle.measure(x))
        y = old.pop(0) + np.tile(mission.noise[t], (count, 1))
        for bank in banks:
            if bank.static:
                bank.advance(xhat, dhat, u, y, mission.dt)
        target = np.tile(mission.reference[t], (count, 1, 1))
        past = np.tile(mission.reference[max(t - mission.latency, 0)], (count, 1, 1))
        integral, feedback = pid.step(
            integral, past[:, 0] - y[:, :k], past[:, 1] - y[:, k:], mission.dt
        )
        command = vehicle.command(x, target[:, 2] + feedback - dhat)
        u = vehicle.effective(command)
        force = np.tile(mission.force[t], (count, 1))
        truth = vehicle.acceleration(x, command, force) - u
        error_sum += ((vehicle.measure(x)[:, :k] - target[:, 0]) ** 2).sum(axis=1)
        estimate_sum += ((truth - dhat) ** 2).sum(axis=1)
        if record:
            for name, value in zip(RECORDED, (vehicle.measure(x)[:, :k], y, u, truth), strict=True):
                log[name].append(value.reshape(count, trials, -1).copy())
        x = vehicle.step(x, command, force, mission.dt)
        lost |= ~(np.abs(x).max(axis=1) < LOST) | ~(np.abs(dhat).max(axis=1) < LOST)
        if lost.any():
            # a lost trial is over: hold it at the start, so that nothing overflows
            x[lost] = np.tile(mission.x0, (count, 1))[lost]
            xhat[lost], dhat[lost], integral[lost] = vehicle.measure(x[lost]), 0.0, 0.0
        for bank in banks:
            if not bank.static:
                bank.advance(xhat, dhat, u, y, mission.dt)
    error_sum[lost] = estimate_sum[lost] = np.nan
    shape = (count, trials)
    return Flight(
        np.sqrt(error_sum / steps).reshape(shape),
        np.sqrt(estimate_sum / steps).reshape(shape),
        **{name: np.stack(values) for name, values in log.items()},
    )


def select(candidates: Sequence[Candidate], score: ArrayLike) -> list[int]:
    """Index of the best candidate of each method and network, in order of appearance.

    Best is the least ``score`` (K,); NaN counts as worst. Raises ``ValueError`` when a method has no
    candidate with a finite score.
    """
    score = np.nan_to_num(np.asarray(score, dtype=float), nan=np.inf)
    best: dict[tuple[str, int], int] = {}
    for i, candidate in enumerate(candidates):
        current = best.setdefault((candidate.method, candidate.network), i)
        if score[i] < score[current]:
            best[candidate.method, candidate.network] = i
    for (method, _), i in best.items():
        if not np.isfinite(score[i]):
            raise ValueError(f"method {method!r} has no candidate that finished the mission")
    return list(best.values())


class _Bank:
    """The rows of the batch that one observer serves; a stacked one has an axis over the trials."""

    def __init__(self, observer, rows, trials):
        self.observer, self.rows, self.trials = observer, rows, trials
        self.static = isinstance(observer, Measurement | NeuralLander)
        self.stacked = getattr(observer, "stacked", False)

    def advance(self, xhat, dhat, u, y, dt):
        values = [value[self.rows] for value in (xhat, dhat, u, y)]
        if self.stacked:
            values = [v.reshape(-1, self.trials, v.shape[1]).swapaxes(0, 1) for v in values]
        x, d = self.observer.step(*values, dt)
        if self.stacked:
            x, d = (v.swapaxes(0, 1).reshape(-1, v.shape[2]) for v in (x, d))
        xhat[self.rows], dhat[self.rows] = x, d


def _banks(candidates, trials):
    """One bank for each distinct observer, so that candidates with other gains share its steps."""
    rows: dict[int, list[Array]] = {}
    observers = {}
    for i, candidate in enumerate(candidates):
        observers[id(candidate.observer)] = candidate.observer
        rows.setdefault(id(candidate.observer), []).append(np.arange(i * trials, (i + 1) * trials))
    return [
        _Bank(observer, np.concatenate(rows[key]), trials) for key, observer in observers.items()
    ]
