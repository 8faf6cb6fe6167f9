"""A chain of softening Duffing oscillators with couplings that need not be reciprocal.

x_i'' = -x_i + 0.5 x_i^3 - 0.5 x_i' + r_i (x_{i+1} - x_i) + l_i (x_{i-1} - x_i) inside the discs
x_i^2 + v_i^2 <= 1. V = sum_i z_i' P_i z_i + s_i (x_{i+1} - x_i)^2 couples neighbours only; the margin is the
largest g with -dV/dt - g sum |z_i|^2 a sum of squares on neighbouring pairs plus multiples of the discs.
"""

import numpy as np

from encore.papers.sparse_sos.polynomial import SparsePolynomial
from encore.papers.sparse_sos.program import SOSProgram

DAMPING, SOFTENING, RADIUS = 0.5, 0.5, 1.0


class DuffingChain:
    """The polynomial -dV/dt as a bilinear function of V's parameters and the couplings.

    Args:
        masses: N >= 2.

    Attributes:
        support: (T, 2N) exponents; variables are x_0, v_0, x_1, v_1, ...
        maps: (4N - 1, 2N - 1, T); first axis: P_xx, P_xv, P_vv of every mass, then the springs s_i;
            second axis: 1, then r_0 .. r_{N-2}, then l_1 .. l_{N-1}.
    """

    def __init__(self, masses: int) -> None:
        if masses < 2:
            raise ValueError(f"masses={masses}; expected at least 2")
        self.masses = masses
        x, v, forces = self._forces()
        energies = [
            e for i in range(masses) for e in (x[i] * x[i], 2 * x[i] * v[i], v[i] * v[i])
        ] + [(x[i + 1] - x[i]) ** 2 for i in range(masses - 1)]
        derivatives = [[self._derivative(e, v, f) for f in forces] for e in energies]
        rows = np.concatenate([p.exponents for row in derivatives for p in row])
        self.support = np.unique(rows[rows.sum(1) > 0], axis=0)
        self.maps = np.array([[self._on(p) for p in row] for row in derivatives])

    def _forces(self):
        """Positions, velocities, and for 1 and every coupling the acceleration {mass: polynomial}."""
        n = self.masses
        names = SparsePolynomial.variables(2 * n)
        x, v = names[::2], names[1::2]
        own = {i: SOFTENING * x[i] ** 3 - x[i] - DAMPING * v[i] for i in range(n)}
        right = [{i: x[i + 1] - x[i]} for i in range(n - 1)]
        left = [{i: x[i - 1] - x[i]} for i in range(1, n)]
        return x, v, [own, *right, *left]

    def _derivative(self, energy, v, force) -> SparsePolynomial:
        """Minus the derivative of an energy along one force (velocities with the first force)."""
        total = SparsePolynomial.constant(0.0, 2 * self.masses)
        for i in np.flatnonzero(energy.exponents.sum(0)):
            mass, is_rate = divmod(int(i), 2)
            if is_rate and mass in force:
                total = total - energy.derivative(int(i)) * force[mass]
            elif not is_rate and len(force) == self.masses:
                total = total - energy.derivative(int(i)) * v[mass]
        return total

    def _on(self, poly: SparsePolynomial) -> np.ndarray:
        rows = poly.exponents.sum(1) > 0
        return SparsePolynomial(poly.exponents[rows], poly.coeffs[rows]).on(self.support)

    def program(self) -> SOSProgram:
        """Structure of the margin."""
        names = SparsePolynomial.variables(2 * self.masses)
        discs = [RADIUS**2 - names[2 * i] ** 2 - names[2 * i + 1] ** 2 for i in range(self.masses)]
        pairs = [tuple(range(2 * i, 2 * i + 4)) for i in range(self.masses - 1)]
        size = sum((n * n for n in names[1:]), names[0] * names[0])
        return SOSProgram.build(
            self.support,
            cliques=pairs,
            inequalities=discs,
            normaliser=size,
            constant=False,
            degree=4,
        )

    def simulate(self, couplings: np.ndarray, starts: np.ndarray, seconds: float, dt: float = 0.02):
        """Final states (S, 2N) from starts (S, 2N), Runge-Kutta of order 4."""
        n = self.masses
        right, left = np.append(couplings[: n - 1], 0.0), np.append(0.0, couplings[n - 1 :])

        def slope(state: np.ndarray) -> np.ndarray:
            x, v = state[:, ::2], state[:, 1::2]
            after = np.concatenate([x[:, 1:], x[:, -1:]], axis=1)
            before = np.concatenate([x[:, :1], x[:, :-1]], axis=1)
            force = SOFTENING * x**3 - x - DAMPING * v + right * (after - x) + left * (before - x)
            return np.stack([v, force], axis=2).reshape(state.shape)

        state = starts
        for _ in range(round(seconds / dt)):
            a = slope(state)
            b = slope(state + dt / 2 * a)
            c = slope(state + dt / 2 * b)
            d = slope(state + dt * c)
            state = state + dt / 6 * (a + 2 * b + 2 * c + d)
        return state


def duffing_chain_program(masses: int) -> SOSProgram:
    """Structure of the margin of a chain of N masses (see ``DuffingChain`` for its coefficients)."""
    return DuffingChain(masses).program()
