"""Seeded instances of the six tasks: a program with numbers in it, and its least value by search."""

from collections.abc import Callable
from dataclasses import dataclass, field

import networkx as nx
import numpy as np

from encore.papers.sparse_sos.arms import (
    arm_projection_program,
    joints_of,
    nearest_pose,
    projection_coeffs,
)
from encore.papers.sparse_sos.chains import chained_quartic, local_minimum
from encore.papers.sparse_sos.graphs import (
    best_cut_found,
    edges_of,
    maxcut_program,
    partial_k_tree,
    weights_of,
)
from encore.papers.sparse_sos.oscillators import DuffingChain
from encore.papers.sparse_sos.pendulum import PAIRS, decrease_maps, pendulum_program
from encore.papers.sparse_sos.polynomial import SparsePolynomial
from encore.papers.sparse_sos.poses import (
    PoseGraph,
    pose_loop,
    read_g2o,
    rotation_sync_program,
    rounded_rotations,
    sync_cost,
)
from encore.papers.sparse_sos.program import Program, SOSProgram

OBSTACLES = [(1.5, 0.6, 0.5)]
LEVEL = 1.0  # of the pendulum's certified set {V <= LEVEL}


@dataclass
class Instance:
    """One program with its numbers.

    Attributes:
        name: what it is, such as "karate".
        size: n of the task (variables, links, masses, vertices or poses).
        coeffs, norm_coeffs, data: as a layer takes them, (T,), (Tq,), (D,).
        search: least value of the underlying problem that a search finds, given the Gram blocks (which
            round rotations) and a seed; no certified bound may lie above it.
    """

    name: str
    size: int
    program: Program
    coeffs: np.ndarray
    search: Callable[[list[np.ndarray], int], float]
    norm_coeffs: np.ndarray = field(default_factory=lambda: np.ones(1))
    data: np.ndarray = field(default_factory=lambda: np.zeros(0))

    @property
    def numbers(self) -> np.ndarray:
        """Coefficients, normaliser and data in one vector."""
        return np.concatenate([self.coeffs, self.norm_coeffs, self.data])

    def split(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Objective p (N,), normaliser q (N,) and data (D,) from such a vector."""
        t, tq = len(self.coeffs), len(self.norm_coeffs)
        p = self.program.objective @ numbers[:t]
        return p, self.program.norm_map @ numbers[t : t + tq], numbers[t + tq :]


def chain(n: int, seed: int, searches: int = 200) -> Instance:
    """A chained quartic."""
    poly = chained_quartic(n, seed)
    program = SOSProgram.build(poly.exponents)
    return Instance(
        f"chain{n}", n, program, poly.coeffs,
        lambda _, search_seed: local_minimum(poly, searches, search_seed),
    )  # fmt: skip


def dense_chain(n: int, seed: int) -> Instance:
    """The same polynomial with one Gram block over all variables."""
    poly = chained_quartic(n, seed)
    program = SOSProgram.build(poly.exponents, cliques=[range(n)])
    return Instance(
        f"dense{n}", n, program, poly.coeffs, lambda _, seed: local_minimum(poly, 20, seed)
    )


def pendulum(seed: int) -> Instance:
    """The margin of a random Lyapunov function and a stabilising gain."""
    rng = np.random.default_rng(seed)
    root = np.eye(3) + 0.2 * rng.normal(size=(3, 3))
    shape, gain = root @ root.T, np.array([-4.0, 0.0, -2.0]) + 0.3 * rng.normal(size=3)
    free, driven, support = decrease_maps()
    coeffs = np.einsum("ab,abt->t", shape, free) + np.einsum("ab,c,abct->t", shape, gain, driven)
    norm = np.array([shape[i, j] * (1 + (i != j)) for i, j in PAIRS])

    def search(_, search_seed: int) -> float:
        draw = np.random.default_rng(search_seed).uniform(-3, 3, size=(100_000, 2))
        z = np.stack([np.sin(draw[:, 0]), 1 - np.cos(draw[:, 0]), draw[:, 1]], axis=1)
        v = np.einsum("na,ab,nb->n", z, shape, z)
        inside = (v <= LEVEL) & (v > 1e-9)
        decrease = SparsePolynomial(support, coeffs).evaluate(z[inside])
        return float((decrease / v[inside]).min())

    data = np.concatenate([[LEVEL], -norm])
    return Instance("pendulum", 3, pendulum_program(), coeffs, search, norm, data)


def oscillator_chain(masses: int, seed: int) -> Instance:
    """The margin of a Duffing chain with random couplings."""
    rng = np.random.default_rng(seed)
    model = DuffingChain(masses)
    energy = np.concatenate([np.tile([1.0, 0.2, 1.0], masses), np.full(masses - 1, 0.1)])
    couplings = np.concatenate([[1.0], 0.2 + 0.1 * rng.normal(size=2 * masses - 2)])
    coeffs = np.einsum("abt,a,b->t", model.maps, energy, couplings)
    program = model.program()

    def search(_, search_seed: int) -> float:
        z = np.random.default_rng(search_seed).normal(size=(4000, masses, 2))
        radius = np.random.default_rng(search_seed + 1).uniform(size=(4000, masses, 1))
        z *= np.sqrt(radius) / np.linalg.norm(z, axis=2, keepdims=True)
        z = z.reshape(4000, 2 * masses)
        values = SparsePolynomial(model.support, coeffs).evaluate(z)
        return float((values / (z**2).sum(1)).min())

    return Instance(
        f"duffing{masses}", masses, program, coeffs, search, program.norm_coeffs, program.data
    )


def arm(links: int, seed: int) -> Instance:
    """Projection of a noisy pose."""
    rng = np.random.default_rng(seed)
    pose = joints_of(0.4 * rng.normal(size=links)) + 0.2 * rng.normal(size=(links, 2))
    program = arm_projection_program(links, OBSTACLES)
    return Instance(
        f"arm{links}", links, program, projection_coeffs(pose),
        lambda _, search_seed: nearest_pose(pose, OBSTACLES, 20, search_seed)[0],
        data=program.data,
    )  # fmt: skip


def cut(name: str, seed: int, n: int = 0) -> Instance:
    """Max-cut on a packaged graph ("karate", "les_miserables") or on a partial 4-tree ("ktree")."""
    makers = {"karate": nx.karate_club_graph, "les_miserables": nx.les_miserables_graph}
    graph = makers[name]() if name in makers else partial_k_tree(n, 4, 0.8, seed)
    weights = weights_of(graph) * np.random.default_rng(seed).uniform(
        0.5, 1.5, graph.number_of_edges()
    )
    edges, size = edges_of(graph), graph.number_of_nodes()
    return Instance(
        f"{name}{size}", size, maxcut_program(graph), weights,
        lambda _, search_seed: -best_cut_found(edges, weights, size, 200, search_seed),
    )  # fmt: skip


def synchronisation(graph: PoseGraph, name: str) -> Instance:
    """Rotation synchronisation with unit weights."""
    weights = np.ones(len(graph.edges))
    return Instance(
        name, graph.num_poses, rotation_sync_program(graph), weights,
        lambda grams, _: sync_cost(graph, rounded_rotations(graph, grams), weights),
    )  # fmt: skip


def make(dataset: str, size: int, seed: int, folder: str = "") -> Instance:
    """An instance of a task by the name of its data set.

    Args:
        size: n of the task; of "packaged_graphs" 34 is karate, 77 les miserables, others a partial
            4-tree; of "g2o_pose_graphs" 9 is tinyGrid3D, others the first poses of CSAIL.
        folder: where the g2o files are.
    """
    if dataset == "packaged_graphs":
        name = {34: "karate", 77: "les_miserables"}.get(size, "ktree")
        return cut(name, seed, size)
    if dataset == "pose_loops":
        dim = 2 + seed % 2
        graph, _ = pose_loop(size, size // 2, 0.05, dim, seed)
        return synchronisation(graph, f"loop{dim}d{size}")
    if dataset == "g2o_pose_graphs":
        name = "tinyGrid3D" if size == 9 else "CSAIL"
        return synchronisation(read_g2o(f"{folder}/{name}.g2o").first(size), f"{name}{size}")
    makers = {"chains": chain, "oscillators": oscillator_chain, "arms": arm}
    if dataset == "pendulum_swing":
        return pendulum(seed)
    return makers[dataset](size, seed)
