"""The observer: its equations integrated by scipy, error coordinates, storage, complaints."""

import numpy as np
import pytest
import torch
from scipy.integrate import solve_ivp

from encore.papers.lyapunov_observer import (
    NeuralObserver,
    NotObservableError,
    ObserverNet,
    UncertainLTI,
    UnsupportedActivationError,
    pendulum,
)
from encore.papers.lyapunov_observer.observer import pack, stack_observers, unpack


def make(seed=0, hidden=(4, 3), eps=0.1, activation="tanh", system=None):
    system = system or pendulum()
    net = ObserverNet(system.n_y, system.n_x, system.n_d, hidden, activation, seed)
    return NeuralObserver(system, net, eps)


def test_the_net_is_zero_at_zero_and_matches_its_formula():
    net = ObserverNet(3, 4, 2, (5, 6), seed=1)
    v = torch.randn(7, 3, dtype=torch.float64)
    W1, W2, W3, W4 = (w.detach().numpy() for w in net.weights)
    by_hand = np.tanh(np.tanh(v.numpy() @ W1.T) @ W2.T) @ W3.T + v.numpy() @ W4.T
    assert net(v).detach().numpy() == pytest.approx(by_hand, abs=1e-14)
    assert not net(torch.zeros(1, 3, dtype=torch.float64)).any()
    assert (net.depth, net.neurons) == (2, 11)


def test_step_integrates_the_stated_equations():
    obs = make(3)
    plant, n = obs.system, 2
    rng = np.random.default_rng(0)
    xhat, dhat = rng.normal(size=(1, 2)), rng.normal(size=(1, 1))
    u, y = rng.normal(size=(1, 1)), rng.normal(size=(1, 2))

    def rhs(t, z):
        v = torch.from_numpy((y[0] - plant.C @ z[:n]) / obs.eps)
        pi = obs.net(v[None])[0].detach().numpy()
        dx = plant.A @ z[:n] + plant.B @ u[0] + plant.B_w @ z[n:] + pi[:n]
        return np.r_[dx, pi[n:] / obs.eps]

    peer = solve_ivp(rhs, (0, 0.05), np.r_[xhat[0], dhat[0]], rtol=1e-11, atol=1e-12).y[:, -1]
    for _ in range(50):
        xhat, dhat = obs.step(xhat, dhat, u, y, 0.001)
    assert isinstance(xhat, np.ndarray)
    assert np.r_[xhat[0], dhat[0]] == pytest.approx(peer, abs=1e-8)


def test_error_dynamics_are_those_of_plant_minus_observer():
    obs, (x, d) = make(5), (np.array([[0.3, -0.2]]), np.array([[0.7]]))
    xhat, dhat, u = np.array([[0.1, 0.4]]), np.array([[-0.5]]), np.array([[0.2]])
    d_rate, h = np.array([[1.3]]), 1e-6
    eta = np.hstack([(x - xhat) / obs.eps, d - dhat])
    v = torch.from_numpy((x - xhat) / obs.eps)
    pi = obs.net(v).detach().numpy()
    x2 = x + h * obs.system.derivative(x, u, d)
    xhat2 = xhat + h * (obs.system.derivative(xhat, u, dhat) + pi[:, :2])
    dhat2 = dhat + h * pi[:, 2:] / obs.eps
    eta2 = np.hstack([(x2 - xhat2) / obs.eps, d + h * d_rate - dhat2])
    w = torch.tensor([[0.0, 0.0, d_rate[0, 0]]], dtype=torch.float64)
    expected = obs.error_derivative(torch.from_numpy(eta), w).numpy()
    assert (eta2 - eta) / h * obs.eps == pytest.approx(expected, abs=1e-6)


def test_run_is_repeated_steps_and_a_stack_is_its_members():
    members = [make(seed) for seed in (1, 2, 3)]
    both = stack_observers(members)
    rng = np.random.default_rng(1)
    u, y = rng.normal(size=(6, 3, 4, 1)), rng.normal(size=(6, 3, 4, 2))
    xhat, _ = both.run(u, y, 0.01)
    assert xhat.shape == (6, 3, 4, 2)
    for i, member in enumerate(members):
        alone, _ = member.run(u[:, i], y[:, i], 0.01)
        assert xhat[:, i] == pytest.approx(alone, abs=1e-12)
    x1, _ = members[0].step(np.zeros((4, 2)), np.zeros((4, 1)), u[0, 0], y[0, 0], 0.01)
    assert xhat[1, 0] == pytest.approx(x1, abs=1e-13)


@pytest.mark.parametrize(("hidden", "activation"), [((4, 3), "tanh"), ((5,), "relu"), ((), "tanh")])
def test_storage_keeps_every_bit(tmp_path, hidden, activation):
    obs = make(7, hidden, activation=activation)
    obs.P, obs.multipliers = 2 * np.eye(3), [np.full(w, 1.5) for w in hidden]
    obs.save(tmp_path / "a.safetensors")
    for back in (
        NeuralObserver.load(tmp_path / "a.safetensors"),
        unpack(pack({"S/x": obs}))["S/x"],
    ):
        assert back.eps == obs.eps
        assert np.array_equal(back.P, obs.P)
        assert back.net.activation == activation
        v = torch.randn(3, 2, dtype=torch.float64)
        assert torch.equal(back.net(v), obs.net(v))
        assert [m.tolist() for m in back.multipliers or []] == [m.tolist() for m in obs.multipliers]


def test_complaints():
    plant = pendulum()
    net = ObserverNet(2, 2, 1, (3,))
    for eps in (0.0, -1.0, float("nan")):
        with pytest.raises(ValueError, match="eps"):
            NeuralObserver(plant, net, eps)
    with pytest.raises(ValueError, match="the system needs"):
        NeuralObserver(plant, ObserverNet(1, 2, 1), 0.1)
    with pytest.raises(ValueError, match="P has shape"):
        NeuralObserver(plant, net, 0.1, P=np.eye(2))
    with pytest.raises(UnsupportedActivationError, match="sigmoid"):
        ObserverNet(2, 2, 1, activation="sigmoid")
    with pytest.raises(UnsupportedActivationError):
        ObserverNet(2, 2, 1, activation=torch.sin)
    ObserverNet(2, 2, 1, activation=lambda v: v + 0.3 * torch.sin(v), sector=(0.9, 1.3))
    with pytest.raises(ValueError, match="n_y=2"):
        net(torch.zeros(1, 3, dtype=torch.float64))


def test_an_unobservable_disturbance_is_refused_with_its_rank():
    plant = UncertainLTI(np.zeros((2, 2)), np.eye(2), np.array([[1.0, 0.0]]), np.eye(2))
    with pytest.raises(NotObservableError, match="rank 2, needed 4") as caught:
        NeuralObserver(plant, ObserverNet(1, 2, 2), 0.5)
    assert (caught.value.rank, caught.value.size) == (2, 4)


def test_the_angle_alone_is_enough_for_the_pendulum():
    assert make(eps=0.3, system=pendulum(angle_only=True)).size == 3
