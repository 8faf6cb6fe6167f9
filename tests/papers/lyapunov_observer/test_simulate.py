"""Closed-loop trials: exactness, batching, mismatch, success, the numpy twin of the neural observer."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from encore.papers.lyapunov_observer.baselines import ESO, LinearObserver
from encore.papers.lyapunov_observer.linear_systems import UncertainLTI, pendulum
from encore.papers.lyapunov_observer.network import ObserverNet
from encore.papers.lyapunov_observer.observer import NeuralObserver
from encore.papers.lyapunov_observer.simulate import (
    ArrayObserver,
    closed_loop,
    draw_trials,
    estimation_error,
    mismatch,
)


@pytest.fixture(scope="module")
def plant():
    return pendulum()


def neural(plant, seed=0, hidden=(4, 5), activation="tanh", eps=0.1):
    net = ObserverNet(plant.n_y, plant.n_x, plant.n_d, hidden, activation, seed)
    return NeuralObserver(plant, net, eps)


@pytest.mark.parametrize(("hidden", "activation"), [((4, 5), "tanh"), ((6,), "relu"), ((), "tanh")])
def test_arrays_and_tensors_step_alike(plant, hidden, activation):
    observers = [neural(plant, s, hidden, activation) for s in (0, 1)]
    rng = np.random.default_rng(0)
    xhat, dhat, u, y = (rng.normal(size=(2, 7, k)) for k in (2, 1, 1, 2))
    stacked = ArrayObserver(observers).step(xhat, dhat, u, y, 0.01)
    for i, observer in enumerate(observers):
        tensors = observer.step(xhat[i], dhat[i], u[i], y[i], 0.01)
        single = ArrayObserver(observer).step(xhat[i], dhat[i], u[i], y[i], 0.01)
        for a, b, c in zip(stacked, tensors, single, strict=True):
            np.testing.assert_allclose(a[i], b, atol=1e-12)
            np.testing.assert_allclose(c, b, atol=1e-12)


def test_the_loop_is_the_differential_equation(plant):
    observer, trials = ESO(plant, 6.0), draw_trials(plant, 1, 3, spread=0.2)
    gain, cancel = plant.lqr(), plant.cancellation()

    def rates(t, z):
        x, xhat, dhat = z[:2], z[2:4], z[4:5]
        d = trials.amplitude[0] * np.sin(trials.omega[0] * t + trials.phase[0])
        u = -gain @ xhat - cancel @ dhat
        dx, dd = observer.rates(xhat[None], dhat[None], u[None], (plant.C @ x)[None])
        state, wave = ((x - xhat) ** 2).sum(), ((d - dhat) ** 2).sum()
        x_rate = plant.A @ x + plant.B @ u + plant.B_w @ d
        return np.r_[x_rate, dx[0], dd[0], state, wave]

    z0 = np.r_[trials.x0[0], np.zeros(5)]
    exact = solve_ivp(rates, (0, 3), z0, rtol=1e-10, atol=1e-12).y[:, -1]
    outcome = closed_loop(plant, observer, trials, seconds=3.0, dt=0.001)
    assert outcome.success[0]
    assert outcome.state_mse[0] == pytest.approx(exact[5] / 3, rel=1e-4)
    assert outcome.disturbance_mse[0] == pytest.approx(exact[6] / 3, rel=1e-4)


def test_trials_networks_and_sigmas_are_independent_rows(plant):
    observers = [neural(plant, s) for s in (0, 1)]
    for observer in observers:  # a stable linear part, so that some trials succeed
        observer.net.weights[-1].data[:] = observer.net.weights[-1].new_tensor(
            [[1.5, 1.0], [0.0, 2.0], [0.0, 1.0]]
        )
    options = {"seconds": 2.0, "dt": 0.01}
    both = closed_loop(plant, observers, draw_trials(plant, 6, [4, 5]), sigma=[0.0, 0.2], **options)
    assert both.success.shape == (2, 2, 6)
    assert both.success.any()
    for i, seed in enumerate((4, 5)):
        one = closed_loop(plant, observers[i], draw_trials(plant, 6, seed), sigma=0.2, **options)
        np.testing.assert_array_equal(one.success, both.success[i, 1])
        np.testing.assert_allclose(one.state_mse, both.state_mse[i, 1], rtol=1e-9)


def test_an_exact_observer_of_a_quiet_plant_has_no_error():
    system = UncertainLTI([[-1.0]], [[1.0]], [[1.0]], [[1.0]])
    trials = draw_trials(system, 3, 0, spread=0.0, amplitude=(0.0, 0.0))
    outcome = closed_loop(system, ESO(system, 3.0), trials, seconds=1.0)
    assert outcome.success.all()
    assert not outcome.state_mse.any()
    assert not outcome.peak.any()


def test_an_unstable_loop_fails_and_stays_out_of_the_averages(plant):
    blind = LinearObserver(plant, np.zeros((3, 2)))
    result = estimation_error(plant, blind, trials=20, seconds=20.0, dt=0.01, seed=0)
    assert result["successes"] == 0
    assert result["trials"] == 20
    assert np.isnan(result["mse"])
    outcome = closed_loop(plant, blind, draw_trials(plant, 5, 0))
    assert (outcome.peak > 3).all()
    assert np.isnan(outcome.state_mse).all()


def test_estimation_error_adds_its_parts(plant):
    result = estimation_error(plant, ESO(plant, 8.0), trials=10, seconds=5.0, dt=0.01, seed=1)
    assert result["mse"] == result["mse_state"] + result["mse_disturbance"]
    assert result["success"] == 1.0
    assert 0 < result["mse_state"] < result["mse_disturbance"]
    again = estimation_error(plant, ESO(plant, 8.0), trials=10, seconds=5.0, dt=0.01, seed=1)
    assert again == result


def test_mismatch_has_the_stated_size():
    rng = np.random.default_rng(0)
    matrix, direction = rng.normal(size=(3, 4)), rng.normal(size=(5, 3, 4))
    change = mismatch(matrix, direction, np.full(5, 0.3)) - matrix
    sizes = np.linalg.norm(change, axis=(1, 2)) / np.linalg.norm(matrix)
    np.testing.assert_allclose(sizes, 0.3, rtol=1e-12)
    np.testing.assert_array_equal(mismatch(matrix, direction[0], 0.0), matrix)
    with pytest.raises(ValueError, match="sigma must not be negative"):
        mismatch(matrix, direction[0], -0.1)


def test_trials_have_their_ranges_and_seeds(plant):
    trials = draw_trials(plant, 50, [1, 2])
    assert trials.x0.shape == (2, 50, 2)
    assert trials.direction_c.shape == (2, 50, 2, 2)
    assert trials.amplitude.min() >= 0.2
    assert trials.amplitude.max() <= 0.5
    assert trials.omega.min() >= 1.0
    assert trials.omega.max() <= 3.0
    np.testing.assert_array_equal(trials.x0[1], draw_trials(plant, 50, 2).x0)


def test_bad_arguments_are_named(plant):
    trials = draw_trials(plant, 2, 0)
    with pytest.raises(ValueError, match="dt must be below eps"):
        closed_loop(plant, neural(plant, eps=0.01), trials, dt=0.02)
    with pytest.raises(ValueError, match="dt must lie"):
        closed_loop(plant, ESO(plant, 1.0), trials, dt=0.0)
    with pytest.raises(TypeError, match="rates"):
        closed_loop(plant, object(), trials)
    with pytest.raises(ValueError, match="trials must be at least 1"):
        draw_trials(plant, 0, 0)
    with pytest.raises(ValueError, match=r"observers\[1\] has another eps"):
        ArrayObserver([neural(plant), neural(plant, eps=0.2)])
