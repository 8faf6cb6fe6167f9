"""An underwater vehicle that crosses the vortex street behind a cylinder.

Planar point vehicle with first-order thruster lag; linear and quadratic drag against the water, whose
velocity comes from recorded frames (``lbm.record``), bilinear in space, linear in time. Batched over a
leading axis of trials, float64 numpy.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from encore.papers.lyapunov_observer.tracking import Mission, minimum_jerk

Array = NDArray[np.float64]

NOISE = (0.01, 0.01, 0.02, 0.02)  # standard deviations of the measured position (m), velocity (m/s)

POSITION, VELOCITY, THRUST, CLOCK = slice(0, 2), slice(2, 4), slice(4, 6), 6


@dataclass(frozen=True)
class VortexStreetAUV:
    """The vehicle in recorded water; SI units, parameters ours (a 15 kg class vehicle).

    ``frames`` (F, 2, ny, nx): velocity of the water in units of ``speed`` (m/s), one frame per
    ``interval`` (s) from time 0, on cells of width ``cell`` (m) whose first has its centre at
    ``origin`` (m). State ``x`` (..., 7): position (m), velocity (m/s), thrust (N), time (s). Input ``u``
    (..., 2): commanded thrust (N), cut to ``+- max_thrust``. Disturbance ``d`` (..., 2): force (N).
    ``mass`` (added mass included) is a number or one value per trial.

    Raises ``ValueError`` for frames of another shape, NaN, or parameters that are not positive.
    """

    frames: Array
    interval: float
    cell: float = 0.05
    origin: tuple[float, float] = (0.0, 0.0)
    speed: float = 0.5
    mass: float | Array = 15.0
    nominal_mass: float = 15.0
    linear_drag: float = 6.0
    quadratic_drag: float = 25.0
    thruster_lag: float = 0.1
    max_thrust: float = 40.0

    def __post_init__(self):
        frames = np.asarray(self.frames)
        if frames.ndim != 4 or frames.shape[1] != 2 or min(frames.shape) < 2:
            raise ValueError(f"frames must be (F, 2, ny, nx), two or more each, got {frames.shape}")
        if not np.isfinite(frames).all():
            raise ValueError("frames has NaN or infinite entries")
        object.__setattr__(self, "frames", np.ascontiguousarray(frames))
        object.__setattr__(self, "mass", np.asarray(self.mass, dtype=np.float64))
        for name in ("interval", "cell", "speed", "mass", "nominal_mass", "thruster_lag"):
            value = np.asarray(getattr(self, name), dtype=np.float64)
            if not (np.isfinite(value).all() and (value > 0).all()):
                raise ValueError(f"{name} must be positive and finite, got {getattr(self, name)}")

    @property
    def duration(self) -> float:
        """Length of the record (s); later times see its last frame."""
        return (len(self.frames) - 1) * self.interval

    def water(self, position: Array, time: Array) -> Array:
        """Water velocity (B, 2) (m/s) at ``position`` (B, 2) and ``time`` (B,); clamped at the edges."""
        f, _, ny, nx = self.frames.shape
        k, wk = _cell_of(time / self.interval, f)
        i, wi = _cell_of((position[:, 0] - self.origin[0]) / self.cell, nx)
        j, wj = _cell_of((position[:, 1] - self.origin[1]) / self.cell, ny)
        flat, area = self.frames.reshape(-1), ny * nx
        base = 2 * k * area + j * nx + i
        base = np.stack([base, base + area], axis=1)
        result = np.zeros((len(base), 2))
        for dk, weight_k in ((0, 1 - wk), (2 * area, wk)):
            for dj, weight_j in ((0, 1 - wj), (nx, wj)):
                for di, weight_i in ((0, 1 - wi), (1, wi)):
                    weight = weight_k * weight_j * weight_i
                    result += weight[:, None] * flat[base + (dk + dj + di)]
        return self.speed * result

    def start(self, position: ArrayLike, time: ArrayLike, trials: int = 1) -> Array:
        """State (trials, 7) at rest at ``position`` (2,) or (trials, 2), at ``time`` of the record."""
        x = np.zeros((trials, 7))
        x[:, POSITION] = position
        x[:, CLOCK] = time
        return x

    def derivative(self, x: Array, u: Array, d: Array) -> Array:
        """Time derivative (B, 7) of the state."""
        relative = x[:, VELOCITY] - self.water(x[:, POSITION], x[:, CLOCK])
        size = np.linalg.norm(relative, axis=1, keepdims=True)
        drag = (self.linear_drag + self.quadratic_drag * size) * relative
        mass = np.broadcast_to(self.mass, (len(x),))[:, None]
        out = np.empty_like(x)
        out[:, POSITION] = x[:, VELOCITY]
        out[:, VELOCITY] = (x[:, THRUST] - drag + d) / mass
        limited = np.clip(u, -self.max_thrust, self.max_thrust)
        out[:, THRUST] = (limited - x[:, THRUST]) / self.thruster_lag
        out[:, CLOCK] = 1.0
        return out

    def step(self, x: ArrayLike, u: ArrayLike, d: ArrayLike, dt: float) -> Array:
        """State (B, 7) after ``dt`` seconds of RK4, ``u`` (B, 2) and ``d`` (B, 2) held.

        Raises ``ValueError`` for shapes, NaN, or ``dt <= 0``.
        """
        x, u, d = (np.atleast_2d(np.asarray(value, dtype=np.float64)) for value in (x, u, d))
        for name, value, width in (("x", x, 7), ("u", u, 2), ("d", d, 2)):
            if value.ndim != 2 or value.shape[1] != width or len(value) not in (1, len(x)):
                raise ValueError(f"{name} must be ({len(x)}, {width}), got {value.shape}")
            if not np.isfinite(value).all():
                row = int(np.flatnonzero(~np.isfinite(value).all(axis=1))[0])
                raise ValueError(f"{name} has NaN or infinite entries in row {row}")
        if not dt > 0:
            raise ValueError(f"dt must be positive, got {dt}")
        k1 = self.derivative(x, u, d)
        k2 = self.derivative(x + dt / 2 * k1, u, d)
        k3 = self.derivative(x + dt / 2 * k2, u, d)
        k4 = self.derivative(x + dt * k3, u, d)
        return x + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

    def acceleration(self, x: Array, u: Array, d: Array) -> Array:
        """True acceleration (B, 2) (m/s^2)."""
        return self.derivative(x, u, d)[:, VELOCITY]

    def measure(self, x: Array) -> Array:
        """Output ``y`` (B, 4): position (m) and velocity (m/s)."""
        return x[:, :4]

    def command(self, x: Array, acceleration: Array) -> Array:
        """Thrust (B, 2) (N) for an ``acceleration`` (B, 2) (m/s^2) of the nominal mass in still water."""
        limit = self.max_thrust
        return np.clip(self.nominal_mass * np.asarray(acceleration), -limit, limit)

    def effective(self, command: Array) -> Array:
        """Acceleration (B, 2) that a thrust command (B, 2) stands for in the nominal model."""
        return command / self.nominal_mass

    def design_matrices(self) -> tuple[Array, Array, Array, Array]:
        """``(A, B, C, B_w)`` of two double integrators; disturbance: acceleration by the water (2)."""
        a, b = np.zeros((4, 4)), np.zeros((4, 2))
        a[0, 2] = a[1, 3] = b[2, 0] = b[3, 1] = 1.0
        return a, b, np.eye(4), b.copy()


def crossings(
    auv: VortexStreetAUV,
    seeds: Sequence[int],
    *,
    start: tuple[float, float],
    end: tuple[float, float],
    seconds: float = 12.0,
    crossing: float = 8.0,
    dt: float = 0.02,
    masses: tuple[float, float] = (12.0, 18.0),
    noise: tuple[float, ...] = NOISE,
) -> tuple[Array, Mission]:
    """Masses (S,) and mission: one crossing of the wake for each seed.

    From ``start`` to ``end`` (m) by a minimum-jerk path of ``crossing`` seconds, then holding the end.
    A seed draws the mass (kg), when in the record it starts, and the noise of the measured position
    (m) and velocity (m/s). Raises ``ValueError`` when the record is shorter than the mission.
    """
    slack = auv.duration - seconds
    if slack < 0:
        raise ValueError(f"the record lasts {auv.duration:g} s, the mission {seconds:g} s")
    steps, count = round(seconds / dt), len(seeds)
    path = minimum_jerk(start, end, crossing, dt * np.arange(steps))
    mass, begin, white = np.empty(count), np.empty(count), np.empty((steps, count, 4))
    for i, seed in enumerate(seeds):
        rng = np.random.default_rng([int(seed), 6])
        mass[i], begin[i] = rng.uniform(*masses), rng.uniform(0, slack)
        white[:, i] = rng.normal(size=(steps, 4)) * noise
    reference = np.repeat(path[:, None], count, axis=1)
    still = np.zeros((steps, count, 2))
    return mass, Mission(auv.start(start, begin, count), reference, still, white, dt)


def in_record(
    wake: Mapping[str, Array],
    flow: Mapping,
    *,
    diameter: float = 0.6,
    speed: float = 0.5,
) -> tuple[VortexStreetAUV, dict[str, tuple[float, float]]]:
    """The vehicle in a wake of ``lbm.record``, and the ``start`` and ``end`` of its path (m).

    ``flow`` holds what the wake was recorded with: ``diameter`` and ``window`` (cells), ``speed``
    (cells per step), ``every`` (steps), and ``path``, two points relative to the centre of the body in
    diameters. The body becomes ``diameter`` metres wide, the stream ``speed`` metres per second fast.
    The window's corner is the origin that positions are counted from.
    """
    cell = diameter / flow["diameter"]
    x0, _, y0, _ = flow["window"]
    centre = np.array([flow["nx"] / 4 - x0, flow["ny"] / 2 - 0.5 - y0]) * cell
    auv = VortexStreetAUV(
        wake["velocity"],
        interval=flow["every"] * flow["speed"] * cell / speed,
        cell=cell,
        speed=speed,
    )
    start, end = (tuple(centre + diameter * np.asarray(point)) for point in flow["path"])
    return auv, {"start": start, "end": end}


def maker(auv: VortexStreetAUV, mass: Array):
    """``make_vehicle`` for ``tracking.track``: ``auv`` with ``mass`` (B,) repeated for each candidate."""
    return lambda copies: replace(auv, mass=np.tile(mass, copies))


def _cell_of(index, size):
    """Lower node and weight of the upper one; indices beyond the ends stay at the ends."""
    index = np.clip(index, 0.0, size - 1.0)
    low = np.minimum(index.astype(np.int64), size - 2)
    return low, index - low
