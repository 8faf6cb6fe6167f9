"""Baseline observers: pole places, Riccati equation, finite-time convergence, fitted residual, PID."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.linalg import expm

from encore.papers.lyapunov_observer.baselines import (
    ESO,
    PID,
    LinearObserver,
    LuenbergerLQE,
    Measurement,
    NeuralLander,
    Observer,
    SuperTwistingObserver,
    augmented,
)
from encore.papers.lyapunov_observer.errors import NotObservableError


def plant(n=3, n_d=1, n_y=None, seed=0):
    rng = np.random.default_rng(seed)
    c = np.eye(n) if n_y is None else rng.normal(size=(n_y, n))
    return SimpleNamespace(
        A=rng.normal(size=(n, n)), B=rng.normal(size=(n, 2)), C=c, B_w=np.eye(n)[:, -n_d:]
    )


CHAIN = SimpleNamespace(
    A=np.array([[0.0, 1.0], [0.0, 0.0]]),
    B=np.array([[0.0], [1.0]]),
    C=np.eye(2),
    B_w=np.array([[0.0], [1.0]]),
)


@pytest.mark.parametrize("system", [plant(), plant(4, 2, seed=1), plant(3, 1, n_y=1, seed=2)])
def test_eso_error_poles_are_at_minus_omega(system):
    omega = 7.0
    matrix = ESO(system, omega).error_matrix()
    size = len(matrix)
    # all poles at -omega: (M + omega I) is nilpotent (eigenvalues of a defective matrix are not accurate)
    shifted = (matrix + omega * np.eye(size)) / np.linalg.norm(matrix)
    assert np.abs(np.linalg.matrix_power(shifted, size)).max() < 1e-9


def test_eso_of_a_position_measurement_has_the_textbook_gains():
    system = SimpleNamespace(A=CHAIN.A, B=CHAIN.B, C=np.array([[1.0, 0.0]]), B_w=CHAIN.B_w)
    np.testing.assert_allclose(ESO(system, 5.0).gain[:, 0], [15, 75, 125], rtol=1e-12)


def test_a_linear_step_is_exact_and_agrees_with_rk4():
    system = plant(3, 1)
    observer = ESO(system, 4.0)
    rng = np.random.default_rng(3)
    xhat, dhat, u, y = (rng.normal(size=(5, k)) for k in (3, 1, 2, 3))
    exact = observer.step(xhat, dhat, u, y, 0.02)
    numeric = Observer.step(observer, xhat, dhat, u, y, 0.02)
    for a, b in zip(exact, numeric, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)


def test_a_constant_disturbance_is_found_exactly():
    system, dt = CHAIN, 0.01
    a, _ = augmented(system)
    flow = expm(a * dt)
    z = np.array([[0.3, -0.2, 1.7]])
    for observer in (ESO(system, 8.0), LuenbergerLQE(system, 10.0, 1e-3, 1e-3)):
        xhat, dhat = np.zeros((1, 2)), np.zeros((1, 1))
        state = z
        for _ in range(600):
            y = state[:, :2]
            xhat, dhat = observer.step(xhat, dhat, np.zeros((1, 1)), y, dt)
            state = state @ flow.T
        # the held output is half a step old on average
        assert dhat[0, 0] == pytest.approx(1.7, abs=0.02)


def test_lqe_gain_solves_the_dual_riccati_equation_and_is_stable():
    system = plant(4, 2, seed=5)
    observer = LuenbergerLQE(system, 3.0, 1e-2, [1e-3] * 4)
    assert np.linalg.eigvals(observer.error_matrix()).real.max() < 0
    a, c = augmented(system)
    q, r = np.diag([1e-2] * 4 + [3.0] * 2), 1e-3
    # the gain is P C'/r with C = [I 0]: it gives the first four columns of P; rebuild P by iteration
    p = np.eye(6)
    for _ in range(20_000):
        p = p + 1e-3 * (a @ p + p @ a.T + q - p @ c.T @ c @ p / r)
    np.testing.assert_allclose(observer.gain, p @ c.T / r, rtol=1e-6, atol=1e-6)


def test_lqe_agrees_with_python_control():
    control = pytest.importorskip("control")
    system = plant(3, 1, seed=4)
    a, c = augmented(system)
    gain, _, _ = control.lqe(a, np.eye(4), c, np.diag([1e-2] * 3 + [2.0]), 1e-2 * np.eye(3))
    np.testing.assert_allclose(LuenbergerLQE(system, 2.0, 1e-2, 1e-2).gain, gain, rtol=1e-7)


def test_super_twisting_finds_a_moving_disturbance_in_finite_time():
    dt, system = 1e-3, CHAIN
    observer = SuperTwistingObserver(system, level=4.0)
    t = dt * np.arange(4000)
    d = np.sin(2 * t)  # |d'| <= 2 < level
    speed = (1 - np.cos(2 * t)) / 2
    height = t / 2 - np.sin(2 * t) / 4
    y = np.stack([height, speed], axis=1)[:, None, :]
    _, dhat = observer.run(np.zeros((4000, 1, 1)), y, dt)
    assert np.abs(dhat[1500:, 0, 0] - d[1500:]).max() < 0.03
    with pytest.raises(ValueError, match="full column rank 2, its rank is 1"):
        SuperTwistingObserver(SimpleNamespace(**{**vars(CHAIN), "C": np.array([[1.0, 0.0]])}), 1.0)


def test_the_boundary_layer_removes_chatter_at_rest():
    smooth = SuperTwistingObserver(CHAIN, 4.0, layer=0.05)
    dx, dd = smooth.rates(np.zeros((1, 2)), np.zeros((1, 1)), np.zeros((1, 1)), np.zeros((1, 2)))
    assert not dx.any()
    assert not dd.any()


@pytest.mark.parametrize("sees_input", [True, False])
def test_neural_lander_learns_a_residual_and_is_lipschitz(sees_input):
    rng = np.random.default_rng(0)
    y, u = rng.uniform(-1, 1, (4000, 2)), rng.uniform(-1, 1, (4000, 1))
    target = np.sin(2 * y[:, :1]) + (0.5 * u if sees_input else 0.0)
    net = NeuralLander.fit(CHAIN, y, u, target, epochs=60, batch=256, sees_input=sees_input)
    assert np.sqrt(np.mean((net.predict(y, u) - target) ** 2)) < 0.05
    norms = [np.linalg.norm(w, 2) for w, _ in net.weights]
    assert np.prod(norms) <= 4.0 * 1.0001
    xhat, dhat = net.step(np.zeros((3, 2)), np.zeros((3, 1)), u[:3], y[:3], 0.01)
    np.testing.assert_array_equal(xhat, y[:3])
    np.testing.assert_array_equal(dhat, net.predict(y[:3], u[:3]))
    assert net.sees_input is sees_input


def test_pid_is_its_formula_and_does_not_wind_up():
    pid = PID(2.0, 0.5, 0.1, limit=0.02)
    integral, command = pid.step(
        np.zeros((1, 1)), np.full((1, 1), 3.0), np.full((1, 1), -1.0), 0.01
    )
    assert command[0, 0] == pytest.approx(6.0 - 0.1 + 0.015)
    for _ in range(10):
        integral, _ = pid.step(integral, np.full((1, 1), 3.0), np.zeros((1, 1)), 0.01)
    assert integral[0, 0] == 0.02
    with pytest.raises(ValueError, match="ki must not be negative"):
        PID(1.0, -0.1)


def test_run_is_repeated_stepping_and_batches_are_rows():
    observer = ESO(plant(3, 1), 3.0)
    rng = np.random.default_rng(1)
    u, y = rng.normal(size=(20, 4, 2)), rng.normal(size=(20, 4, 3))
    xhat, dhat = observer.run(u, y, 0.01)
    assert xhat.shape == (20, 4, 3)
    assert dhat.shape == (20, 4, 1)
    assert not xhat[0].any()
    single = observer.run(u[:, 2:3], y[:, 2:3], 0.01)[0]
    np.testing.assert_allclose(xhat[:, 2:3], single, rtol=1e-12)
    step = observer.step(xhat[5], dhat[5], u[5], y[5], 0.01)
    np.testing.assert_array_equal(step[0], xhat[6])


def test_what_cannot_be_seen_is_refused():
    blind = SimpleNamespace(**{**vars(CHAIN), "C": np.array([[0.0, 1.0]])})
    for make in (lambda: ESO(blind, 3.0), lambda: LuenbergerLQE(blind)):
        with pytest.raises(NotObservableError) as caught:
            make()
        assert (caught.value.rank, caught.value.size) == (2, 3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ESO(CHAIN, -1.0), "omega_0 must be positive, got -1"),
        (lambda: LuenbergerLQE(CHAIN, disturbance_noise=0), "disturbance_noise must be positive"),
        (lambda: SuperTwistingObserver(CHAIN, 0.0), "level must be positive"),
        (lambda: LinearObserver(CHAIN, np.ones((2, 2))), r"gain must be \(3, 2\)"),
        (
            lambda: Measurement(CHAIN).step(
                np.zeros((1, 2)), np.zeros((1, 1)), np.zeros((1, 1)), np.zeros((1, 3)), 0.1
            ),
            "y must have 2 columns",
        ),
        (
            lambda: NeuralLander.fit(CHAIN, np.ones((3, 2)), np.ones((2, 1)), np.ones((3, 1))),
            "u has 2 rows",
        ),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
