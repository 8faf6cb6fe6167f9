"""The Lyapunov function of the error, its worst decrease, certified balls and their coverage."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from encore.papers.lyapunov_observer.network import apply_net
from encore.papers.lyapunov_observer.observer import NeuralObserver


def lyapunov_value(obs: NeuralObserver, eta) -> Tensor:
    """V = eta' P eta at error states eta (..., m) -> (...); the unit is that of P times eta^2."""
    eta, P = _points(obs, eta)
    return (eta @ P * eta).sum(-1)


def F_V(obs: NeuralObserver, eta, rho: float, M_w: float) -> Tensor:
    """Worst dV/dtau + rho V over |w| <= M_w, at error states eta (..., m) -> (...).

    F_V = eta'(A_e'P + P A_e + rho P) eta - 2 nu(eta)'P eta + 2 eps M_w |P eta|, nu = pi(C_e eta).
    Source: arXiv 2609.30819, Sec. 3. F_V > 0 for every small eta when M_w > 0, since its last term
    is of first order: decrease can only be asked for on a shell |eta| >= r_min.
    """
    _rates(rho, M_w)
    eta, P = _points(obs, eta)
    A_e, C_e = (torch.from_numpy(matrix).to(eta) for matrix in (obs.A_e, obs.C_e))
    weights = [weight.to(eta) for weight in obs.weights]
    with torch.no_grad():
        return decrease(weights, obs.net.act, A_e, C_e, P, eta, rho, obs.eps * M_w)


def decrease(
    weights: list[Tensor],
    act: Callable[[Tensor], Tensor],
    A_e: Tensor,
    C_e: Tensor,
    P: Tensor,
    eta: Tensor,
    rho: float,
    drift: float,
) -> Tensor:
    """F_V of raw tensors, differentiable; leading axes (seeds) broadcast; drift = eps M_w."""
    gradient = eta @ P
    rate = eta @ A_e.mT - apply_net(weights, eta @ C_e.mT, act)
    length = torch.linalg.vector_norm(gradient, dim=-1)
    return ((2 * rate + rho * eta) * gradient).sum(-1) + 2 * drift * length


def lipschitz_constant(obs: NeuralObserver) -> float:
    """L_nu = |W_{L+2} C_e| + |W_{L+1}| |W_L| .. |W_1| |C_e| in spectral norms; tanh or ReLU."""
    if not isinstance(obs.net.activation, str):
        raise ValueError("net: the Lipschitz constant is known for 'tanh' and 'relu' only")
    weights = [weight.numpy() for weight in obs.weights]
    bound = np.linalg.norm(weights[-1] @ obs.C_e, 2)
    if len(weights) > 1:
        norms = [np.linalg.norm(weight, 2) for weight in weights[:-1]]
        bound += np.prod(norms) * np.linalg.norm(obs.C_e, 2)
    return float(bound)


def local_radius(obs: NeuralObserver, eta, rho: float, M_w: float, slack: float = 0.0) -> Tensor:
    """Radius of a ball around each eta (..., m) in which F_V <= 0 is proved; 0 where F_V(eta) > 0.

    The positive root r of C_2 r^2 + C_1 r + F_V(eta) = 0 with C_2 = |Q| + 2 L_nu |P| and
    C_1 = 2|Q||eta| + 2|P|(L_nu|eta| + |nu(eta)|) + 2 eps M_w |P|, Q = A_e'P + P A_e + rho P.
    With ``slack`` h the result is a lower bound of the radius of every state within h of eta.
    Source: arXiv 2609.30819, local stability theorem; constants as derived in the method card.
    """
    value = F_V(obs, eta, rho, M_w)
    eta, _ = _points(obs, eta)
    Q = obs.A_e.T @ obs.P + obs.P @ obs.A_e + rho * obs.P
    norm_Q, norm_P = np.linalg.norm(Q, 2), np.linalg.norm(obs.P, 2)
    slope = lipschitz_constant(obs)
    with torch.no_grad():
        nu = obs.net(eta @ torch.from_numpy(obs.C_e).to(eta).mT)
    length, correction = (torch.linalg.vector_norm(x, dim=-1) for x in (eta, nu))
    C_2 = norm_Q + 2 * slope * norm_P
    C_1 = 2 * norm_Q * length + 2 * norm_P * (slope * length + correction + obs.eps * M_w)
    room = (-value - C_1 * slack - C_2 * slack**2).clamp(min=0.0)
    C_1 = C_1 + 2 * slack * (norm_Q + 2 * norm_P * slope)
    return 2 * room / (C_1 + torch.sqrt(C_1**2 + 4 * C_2 * room))


def coverage_bound(n_cov, q, T):
    """Lower bound 1 - N_cov (1 - q)^T on P(T sampled balls cover the domain), clipped at 0.

    N_cov: number of sets of diameter at most r_0 that cover the domain, r_0 the least certified
    radius; q: least probability of a sample falling into one of them; T: number of samples.
    Scalars or arrays. Source: arXiv 2609.30819, coverage theorem (a union bound).
    """
    n_cov, q, T = (np.asarray(value, dtype=np.float64) for value in (n_cov, q, T))
    for name, value, valid in (
        ("n_cov", n_cov, n_cov >= 1),
        ("q", q, (q >= 0) & (q <= 1)),
        ("T", T, T >= 0),
    ):
        if not np.all(valid):
            raise ValueError(
                f"{name} is {value[~valid].flat[0]}; expected n_cov >= 1, q in [0, 1], T >= 0"
            )
    with np.errstate(divide="ignore"):
        log_miss = np.log(n_cov) + T * np.log1p(-np.minimum(q, 1.0))
    bound = np.abs(np.expm1(np.minimum(log_miss, 0.0)))
    return float(bound) if bound.ndim == 0 else bound


def sample_shell(
    count: int, size: int, r_min: float, r_max: float, generator, dtype=torch.float64
) -> Tensor:
    """Error states (count, size): direction uniform on the sphere, radius uniform in [r_min, r_max]."""
    if not 0 < r_min < r_max:
        raise ValueError(f"r_min={r_min}, r_max={r_max}; expected 0 < r_min < r_max")
    eta = torch.randn(count, size, generator=generator, dtype=dtype)
    radius = torch.rand(count, 1, generator=generator, dtype=dtype)
    eta *= (r_min + (r_max - r_min) * radius) / torch.linalg.vector_norm(eta, dim=-1, keepdim=True)
    return eta


def points_in_balls(centres: Tensor, radii: Tensor, count: int, generator) -> Tensor:
    """Points (B, count, m) uniform in the balls with centres (B, m) and radii (B,)."""
    size = centres.shape[-1]
    shape = (len(centres), count)
    step = torch.randn(*shape, size, generator=generator, dtype=centres.dtype)
    depth = torch.rand(*shape, 1, generator=generator, dtype=centres.dtype) ** (1 / size)
    step *= radii[:, None, None] * depth / torch.linalg.vector_norm(step, dim=-1, keepdim=True)
    return centres[:, None] + step


def _points(obs, eta):
    if obs.P is None:
        raise ValueError("obs.P is None; train the observer first")
    eta = eta if isinstance(eta, Tensor) else torch.as_tensor(eta, dtype=torch.float64)
    if eta.shape[-1] != obs.size:
        raise ValueError(f"eta has {eta.shape[-1]} columns, the error state has {obs.size}")
    return eta, torch.from_numpy(obs.P).to(eta)


def _rates(rho, M_w):
    if not rho >= 0:
        raise ValueError(f"rho must be >= 0, got {rho}")
    if not M_w >= 0:
        raise ValueError(f"M_w must be >= 0, got {M_w}")
