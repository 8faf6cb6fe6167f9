"""A 6-DoF quadrotor that lands and takes off in ground effect.

Rigid body, four rotors with first-order lag, thrust raised near the ground by the factor
``1 / (1 - (R / 4z)^2)`` of Cheeseman and Bennett (1955), legs that stop the body at their height.
All methods are batched over a leading axis of trials and work in float64 numpy arrays.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from encore.papers.lyapunov_observer.tracking import Mission, minimum_jerk

Array = NDArray[np.float64]

NOISE = (0.005, 0.03)  # standard deviations of the measured height (m) and speed (m/s)

POSITION, VELOCITY, ATTITUDE, RATES, ROTORS = (
    slice(0, 3),
    slice(3, 6),
    slice(6, 10),
    slice(10, 13),
    slice(13, 17),
)


def ground_effect(height: ArrayLike, radius: float) -> Array:
    """Thrust in ground effect over thrust in free air, at equal power.

    ``height`` (m, any shape) is that of the rotor plane, ``radius`` (m) that of a rotor; the factor
    is ``1 / (1 - (R / 4z)^2)`` (Cheeseman and Bennett, 1955), dimensionless, same shape. Raises
    ``ValueError`` where ``height <= radius / 4``, at which the formula has its pole.
    """
    height = np.asarray(height, dtype=np.float64)
    if not radius > 0:
        raise ValueError(f"radius must be positive, got {radius}")
    if not (height > radius / 4).all():
        raise ValueError(
            f"height must exceed radius / 4 = {radius / 4:g} m, got {float(np.min(height)):g}"
        )
    return _ground_factor(height, radius)


def _ground_factor(height: Array, radius: float) -> Array:
    ratio = radius / (4 * height)
    return 1 / (1 - ratio * ratio)


@dataclass(frozen=True)
class QuadrotorGroundEffect:
    """A quadrotor in ground effect; parameters in SI units, ours (a 1 kg class machine).

    State ``x`` (..., 17): position (m), velocity (m/s), unit quaternion body-to-world (w, x, y, z),
    body rates (rad/s), rotor thrusts (N, in free air). Input ``u`` (..., 4): commanded rotor thrusts
    (N), cut to ``[0, max_thrust]``. Disturbance ``d`` (..., 3): force on the body (N, world axes).
    ``mass`` is a number or one value per trial; the paper's range is 0.5 to 1.5 kg.
    ``nominal_mass`` is what controllers and observers assume.

    Raises ``ValueError`` for parameters that are not positive, or legs not higher than ``radius/4``.
    """

    mass: float | Array = 1.0
    nominal_mass: float = 1.0
    radius: float = 0.12
    arm: float = 0.17
    inertia: tuple[float, float, float] = (0.012, 0.012, 0.022)
    air_drag: float = 0.15
    yaw_coefficient: float = 0.016
    rotor_lag: float = 0.04
    leg_height: float = 0.06
    max_thrust: float = 8.0
    gravity: float = 9.81

    def __post_init__(self):
        object.__setattr__(self, "mass", np.asarray(self.mass, dtype=np.float64))
        for name in ("mass", "nominal_mass", "radius", "arm", "inertia", "rotor_lag", "max_thrust"):
            value = np.asarray(getattr(self, name), dtype=np.float64)
            if not (np.isfinite(value).all() and (value > 0).all()):
                raise ValueError(f"{name} must be positive and finite, got {getattr(self, name)}")
        if self.mass.ndim > 1:
            raise ValueError(f"mass must be a number or (B,), got shape {self.mass.shape}")
        if not self.leg_height > self.radius / 4:
            raise ValueError(
                f"leg_height must exceed radius / 4 = {self.radius / 4:g} m, got {self.leg_height}"
            )

    def hover(self, height: ArrayLike, trials: int = 1) -> Array:
        """Level state (trials, 17) at rest at ``height`` (m), rotors carrying the *nominal* weight.

        On the ground (``height`` at most the legs') the rotors stand still.
        """
        height = np.broadcast_to(np.asarray(height, dtype=np.float64), (trials,))
        x = np.zeros((trials, 17))
        x[:, 2] = np.maximum(height, self.leg_height)
        x[:, 6] = 1.0
        flying = height > self.leg_height
        x[:, ROTORS] = np.where(flying, self.nominal_mass * self.gravity / 4, 0.0)[:, None]
        return x

    def mixer(self) -> Array:
        """Matrix (4, 4) from rotor thrusts to total thrust (N) and body torques (N m)."""
        lever = self.arm / np.sqrt(2)
        return np.array(
            [
                [1.0, 1.0, 1.0, 1.0],
                [lever, lever, -lever, -lever],
                [-lever, lever, lever, -lever],
                [self.yaw_coefficient * sign for sign in (1, -1, 1, -1)],
            ]
        )

    def derivative(self, x: Array, u: Array, d: Array) -> Array:
        """Time derivative (B, 17) of the state, away from ground contact."""
        quaternion, rates, thrust = x[:, ATTITUDE], x[:, RATES], x[:, ROTORS]
        rotation = rotation_matrix(quaternion)
        lever = self.arm / np.sqrt(2)
        # height of each rotor: the body's plus that of the arm's end, never below the legs
        offset = rotation[:, 2, 0:1] * lever * np.array([1, -1, -1, 1.0])
        offset = offset + rotation[:, 2, 1:2] * lever * np.array([1, 1, -1, -1.0])
        height = np.maximum(x[:, 2:3] + offset, self.leg_height)
        wrench = (thrust * _ground_factor(height, self.radius)) @ self.mixer().T
        mass = np.broadcast_to(self.mass, (len(x),))[:, None]
        inertia = np.asarray(self.inertia) * (mass / self.nominal_mass)
        force = rotation[:, :, 2] * wrench[:, :1] + d - self.air_drag * x[:, VELOCITY]
        out = np.empty_like(x)
        out[:, POSITION] = x[:, VELOCITY]
        out[:, VELOCITY] = force / mass
        out[:, 5] -= self.gravity
        out[:, ATTITUDE] = _quaternion_rate(quaternion, rates)
        momentum = inertia * rates
        gyroscopic = rates[:, [1, 2, 0]] * momentum[:, [2, 0, 1]]
        gyroscopic -= rates[:, [2, 0, 1]] * momentum[:, [1, 2, 0]]
        out[:, RATES] = (wrench[:, 1:] - gyroscopic) / inertia
        out[:, ROTORS] = (np.clip(u, 0, self.max_thrust) - thrust) / self.rotor_lag
        return out

    def step(self, x: ArrayLike, u: ArrayLike, d: ArrayLike, dt: float) -> Array:
        """State (B, 17) after ``dt`` seconds of RK4 with ``u`` (B, 4) and ``d`` (B, 3) held.

        Contact is inelastic and sticks (our choice): a body that would sink below its legs stands
        there, level and at rest, until its thrust lifts it. Raises ``ValueError`` for shapes, NaN, or
        ``dt <= 0``.
        """
        x, u, d = self._checked(x, u, d, dt)
        k1 = self.derivative(x, u, d)
        k2 = self.derivative(x + dt / 2 * k1, u, d)
        k3 = self.derivative(x + dt / 2 * k2, u, d)
        k4 = self.derivative(x + dt * k3, u, d)
        x = x + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        x[:, ATTITUDE] /= np.linalg.norm(x[:, ATTITUDE], axis=1, keepdims=True)
        down = (x[:, 2] <= self.leg_height) & (x[:, 5] <= 0)
        if down.any():
            x[down, 2] = self.leg_height
            x[down, 3:6] = 0.0
            x[down, 6:10] = (1.0, 0.0, 0.0, 0.0)
            x[down, 10:13] = 0.0
        return x

    def acceleration(self, x: Array, u: Array, d: Array) -> Array:
        """True vertical acceleration (B, 1) (m/s^2), zero while the ground carries the body."""
        rate = self.derivative(x, u, d)[:, 5:6]
        return np.where((x[:, 2:3] <= self.leg_height) & (rate < 0), 0.0, rate)

    def measure(self, x: Array) -> Array:
        """Output ``y`` (B, 2) of the vertical channel: height (m) and vertical speed (m/s)."""
        return x[:, [2, 5]]

    def command(self, x: Array, acceleration: Array) -> Array:
        """Rotor thrusts (B, 4) (N) for a vertical ``acceleration`` (B, 1) (m/s^2) above hover.

        Thrust is computed with the nominal mass and no ground effect; position is held above the
        origin and the body level by fixed PD loops (ours), the same for every method.
        """
        thrust = self.nominal_mass * (self.gravity + np.asarray(acceleration)[:, 0])
        rotation = rotation_matrix(x[:, ATTITUDE])
        lateral = np.clip(-2.0 * x[:, 0:2] - 2.4 * x[:, 3:5], -2.0, 2.0)
        wanted = np.concatenate([lateral, np.full((len(x), 1), self.gravity)], axis=1)
        wanted /= np.linalg.norm(wanted, axis=1, keepdims=True)
        # error of the thrust axis, in body axes
        body = np.einsum("bji,bj->bi", rotation, wanted)
        tilt = np.stack([-body[:, 1], body[:, 0], np.zeros(len(x))], axis=1)
        torque = np.asarray(self.inertia) * (120.0 * tilt - 22.0 * x[:, RATES])
        wrench = np.concatenate([thrust[:, None], torque], axis=1)
        return np.clip(wrench @ np.linalg.inv(self.mixer()).T, 0.0, self.max_thrust)

    def effective(self, command: Array) -> Array:
        """Vertical acceleration (B, 1) that a rotor command (B, 4) stands for in the nominal model."""
        return command.sum(axis=1, keepdims=True) / self.nominal_mass - self.gravity

    def design_matrices(self) -> tuple[Array, Array, Array, Array]:
        """``(A, B, C, B_w)`` of the vertical channel that observers are designed on.

        State height and vertical speed, input acceleration above hover (m/s^2), both states measured,
        disturbance an acceleration: ground effect, wrong mass, rotor lag, gusts.
        """
        b = np.array([[0.0], [1.0]])
        return np.array([[0.0, 1.0], [0.0, 0.0]]), b, np.eye(2), b.copy()

    def _checked(self, x, u, d, dt):
        x, u, d = (np.atleast_2d(np.asarray(value, dtype=np.float64)) for value in (x, u, d))
        for name, value, width in (("x", x, 17), ("u", u, 4), ("d", d, 3)):
            if value.ndim != 2 or value.shape[1] != width or len(value) not in (1, len(x)):
                raise ValueError(f"{name} must be ({len(x)}, {width}), got {value.shape}")
            if not np.isfinite(value).all():
                row = int(np.flatnonzero(~np.isfinite(value).all(axis=1))[0])
                raise ValueError(f"{name} has NaN or infinite entries in row {row}")
        if self.mass.ndim and len(self.mass) != len(x):
            raise ValueError(f"mass has {len(self.mass)} values, x has {len(x)} rows")
        if not dt > 0:
            raise ValueError(f"dt must be positive, got {dt}")
        return x, u, d


def rotation_matrix(quaternion: Array) -> Array:
    """Body-to-world rotation (B, 3, 3) of unit quaternions (B, 4) (w, x, y, z)."""
    w, x, y, z = np.moveaxis(quaternion, -1, 0)
    out = np.empty((len(quaternion), 3, 3))
    out[:, 0, 0], out[:, 1, 1], out[:, 2, 2] = (
        1 - 2 * (y * y + z * z),
        1 - 2 * (x * x + z * z),
        1 - 2 * (x * x + y * y),
    )
    out[:, 0, 1], out[:, 1, 0] = 2 * (x * y - w * z), 2 * (x * y + w * z)
    out[:, 0, 2], out[:, 2, 0] = 2 * (x * z + w * y), 2 * (x * z - w * y)
    out[:, 1, 2], out[:, 2, 1] = 2 * (y * z - w * x), 2 * (y * z + w * x)
    return out


def _quaternion_rate(quaternion: Array, rates: Array) -> Array:
    w, x, y, z = np.moveaxis(quaternion, -1, 0)
    p, q, r = np.moveaxis(rates, -1, 0)
    return 0.5 * np.stack(
        [
            -x * p - y * q - z * r,
            w * p + y * r - z * q,
            w * q - x * r + z * p,
            w * r + x * q - y * p,
        ],
        axis=1,
    )


def flights(
    seeds: Sequence[int],
    *,
    seconds: float = 5.0,
    dt: float = 0.005,
    height: float = 1.2,
    climb: float = 3.0,
    masses: tuple[float, float] = (0.5, 1.5),
    gust: tuple[float, float] = (0.2, 0.5),
    omega: tuple[float, float] = (1.0, 3.0),
    noise: tuple[float, float] = NOISE,
    latency: float = 0.02,
) -> tuple[Array, Mission]:
    """Masses (2S,) and mission: a take-off and a landing for each seed, take-offs first.

    Both follow a minimum-jerk path of ``climb`` seconds between the legs' height and ``height`` (m),
    half a second after the start. Mass (kg) is uniform in ``masses``; on each axis a gust of
    amplitude (N) in ``gust`` and frequency (rad/s) in ``omega``; ``noise`` is the standard deviation
    of the measured height (m) and speed (m/s), white from step to step, seen ``latency`` seconds late
    (without latency any bandwidth is good and all methods tie at the noise). One seed draws the same mass
    and gust for its two flights.
    """
    machine = QuadrotorGroundEffect()
    steps, count = round(seconds / dt), len(seeds)
    times = dt * np.arange(steps)
    up = minimum_jerk(machine.leg_height, height, climb, times - 0.5)
    down = minimum_jerk(height, machine.leg_height, climb, times - 0.5)
    reference = np.repeat(np.stack([up, down], axis=1), count, axis=1)
    mass, force, white = (
        np.empty(count),
        np.empty((steps, count, 3)),
        np.empty((steps, 2 * count, 2)),
    )
    for i, seed in enumerate(seeds):
        rng = np.random.default_rng([int(seed), 4])
        mass[i] = rng.uniform(*masses)
        waves = rng.uniform(*gust, 3), rng.uniform(*omega, 3), rng.uniform(0, 2 * np.pi, 3)
        force[:, i] = waves[0] * np.sin(waves[1] * times[:, None] + waves[2])
        white[:, [i, i + count]] = rng.normal(size=(steps, 2, 2)) * noise
    start = np.repeat([machine.leg_height, height], count)
    mission = Mission(
        machine.hover(start, 2 * count),
        reference,
        np.tile(force, (1, 2, 1)),
        white,
        dt,
        round(latency / dt),
    )
    return np.tile(mass, 2), mission


def maker(mass: Array):
    """``make_vehicle`` for ``tracking.track``: quadrotors of ``mass`` (B,), repeated for each candidate."""
    return lambda copies: QuadrotorGroundEffect(mass=np.tile(mass, copies))
