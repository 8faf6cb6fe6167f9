"""Closed-loop trials of uncertain linear plants: LQR on the estimates, disturbance cancelled.

Plant, observer and controller ``u = -K xhat - B^+ B_w dhat`` are one differential equation, advanced by
RK4 for all trials (and all networks) at once. Everything is float64 numpy; trials differ in the initial
state, in the disturbance ``d = a sin(omega t + phase)`` and in the mismatch of ``A`` and ``C``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from encore.papers.lyapunov_observer.baselines import ESO, LuenbergerLQE, Observer

Array = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

NORM_LIMIT = 3.0


class ArrayObserver(Observer):
    """A ``NeuralObserver`` (or several of one plant, eps and width) as numpy arrays.

    Same equations and interface; about three times faster on a CPU than tensors. Several observers are
    stacked: arrays are then (S, B, .) with one network per row of the first axis. Raises ``ValueError``
    for observers that differ in more than their weights, or an activation other than tanh and ReLU.
    """

    def __init__(self, observers):
        stacked = isinstance(observers, Sequence)
        observers = list(observers) if stacked else [observers]
        self.stacked = stacked
        first = observers[0]
        super().__init__(first.system)
        activation = first.net.activation
        if activation not in ("tanh", "relu"):
            raise ValueError(f"activation must be 'tanh' or 'relu', got {activation!r}")
        rows = []
        for i, observer in enumerate(observers):
            if observer.eps != first.eps or observer.net.hidden != first.net.hidden:
                raise ValueError(f"observers[{i}] has another eps or width than observers[0]")
            rows.append([weight.numpy().T for weight in observer.weights])
        weights = [np.stack(column) if stacked else column[0] for column in zip(*rows, strict=True)]
        self.eps, self.relu = first.eps, activation == "relu"
        scale = np.r_[np.ones(self.n), np.full(self.n_d, 1 / self.eps)]
        # pi((y - C xhat) / eps) times diag(1, 1/eps), the division folded into the first weights
        self._skip = np.ascontiguousarray(weights[-1] * scale / self.eps)
        self._out = None if len(weights) == 1 else np.ascontiguousarray(weights[-2] * scale)
        hidden = weights[:-2]
        if hidden:
            hidden = [hidden[0] / self.eps, *hidden[1:]]
        self._hidden = [np.ascontiguousarray(weight) for weight in hidden]

    def rates(self, xhat, dhat, u, y):
        error = y - xhat @ self.C.T
        correction = error @ self._skip
        if self._out is not None:
            w = error
            for weight in self._hidden:
                w = w @ weight
                np.maximum(w, 0.0, out=w) if self.relu else np.tanh(w, out=w)
            correction = correction + w @ self._out
        dx = xhat @ self.A.T + u @ self.B.T + dhat @ self.B_w.T
        return dx + correction[..., : self.n], correction[..., self.n :]


@dataclass(frozen=True)
class Trials:
    """What distinguishes trials: arrays with leading axes (..., T).

    ``x0`` (..., T, n); ``amplitude``, ``omega`` (rad/s), ``phase`` (..., T, n_d) of the disturbance;
    ``direction_a`` (..., T, n, n) and ``direction_c`` (..., T, n_y, n), of Frobenius norm 1, of the
    mismatch.
    """

    x0: Array
    amplitude: Array
    omega: Array
    phase: Array
    direction_a: Array
    direction_c: Array


def draw_trials(
    system,
    trials: int,
    seeds: int | Sequence[int],
    *,
    spread: float = 0.5,
    amplitude: tuple[float, float] = (0.2, 0.5),
    omega: tuple[float, float] = (1.0, 3.0),
) -> Trials:
    """Trials of ``system``; with a list of ``seeds`` the arrays get a leading axis over them.

    Initial states are normal with standard deviation ``spread`` in each coordinate (our choice),
    amplitudes and frequencies uniform, phases uniform on the circle, mismatch directions normal.
    Raises ``ValueError`` for ``trials < 1``.
    """
    if trials < 1:
        raise ValueError(f"trials must be at least 1, got {trials}")
    if not isinstance(seeds, int | np.integer):
        parts = [
            draw_trials(system, trials, int(s), spread=spread, amplitude=amplitude, omega=omega)
            for s in seeds
        ]
        return Trials(*(np.stack(column) for column in zip(*map(_fields, parts), strict=True)))
    n, n_d = system.B_w.shape
    rng = np.random.default_rng([int(seeds), 2609])

    def directions(rows):
        raw = rng.normal(size=(trials, rows, n))
        return raw / np.linalg.norm(raw, axis=(1, 2), keepdims=True)

    return Trials(
        x0=spread * rng.normal(size=(trials, n)),
        amplitude=rng.uniform(*amplitude, size=(trials, n_d)),
        omega=rng.uniform(*omega, size=(trials, n_d)),
        phase=rng.uniform(0, 2 * np.pi, size=(trials, n_d)),
        direction_a=directions(n),
        direction_c=directions(len(system.C)),
    )


def mismatch(matrix: ArrayLike, direction: ArrayLike, sigma: ArrayLike) -> Array:
    """``X + sigma Y/|Y| |X|`` (Frobenius norms): structured mismatch of relative size ``sigma``.

    ``matrix`` (r, c), ``direction`` (..., r, c), ``sigma`` a number or (...). Raises ``ValueError`` for
    ``sigma < 0`` or shapes that differ.
    """
    matrix, direction = np.asarray(matrix, dtype=float), np.asarray(direction, dtype=float)
    sigma = np.asarray(sigma, dtype=float)
    if (sigma < 0).any():
        raise ValueError(f"sigma must not be negative, got {sigma.min():g}")
    if direction.shape[-2:] != matrix.shape:
        raise ValueError(f"direction is {direction.shape[-2:]}, matrix is {matrix.shape}")
    unit = direction / np.linalg.norm(direction, axis=(-2, -1), keepdims=True)
    return matrix + sigma[..., None, None] * unit * np.linalg.norm(matrix)


@dataclass(frozen=True)
class Outcome:
    """Per trial (..., T): ``success`` (norm within the limit throughout), ``peak`` norm of the state,
    and time-averaged squared errors ``state_mse`` (|x - xhat|^2) and ``disturbance_mse``
    (|d - dhat|^2); a failed trial stops at its failure and its errors are NaN.
    """

    success: BoolArray
    peak: Array
    state_mse: Array
    disturbance_mse: Array


def closed_loop(
    system,
    observer,
    trials: Trials,
    *,
    sigma: ArrayLike = 0.0,
    seconds: float = 20.0,
    dt: float = 0.01,
    limit: float = NORM_LIMIT,
    gain: ArrayLike | None = None,
) -> Outcome:
    """Simulate all trials at every ``sigma``; outcomes have shape (..., T), or (..., K, T) for K sigmas.

    ``observer`` has ``rates`` (the baselines, ``ArrayObserver``) or is a ``NeuralObserver`` or a list of
    them, one for each row of the trials' leading axis. The observer, the LQR gain (``gain``, default
    ``system.lqr()``) and the cancellation know the nominal ``system`` only. Start: ``xhat = 0``,
    ``dhat = 0``. Raises ``ValueError`` for ``dt`` or ``seconds`` that are not positive, or an observer
    with eps <= dt (the step would not resolve it); ``TypeError`` for an observer without ``rates``.
    """
    if not 0 < dt <= seconds:
        raise ValueError(f"dt must lie in (0, seconds = {seconds}], got {dt}")
    observer = as_arrays(observer)
    if getattr(observer, "eps", np.inf) <= dt:
        raise ValueError(f"dt must be below eps = {observer.eps}, got {dt}")
    sigma = np.asarray(sigma, dtype=float)
    shape = (*trials.x0.shape[:-2], sigma.size, trials.x0.shape[-2])
    expand = (..., None, slice(None), slice(None))
    spread_sigma = np.broadcast_to(sigma.reshape(-1, 1), shape)
    a = mismatch(system.A, trials.direction_a[..., None, :, :, :], spread_sigma)
    c = mismatch(system.C, trials.direction_c[..., None, :, :, :], spread_sigma)

    def rows(values):
        wide = np.broadcast_to(values[expand], (*shape, values.shape[-1]))
        return np.ascontiguousarray(wide).reshape(*shape[:-2], -1, values.shape[-1])

    def matrices(values):
        return np.ascontiguousarray(values).reshape(*shape[:-2], -1, *values.shape[-2:])

    loop = _Loop(
        system, observer, matrices(a), matrices(c), gain,
        rows(trials.amplitude), rows(trials.omega), rows(trials.phase),
    )  # fmt: skip
    outcome = loop.run(rows(trials.x0), round(seconds / dt), dt, limit)
    final = shape if sigma.ndim else (*shape[:-2], shape[-1])
    return Outcome(*(values.reshape(final) for values in _fields(outcome)))


def estimation_error(
    system, observer, *, trials: int, seconds: float, dt: float, seed: int
) -> dict[str, float]:
    """Estimation error in closed loop without mismatch, averaged over time and successful trials.

    Keys: ``mse`` = ``mse_state`` + ``mse_disturbance``, the mean squared norms of ``x - xhat`` and
    ``d - dhat`` (start included), ``success`` (rate), ``successes`` and ``trials``. Without a success the
    errors are NaN.
    """
    outcome = closed_loop(
        system, observer, draw_trials(system, trials, seed), seconds=seconds, dt=dt
    )
    good = outcome.success
    state = float(outcome.state_mse[good].mean()) if good.any() else float("nan")
    disturbance = float(outcome.disturbance_mse[good].mean()) if good.any() else float("nan")
    return {
        "mse": state + disturbance,
        "mse_state": state,
        "mse_disturbance": disturbance,
        "success": float(good.mean()),
        "successes": int(good.sum()),
        "trials": int(good.size),
    }


def tuned_baselines(
    system,
    trials: Trials,
    grid: Mapping[str, Sequence[float]],
    *,
    sigmas: Sequence[float],
    seconds: float,
    dt: float,
) -> dict[str, tuple[Observer, float]]:
    """The best ``eso`` (by omega_0) and ``lqe`` (by disturbance intensity) of a ``grid`` on ``trials``.

    Best is the highest success rate over all ``sigmas``, then the least error of the state among the
    successes. Returns observer and chosen value by method.
    """
    make = {
        "eso": lambda value: ESO(system, value),
        "lqe": lambda value: LuenbergerLQE(system, value),
    }
    best: dict[str, tuple[Observer, float]] = {}
    for method, values in grid.items():
        scores = []
        for value in values:
            outcome = closed_loop(
                system, make[method](value), trials, sigma=sigmas, seconds=seconds, dt=dt
            )
            good = outcome.success
            error = outcome.state_mse[good].mean() if good.any() else np.inf
            scores.append((good.mean(), -error))
        value = values[max(range(len(values)), key=scores.__getitem__)]
        best[method] = (make[method](value), float(value))
    return best


def as_arrays(observer):
    """``observer`` itself if it has ``rates``; the ``ArrayObserver`` of neural observers otherwise."""
    if hasattr(observer, "rates"):
        return observer
    items = observer if isinstance(observer, Sequence) else [observer]
    if not items or not all(hasattr(item, "net") for item in items):
        raise TypeError(f"observer must have `rates` or be neural, got {type(observer).__name__}")
    return ArrayObserver(observer)


class _Loop:
    """Right-hand side and integration of plant, observer and controller."""

    def __init__(self, system, observer, a, c, gain, amplitude, omega, phase):
        self.observer = observer
        self.a, self.c = a, c
        self.b, self.b_w = np.asarray(system.B).T, np.asarray(system.B_w).T
        self.gain = np.asarray(system.lqr() if gain is None else gain, dtype=float).T
        self.cancel = np.asarray(system.cancellation()).T
        self.amplitude, self.omega, self.phase = amplitude, omega, phase

    def disturbance(self, t):
        return self.amplitude * np.sin(self.omega * t + self.phase)

    def rates(self, x, xhat, dhat, d):
        u = -(xhat @ self.gain) - dhat @ self.cancel
        column = x[..., None]
        y = (self.c @ column)[..., 0]
        dx = (self.a @ column)[..., 0] + u @ self.b + d @ self.b_w
        return (dx, *self.observer.rates(xhat, dhat, u, y))

    def run(self, x, steps, dt, limit):
        n_d = len(self.b_w)
        state = (x, np.zeros_like(x), np.zeros((*x.shape[:-1], n_d)))
        alive = np.linalg.norm(x, axis=-1) <= limit
        peak = np.linalg.norm(x, axis=-1)
        d = self.disturbance(0.0)
        sums = _squares(state, d) / 2  # trapezoidal rule
        for k in range(steps):
            middle, after = self.disturbance((k + 0.5) * dt), self.disturbance((k + 1) * dt)
            state = self._advance(state, (d, middle, after), dt)
            d = after
            norm = np.sqrt((state[0] ** 2).sum(axis=-1))
            peak = np.where(alive, np.fmax(peak, norm), peak)
            good = alive & (norm <= limit)
            if good.sum() < alive.sum() or not alive.all():
                # a failed trial is over: hold it at the origin, so that nothing overflows
                alive = good
                for part in state:
                    part[~alive] = 0.0
            sums += _squares(state, d) * (0.5 if k == steps - 1 else 1.0)
        errors = np.where(alive, sums / steps, np.nan)
        return Outcome(alive, peak, errors[0], errors[1])

    def _advance(self, state, d, dt):
        def moved(slope, h):
            return [part + h * rate for part, rate in zip(state, slope, strict=True)]

        k1 = self.rates(*state, d[0])
        k2 = self.rates(*moved(k1, dt / 2), d[1])
        k3 = self.rates(*moved(k2, dt / 2), d[1])
        k4 = self.rates(*moved(k3, dt), d[2])
        return tuple(
            part + dt / 6 * (a + 2 * (b + c) + e)
            for part, a, b, c, e in zip(state, k1, k2, k3, k4, strict=True)
        )


def _squares(state, d):
    """Squared norms (2, ...) of the errors of state and disturbance."""
    return np.stack([((state[0] - state[1]) ** 2).sum(axis=-1), ((d - state[2]) ** 2).sum(axis=-1)])


def _fields(record):
    return [getattr(record, name) for name in record.__dataclass_fields__]
