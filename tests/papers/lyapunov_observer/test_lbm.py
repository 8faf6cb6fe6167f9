"""The lattice-Boltzmann solver: conservation, decay of a known flow, shedding frequency."""

import numpy as np
import pytest

from encore.papers.lyapunov_observer.lbm import (
    DIRECTIONS,
    WEIGHTS,
    LatticeBoltzmann,
    equilibrium,
    obstacle,
    record,
    strouhal,
)


def test_equilibrium_has_the_right_moments():
    rng = np.random.default_rng(0)
    density, u, v = rng.uniform(0.9, 1.1, (4, 5)), *rng.uniform(-0.1, 0.1, (2, 4, 5))
    f = equilibrium(density, u, v)
    np.testing.assert_allclose(f.sum(axis=0), density, rtol=1e-14)
    momentum = np.tensordot(DIRECTIONS.T.astype(float), f, axes=1)
    np.testing.assert_allclose(momentum, density * np.stack([u, v]), atol=1e-15)
    stress = np.einsum("ia,ib,iyx->abyx", DIRECTIONS, DIRECTIONS, f)
    np.testing.assert_allclose(stress[0, 1], density * u * v, atol=1e-15)
    np.testing.assert_allclose(stress[0, 0], density * (1 / 3 + u * u), atol=1e-15)
    assert WEIGHTS.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("shape", ["cylinder", "square"])
def test_mass_is_constant_in_a_closed_box(shape):
    flow = LatticeBoltzmann(64, 48, diameter=10, closed=True, shape=shape)
    before = flow.mass()
    flow.step(1000)
    assert abs(flow.mass() - before) / before < 1e-10


def test_a_shear_wave_decays_with_the_viscosity():
    flow = LatticeBoltzmann(16, 64, diameter=4, reynolds=10, speed=0.05, closed=True)
    flow.solid[:] = False
    flow._rest = flow._into = flow._from = np.zeros(0, dtype=int)
    wave = 2 * np.pi / 64
    profile = np.sin(wave * np.arange(64))[:, None] * np.ones(16)
    flow.populations[:] = equilibrium(np.ones((64, 16)), 0.01 * profile, np.zeros((64, 16)))
    flow.step(800)
    amplitude = 2 * (flow.velocity()[0] * profile).mean() / 0.01
    assert amplitude == pytest.approx(np.exp(-flow.viscosity * wave**2 * 800), rel=2e-3)


def test_vortices_shed_at_a_known_strouhal_number():
    flow = LatticeBoltzmann(128, 64, diameter=8, speed=0.12)
    wake = record(flow, warm_up=3000, frames=10, every=200, window=(20, 100, 10, 50))
    assert 0.14 <= strouhal(wake["probe"], 8, 0.12) <= 0.22
    assert np.abs(wake["probe"]).max() > 0.3
    assert wake["velocity"].shape == (10, 2, 40, 80)
    assert abs(wake["mass"][1] / wake["mass"][0] - 1) < 0.01


def test_strouhal_of_a_sine():
    t = np.arange(4000)
    assert strouhal(np.sin(2 * np.pi * t / 500) + 3, 10.0, 0.1) == pytest.approx(0.2, rel=1e-4)
    with pytest.raises(ValueError, match="holds 0 periods"):
        strouhal(np.sin(2 * np.pi * t / 6000), 10.0, 0.1)


def test_the_flow_is_symmetric_without_perturbation():
    flow = LatticeBoltzmann(64, 49, diameter=8, reynolds=20, centre=(16, 24))
    flow.populations[:] = equilibrium(np.ones((49, 64)), np.where(flow.solid, 0.0, 0.1), 0.0)
    flow.step(300)
    u, v = flow.velocity()
    np.testing.assert_allclose(u, u[::-1], atol=1e-12)
    np.testing.assert_allclose(v, -v[::-1], atol=1e-12)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"speed": 0.4}, r"speed must lie in \(0, 0.2\]"),
        ({"reynolds": 0}, "reynolds must be positive"),
        ({"reynolds": 1e5}, "too high for this grid"),
        ({"diameter": 94}, "does not fit"),
        ({"shape": "star"}, "shape must be"),
    ],
)
def test_bad_parameters_are_named(change, message):
    with pytest.raises(ValueError, match=message):
        LatticeBoltzmann(**change)


def test_obstacles_have_their_area():
    disc = obstacle("cylinder", 60, 60, (29.5, 29.5), 20.0)
    assert disc.sum() == pytest.approx(np.pi * 100, rel=0.02)
    assert obstacle("square", 60, 60, (29.5, 29.5), 20.0).sum() == 400


def test_a_window_outside_the_grid_is_named():
    with pytest.raises(ValueError, match="window"):
        record(
            LatticeBoltzmann(48, 32, diameter=6), warm_up=0, frames=1, every=1, window=(0, 90, 0, 9)
        )
