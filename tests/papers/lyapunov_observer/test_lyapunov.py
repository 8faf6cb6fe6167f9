"""F_V against the simulated worst case, certified balls by brute force, coverage by simulation."""

import numpy as np
import pytest
import torch

from encore.papers.lyapunov_observer import (
    F_V,
    NeuralObserver,
    ObserverNet,
    UncertainLTI,
    coverage_bound,
    local_radius,
    lyapunov_value,
    pendulum,
    pretrain_pointwise,
)
from encore.papers.lyapunov_observer.coverage import Ring, certified_floor, covered
from encore.papers.lyapunov_observer.lyapunov import lipschitz_constant, sample_shell

RHO, M_W = 0.2, 1.7


@pytest.fixture(scope="module")
def trained():
    plant = pendulum()
    obs = NeuralObserver(plant, ObserverNet(2, 2, 1, (8, 8), seed=4), 0.1)
    report = pretrain_pointwise(obs, RHO, M_W, batch=256, max_steps=600, test_points=5000)
    return obs, report


def shell(count, seed=0, r_max=5.0):
    return sample_shell(count, 3, 1.0, r_max, torch.Generator().manual_seed(seed))


def test_F_V_is_the_rate_of_V_under_the_worst_disturbance(trained):
    obs, _ = trained
    eta = shell(200)
    gradient = eta @ torch.from_numpy(obs.P)
    worst = M_W * gradient / gradient.norm(dim=-1, keepdim=True)
    step = 1e-4
    ahead, behind = (lyapunov_value(obs, obs.error_step(eta, s, worst)) for s in (step, -step))
    rate = (ahead - behind) / (2 * step) + RHO * lyapunov_value(obs, eta)
    assert F_V(obs, eta, RHO, M_W).numpy() == pytest.approx(rate.numpy(), rel=1e-5, abs=1e-5)
    other = torch.randn(200, 3, dtype=torch.float64)
    other *= M_W / other.norm(dim=-1, keepdim=True)
    slope = obs.error_derivative(eta, other)
    lower = (2 * slope * gradient).sum(-1) + RHO * lyapunov_value(obs, eta)
    assert (lower <= F_V(obs, eta, RHO, M_W) + 1e-9).all()


def test_decrease_is_impossible_near_zero(trained):
    assert (F_V(trained[0], 1e-4 * shell(50), RHO, M_W) > 0).all()


def test_pre_training_makes_points_decrease_and_is_repeatable(trained):
    obs, report = trained
    assert report.violation_rate < 0.02
    before = NeuralObserver(obs.system, ObserverNet(2, 2, 1, (8, 8), seed=4), 0.1, np.eye(3))
    assert (F_V(before, shell(1000), RHO, M_W) > 0).double().mean() > 0.1
    before.P = None
    again = pretrain_pointwise(before, RHO, M_W, batch=256, max_steps=600, test_points=5000)
    assert again.steps == report.steps
    assert again.violation_rate == report.violation_rate


def test_no_point_of_a_certified_ball_violates(trained):
    obs, _ = trained
    centres = shell(60, 1)
    radius = local_radius(obs, centres, RHO, M_W)
    assert (radius > 0).sum() > 20
    assert not radius[F_V(obs, centres, RHO, M_W) > 0].any()
    direction = torch.randn(60, 500, 3, dtype=torch.float64)
    direction /= direction.norm(dim=-1, keepdim=True)
    points = centres[:, None] + radius[:, None, None] * direction
    held = F_V(obs, points, RHO, M_W)[radius > 0] <= 1e-12
    assert held.all()


def test_the_radius_is_a_root_of_its_quadratic(trained):
    obs, _ = trained
    eta = shell(5, 2)
    r = local_radius(obs, eta, RHO, M_W).numpy()
    Q = obs.A_e.T @ obs.P + obs.P @ obs.A_e + RHO * obs.P
    nu = obs.net(eta @ torch.from_numpy(obs.C_e).T).detach().norm(dim=-1).numpy()
    length, L = eta.norm(dim=-1).numpy(), lipschitz_constant(obs)
    q, p = np.linalg.norm(Q, 2), np.linalg.norm(obs.P, 2)
    C_2, C_1 = q + 2 * L * p, 2 * q * length + 2 * p * (L * length + nu) + 2 * obs.eps * M_W * p
    value = F_V(obs, eta, RHO, M_W).numpy()
    assert (C_2 * r**2 + C_1 * r + value)[value < 0] == pytest.approx(0, abs=1e-9)


def test_the_lipschitz_constant_bounds_every_difference(trained):
    obs, _ = trained
    a, b = (torch.randn(400, 2, dtype=torch.float64) * 3 for _ in range(2))
    quotient = (obs.net(a) - obs.net(b)).norm(dim=-1) / (a - b).norm(dim=-1)
    assert quotient.max() <= lipschitz_constant(obs)


def test_coverage_bound_against_a_coupon_collector():
    cells, draws, repeats = 20, np.array([40, 80, 120, 200]), 4000
    rng = np.random.default_rng(0)
    hit = rng.integers(cells, size=(repeats, draws[-1]))
    full = [np.mean([len(np.unique(row[:T])) == cells for row in hit]) for T in draws]
    bound = coverage_bound(cells, 1 / cells, draws)
    assert (bound <= np.array(full) + 0.02).all()
    assert bound[-1] == pytest.approx(full[-1], abs=0.01)
    assert coverage_bound(10, 0.1, 0) == 0.0
    assert coverage_bound(1, 1.0, 3) == 1.0


def test_the_share_covered_is_safe_and_fills_the_ring():
    ring, rng = Ring(2.0, 3.0), np.random.default_rng(0)
    centres, areas = ring.cells(0.2)
    assert areas.sum() == pytest.approx(ring.area)
    probe = ring.sample(4000, rng)
    nearest = np.linalg.norm(probe[:, None] - centres, axis=-1).min(1)
    assert nearest.max() <= 0.2  # every point of a cell lies within the diameter of its centre
    points = ring.sample(400, rng)
    shares = covered(ring, points, 0.3, [20, 60, 400], 0.03)
    inside = np.linalg.norm(probe[:, None] - points, axis=-1) <= 0.3
    true = np.array([inside[:, :T].any(1).mean() for T in (20, 60, 400)])
    assert (np.diff(shares) >= 0).all()
    assert (shares <= true + 0.03).all()
    assert shares[-1] > 0.98
    n_cov, q = ring.cover(0.2)
    assert (n_cov, q) == (len(areas), pytest.approx(areas.min() / ring.area))
    with pytest.raises(ValueError, match="positive"):
        ring.cells(0.0)
    with pytest.raises(ValueError, match="cells"):
        ring.cells(1e-5)


def test_the_certified_floor_is_below_every_radius():
    plant = UncertainLTI([[-0.2]], [[1.0]], [[1.0]], [[1.0]])
    obs = NeuralObserver(plant, ObserverNet(1, 1, 1, (), seed=0), 0.1)
    pretrain_pointwise(obs, RHO, M_W, xi=1.0, max_steps=500)
    ring = Ring(2.0, 3.0)
    floor = certified_floor(obs, ring, RHO, M_W, 0.01)
    points = torch.from_numpy(ring.sample(5000, np.random.default_rng(0)))
    assert 0 < floor <= local_radius(obs, points, RHO, M_W).min()


def test_complaints(trained):
    obs, _ = trained
    with pytest.raises(ValueError, match="rho"):
        F_V(obs, shell(2), -0.1, 1.0)
    with pytest.raises(ValueError, match="4 columns"):
        lyapunov_value(obs, np.ones((2, 4)))
    with pytest.raises(ValueError, match="q is 1.5"):
        coverage_bound(3, 1.5, 10)
    with pytest.raises(ValueError, match="r_min"):
        pretrain_pointwise(obs, r_min=2.0, r_max=1.0)
    with pytest.raises(ValueError, match=r"obs\.P is None"):
        F_V(NeuralObserver(obs.system, obs.net, 0.1), shell(2), 0.1, 1.0)
