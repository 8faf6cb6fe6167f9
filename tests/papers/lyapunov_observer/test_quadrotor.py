"""The quadrotor against closed forms: free fall, hover, ground effect, free rotation, contact."""

import numpy as np
import pytest

from encore.papers.lyapunov_observer.quadrotor import (
    ATTITUDE,
    RATES,
    ROTORS,
    VELOCITY,
    QuadrotorGroundEffect,
    flights,
    ground_effect,
    rotation_matrix,
)

STILL = np.zeros((1, 3))


def test_ground_effect_is_the_published_factor():
    assert ground_effect(0.1, 0.2) == pytest.approx(4 / 3)  # R/4z = 1/2
    assert ground_effect(50.0, 0.12) == pytest.approx(1.0, abs=1e-6)
    with pytest.raises(ValueError, match="height must exceed"):
        ground_effect([0.5, 0.03], 0.12)


def test_hover_far_from_the_ground_is_an_equilibrium():
    machine = QuadrotorGroundEffect()
    x = machine.hover(40.0)
    u = x[:, ROTORS]
    for _ in range(200):
        x = machine.step(x, u, STILL, 0.005)
    assert np.abs(x[0, VELOCITY]).max() < 1e-5


def test_free_fall_with_drag_is_the_closed_form():
    machine = QuadrotorGroundEffect(mass=1.2)
    x = machine.hover(100.0)
    x[:, ROTORS] = 0.0
    for _ in range(100):
        x = machine.step(x, np.zeros((1, 4)), STILL, 0.01)
    rate = machine.air_drag / 1.2
    assert x[0, 5] == pytest.approx(-machine.gravity / rate * (1 - np.exp(-rate)), rel=1e-9)


def test_free_rotation_conserves_momentum_energy_and_norm():
    machine = QuadrotorGroundEffect(air_drag=0.0)
    x = machine.hover(60.0)
    x[:, ROTORS] = 0.0
    x[:, RATES] = (2.0, -1.0, 3.0)
    inertia = np.asarray(machine.inertia)

    def invariants(x):
        momentum = rotation_matrix(x[:, ATTITUDE])[0] @ (inertia * x[0, RATES])
        return np.r_[momentum, (inertia * x[0, RATES] ** 2).sum()]

    before = invariants(x)
    for _ in range(200):
        x = machine.step(x, np.zeros((1, 4)), STILL, 0.005)
    np.testing.assert_allclose(invariants(x), before, atol=1e-8)
    assert np.linalg.norm(x[0, ATTITUDE]) == pytest.approx(1.0, abs=1e-12)


def test_the_mixer_turns_the_body_as_its_rotors_say():
    machine = QuadrotorGroundEffect()
    wrench = machine.mixer() @ np.ones(4)
    np.testing.assert_allclose(wrench, [4, 0, 0, 0], atol=1e-15)
    x = machine.hover(1.0)
    # tilt towards +x: the levelling torque must be about -y
    x[:, ATTITUDE] = (np.cos(0.1), 0.0, np.sin(0.1), 0.0)
    torque = machine.mixer() @ machine.command(x, np.zeros((1, 1)))[0]
    assert torque[2] < 0
    assert abs(torque[1]) < 1e-12


def test_rk4_has_order_four():
    machine = QuadrotorGroundEffect()
    start = machine.hover(0.5)
    start[:, RATES] = (1.0, 0.5, -0.3)
    u = np.array([[2.0, 2.6, 2.4, 2.7]])

    def fly(steps):
        x = start
        for _ in range(steps):
            x = machine.step(x, u, STILL, 0.2 / steps)
        return x

    exact = fly(400)
    errors = [np.linalg.norm(fly(n) - exact) for n in (10, 20)]
    assert 3.6 < np.log2(errors[0] / errors[1]) < 4.4


def test_the_ground_carries_the_body_until_its_rotors_do():
    machine = QuadrotorGroundEffect(mass=np.array([1.0, 1.0]))
    x = machine.hover(0.0, trials=2)
    u = np.array([[0.5] * 4, [4.0] * 4])
    for _ in range(100):
        x = machine.step(x, u, np.zeros((2, 3)), 0.005)
    assert x[0, 2] == machine.leg_height
    assert not x[0, VELOCITY].any()
    assert x[1, 2] > machine.leg_height + 0.1
    assert machine.acceleration(x, u, np.zeros((2, 3)))[0, 0] == 0.0


def test_a_batch_is_its_rows():
    mass = np.array([0.6, 1.0, 1.4])
    x = QuadrotorGroundEffect().hover([0.3, 0.6, 0.9], 3)
    u = np.random.default_rng(0).uniform(1, 4, (3, 4))
    d = np.random.default_rng(1).normal(size=(3, 3))
    batch = QuadrotorGroundEffect(mass=mass).step(x, u, d, 0.01)
    for i in range(3):
        single = QuadrotorGroundEffect(mass=mass[i]).step(x[i], u[i], d[i], 0.01)
        np.testing.assert_allclose(single[0], batch[i], rtol=1e-13)


def test_missions_are_paired_and_reproducible():
    mass, mission = flights([7, 8], seconds=1.0)
    again = flights([8], seconds=1.0)[1]
    assert mass[0] == mass[2]
    assert 0.5 <= mass.min() <= mass.max() <= 1.5
    np.testing.assert_array_equal(mission.noise[:, [1, 3]], again.noise)
    np.testing.assert_array_equal(mission.force[:, :2], mission.force[:, 2:])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mass": -1.0}, "mass must be positive"),
        ({"leg_height": 0.02}, "leg_height must exceed"),
        ({"mass": np.ones((2, 2))}, r"mass must be a number or \(B,\)"),
    ],
)
def test_bad_parameters_are_named(change, message):
    with pytest.raises(ValueError, match=message):
        QuadrotorGroundEffect(**change)


def test_bad_states_are_named():
    machine = QuadrotorGroundEffect()
    x = machine.hover(1.0, 2)
    with pytest.raises(ValueError, match=r"u must be \(2, 4\)"):
        machine.step(x, np.zeros((2, 3)), STILL, 0.01)
    x[1, 3] = np.nan
    with pytest.raises(ValueError, match="x has NaN or infinite entries in row 1"):
        machine.step(x, np.zeros((2, 4)), STILL, 0.01)
    with pytest.raises(ValueError, match="dt must be positive"):
        machine.step(machine.hover(1.0), np.zeros((1, 4)), STILL, 0.0)
