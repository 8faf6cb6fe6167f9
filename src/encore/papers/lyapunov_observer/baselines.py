"""Observers that the neural observer is compared with, all with the interface of ``NeuralObserver``.

Every class has ``rates(xhat, dhat, u, y)`` or is a static map, and ``step(xhat, dhat, u, y, dt)`` and
``run(u, y, dt)``; arrays are float64 numpy, batched over leading axes: ``xhat`` (..., n), ``dhat``
(..., n_d), ``u`` (..., n_u), ``y`` (..., n_y). The design system is any object with the attributes
``A, B, C, B_w`` (an ``UncertainLTI``).
"""

import itertools

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import LinAlgError, expm, solve_continuous_are

from encore.papers.lyapunov_observer.errors import NotObservableError

Array = NDArray[np.float64]


class Observer:
    """Shared stepping: RK4 with ``u`` and ``y`` held over the step, and runs over recorded signals."""

    def __init__(self, system):
        self.A, self.B, self.C, self.B_w = (
            np.asarray(getattr(system, name), dtype=np.float64) for name in ("A", "B", "C", "B_w")
        )
        self.n, self.n_d = self.B_w.shape

    def rates(self, xhat: Array, dhat: Array, u: Array, y: Array) -> tuple[Array, Array]:
        """Time derivatives of ``xhat`` and ``dhat``."""
        raise NotImplementedError

    def step(
        self, xhat: ArrayLike, dhat: ArrayLike, u: ArrayLike, y: ArrayLike, dt: float
    ) -> tuple[Array, Array]:
        """Estimates after ``dt`` seconds. Raises ``ValueError`` for widths that do not fit."""
        xhat, dhat, u, y = self._checked(xhat, dhat, u, y, dt)
        return rk4(lambda a, b: self.rates(a, b, u, y), xhat, dhat, dt)

    def run(
        self,
        u: ArrayLike,
        y: ArrayLike,
        dt: float,
        xhat0: ArrayLike | None = None,
        dhat0: ArrayLike | None = None,
    ) -> tuple[Array, Array]:
        """Estimates (T, ..., n) and (T, ..., n_d) along ``u`` (T, ..., n_u) and ``y`` (T, ..., n_y).

        Row ``k`` uses rows 0 to k-1; row 0 is ``xhat0``, ``dhat0`` (zero if not given).
        """
        u, y = np.asarray(u, dtype=np.float64), np.asarray(y, dtype=np.float64)
        if len(u) != len(y):
            raise ValueError(f"u has {len(u)} rows, y has {len(y)}")
        shape = y.shape[1:-1]
        xs, ds = np.zeros((len(y), *shape, self.n)), np.zeros((len(y), *shape, self.n_d))
        xs[0] = 0.0 if xhat0 is None else xhat0
        ds[0] = 0.0 if dhat0 is None else dhat0
        for k in range(len(y) - 1):
            xs[k + 1], ds[k + 1] = self.step(xs[k], ds[k], u[k], y[k], dt)
        return xs, ds

    def _checked(self, xhat, dhat, u, y, dt):
        if not dt > 0:
            raise ValueError(f"dt must be positive, got {dt}")
        widths = (self.n, self.n_d, self.B.shape[1], self.C.shape[0])
        values = [np.asarray(value, dtype=np.float64) for value in (xhat, dhat, u, y)]
        for name, value, width in zip(("xhat", "dhat", "u", "y"), values, widths, strict=True):
            if value.shape[-1:] != (width,):
                raise ValueError(f"{name} must have {width} columns, got shape {value.shape}")
        return values


class LinearObserver(Observer):
    """``xhat' = A xhat + B u + B_w dhat + L_1 e``, ``dhat' = L_2 e``, ``e = y - C xhat``.

    ``gain`` (n + n_d, n_y) stacks ``L_1`` and ``L_2``.
    """

    def __init__(self, system, gain: ArrayLike):
        super().__init__(system)
        self.gain = np.asarray(gain, dtype=np.float64)
        if self.gain.shape != (self.n + self.n_d, self.C.shape[0]):
            raise ValueError(
                f"gain must be ({self.n + self.n_d}, {self.C.shape[0]}), got {self.gain.shape}"
            )
        inject, extra = self.gain[: self.n], self.gain[self.n :]
        self._x = np.vstack([(self.A - inject @ self.C).T, self.B_w.T, self.B.T, inject.T])
        self._d = np.vstack([-(extra @ self.C).T, extra.T])
        self._held: dict[float, tuple[Array, Array, Array]] = {}

    def rates(self, xhat, dhat, u, y):
        n, n_d, n_u = self.n, self.n_d, self.B.shape[1]
        dx = xhat @ self._x[:n] + dhat @ self._x[n : n + n_d]
        dx += u @ self._x[n + n_d : n + n_d + n_u] + y @ self._x[n + n_d + n_u :]
        return dx, xhat @ self._d[:n] + y @ self._d[n:]

    def step(self, xhat, dhat, u, y, dt):
        """As for every observer, but exact for held ``u`` and ``y`` (matrix exponential)."""
        xhat, dhat, u, y = self._checked(xhat, dhat, u, y, dt)
        free, by_u, by_y = self._transition(float(dt))
        z = np.concatenate([xhat, dhat], axis=-1) @ free + u @ by_u + y @ by_y
        return z[..., : self.n], z[..., self.n :]

    def _transition(self, dt):
        if dt not in self._held:
            size, n_u, n_y = self.n + self.n_d, self.B.shape[1], self.C.shape[0]
            block = np.zeros((size + n_u + n_y,) * 2)
            block[:size, :size] = self.error_matrix()
            block[: self.n, size : size + n_u] = self.B
            block[:size, size + n_u :] = self.gain
            flow = expm(block * dt)[:size]
            self._held[dt] = (flow[:, :size].T, flow[:, size : size + n_u].T, flow[:, -n_y:].T)
        return self._held[dt]

    def error_matrix(self) -> Array:
        """Matrix (n + n_d, n + n_d) of the error dynamics in real time."""
        a, c = augmented(self)
        return a - self.gain @ c


class LuenbergerLQE(LinearObserver):
    """Stationary Kalman filter of state and disturbance, the disturbance a random walk.

    ``disturbance_noise`` and ``state_noise`` are the intensities of the walk and of the state,
    ``output_noise`` that of the measurement; the gain comes from the dual Riccati equation
    (``scipy.linalg.solve_continuous_are``). Raises ``NotObservableError`` when the disturbance cannot
    be seen, ``ValueError`` for intensities that are not positive.
    """

    def __init__(
        self,
        system,
        disturbance_noise: float = 1.0,
        state_noise: float = 1e-2,
        output_noise: ArrayLike = 1e-4,
    ):
        a, c = augmented(system)
        n_d, n_y = np.shape(system.B_w)[1], len(c)
        noise = np.broadcast_to(np.asarray(output_noise, dtype=np.float64), (n_y,))
        for name, value in (
            ("disturbance_noise", disturbance_noise),
            ("state_noise", state_noise),
            ("output_noise", noise),
        ):
            if not (np.all(np.isfinite(value)) and np.all(np.asarray(value) > 0)):
                raise ValueError(f"{name} must be positive, got {value}")
        process = np.diag([state_noise] * (len(a) - n_d) + [disturbance_noise] * n_d)
        _require_observable(a, c)
        try:
            covariance = solve_continuous_are(a.T, c.T, process, np.diag(noise))
        except LinAlgError as error:
            raise ValueError(f"the Riccati equation has no stabilising solution: {error}") from None
        super().__init__(system, covariance @ c.T / noise)


class ESO(LinearObserver):
    """Linear extended state observer whose error poles all lie at ``-omega_0`` (1/s).

    Bandwidth parametrisation of active disturbance rejection control (Gao, 2003). With ``C`` of full
    column rank the gains are explicit: ``(s + omega_0)^2`` for each disturbed direction and its
    disturbance, ``s + omega_0`` for the others. Otherwise the gain is Ackermann's for one combination
    of the outputs, so the poles are exact for one output. Raises ``ValueError`` for
    ``omega_0 <= 0``, ``NotObservableError`` when the disturbance cannot be seen.
    """

    def __init__(self, system, omega_0: float):
        if not (np.isfinite(omega_0) and omega_0 > 0):
            raise ValueError(f"omega_0 must be positive, got {omega_0}")
        self.omega_0 = float(omega_0)
        super().__init__(system, pole_gain(system, self.omega_0))


def pole_gain(system, omega: float) -> Array:
    """Gain (n + n_d, n_y) that puts all error poles of ``system`` with its disturbance at -omega."""
    a, c = augmented(system)
    _require_observable(a, c)
    matrix, b_w, output = (
        np.asarray(getattr(system, name), dtype=float) for name in ("A", "B_w", "C")
    )
    n = len(matrix)
    if np.linalg.matrix_rank(output) == n and np.linalg.matrix_rank(b_w) == b_w.shape[1]:
        inverse, matched = np.linalg.pinv(output), np.linalg.pinv(b_w)
        inject = matrix + omega * (np.eye(n) + b_w @ matched)
        return np.vstack([inject @ inverse, omega**2 * matched @ inverse])
    combination = _output_combination(a, c)
    row = combination @ c
    blocks = [row]
    for _ in range(len(a) - 1):
        blocks.append(blocks[-1] @ a)
    polynomial = np.linalg.matrix_power(a + omega * np.eye(len(a)), len(a))
    last = np.zeros(len(a))
    last[-1] = 1.0
    return np.outer(polynomial @ np.linalg.solve(np.vstack(blocks), last), combination)


class SuperTwistingObserver(Observer):
    """Super-twisting disturbance observer (Levant, 1998; Moreno and Osorio, 2012).

    In the directions of the disturbance, ``s = B_w^+ (C^+ y - xhat)`` drives
    ``k_1 sqrt(|s|) sign(s)`` in the state and ``dhat' = k_2 sign(s)``, with Levant's
    ``k_1 = 1.5 sqrt(level)``, ``k_2 = 1.1 level``; ``level`` bounds ``|dd/dt|``. The other directions
    have the linear injection ``linear`` (1/s). ``layer`` replaces ``sign(s)`` by ``s / (|s| + layer)``
    against chatter (0 is the exact method). Needs ``C`` of full column rank; raises ``ValueError``
    otherwise, or for ``level <= 0``.
    """

    def __init__(self, system, level: float, linear: float = 10.0, layer: float = 0.0):
        super().__init__(system)
        for name, value in (("level", level), ("linear", linear)):
            if not (np.isfinite(value) and value > 0):
                raise ValueError(f"{name} must be positive, got {value}")
        if not layer >= 0:
            raise ValueError(f"layer must not be negative, got {layer}")
        rank = np.linalg.matrix_rank(self.C)
        if rank < self.n:
            raise ValueError(f"C must have full column rank {self.n}, its rank is {rank}")
        self.level, self.linear, self.layer = float(level), float(linear), float(layer)
        self._inverse, self._matched = np.linalg.pinv(self.C), np.linalg.pinv(self.B_w)
        self._rest = np.eye(self.n) - self.B_w @ self._matched

    def rates(self, xhat, dhat, u, y):
        measured = y @ self._inverse.T
        error = measured - xhat
        s = error @ self._matched.T
        size = np.abs(s)
        sign = s / (size + self.layer) if self.layer else np.sign(s)
        twist = dhat + 1.5 * np.sqrt(self.level * size) * sign
        dx = measured @ self.A.T + u @ self.B.T + twist @ self.B_w.T
        dx += self.linear * (error @ self._rest.T)
        return dx, 1.1 * self.level * sign


class NeuralLander(Observer):
    """Static residual ``dhat = f(y, u)`` or ``f(y)``: a spectrally normalised MLP fitted offline.

    After Shi et al. (Neural Lander, 2019): the disturbance is learned from recorded flights and looked
    up, not observed. The state estimate is ``C^+ y``. Make one with ``fit``, or from ``weights``, a list
    of ``(matrix (out, in), bias (out,))``, and ``scale`` (``centre``, ``spread`` of the inputs,
    ``offset``, ``size`` of the output); whether it looks at ``u`` follows from the first matrix.
    """

    def __init__(self, system, weights, scale):
        super().__init__(system)
        self.weights = [
            (np.asarray(w, dtype=float), np.asarray(b, dtype=float)) for w, b in weights
        ]
        self.scale = {name: np.asarray(value, dtype=float) for name, value in scale.items()}
        self._inverse = np.linalg.pinv(self.C)
        n_y, inputs = self.C.shape[0], self.weights[0][0].shape[1]
        both = n_y + self.B.shape[1]
        if inputs not in (n_y, both) or self.weights[-1][0].shape[0] != self.n_d:
            raise ValueError(f"weights must map {n_y} or {both} inputs to {self.n_d} outputs")
        self.sees_input = inputs == both

    @classmethod
    def fit(
        cls,
        system,
        y: ArrayLike,
        u: ArrayLike,
        disturbance: ArrayLike,
        *,
        sees_input: bool = True,
        hidden: tuple[int, ...] = (32, 32),
        gain: float = 4.0,
        epochs: int = 40,
        batch: int = 1024,
        rate: float = 3e-3,
        seed: int = 0,
    ) -> "NeuralLander":
        """Fit to ``y`` (N, n_y), ``u`` (N, n_u), ``disturbance`` (N, n_d); N was 40,000 in the paper.

        ReLU layers, each kept at spectral norm at most ``gain ** (1 / layers)``, so that the residual
        is ``gain``-Lipschitz in scaled variables; Adam on the squared error. Raises ``ValueError`` for
        row counts that differ or NaN.
        """
        arrays = [np.asarray(value, dtype=np.float64) for value in (y, u, disturbance)]
        for name, value in zip(("y", "u", "disturbance"), arrays, strict=True):
            if len(value) != len(arrays[0]):
                raise ValueError(f"{name} has {len(value)} rows, y has {len(arrays[0])}")
            if not np.isfinite(value).all():
                raise ValueError(f"{name} has NaN or infinite entries")
        features = np.concatenate(arrays[:2], axis=1) if sees_input else arrays[0]
        target = arrays[2]
        scale = {
            "centre": features.mean(axis=0),
            "spread": features.std(axis=0) + 1e-9,
            "offset": target.mean(axis=0),
            "size": target.std(axis=0) + 1e-9,
        }
        scaled = (
            (features - scale["centre"]) / scale["spread"],
            (target - scale["offset"]) / scale["size"],
        )
        weights = _fit_mlp(*scaled, hidden, gain, epochs, batch, rate, seed)
        return cls(system, weights, scale)

    def predict(self, y: ArrayLike, u: ArrayLike) -> Array:
        """Residual (..., n_d) at ``y`` (..., n_y) and ``u`` (..., n_u)."""
        out = np.asarray(y, dtype=float)
        if self.sees_input:
            out = np.concatenate([out, np.asarray(u, dtype=float)], axis=-1)
        out = (out - self.scale["centre"]) / self.scale["spread"]
        for w, b in self.weights[:-1]:
            out = np.maximum(out @ w.T + b, 0.0)
        out = out @ self.weights[-1][0].T + self.weights[-1][1]
        return out * self.scale["size"] + self.scale["offset"]

    def step(self, xhat, dhat, u, y, dt):
        """``C^+ y`` and the residual; ``xhat``, ``dhat`` and ``dt`` have no effect."""
        _, _, u, y = self._checked(xhat, dhat, u, y, dt)
        return y @ self._inverse.T, self.predict(y, u)


def _fit_mlp(features, target, hidden, gain, epochs, batch, rate, seed):
    """Weights of a ReLU network whose layers stay within the spectral bound."""
    inputs, goal = torch.from_numpy(features), torch.from_numpy(target)
    generator = torch.Generator().manual_seed(seed)
    sizes = [inputs.shape[1], *hidden, goal.shape[1]]
    layers = []
    for wide, narrow in itertools.pairwise(sizes):
        w = torch.randn(narrow, wide, generator=generator, dtype=torch.float64) / wide**0.5
        layers.append((w.requires_grad_(), torch.zeros(narrow, dtype=w.dtype).requires_grad_()))
    optimizer = torch.optim.Adam([p for layer in layers for p in layer], lr=rate)
    bound, steps = gain ** (1 / len(layers)), epochs * max(1, len(inputs) // batch)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for _ in range(steps):
        rows = torch.randint(len(inputs), (batch,), generator=generator)
        out = inputs[rows]
        for w, b in layers[:-1]:
            out = torch.relu(out @ w.T + b)
        loss = (out @ layers[-1][0].T + layers[-1][1] - goal[rows]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        with torch.no_grad():
            for w, _ in layers:
                w *= min(1.0, bound / float(torch.linalg.matrix_norm(w, 2)))
    return [(w.detach().numpy(), b.detach().numpy()) for w, b in layers]


class Measurement(Observer):
    """No observer: ``xhat = C^+ y``, ``dhat = 0``; what a PID controller acts on."""

    def step(self, xhat, dhat, u, y, dt):
        _, dhat, _, y = self._checked(xhat, dhat, u, y, dt)
        return y @ np.linalg.pinv(self.C).T, np.zeros_like(dhat)


class PID:
    """``kp e + kd e' + ki int e``, the integral term clamped to ``+- limit`` (anti-windup).

    Gains are numbers or arrays that broadcast against ``error`` (B, k). Raises ``ValueError`` for
    negative gains.
    """

    def __init__(
        self, kp: ArrayLike, ki: ArrayLike = 0.0, kd: ArrayLike = 0.0, limit: float = np.inf
    ):
        self.kp, self.ki, self.kd = (np.asarray(value, dtype=float) for value in (kp, ki, kd))
        for name, value in (("kp", self.kp), ("ki", self.ki), ("kd", self.kd)):
            if not (value >= 0).all():
                raise ValueError(f"{name} must not be negative, got {value.min():g}")
        self.limit = limit

    def step(self, integral: Array, error: Array, rate: Array, dt: float) -> tuple[Array, Array]:
        """``(integral term, command)`` for ``error`` and its ``rate`` (both (B, k))."""
        integral = np.clip(integral + self.ki * error * dt, -self.limit, self.limit)
        return integral, self.kp * error + self.kd * rate + integral


def augmented(system) -> tuple[Array, Array]:
    """``[[A, B_w], [0, 0]]`` and ``[C, 0]``: the system with a constant disturbance as state."""
    a, b_w, c = (np.asarray(getattr(system, name), dtype=float) for name in ("A", "B_w", "C"))
    n, n_d = b_w.shape
    matrix = np.zeros((n + n_d, n + n_d))
    matrix[:n, :n], matrix[:n, n:] = a, b_w
    return matrix, np.hstack([c, np.zeros((len(c), n_d))])


def rk4(rates, x: Array, d: Array, dt: float) -> tuple[Array, Array]:
    """One classical Runge-Kutta step of the pair ``(x, d)`` under ``rates(x, d)``."""
    a1, b1 = rates(x, d)
    a2, b2 = rates(x + dt / 2 * a1, d + dt / 2 * b1)
    a3, b3 = rates(x + dt / 2 * a2, d + dt / 2 * b2)
    a4, b4 = rates(x + dt * a3, d + dt * b3)
    return x + dt / 6 * (a1 + 2 * a2 + 2 * a3 + a4), d + dt / 6 * (b1 + 2 * b2 + 2 * b3 + b4)


def _observability(a, c):
    # scaled powers, so that fast and slow systems have the same numerical rank
    size = max(np.linalg.norm(a, 2), 1e-12)
    blocks = [c]
    for _ in range(len(a) - 1):
        blocks.append(blocks[-1] @ a / size)
    return np.vstack(blocks)


def _require_observable(a, c):
    rank = int(np.linalg.matrix_rank(_observability(a, c)))
    if rank < len(a):
        raise NotObservableError(rank, len(a))


def _output_combination(a, c):
    """Weights of the outputs that make a single observable one: the best conditioned of 64 drawn."""
    if len(c) == 1:
        return np.ones(1)
    draws = np.random.default_rng(0).normal(size=(64, len(c)))
    smallest = [np.linalg.svd(_observability(a, row[None] @ c))[1][-1] for row in draws]
    best = int(np.argmax(smallest))
    if np.linalg.matrix_rank(_observability(a, draws[best][None] @ c)) < len(a):
        raise ValueError("no single combination of the outputs sees all states; use LuenbergerLQE")
    return draws[best] / np.linalg.norm(draws[best])
