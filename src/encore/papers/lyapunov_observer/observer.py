"""The neural observer: error matrices, integration, saving and loading."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from encore.papers.lyapunov_observer.errors import NotObservableError
from encore.papers.lyapunov_observer.linear_systems import UncertainLTI
from encore.papers.lyapunov_observer.network import ObserverNet

SYSTEM_KEYS = ("A", "B", "C", "B_w")


class NeuralObserver:
    """xhat' = A xhat + B u + B_w dhat + pi_1(v), dhat' = pi_2(v)/eps, v = (y - C xhat)/eps.

    The scaled errors eta = ((x - xhat)/eps, d - dhat) obey, in the fast time tau = t/eps,
    deta/dtau = A_e eta - pi(C_e eta) + eps w with A_e = [[eps A, B_w], [0, 0]], C_e = [C 0] and
    w = (0, dd/dt). Source: arXiv 2609.30819, Sec. 2.

    Parameters
    ----------
    system: the plant, float64.
    net: the correction pi, with n_y, n_state, n_dist of the plant.
    eps: time scale, > 0.
    P: Lyapunov matrix (m, m), m = n + n_d, or None before training.
    multipliers: one vector of positive multipliers per hidden layer, or None.

    Raises
    ------
    ValueError: eps <= 0, or a net whose sizes do not fit.
    NotObservableError: (A_e, C_e) is not observable.
    """

    def __init__(
        self,
        system: UncertainLTI,
        net: ObserverNet,
        eps: float,
        P=None,
        multipliers: Sequence | None = None,
    ):
        eps = float(eps)
        if not (np.isfinite(eps) and eps > 0):
            raise ValueError(f"eps must be a positive number, got {eps}")
        sizes, needed = (net.n_y, net.n_state, net.n_dist), (system.n_y, system.n_x, system.n_d)
        if sizes != needed:
            raise ValueError(f"net has (n_y, n_state, n_dist)={sizes}, the system needs {needed}")
        self.system, self.net, self.eps = system, net, eps
        self._cache: dict = {}
        self.A_e, self.C_e = error_matrices(system, eps)
        rank = observability_rank(self.A_e, self.C_e)
        if rank < self.size:
            raise NotObservableError(rank, self.size)
        self.P = None if P is None else _lyapunov_matrix(P, self.size)
        self.multipliers = None if multipliers is None else [_vector(row) for row in multipliers]

    @property
    def size(self) -> int:
        """Number m = n + n_d of error states."""
        return self.system.n_x + self.system.n_d

    @property
    def weights(self) -> list[Tensor]:
        """W_1 .. W_{L+2}, detached."""
        return [weight.detach() for weight in self.net.weights]

    # -- dynamics ---------------------------------------------------------------------------------

    def error_derivative(self, eta: Tensor, w: Tensor | float = 0.0) -> Tensor:
        """deta/dtau at error states eta (..., B, m); w (..., B, m) is the scaled disturbance rate."""
        eta = _errors(eta, self.size)
        A_e, C_e = (torch.from_numpy(matrix).to(eta) for matrix in (self.A_e, self.C_e))
        with torch.no_grad():
            return eta @ A_e.T - self.net(eta @ C_e.T) + self.eps * w

    def error_step(self, eta: Tensor, dtau: float, w: Tensor | float = 0.0) -> Tensor:
        """One classical Runge-Kutta step of the error dynamics in the fast time, w held."""
        k1 = self.error_derivative(eta, w)
        k2 = self.error_derivative(eta + dtau / 2 * k1, w)
        k3 = self.error_derivative(eta + dtau / 2 * k2, w)
        k4 = self.error_derivative(eta + dtau * k3, w)
        return eta + dtau / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

    def step(self, xhat, dhat, u, y, dt: float):
        """Estimates after ``dt`` seconds with u and y held over the step (Runge-Kutta, order 4).

        xhat (..., n), dhat (..., n_d), u (..., n_u), y (..., n_y) -> (xhat, dhat) of the same kind:
        numpy arrays in, numpy arrays out; tensors keep their device and dtype. With a stacked net
        of S observers the arrays have shape (S, B, .).
        """
        is_numpy = not isinstance(xhat, Tensor)
        if is_numpy:
            xhat, dhat, u, y = (
                torch.from_numpy(np.asarray(value, dtype=np.float64))
                for value in (xhat, dhat, u, y)
            )
        z = torch.cat([xhat, dhat], dim=-1)
        with torch.no_grad():
            z = self._runge_kutta(z, u, y, float(dt))
        xhat, dhat = z[..., : self.system.n_x], z[..., self.system.n_x :]
        return (xhat.numpy(), dhat.numpy()) if is_numpy else (xhat, dhat)

    def run(self, u, y, dt: float, xhat0=None, dhat0=None):
        """Estimates along recorded inputs u (T, ..., n_u) and outputs y (T, ..., n_y).

        Row k of the results uses rows 0..k-1: (xhat (T, ..., n), dhat (T, ..., n_d)), starting at
        zero unless ``xhat0`` (..., n) and ``dhat0`` (..., n_d) are given.
        """
        is_numpy = not isinstance(y, Tensor)
        u, y = (
            torch.as_tensor(np.asarray(v), dtype=torch.float64) if is_numpy else v for v in (u, y)
        )
        if len(u) != len(y):
            raise ValueError(f"u has {len(u)} rows, y has {len(y)}")
        lead = y.shape[1:-1]
        xhat = _start(xhat0, (*lead, self.system.n_x), y)
        dhat = _start(dhat0, (*lead, self.system.n_d), y)
        rows = [(xhat, dhat)]
        for u_k, y_k in zip(u[:-1], y[:-1], strict=True):
            rows.append(self.step(*rows[-1], u_k, y_k, dt))
        result = tuple(torch.stack(column) for column in zip(*rows, strict=True))
        return tuple(column.numpy() for column in result) if is_numpy else result

    def _runge_kutta(self, z, u, y, dt):
        M, N, C, scale = self._continuous(z)
        known = u @ N.T
        weights = [weight.detach().to(z) for weight in self.net.weights]
        hidden, act, eps = weights[:-2], self.net.act, self.eps
        readout = None if len(weights) == 1 else (scale @ weights[-2]).mT
        first = (scale @ weights[-1]).mT

        def slope(state):
            v = (y - state @ C.T) / eps
            rate = state @ M.T + known + v @ first
            if readout is None:
                return rate
            w = v
            for weight in hidden:
                w = act(w @ weight.mT)
            return rate + w @ readout

        k1 = slope(z)
        k2 = slope(z + dt / 2 * k1)
        k3 = slope(z + dt / 2 * k2)
        k4 = slope(z + dt * k3)
        return z + dt / 6 * (k1 + 2 * (k2 + k3) + k4)

    def _continuous(self, like):
        """Matrices of z' = M z + N u + diag(1, 1/eps) pi((y - C_e z)/eps)."""
        if (key := (like.dtype, like.device)) in self._cache:
            return self._cache[key]
        n, n_d = self.system.n_x, self.system.n_d
        M = np.zeros((self.size, self.size))
        M[:n, :n], M[:n, n:] = self.system.A, self.system.B_w
        N = np.vstack([self.system.B, np.zeros((n_d, self.system.n_u))])
        scale = np.diag(np.r_[np.ones(n), np.full(n_d, 1 / self.eps)])
        self._cache[key] = tuple(torch.from_numpy(X).to(like) for X in (M, N, self.C_e, scale))
        return self._cache[key]

    # -- storage ----------------------------------------------------------------------------------

    def tensors(self, prefix: str = "") -> dict[str, Tensor]:
        """Everything as float64 tensors, names beginning with ``prefix``."""
        result = {f"W{i + 1}": weight for i, weight in enumerate(self.weights)}
        result |= {key: torch.tensor(getattr(self.system, key)) for key in SYSTEM_KEYS}
        result["eps"] = torch.tensor(self.eps, dtype=torch.float64)
        result["relu"] = torch.tensor(float(self.net.activation == "relu"), dtype=torch.float64)
        if self.P is not None:
            result["P"] = torch.from_numpy(self.P)
        for i, row in enumerate(self.multipliers or []):
            result[f"L{i + 1}"] = torch.from_numpy(row)
        return {prefix + name: tensor.contiguous() for name, tensor in result.items()}

    @classmethod
    def from_tensors(cls, tensors: dict[str, Tensor], name: str = "") -> "NeuralObserver":
        """Inverse of ``tensors`` (without prefix)."""
        system = UncertainLTI(*(tensors[key].numpy() for key in SYSTEM_KEYS), name=name)
        weights = [tensors[f"W{i + 1}"] for i in range(sum(k[0] == "W" for k in tensors))]
        hidden = tuple(len(weight) for weight in weights[:-2])
        activation = "relu" if tensors["relu"].item() else "tanh"
        net = ObserverNet(system.n_y, system.n_x, system.n_d, hidden, activation)
        with torch.no_grad():
            for parameter, weight in zip(net.weights, weights, strict=True):
                parameter.copy_(weight)
        layers = [tensors[f"L{i + 1}"].numpy() for i in range(len(hidden)) if "L1" in tensors]
        P = tensors["P"].numpy() if "P" in tensors else None
        return cls(system, net, tensors["eps"].item(), P, layers if "L1" in tensors else None)

    def save(self, path: str | Path) -> None:
        """Write one safetensors file (tanh and ReLU nets)."""
        if not isinstance(self.net.activation, str):
            raise ValueError("only observers with a 'tanh' or 'relu' net can be saved")
        save_file(self.tensors(), Path(path), metadata={"name": self.system.name})

    @classmethod
    def load(cls, path: str | Path) -> "NeuralObserver":
        """Read what ``save`` wrote."""
        with safe_open(Path(path), framework="pt") as archive:
            tensors = {key: archive.get_tensor(key) for key in archive.keys()}  # noqa: SIM118
            name = (archive.metadata() or {}).get("name", "")
        return cls.from_tensors(tensors, name)


def pack(observers: dict[str, NeuralObserver]) -> dict[str, Tensor]:
    """Tensors of many observers under the names "<key>/<tensor>", for one safetensors file."""
    return {k: v for key, obs in observers.items() for k, v in obs.tensors(key + "/").items()}


def unpack(tensors: dict[str, Tensor]) -> dict[str, NeuralObserver]:
    """Inverse of ``pack``; the plant is named by the key up to its first slash."""
    groups: dict[str, dict[str, Tensor]] = {}
    for name in sorted(tensors):
        key, _, leaf = name.rpartition("/")
        groups.setdefault(key, {})[leaf] = tensors[name]
    return {
        key: NeuralObserver.from_tensors(group, key.split("/")[0]) for key, group in groups.items()
    }


def stack_observers(observers: Sequence[NeuralObserver]) -> NeuralObserver:
    """One observer that steps S observers of one plant and eps at once; arrays (S, B, .)."""
    first = observers[0]
    for i, other in enumerate(observers):
        same = all(
            np.array_equal(getattr(first.system, k), getattr(other.system, k)) for k in SYSTEM_KEYS
        )
        if not same or other.eps != first.eps:
            raise ValueError(f"observers[{i}] has another plant or eps than observers[0]")
    net = ObserverNet.stack([observer.net for observer in observers])
    return NeuralObserver(first.system, net, first.eps)


def error_matrices(system: UncertainLTI, eps: float) -> tuple[np.ndarray, np.ndarray]:
    """A_e = [[eps A, B_w], [0, 0]] (m, m) and C_e = [C 0] (n_y, m)."""
    n, n_d = system.n_x, system.n_d
    A_e = np.zeros((n + n_d, n + n_d))
    A_e[:n, :n], A_e[:n, n:] = eps * system.A, system.B_w
    return A_e, np.hstack([system.C, np.zeros((system.n_y, n_d))])


def observability_rank(A: np.ndarray, C: np.ndarray) -> int:
    """Rank of the observability matrix of (A, C), A scaled to unit norm first."""
    scale = max(np.linalg.norm(A, 2), np.finfo(float).tiny)
    blocks = [C]
    for _ in range(A.shape[0] - 1):
        blocks.append(blocks[-1] @ (A / scale))
    return int(np.linalg.matrix_rank(np.vstack(blocks)))


def _lyapunov_matrix(P, size):
    matrix = np.array(P.detach() if isinstance(P, Tensor) else P, dtype=np.float64)
    if matrix.shape != (size, size):
        raise ValueError(f"P has shape {matrix.shape}, the error state has {size} components")
    if not np.isfinite(matrix).all():
        raise ValueError("P has NaN or infinite entries")
    return matrix


def _vector(row):
    vector = np.array(row.detach() if isinstance(row, Tensor) else row, dtype=np.float64)
    if vector.ndim != 1 or not np.isfinite(vector).all():
        raise ValueError(f"multipliers must be finite vectors, got shape {vector.shape}")
    return vector


def _errors(eta, size):
    eta = torch.as_tensor(eta, dtype=torch.float64) if not isinstance(eta, Tensor) else eta
    if eta.shape[-1] != size:
        raise ValueError(f"eta has {eta.shape[-1]} columns, the error state has {size}")
    return eta


def _start(value, shape, like):
    if value is None:
        return torch.zeros(shape, dtype=like.dtype, device=like.device)
    return torch.broadcast_to(torch.as_tensor(value, dtype=like.dtype, device=like.device), shape)
