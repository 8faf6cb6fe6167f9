"""Plants: the published eigenvalues, exact integration, and complaints that name what is wrong."""

import json

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from encore.papers.lyapunov_observer import UncertainLTI, pendulum, x29
from encore.papers.lyapunov_observer.linear_systems import generate_pendulum, model_from_record

EIGENVALUES = {  # of A, 1/s, as stated with the data
    "LON_PA": [-2.262, -0.022 - 0.154j, -0.022 + 0.154j, 1.511],
    "LON_UA": [-4.096, -0.006 - 0.062j, -0.006 + 0.062j, 2.865],
    "LAT_PA": [-1.608, -0.246 - 1.294j, -0.246 + 1.294j, 0.032],
    "LAT_UA": [-2.513, -0.165 - 2.794j, -0.165 + 2.794j, 0.018],
}


@pytest.fixture
def x29_file(dataset):
    return dataset("x29") / "x29_linear_models.json"


@pytest.mark.parametrize("model", EIGENVALUES)
@pytest.mark.parametrize("scaled", [True, False])
def test_x29_has_the_published_eigenvalues(model, scaled, x29_file):
    plant = x29(model, scaled, x29_file)
    found = np.sort_complex(np.linalg.eigvals(plant.A))
    assert found == pytest.approx(np.sort_complex(EIGENVALUES[model]), abs=1e-3)
    reach = [plant.B]
    for _ in range(3):
        reach.append(plant.A @ reach[-1])
    assert np.linalg.matrix_rank(np.hstack(reach), tol=1e-9) == 4


def test_an_unknown_model_is_named():
    with pytest.raises(ValueError, match="LON_XX.*LON_UA"):
        x29("LON_XX")


def test_step_agrees_with_an_adaptive_integrator():
    rng = np.random.default_rng(0)
    plant = UncertainLTI(*(rng.normal(size=s) for s in ((3, 3), (3, 2), (2, 3), (3, 1))))
    x, u, d = rng.normal(size=(5, 3)), rng.normal(size=(5, 2)), rng.normal(size=(5, 1))
    after = plant.step(x, u, d, 0.3)
    for i in range(5):
        peer = solve_ivp(
            lambda t, z, i=i: plant.derivative(z, u[i], d[i]),
            (0, 0.3),
            x[i],
            rtol=1e-11,
            atol=1e-12,
        )
        assert after[i] == pytest.approx(peer.y[:, -1], abs=1e-8)


def test_lqr_stabilises_and_the_cancellation_cancels():
    plant = pendulum()
    assert np.linalg.eigvals(plant.A - plant.B @ plant.lqr()).real.max() < 0
    assert plant.B @ plant.cancellation() == pytest.approx(plant.B_w)


def test_the_generated_data_set_is_the_pendulum(tmp_path):
    generate_pendulum(tmp_path)
    record = json.loads((tmp_path / "pendulum_linear_models.json").read_text())["models"][
        "PENDULUM"
    ]
    read, plant = model_from_record(record, "PENDULUM"), pendulum()
    assert all(np.array_equal(getattr(read, k), getattr(plant, k)) for k in ("A", "B", "C", "B_w"))
    again = UncertainLTI.from_dict(plant.to_dict())
    assert np.array_equal(again.A, plant.A)


def test_complaints_name_the_matrix():
    A = np.eye(4)
    with pytest.raises(ValueError, match="C has 3 columns, A is 4x4"):
        UncertainLTI(A, A, np.ones((2, 3)), A)
    with pytest.raises(ValueError, match="B_w has 2 rows"):
        UncertainLTI(A, A, A, np.ones((2, 1)))
    bad = A.copy()
    bad[1, 2] = np.nan
    with pytest.raises(ValueError, match=r"A\[1, 2\] is nan"):
        UncertainLTI(bad, A, A, A)
    with pytest.raises(ValueError, match="square"):
        UncertainLTI(np.ones((2, 3)), A, A, A)
    with pytest.raises(ValueError, match="dt"):
        UncertainLTI(A, A, A, A).step(np.zeros(4), np.zeros(4), np.zeros(4), 0.0)
