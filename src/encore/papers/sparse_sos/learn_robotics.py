"""Learning proposals for an arm and weights of pose graphs."""

import numpy as np
import torch
from torch import Tensor

from encore.papers.sparse_sos.arms import (
    UNIT,
    arm_projection_program,
    first_moments,
    joints_of,
)
from encore.papers.sparse_sos.certificate import verify_certificate
from encore.papers.sparse_sos.instances import OBSTACLES
from encore.papers.sparse_sos.layer import SOSLayer
from encore.papers.sparse_sos.poses import (
    PoseGraph,
    plant_outliers,
    pose_loop,
    rotation_error,
    rotation_sync_program,
    rounded_rotations,
)
from encore.papers.sparse_sos.training import Run, descend, proven, tensor


def learn_arm(seed: int, links: int, mu: float, steps: int, rate: float) -> Run:
    """Learn a proposal whose projection (first moments) brings the hand to a goal."""
    rng = np.random.default_rng(seed)
    program = arm_projection_program(links, OBSTACLES)
    layer = SOSLayer(program, mu=mu, outputs=("moments",))
    places = first_moments(program)
    rest = joints_of(np.full(links, -0.6) + 0.1 * rng.normal(size=links))
    pose = tensor(rest + 0.1 * rng.normal(size=rest.shape))
    angle, length = rng.uniform(-0.3, 1.2), 0.75 * links
    goal = torch.tensor([length * np.cos(angle), length * np.sin(angle)])
    square = torch.full((2 * links,), UNIT**2, dtype=torch.float64)

    def coeffs() -> Tensor:
        flat = pose.ravel()
        return torch.cat([(flat @ flat)[None], -2 * UNIT * flat, square])

    def projected() -> Tensor:
        return UNIT * layer(coeffs()[None]).moments[0, places].reshape(links, 2)

    def loss() -> Tensor:
        return ((projected()[-1] - goal) ** 2).sum()

    def measured() -> dict[str, float]:
        joints = projected().detach().numpy()
        steps = np.diff(np.vstack([np.zeros(2), joints]), axis=0)
        off = float(np.abs(np.linalg.norm(steps, axis=1) - 1).max())
        return {"length_error": off} | proven(layer, coeffs())

    start, joints = measured(), [projected().detach().numpy()]
    proposals = [pose.detach().numpy().copy()]
    curve = descend([pose], loss, steps, rate)
    arrays = {
        "joints": np.stack([*joints, projected().detach().numpy()]),
        "proposals": np.stack([*proposals, pose.detach().numpy()]),
        "goal": goal.numpy(),
    }  # fmt: skip
    return Run({"loss": curve[0]} | start, {"loss": curve.min()} | measured(), curve, arrays)


def learn_sync(
    graph: PoseGraph,
    reference: np.ndarray,
    outliers: np.ndarray,
    mu: float,
    steps: int,
    rate: float,
    scale: float,
) -> Run:
    """Learn weights in (0, 1) of loop closures that discount outliers, without labels; odometry keeps 1.

    The loss is bound(w) + scale * sum (sqrt w - 1)^2 (Black & Rangarajan's form of Geman-McClure), whose
    gradient in w is the residual of each measurement at the relaxation's solution.

    Args:
        reference: rotations (N, d, d) that the error is measured to.
        outliers: (E,) which measurements were replaced.
    """
    program = rotation_sync_program(graph)
    layer = SOSLayer(program, mu=mu)
    closures = torch.from_numpy(np.flatnonzero(graph.closures))
    ones = torch.ones(len(graph.edges), dtype=torch.float64)
    logits = tensor(np.full(len(closures), 3.0))

    def weights() -> Tensor:
        return ones.index_put((closures,), torch.sigmoid(logits))

    def loss() -> Tensor:
        w = weights()
        return layer(w[None]).bound[0] + scale * ((w.sqrt() - 1) ** 2).sum()

    def measured(w: Tensor) -> tuple[dict[str, float], np.ndarray]:
        full = SOSLayer(program, mu=mu, outputs=("gram",))
        output = full(w[None])
        blocks = [part[0].numpy() for part in output.gram]
        rotations = rounded_rotations(graph, blocks)
        report = verify_certificate(w.numpy(), output)
        numbers = {
            "rotation_error": rotation_error(rotations, reference),
            "min_eig": report.min_eig,
            "rigorous_bound": report.rigorous_bound,
        }
        return numbers, rotations

    start, first = measured(ones)
    curve = descend([logits], loss, steps, rate)
    end, last = measured(weights().detach())
    w = weights().detach().numpy()
    end["outlier_weight"], end["inlier_weight"] = (
        w[outliers].mean(),
        w[graph.closures & ~outliers].mean(),
    )
    arrays = {"weights": w, "outliers": outliers, "edges": graph.edges,
              "rotations": np.stack([first, last, reference])}  # fmt: skip
    return Run(start, end, curve, arrays)


def loop_with_outliers(
    seed: int, poses: int, noise: float, share: float
) -> tuple[PoseGraph, np.ndarray, np.ndarray]:
    """A generated pose graph (planar for even seeds, spatial for odd ones), its truth and outliers."""
    graph, truth = pose_loop(poses, poses, noise, 2 + seed % 2, seed)
    spoiled, mask = plant_outliers(graph, share, seed)
    return spoiled, truth, mask


def graph_with_outliers(
    graph: PoseGraph, seed: int, share: float, mu: float
) -> tuple[PoseGraph, np.ndarray, np.ndarray]:
    """A measured pose graph with planted outliers; the reference is its own clean solution."""
    layer = SOSLayer(rotation_sync_program(graph), mu=mu, outputs=("gram",))
    output = layer(torch.ones(1, len(graph.edges), dtype=torch.float64))
    reference = rounded_rotations(graph, [part[0].numpy() for part in output.gram])
    spoiled, mask = plant_outliers(graph, share, seed)
    return spoiled, reference, mask
