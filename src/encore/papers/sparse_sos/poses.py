"""Pose graphs in g2o files, and rotation synchronisation as a clique-sparse SDP (SE-Sync's relaxation)."""

from dataclasses import dataclass
from pathlib import Path

import networkx as nx
import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

from encore.papers.sparse_sos.block_sdp import CONSTANT, BlockStructure
from encore.papers.sparse_sos.chordal import chordal_cliques
from encore.papers.sparse_sos.program import Program


@dataclass(frozen=True)
class PoseGraph:
    """Relative rotations between poses.

    Attributes:
        num_poses: N.
        edges: (E, 2) poses i, j of each measurement (several may join one pair).
        rotations: (E, d, d) measured R_i' R_j.
        precisions: (E,) rotational precision of each measurement.
    """

    num_poses: int
    edges: np.ndarray
    rotations: np.ndarray
    precisions: np.ndarray

    @property
    def dim(self) -> int:
        """2 or 3."""
        return self.rotations.shape[1]

    @property
    def closures(self) -> np.ndarray:
        """(E,) whether a measurement closes a loop: its poses are not consecutive."""
        return np.abs(self.edges[:, 0] - self.edges[:, 1]) != 1

    def first(self, poses: int) -> "PoseGraph":
        """The measurements among the first poses."""
        kept = (self.edges < poses).all(1)
        parts = (self.edges[kept], self.rotations[kept], self.precisions[kept])
        return PoseGraph(min(poses, self.num_poses), *parts)


def read_g2o(path: str | Path) -> PoseGraph:
    """Read the EDGE_SE2 and EDGE_SE3:QUAT records of a g2o file; translations are left out.

    Poses are renumbered 0..N-1 by increasing id. Quaternions are x, y, z, w.

    Raises:
        ValueError: a record that is cut short, holds no numbers or an unknown tag, both kinds
            of edges, or no edge at all; the message names the line.
    """
    edges, rotations, precisions = [], [], []
    for number, line in enumerate(Path(path).read_text(encoding="utf-8").splitlines(), 1):
        tag, *words = line.split() or ["#"]
        if tag.startswith(("#", "VERTEX", "FIX")):
            continue
        if tag not in _LENGTHS:
            raise ValueError(f"{path}, line {number}: unknown record {tag!r}")
        if len(words) != _LENGTHS[tag]:
            raise ValueError(
                f"{path}, line {number}: {tag} has {len(words)} entries, expected {_LENGTHS[tag]}"
            )
        try:
            numbers = np.array(words, float)
        except ValueError:
            raise ValueError(f"{path}, line {number}: not a number in {line[:60]!r}") from None
        edges.append(numbers[:2].astype(int))
        rotation, precision = _planar(numbers) if tag == "EDGE_SE2" else _spatial(numbers)
        if rotations and rotations[-1].shape != rotation.shape:
            raise ValueError(f"{path}, line {number}: {tag} in a file of the other dimension")
        rotations.append(rotation)
        precisions.append(precision)
    if not edges:
        raise ValueError(f"{path} holds no EDGE_SE2 and no EDGE_SE3:QUAT record")
    ids, index = np.unique(np.array(edges), return_inverse=True)
    index = index.reshape(-1, 2)
    return PoseGraph(len(ids), index, np.array(rotations), np.array(precisions))


_LENGTHS = {"EDGE_SE2": 11, "EDGE_SE3:QUAT": 30}


def _planar(numbers: np.ndarray) -> tuple[np.ndarray, float]:
    return rotation_2d(numbers[4]), float(numbers[10])


def _spatial(numbers: np.ndarray) -> tuple[np.ndarray, float]:
    upper = np.zeros((6, 6))
    upper[np.triu_indices(6)] = numbers[9:]
    turning = upper[3:, 3:] + np.triu(upper[3:, 3:], 1).T
    return rotation_3d(numbers[5:9]), float(3.0 / np.trace(np.linalg.inv(turning)))


def rotation_2d(angle: float) -> np.ndarray:
    """The (2, 2) rotation by an angle in radians."""
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s], [s, c]])


def rotation_3d(quaternion: np.ndarray) -> np.ndarray:
    """The (3, 3) rotation of a quaternion (x, y, z, w), normalised first."""
    x, y, z, w = quaternion / np.linalg.norm(quaternion)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )


def random_rotations(count: int, dim: int, rng: np.random.Generator) -> np.ndarray:
    """Uniform rotations (count, d, d)."""
    if dim == 2:
        return np.array([rotation_2d(a) for a in rng.uniform(-np.pi, np.pi, count)])
    return np.array([rotation_3d(q) for q in rng.normal(size=(count, 4))])


def rotation_sync_program(graph: PoseGraph | str | Path) -> Program:
    """Least sum_e k_e |R_j - R_i R_ij|^2 over rotations, relaxed to X >= 0 with identity diagonal blocks.

    X_ij stands for R_i' R_j. The coefficients are the weights k_e, one for each measurement.
    """
    if not isinstance(graph, PoseGraph):
        graph = read_g2o(graph)
    d, costs = graph.dim, []
    for (i, j), rotation in zip(graph.edges.tolist(), graph.rotations, strict=True):
        cost = {CONSTANT: 2.0 * d}
        cost |= {
            (d * i + a, d * j + b): -2.0 * float(rotation[a, b]) for a in range(d) for b in range(d)
        }
        costs.append(cost)
    identity = [
        ({(d * pose + a, d * pose + b): 1.0}, float(a == b))
        for pose in range(graph.num_poses)
        for a in range(d)
        for b in range(a, d)
    ]
    return BlockStructure(d * graph.num_poses, costs, identity, clique_rows(graph)).program()


def clique_rows(graph: PoseGraph) -> list[tuple[int, ...]]:
    """Rows of X in each block: those of the poses of each maximal clique."""
    pairs = nx.empty_graph(graph.num_poses)
    pairs.add_edges_from(graph.edges.tolist())
    rows = range(graph.dim)
    return [
        tuple(graph.dim * pose + a for pose in clique for a in rows)
        for clique in chordal_cliques(pairs)
    ]


def certificate_matrix(graph: PoseGraph, grams: list[np.ndarray]) -> sparse.csc_matrix:
    """sum_k of the Gram blocks on their rows of X: PSD, with the rotations in its kernel where tight."""
    cliques = clique_rows(graph)
    rows = [np.repeat(clique, len(clique)) for clique in cliques]
    cols = [np.tile(clique, len(clique)) for clique in cliques]
    values = np.concatenate([gram.ravel() for gram in grams])
    shape = (graph.dim * graph.num_poses,) * 2
    where = (np.concatenate(rows), np.concatenate(cols))
    return sparse.csc_matrix((values, where), shape=shape)


def rounded_rotations(graph: PoseGraph, grams: list[np.ndarray]) -> np.ndarray:
    """Rotations (N, d, d) from the near-kernel of the certificate matrix (block inverse iteration)."""
    matrix, d = certificate_matrix(graph, grams), graph.dim
    shift = 1e-10 * abs(matrix).max()
    factor = splu(
        (matrix + shift * sparse.eye(matrix.shape[0])).tocsc(), permc_spec="MMD_AT_PLUS_A"
    )
    basis = np.tile(np.eye(d), (graph.num_poses, 1)) + 0.1 * np.random.default_rng(0).normal(
        size=(matrix.shape[0], d)
    )
    for _ in range(20):
        basis = np.linalg.qr(factor.solve(basis))[0]
    blocks = basis.reshape(graph.num_poses, d, d).swapaxes(-1, -2)
    if np.median(np.linalg.det(blocks)) < 0:
        blocks = blocks * np.array([1.0] * (d - 1) + [-1.0])[:, None]
    return to_rotations(blocks)


def to_rotations(blocks: np.ndarray) -> np.ndarray:
    """The nearest rotations (N, d, d) in the Frobenius norm."""
    u, _, vt = np.linalg.svd(blocks)
    flip = np.ones((len(blocks), blocks.shape[-1]))
    flip[:, -1] = np.linalg.det(u @ vt)
    return (u * flip[:, None, :]) @ vt


def sync_cost(graph: PoseGraph, rotations: np.ndarray, weights: np.ndarray) -> float:
    """sum_e k_e |R_j - R_i R_ij|^2."""
    left, right = graph.edges.T
    gaps = rotations[right] - rotations[left] @ graph.rotations
    return float(weights @ (gaps**2).sum((1, 2)))


def rotation_error(rotations: np.ndarray, reference: np.ndarray) -> float:
    """Mean angle in degrees to a reference after the best common rotation."""
    turn = to_rotations((rotations @ reference.swapaxes(-1, -2)).sum(0)[None])[0]
    gaps = (turn @ reference).swapaxes(-1, -2) @ rotations
    d = gaps.shape[-1]
    sine = np.linalg.norm(gaps - gaps.swapaxes(-1, -2), axis=(1, 2)) / np.sqrt(8.0)
    cosine = (np.trace(gaps, axis1=1, axis2=2) - (d - 2)) / 2
    return float(np.degrees(np.arctan2(sine, cosine)).mean())


def plant_outliers(graph: PoseGraph, share: float, seed: int) -> tuple[PoseGraph, np.ndarray]:
    """Replace a share of the loop closures (one at least) by uniform rotations; graph and mask (E,).

    Raises:
        ValueError: no loop closures.
    """
    rng = np.random.default_rng(seed)
    closures = np.flatnonzero(graph.closures)
    if not len(closures):
        raise ValueError("graph has no loop closures that could be replaced")
    count = max(1, round(share * len(closures)))
    chosen = rng.choice(closures, size=count, replace=False)
    mask = np.zeros(len(graph.edges), bool)
    mask[chosen] = True
    rotations = graph.rotations.copy()
    rotations[mask] = random_rotations(len(chosen), graph.dim, rng)
    return PoseGraph(graph.num_poses, graph.edges, rotations, graph.precisions), mask


def pose_loop(
    poses: int, closures: int, noise: float, dim: int, seed: int
) -> tuple[PoseGraph, np.ndarray]:
    """A path of poses with short loop closures, measured with rotational noise in radians.

    Returns:
        The graph, and the true rotations (N, d, d).
    """
    rng = np.random.default_rng(seed)
    truth = random_rotations(poses, dim, rng)
    edges = {(i, i + 1) for i in range(poses - 1)}
    while len(edges) < poses - 1 + closures:
        i, step = rng.integers(poses - 2), rng.integers(2, 8)
        if i + step < poses:
            edges.add((int(i), int(i + step)))
    pairs = np.array(sorted(edges))
    if dim == 2:
        errors = np.array([rotation_2d(a) for a in noise * rng.normal(size=len(pairs))])
    else:
        axes = np.concatenate(
            [noise / 2 * rng.normal(size=(len(pairs), 3)), np.ones((len(pairs), 1))], 1
        )
        errors = np.array([rotation_3d(q) for q in axes])
    left, right = pairs.T
    rotations = truth[left].swapaxes(-1, -2) @ truth[right] @ errors
    return PoseGraph(poses, pairs, rotations, np.full(len(pairs), 1 / noise**2)), truth
