"""The applications: brute force, simulation, tightness, files."""

import json

import networkx as nx
import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from encore.papers.sparse_sos import (
    BlockSDPLayer,
    DuffingChain,
    SOSLayer,
    arm_projection_program,
    duffing_chain_program,
    maxcut_program,
    read_g2o,
    rotation_sync_program,
    verify_certificate,
)
from encore.papers.sparse_sos.arms import (
    UNIT,
    first_moments,
    joints_of,
    nearest_pose,
    projection_coeffs,
)
from encore.papers.sparse_sos.cli import app
from encore.papers.sparse_sos.graphs import edges_of, largest_cut, partial_k_tree, weights_of
from encore.papers.sparse_sos.instances import OBSTACLES, make
from encore.papers.sparse_sos.learn_bounds import learn_cut
from encore.papers.sparse_sos.learn_robotics import learn_sync, loop_with_outliers
from encore.papers.sparse_sos.pendulum import closed_loop_converges, decrease_maps, lyapunov
from encore.papers.sparse_sos.polynomial import SparsePolynomial
from encore.papers.sparse_sos.poses import (
    certificate_matrix,
    pose_loop,
    rotation_3d,
    rotation_error,
    rounded_rotations,
    sync_cost,
)

QUARTER = "0 0 0.7071067811865476 0.7071067811865476"  # about z, x y z w
EYE = "1 0 0 0 0 0 1 0 0 0 0 1 0 0 0 4 0 0 4 0 4"


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_maxcut_bound_lies_between_brute_force_and_the_eigenvalue_bound(seed):
    graph = partial_k_tree(13, 3, 0.8, seed)
    weights = np.random.default_rng(seed).uniform(0.5, 2, graph.number_of_edges())
    layer = BlockSDPLayer(maxcut_program(graph))
    upper = -layer(torch.tensor(weights)[None]).bound.item()
    edges = edges_of(graph)
    nx.set_edge_attributes(graph, dict(zip(edges, weights, strict=True)), "weight")
    laplacian = nx.laplacian_matrix(graph, nodelist=range(13)).toarray()
    assert largest_cut(edges, weights, 13) <= upper
    assert upper <= 13 / 4 * np.linalg.eigvalsh(laplacian)[-1] + 1e-4


def test_graphs_keep_their_weights():
    graph = nx.karate_club_graph()
    assert len(weights_of(graph)) == 78
    with pytest.raises(ValueError, match="must have edges"):
        maxcut_program(nx.empty_graph(3))
    with pytest.raises(ValueError, match="at most 20"):
        largest_cut([(0, 1)], np.ones(1), 30)


def test_the_arm_keeps_a_feasible_pose_and_meets_the_nearest_one():
    program = arm_projection_program(4, OBSTACLES)
    layer, places = SOSLayer(program, mu=1e-5, outputs=("moments",)), first_moments(program)
    feasible = joints_of(np.array([-0.6, -0.2, 0.3, 0.1]))
    rng = np.random.default_rng(0)
    for pose in (feasible, feasible + 0.15 * rng.normal(size=feasible.shape)):
        output = layer(torch.tensor(projection_coeffs(pose))[None])
        least, joints = nearest_pose(pose, OBSTACLES, 10, 0)
        found = UNIT * output.moments[0, places].numpy().reshape(4, 2)
        assert np.abs(found - joints).max() < 2e-3
        assert least - 2e-3 < output.bound.item() <= least + 1e-9
    with pytest.raises(ValueError, match="links=1"):
        arm_projection_program(1)
    with pytest.raises(ValueError, match="no positive radius"):
        arm_projection_program(3, [(1.0, 0.0, 0.0)])


def test_pendulum_polynomial_is_the_derivative_of_v():
    rng = np.random.default_rng(0)
    shape = np.eye(3) + 0.1 * np.ones((3, 3))
    gain = rng.normal(size=3)
    free, driven, support = decrease_maps()
    coeffs = np.einsum("ab,abt->t", shape, free) + np.einsum("ab,c,abct->t", shape, gain, driven)
    theta, w = rng.uniform(-2, 2, size=(2, 20))
    z = np.stack([np.sin(theta), 1 - np.cos(theta), w], axis=1)
    force, h = np.sin(theta) - 0.1 * w + z @ gain, 1e-5
    ahead = lyapunov(shape, theta + h * w, w + h * force)
    behind = lyapunov(shape, theta - h * w, w - h * force)
    slope = (ahead - behind) / (2 * h)
    assert np.allclose(SparsePolynomial(support, coeffs).evaluate(z), -slope, atol=1e-7)


def test_a_pendulum_without_control_falls():
    assert closed_loop_converges(np.zeros(3), np.eye(3), 1.0, 20, 0) == 0.0
    assert closed_loop_converges(np.array([-4.0, 0, -2.0]), np.eye(3), 0.5, 20, 0) == 1.0


def test_the_duffing_polynomial_is_the_derivative_of_v():
    model, rng = DuffingChain(3), np.random.default_rng(0)
    energy, couplings = rng.normal(size=11), rng.normal(size=4)
    coeffs = np.einsum("abt,a,b->t", model.maps, energy, np.append(1.0, couplings))
    states = 0.5 * rng.normal(size=(10, 6))

    def value(z):
        x, v = z[:, ::2], z[:, 1::2]
        own = energy[:9].reshape(3, 3)
        total = (own[:, 0] * x**2 + 2 * own[:, 1] * x * v + own[:, 2] * v**2).sum(1)
        return total + (energy[9:] * np.diff(x, axis=1) ** 2).sum(1)

    ahead = model.simulate(couplings, states, 1e-6, 1e-6)
    slope = (value(ahead) - value(states)) / 1e-6
    assert np.allclose(SparsePolynomial(model.support, coeffs).evaluate(states), -slope, atol=1e-3)
    with pytest.raises(ValueError, match="masses=1"):
        duffing_chain_program(1)


def test_synchronisation_is_tight_and_rounds_to_the_bound():
    graph, truth = pose_loop(9, 5, 0.05, 3, 0)
    layer = BlockSDPLayer(rotation_sync_program(graph), mu=1e-8, outputs=("gram",))
    weights = np.ones(len(graph.edges))
    output = layer(torch.tensor(weights)[None])
    blocks = [part[0].numpy() for part in output.gram]
    rotations = rounded_rotations(graph, blocks)
    assert np.linalg.eigvalsh(certificate_matrix(graph, blocks).toarray())[0] > -1e-12
    assert sync_cost(graph, rotations, weights) == pytest.approx(output.bound.item(), abs=2e-6)
    assert verify_certificate(weights, output).min_eig > 0
    assert np.allclose(np.linalg.det(rotations), 1.0)
    assert rotation_error(rotations, truth) < 8.0
    assert rotation_error(rotation_3d(np.array([0, 0, 1.0, 1.0])) @ truth, truth) < 1e-6


def test_g2o_is_read_and_bad_lines_are_named(tmp_path):
    path = tmp_path / "graph.g2o"
    path.write_text(
        "VERTEX_SE3:QUAT 7 0 0 0 0 0 0 1\n"
        f"EDGE_SE3:QUAT 7 9 1 0 0 {QUARTER} {EYE}\n"
        f"EDGE_SE3:QUAT 7 9 1 0 0 {QUARTER} {EYE}\n"
        f"EDGE_SE3:QUAT 9 12 1 0 0 {QUARTER} {EYE}\n"
    )
    graph = read_g2o(path)
    assert (graph.num_poses, graph.dim, graph.edges.tolist()) == (3, 3, [[0, 1], [0, 1], [1, 2]])
    assert np.allclose(graph.rotations[0], [[0, -1, 0], [1, 0, 0], [0, 0, 1]])
    assert graph.precisions[0] == pytest.approx(4.0)
    for line, message in (
        ("EDGE_SE2 0 1 1 0 0 1 0", "line 1: EDGE_SE2 has 7 entries, expected 11"),
        ("EDGE_SE2 0 1 1 0 x 1 0 0 1 0 1", "line 1: not a number"),
        ("EDGE_XY 0 1", "unknown record 'EDGE_XY'"),
        ("VERTEX_SE2 0 0 0 0", "holds no EDGE_SE2"),
        (
            f"EDGE_SE2 0 1 1 0 0 1 0 0 1 0 1\nEDGE_SE3:QUAT 7 9 1 0 0 {QUARTER} {EYE}",
            "other dimension",
        ),
    ):
        path.write_text(line + "\n")
        with pytest.raises(ValueError, match=message):
            read_g2o(path)


def test_every_task_has_certified_instances():
    for task, size in (("pendulum_swing", 3), ("oscillators", 2), ("chains", 5)):
        instance = make(task, size, 1)
        output = SOSLayer(instance.program, outputs=("gram",))(
            *(torch.tensor(x)[None] for x in (instance.coeffs, instance.norm_coeffs, instance.data))
        )
        report = verify_certificate(instance.coeffs, output)
        assert report.min_eig > 0
        assert report.rigorous_bound <= instance.search([], 0)


def test_training_moves_what_it_should():
    run = learn_cut(0, "karate", 1e-3, 10, 0.05)
    assert run.after["loss"] < 0.3 * run.before["loss"]
    assert run.after["min_eig"] > 0
    graph, truth, outliers = loop_with_outliers(0, 25, 0.02, 0.2)
    run = learn_sync(graph, truth, outliers, mu=1e-5, steps=15, rate=1.5, scale=0.1)
    assert run.change["error_ratio"] < 1.0
    assert run.after["outlier_weight"] < run.after["inlier_weight"]


def test_the_command_line(tmp_path):
    path = tmp_path / "poly.json"
    path.write_text(json.dumps({"exponents": [[4, 0], [0, 4], [1, 1]], "coeffs": [1, 1, -1]}))
    run = CliRunner().invoke(app, ["bound", str(path)])
    assert run.exit_code == 0, run.output
    assert json.loads(run.output)["rigorous_bound"] == pytest.approx(-0.125, abs=1e-4)
    path.write_text(json.dumps({"exponents": [[3]], "coeffs": [1]}))
    run = CliRunner().invoke(app, ["bound", str(path)])
    assert run.exit_code == 2
    assert "top degree is 3" in run.output
    graph = tmp_path / "graph.g2o"
    edges = ["0 1", "1 2", "0 2"]
    angles = ["0.5", "0.5", "1.0"]
    rows = [f"EDGE_SE2 {e} 1 0 {a} 1 0 0 1 0 1" for e, a in zip(edges, angles, strict=True)]
    graph.write_text("\n".join(rows))
    run = CliRunner().invoke(app, ["sync", str(graph), "--out", str(tmp_path / "r.npz")])
    assert run.exit_code == 0, run.output
    assert json.loads(run.output)["cost"] == pytest.approx(0.0, abs=1e-8)
    assert np.load(tmp_path / "r.npz")["rotations"].shape == (3, 2, 2)
