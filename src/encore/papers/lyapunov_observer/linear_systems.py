"""Linear plants with a lumped disturbance: the X-29A models and an inverted pendulum."""

import json
from functools import lru_cache
from pathlib import Path

import numpy as np
from scipy.linalg import expm, solve_continuous_are

X29_FILE = Path("data/x29/x29_linear_models.json")
X29_MODELS = ("LON_UA", "LON_PA", "LAT_UA", "LAT_PA")
SPEED_SCALE = 0.01  # V in units of 100 ft/s


class UncertainLTI:
    """xdot = A x + B u + B_w d, y = C x, with an unknown lumped disturbance d.

    Parameters
    ----------
    A, B, C, B_w: arrays of shape (n, n), (n, n_u), (n_y, n), (n, n_d); kept as float64.
    name: a label.

    Raises
    ------
    ValueError: a shape that does not fit A ("C has 3 columns, A is 4x4"), NaN or infinity.
    """

    def __init__(self, A, B, C, B_w, name: str = ""):
        self.A = _matrix("A", A)
        n = self.A.shape[0]
        if self.A.shape[1] != n:
            raise ValueError(f"A must be square, got {n}x{self.A.shape[1]}")
        self.B, self.C, self.B_w = _matrix("B", B), _matrix("C", C), _matrix("B_w", B_w)
        for label, matrix in (("B", self.B), ("B_w", self.B_w)):
            if matrix.shape[0] != n:
                raise ValueError(f"{label} has {matrix.shape[0]} rows, A is {n}x{n}")
        if self.C.shape[1] != n:
            raise ValueError(f"C has {self.C.shape[1]} columns, A is {n}x{n}")
        self.name = name
        self._discrete = lru_cache(maxsize=8)(self._zero_order_hold)

    n_x = property(lambda self: self.A.shape[0], doc="Number of states.")
    n_u = property(lambda self: self.B.shape[1], doc="Number of inputs.")
    n_y = property(lambda self: self.C.shape[0], doc="Number of outputs.")
    n_d = property(lambda self: self.B_w.shape[1], doc="Number of disturbance channels.")

    def derivative(self, x, u, d):
        """dx/dt at states (..., n), inputs (..., n_u) and disturbances (..., n_d)."""
        return x @ self.A.T + u @ self.B.T + d @ self.B_w.T

    def output(self, x):
        """y = C x: (..., n) -> (..., n_y)."""
        return x @ self.C.T

    def step(self, x, u, d, dt: float):
        """State after ``dt`` seconds with u and d held: exact (matrix exponential), batched.

        x (..., n), u (..., n_u), d (..., n_d) -> (..., n).
        """
        x, u, d = (np.asarray(value, dtype=np.float64) for value in (x, u, d))
        F, G, G_w = self._discrete(float(dt))
        return x @ F.T + u @ G.T + d @ G_w.T

    def lqr(self, state_cost=1.0, input_cost=1e-2) -> np.ndarray:
        """Gain K (n_u, n) of u = -K x for Q = state_cost I, R = input_cost I (our choice)."""
        R = input_cost * np.eye(self.n_u)
        cost = solve_continuous_are(self.A, self.B, state_cost * np.eye(self.n_x), R)
        return np.linalg.solve(R, self.B.T @ cost)

    def cancellation(self) -> np.ndarray:
        """B^+ B_w (n_u, n_d): u = -K xhat - B^+ B_w dhat removes what the inputs can reach."""
        return np.linalg.pinv(self.B) @ self.B_w

    def to_dict(self) -> dict:
        """Matrices as nested lists, for JSON."""
        matrices = {"A": self.A, "B": self.B, "C": self.C, "B_w": self.B_w}
        return {"name": self.name, **{key: value.tolist() for key, value in matrices.items()}}

    @classmethod
    def from_dict(cls, record: dict) -> "UncertainLTI":
        """Inverse of ``to_dict``."""
        return cls(record["A"], record["B"], record["C"], record["B_w"], record.get("name", ""))

    def _zero_order_hold(self, dt):
        if not (np.isfinite(dt) and dt > 0):
            raise ValueError(f"dt must be a positive number of seconds, got {dt}")
        n, inputs = self.n_x, np.hstack([self.B, self.B_w])
        block = np.zeros((n + inputs.shape[1],) * 2)
        block[:n, :n], block[:n, n:] = self.A, inputs
        both = expm(block * dt)[:n]
        return both[:, :n], both[:, n : n + self.n_u], both[:, n + self.n_u :]


def x29(model: str = "LON_UA", scaled: bool = True, path: str | Path = X29_FILE) -> UncertainLTI:
    """A linear model of the X-29A with all states measured and B_w = [e2 e3].

    Longitudinal states are V [ft/s], alpha [rad], q [rad/s], theta [rad], so that the disturbance
    is a lift and a pitching-moment disturbance; lateral states are beta, p, r, phi, disturbed by
    rolling and yawing moments. ``scaled`` measures V in units of 100 ft/s, which an LMI or an LQR
    needs. Numbers: Bosworth, NASA TM-4356 (1992), in the data set ``x29``; B_w is our choice.
    """
    if model not in X29_MODELS:
        raise ValueError(f"model is {model!r}; known models: {', '.join(X29_MODELS)}")
    return model_from_record(json.loads(Path(path).read_text())["models"][model], model, scaled)


def model_from_record(record: dict, name: str, scaled: bool = True) -> UncertainLTI:
    """The plant of one entry {"A": ..., "B": ...} of a ``*_linear_models.json`` file.

    Full-state output; disturbed states are the accelerations: [1, 2] of the four aircraft states,
    [1] of the pendulum.
    """
    A, B = _matrix("A", record["A"]), _matrix("B", record["B"])
    if scaled and name.startswith("LON"):
        scale = np.array([SPEED_SCALE, 1.0, 1.0, 1.0])
        A, B = A * scale[:, None] / scale, B * scale[:, None]
    n = A.shape[0]
    return UncertainLTI(A, B, np.eye(n), np.eye(n)[:, 1 : max(2, n - 1)], name)


def pendulum(length=1.0, damping=0.2, gravity=9.81, angle_only: bool = False) -> UncertainLTI:
    """An inverted pendulum about the upright: states angle [rad] and rate [rad/s], unit inertia.

    The disturbance is an angular acceleration [rad/s^2]. ``angle_only`` measures the angle alone,
    which needs a larger eps. Our own benchmark.
    """
    A = np.array([[0.0, 1.0], [gravity / length, -damping]])
    C = np.array([[1.0, 0.0]]) if angle_only else np.eye(2)
    return UncertainLTI(A, [[0.0], [1.0]], C, [[0.0], [1.0]], "PENDULUM")


def generate_pendulum(folder: str | Path) -> None:
    """Write ``pendulum_linear_models.json``, the embedded data set, into ``folder``."""
    plant = pendulum()
    text = json.dumps(
        {
            "units": {"state": ["angle [rad]", "rate [rad/s]"], "input": "torque per inertia"},
            "models": {"PENDULUM": {"A": plant.A.tolist(), "B": plant.B.tolist()}},
        },
        indent=1,
    )
    Path(folder, "pendulum_linear_models.json").write_text(text + "\n", encoding="utf-8")


def _matrix(name, value) -> np.ndarray:
    matrix = np.array(value, dtype=np.float64)
    if matrix.ndim != 2:
        raise ValueError(f"{name} must be a matrix, got {matrix.ndim} dimension(s)")
    if not np.isfinite(matrix).all():
        row, column = np.argwhere(~np.isfinite(matrix))[0]
        raise ValueError(
            f"{name}[{row}, {column}] is {matrix[row, column]}; expected finite numbers"
        )
    return matrix
