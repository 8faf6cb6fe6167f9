"""Learning controllers and couplings whose margin is certified."""

import numpy as np
import torch
from torch import Tensor

from encore.papers.sparse_sos.instances import LEVEL
from encore.papers.sparse_sos.layer import SOSLayer
from encore.papers.sparse_sos.oscillators import DuffingChain
from encore.papers.sparse_sos.pendulum import (
    PAIRS,
    closed_loop_converges,
    decrease_maps,
    pendulum_program,
    simulate,
)
from encore.papers.sparse_sos.training import Run, descend, proven, tensor


def learn_pendulum(seed: int, mu: float, steps: int, rate: float, limit: float, starts: int) -> Run:
    """Raise the margin of gain and Lyapunov function; |u| <= limit is certified on {V <= LEVEL}.

    det P is kept at 1, so that the certified set does not shrink to raise the margin.
    """
    rng = np.random.default_rng(seed)
    layer = SOSLayer(pendulum_program(), mu=mu)
    free, driven, _ = (torch.from_numpy(part) for part in decrease_maps())
    root = tensor(np.eye(3) + 0.1 * rng.normal(size=(3, 3)))
    raw = tensor(np.array([-1.0, 0.0, -0.2]) + 0.2 * rng.normal(size=3))
    rows, columns = (torch.tensor(part) for part in zip(*PAIRS, strict=True))

    def shape() -> Tensor:
        p = root @ root.T + 1e-3 * torch.eye(3, dtype=torch.float64)
        return p / torch.det(p) ** (1 / 3)

    def gain() -> Tensor:
        largest = torch.sqrt(
            LEVEL * raw @ torch.linalg.solve(shape(), raw)
        )  # of |u| on {V <= LEVEL}
        return raw * torch.clamp(limit / largest, max=1.0)

    def numbers() -> tuple[Tensor, Tensor, Tensor]:
        p, k = shape(), gain()
        coeffs = torch.einsum("ab,abt->t", p, free) + torch.einsum("ab,c,abct->t", p, k, driven)
        norm = p[rows, columns] * torch.where(rows == columns, 1.0, 2.0)
        return coeffs, norm, torch.cat([torch.full((1,), LEVEL, dtype=torch.float64), -norm])

    def loss() -> Tensor:
        return -layer(*(part[None] for part in numbers())).bound[0]

    def measured() -> dict[str, float]:
        share = closed_loop_converges(
            gain().detach().numpy(), shape().detach().numpy(), LEVEL, starts, seed
        )
        return {"converged": share} | proven(layer, *numbers())

    start, first = measured(), (gain().detach().numpy(), shape().detach().numpy())
    curve = descend([root, raw], loss, steps, rate)
    k, p = gain().detach().numpy(), shape().detach().numpy()
    angle = np.linspace(0, 2 * np.pi, 12, endpoint=False)
    paths = [simulate(g, 0.8 * np.cos(angle), 0.8 * np.sin(angle), 12.0) for g in (first[0], k)]
    arrays = {
        "gains": np.stack([first[0], k]), "shapes": np.stack([first[1], p]), "paths": np.stack(paths),
    }  # fmt: skip
    end = {"margin": -curve.min()} | measured()
    return Run({"margin": -curve[0]} | start, end, curve, arrays)


def learn_oscillators(
    seed: int, masses: int, mu: float, steps: int, rate: float, starts: int
) -> Run:
    """Raise the margin of a Duffing chain by its couplings (kept near their start) and V's parameters."""
    rng = np.random.default_rng(seed)
    model = DuffingChain(masses)
    layer = SOSLayer(model.program(), mu=mu)
    maps = torch.from_numpy(model.maps)
    given = torch.from_numpy(0.2 + 0.4 * rng.normal(size=2 * masses - 2))
    couplings = tensor(given.numpy())
    cross, springs = tensor(np.full(masses, 0.2)), tensor(np.full(masses - 1, -2.0))
    tilt = tensor(np.zeros(masses))
    one = torch.ones(1, dtype=torch.float64)

    def energy() -> Tensor:
        ratio = torch.exp(tilt)
        own = torch.stack([ratio, cross, (1 + cross**2) / ratio], dim=1)  # det P_i = 1
        return torch.cat([own.ravel(), torch.nn.functional.softplus(springs)])

    def coeffs() -> Tensor:
        return torch.einsum("abt,a,b->t", maps, energy(), torch.cat([one, couplings]))

    def loss() -> Tensor:
        return -layer(coeffs()[None]).bound[0] + 0.01 * ((couplings - given) ** 2).mean()

    def measured() -> dict[str, float]:
        parts = energy().detach().numpy()[: 3 * masses].reshape(masses, 3)
        blocks = np.array([[[a, b], [b, c]] for a, b, c in parts])
        level = np.linalg.eigvalsh(blocks).min()  # {V <= level} lies inside the discs
        values = energy().detach().numpy()
        points = _on_level(values, masses, level, starts, seed)
        final = model.simulate(couplings.detach().numpy(), points, seconds=60.0, dt=0.1)
        share = float((np.abs(final).max(1) < 1e-2).mean())
        margin = layer(coeffs().detach()[None]).bound.item()
        return {"converged": share, "margin": margin} | proven(layer, coeffs())

    start = measured()
    curve = descend([couplings, cross, springs, tilt], loss, steps, rate)
    return Run(start, measured(), curve)


def _on_level(energy: np.ndarray, masses: int, level: float, starts: int, seed: int) -> np.ndarray:
    """Random states (S, 2N) with V = level."""
    z = np.random.default_rng(seed).normal(size=(starts, masses, 2))
    own = energy[: 3 * masses].reshape(masses, 3)
    x, v = z[..., 0], z[..., 1]
    value = (own[:, 0] * x**2 + 2 * own[:, 1] * x * v + own[:, 2] * v**2).sum(1)
    value += (energy[3 * masses :] * np.diff(x, axis=1) ** 2).sum(1)
    return (z * np.sqrt(level / value)[:, None, None]).reshape(starts, 2 * masses)
