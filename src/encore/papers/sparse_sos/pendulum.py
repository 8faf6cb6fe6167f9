"""An inverted pendulum whose controller and Lyapunov function are certified together.

theta'' = sin theta - 0.1 theta' + u, upright at theta = 0, in the polynomial state z = (s, m, w) with
s = sin theta, m = 1 - cos theta, w = theta' and s^2 + m^2 = 2 m. With V = z'Pz and u = k . z the margin is
the largest g with -dV/dt - g V a sum of squares plus multiples of V <= r; g > 0 proves that every
state of {V <= r} converges to the upright.
"""

import numpy as np

from encore.papers.sparse_sos.polynomial import SparsePolynomial
from encore.papers.sparse_sos.program import SOSProgram

DAMPING = 0.1
PAIRS = [(i, j) for i in range(3) for j in range(i, 3)]
# quadratics in (s, m, w); the level r makes the first coefficient of the inequality r - V
QUADRATIC = np.array([[(i == v) + (j == v) for v in range(3)] for i, j in PAIRS], dtype=int)


def _state() -> tuple[list[SparsePolynomial], list[SparsePolynomial]]:
    """z and the part of dz/dt without control."""
    s, m, w = z = SparsePolynomial.variables(3)
    return z, [w - m * w, s * w, s - DAMPING * w]


def pendulum_program() -> SOSProgram:
    """Structure of the margin: coefficients of -dV/dt, normaliser V, inequality r - V."""
    one = SparsePolynomial.constant(1.0, 3)
    v = SparsePolynomial(QUADRATIC, np.ones(6))
    s, m, _ = SparsePolynomial.variables(3)
    level = SparsePolynomial(
        np.concatenate([one.exponents, QUADRATIC]), np.concatenate([[1.0], -v.coeffs])
    )
    return SOSProgram.build(
        decrease_maps()[2],
        inequalities=[level],
        equalities=[s * s + m * m - 2 * m],
        normaliser=v,
        constant=False,
        degree=4,
    )


def decrease_maps() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """-dV/dt = sum_ab P_ab (free[a, b] + sum_c k_c driven[a, b, c]) on a support (T, 3).

    Returns:
        free (3, 3, T), driven (3, 3, 3, T) and the support's exponents.
    """
    z, drift = _state()
    free = [[-(drift[a] * z[b] + z[a] * drift[b]) for b in range(3)] for a in range(3)]
    driven = [
        [[-((a == 2) * z[b] * z[c] + (b == 2) * z[a] * z[c]) for c in range(3)] for b in range(3)]
        for a in range(3)
    ]
    everything = [p for row in free for p in row] + [p for x in driven for y in x for p in y]
    rows = np.concatenate([p.exponents for p in everything])
    support = np.unique(rows[rows.sum(1) > 0], axis=0)
    keep = [[_drop_constant(p).on(support) for p in row] for row in free]
    push = [[[_drop_constant(p).on(support) for p in y] for y in x] for x in driven]
    return np.array(keep), np.array(push), support


def _drop_constant(poly: SparsePolynomial) -> SparsePolynomial:
    rows = poly.exponents.sum(1) > 0
    return SparsePolynomial(poly.exponents[rows], poly.coeffs[rows])


def closed_loop_converges(
    gain: np.ndarray, shape: np.ndarray, level: float, starts: int, seed: int, seconds: float = 60.0
) -> float:
    """Share of starts inside {V <= level} whose trajectory reaches the upright (within 1e-2).

    Args:
        gain: k (3,).
        shape: P (3, 3).
    """
    theta, w = _inside(shape, level, starts, seed)
    theta, w = simulate(gain, theta, w, seconds)[-1]
    angle = np.angle(np.exp(1j * theta))
    return float(((np.abs(angle) < 1e-2) & (np.abs(w) < 1e-2)).mean())


def lyapunov(shape: np.ndarray, theta: np.ndarray, w: np.ndarray) -> np.ndarray:
    """V at angles and rates."""
    z = np.stack([np.sin(theta), 1 - np.cos(theta), w], axis=-1)
    return np.einsum("...a,ab,...b->...", z, shape, z)


def _inside(shape, level, starts, seed) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    chosen = np.zeros((2, 0))
    reach = np.sqrt(level / np.linalg.eigvalsh(shape)[0])
    while chosen.shape[1] < starts:
        draw = rng.uniform([[-np.pi], [-reach]], [[np.pi], [reach]], size=(2, 4 * starts))
        chosen = np.concatenate([chosen, draw[:, lyapunov(shape, *draw) <= level]], axis=1)
    return chosen[0, :starts], chosen[1, :starts]


def simulate(
    gain: np.ndarray, theta: np.ndarray, w: np.ndarray, seconds: float, dt: float = 0.02
) -> np.ndarray:
    """Runge-Kutta of order 4; returns (steps + 1, 2, starts)."""

    def slope(state: np.ndarray) -> np.ndarray:
        angle, rate = state
        z = np.stack([np.sin(angle), 1 - np.cos(angle), rate])
        return np.stack([rate, z[0] - DAMPING * rate + gain @ z])

    path = [np.stack([theta, w])]
    for _ in range(round(seconds / dt)):
        x = path[-1]
        a = slope(x)
        b = slope(x + dt / 2 * a)
        c = slope(x + dt / 2 * b)
        d = slope(x + dt * c)
        path.append(x + dt / 6 * (a + 2 * b + 2 * c + d))
    return np.array(path)
