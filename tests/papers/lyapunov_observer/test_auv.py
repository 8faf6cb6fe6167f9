"""The underwater vehicle, the tracking loop that both vehicles share, and the comparison of methods."""

import numpy as np
import pytest

from encore.papers.lyapunov_observer.auv import VortexStreetAUV, crossings, maker
from encore.papers.lyapunov_observer.baselines import ESO, Measurement
from encore.papers.lyapunov_observer.comparison import at_edge, candidates, train_observers, tune
from encore.papers.lyapunov_observer.linear_systems import UncertainLTI
from encore.papers.lyapunov_observer.simulate import ArrayObserver
from encore.papers.lyapunov_observer.tracking import Candidate, Mission, minimum_jerk, select, track


@pytest.fixture(scope="module")
def flow():
    """A record whose velocity is linear in time and space, where interpolation is exact."""
    t, y, x = np.meshgrid(np.arange(60.0), np.arange(8.0), np.arange(10.0), indexing="ij")
    return np.stack([0.1 * x + 0.02 * t, 0.2 * y - 0.01 * t], axis=1)


@pytest.fixture
def auv(flow):
    return VortexStreetAUV(flow, interval=0.25, cell=0.1, origin=(1.0, 2.0), speed=0.5)


def test_water_is_interpolated_and_clamped(auv):
    position = np.array([[1.23, 2.41], [1.9, 2.7], [-5.0, 9.0]])
    time = np.array([0.6, 2.0, 100.0])
    x, y, t = np.array([2.3, 9, 0]), np.array([4.1, 7, 7]), np.array([2.4, 8, 59])
    expected = 0.5 * np.stack([0.1 * x + 0.02 * t, 0.2 * y - 0.01 * t], axis=1)
    np.testing.assert_allclose(auv.water(position, time), expected, rtol=1e-12)


def test_a_drifting_vehicle_takes_the_speed_of_steady_water():
    frames = np.zeros((400, 2, 3, 3))
    frames[:, 0], frames[:, 1] = 0.8, -0.4
    auv = VortexStreetAUV(frames, interval=0.5)
    x = auv.start((0.05, 0.05), 0.0)
    for _ in range(2000):
        x = auv.step(x, np.zeros((1, 2)), np.zeros((1, 2)), 0.05)
    np.testing.assert_allclose(x[0, 2:4], [0.4, -0.2], atol=1e-6)
    assert x[0, 6] == pytest.approx(100.0)


def test_the_final_speed_balances_drag():
    auv = VortexStreetAUV(np.zeros((2, 2, 2, 2)), interval=1.0)
    x = auv.start((0, 0), 0.0)
    for _ in range(800):
        x = auv.step(x, np.array([[10.0, 0.0]]), np.zeros((1, 2)), 0.05)
    speed = x[0, 2]
    assert auv.linear_drag * speed + auv.quadratic_drag * speed**2 == pytest.approx(10.0, rel=1e-6)


def test_rk4_has_order_four(auv):
    def sail(steps):
        x = auv.start((1.35, 2.25), 0.5)
        x[:, 2:4] = (0.3, 0.2)
        for _ in range(steps):
            x = auv.step(x, np.array([[6.0, -2.0]]), np.array([[0.5, 0.2]]), 0.2 / steps)
        return x

    exact = sail(400)
    errors = [np.linalg.norm(sail(n) - exact) for n in (4, 8)]
    assert 3.5 < np.log2(errors[0] / errors[1]) < 4.6


def test_minimum_jerk_meets_its_ends_and_its_own_derivatives():
    times = np.linspace(-0.5, 3.0, 3501)
    path = minimum_jerk([1.0, 2.0], [4.0, 0.0], 2.0, times)
    np.testing.assert_allclose(path[0, 0], [1, 2])
    np.testing.assert_allclose(path[-1], [[4, 0], [0, 0], [0, 0]], atol=1e-12)
    np.testing.assert_allclose(np.gradient(path[:, 0], times, axis=0), path[:, 1], atol=1e-2)
    np.testing.assert_allclose(np.gradient(path[:, 1], times, axis=0), path[:, 2], atol=1e-2)


def mission_of(auv, seeds=(0, 1), **options):
    given = {"start": (1.2, 2.2), "end": (1.7, 2.5), "seconds": 6.0, "crossing": 4.0} | options
    return crossings(auv, seeds, **given)


def test_an_observer_removes_what_a_pd_loop_leaves(auv):
    system = UncertainLTI(*auv.design_matrices())
    mass, mission = mission_of(auv)
    entries = [
        Candidate("pd", Measurement(system), 2.0),
        Candidate("eso", ESO(system, 8.0), 2.0),
        Candidate("pid", Measurement(system), 2.0, ki=4.0),
    ]
    flight = track(maker(auv, mass), entries, mission, record=True)
    assert flight.rmse.shape == (3, 2)
    assert flight.position.shape == (300, 3, 2, 2)
    assert (flight.rmse[1] < 0.5 * flight.rmse[0]).all()
    assert (flight.rmse[2] < flight.rmse[0]).all()
    assert (flight.estimate_rmse[1] < flight.estimate_rmse[0]).all()
    error = flight.position - mission.reference[:, None, :, 0]
    np.testing.assert_allclose(np.sqrt((error**2).sum(-1).mean(0)), flight.rmse, rtol=1e-12)


def test_candidates_and_trials_do_not_touch_each_other(auv):
    system = UncertainLTI(*auv.design_matrices())
    mass, mission = mission_of(auv)
    shared = ESO(system, 6.0)
    entries = [Candidate("eso", shared, 1.5), Candidate("eso", shared, 2.5)]
    both = track(maker(auv, mass), entries, mission)
    for k in (0, 1):
        alone = track(maker(auv, mass), [entries[k]], mission)
        np.testing.assert_allclose(alone.rmse[0], both.rmse[k], rtol=1e-10)
    one = Mission(
        mission.x0[1:],
        mission.reference[:, 1:],
        mission.force[:, 1:],
        mission.noise[:, 1:],
        mission.dt,
    )
    np.testing.assert_allclose(
        track(maker(auv, mass[1:]), entries, one).rmse[:, 0], both.rmse[:, 1], rtol=1e-10
    )


def test_two_stage_observers_are_certified_and_can_differ_by_trial(auv):
    system = UncertainLTI(*auv.design_matrices())
    quick = {"max_steps": 300, "batch": 128, "check_points": 512, "test_points": 512}
    nets = [
        train_observers(system, s, 0.2, [0.1, 0.2], hidden=(4,), pretrain=quick) for s in (0, 1)
    ]
    assert all(set(found) == {0.1, 0.2} for found in nets)
    mass, mission = mission_of(auv)
    stacked = Candidate("neural", ArrayObserver([found[0.2] for found in nets]), 2.0)
    both = track(maker(auv, mass), [stacked], mission).rmse[0]
    for i, found in enumerate(nets):
        single = Candidate("neural", ArrayObserver(found[0.2]), 2.0)
        assert track(maker(auv, mass), [single], mission).rmse[0, i] == pytest.approx(both[i])


def test_every_method_is_tuned_on_its_grid(auv):
    system = UncertainLTI(*auv.design_matrices())
    grid = {
        "bandwidth": (1.5, 2.5), "ki": (0.0, 4.0), "lander_ki": (), "omega_0": (2.0, 8.0),
        "lqe": ((1.0, 1e-4),), "level": (0.5,),
    }  # fmt: skip
    entries = candidates(system, grid, {}, [], np.full(4, 1e-5))
    assert len(entries) == 2 * (2 + 2 + 1 + 1)
    mass, mission = mission_of(auv)
    chosen = tune(maker(auv, mass), entries, mission)
    assert [c.method for c in chosen] == ["pid", "eso", "lqe", "twisting"]
    assert chosen[0].ki == 4.0
    assert at_edge(entries, chosen[0])


def test_select_takes_the_least_and_refuses_what_never_finished():
    entries = [Candidate("a", None, 1.0), Candidate("a", None, 2.0), Candidate("b", None, 1.0)]
    assert select(entries, [np.nan, 2.0, 1.0]) == [1, 2]
    with pytest.raises(ValueError, match="method 'b' has no candidate"):
        select(entries, [1.0, 2.0, np.nan])


def test_a_lost_vehicle_is_reported_as_nan(auv):
    system = UncertainLTI(*auv.design_matrices())
    mass, mission = mission_of(auv)
    wild = Candidate("eso", ESO(system, 500.0), 60.0)
    calm = Candidate("eso", ESO(system, 6.0), 2.0)
    flight = track(maker(auv, mass), [wild, calm], mission)
    assert np.isfinite(flight.rmse[1]).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"frames": np.zeros((3, 4, 5))}, "frames must be"),
        ({"frames": np.full((2, 2, 2, 2), np.nan)}, "frames has NaN"),
        ({"mass": 0.0}, "mass must be positive"),
        ({"interval": -1.0}, "interval must be positive"),
    ],
)
def test_bad_parameters_are_named(flow, change, message):
    with pytest.raises(ValueError, match=message):
        VortexStreetAUV(**({"frames": flow, "interval": 0.25} | change))


def test_a_record_that_is_too_short_is_named(auv):
    with pytest.raises(ValueError, match="the record lasts 14.75 s, the mission 20 s"):
        mission_of(auv, seconds=20.0)
    with pytest.raises(ValueError, match="candidates is empty"):
        track(maker(auv, np.ones(2)), [], mission_of(auv)[1])
