"""Max-cut: the Shor bound on the cliques of a chordal extension."""

from collections.abc import Sequence

import networkx as nx
import numpy as np

from encore.papers.sparse_sos.block_sdp import CONSTANT, BlockStructure
from encore.papers.sparse_sos.program import Program


def maxcut_program(graph: nx.Graph) -> Program:
    """The program whose bound is minus an upper bound on the largest cut.

    Least sum_e w_e (X_ij - 1) / 2 over X >= 0 with unit diagonal; the coefficients are the weights in
    the order of ``edges_of(graph)``.

    Raises:
        ValueError: a graph without edges.
    """
    edges = edges_of(graph)
    if not edges:
        raise ValueError("graph must have edges, got none")
    costs = [{edge: 0.5, CONSTANT: -0.5} for edge in edges]
    n = graph.number_of_nodes()
    return BlockStructure(n, costs, [({(i, i): 1.0}, 1.0) for i in range(n)]).program()


def edges_of(graph: nx.Graph) -> list[tuple[int, int]]:
    """Edges (i, j), i < j, of a graph relabelled 0..n-1 in the order of its nodes, sorted."""
    place = {node: i for i, node in enumerate(graph.nodes)}
    pairs = ((place[a], place[b]) for a, b in graph.edges if a != b)
    return sorted((min(pair), max(pair)) for pair in pairs)


def weights_of(graph: nx.Graph) -> np.ndarray:
    """Weights (E,) in the order of ``edges_of``; 1 where an edge has none."""
    place = {node: i for i, node in enumerate(graph.nodes)}
    found = {
        (min(place[a], place[b]), max(place[a], place[b])): float(attributes.get("weight", 1.0))
        for a, b, attributes in graph.edges(data=True)
    }
    return np.array([found[edge] for edge in edges_of(graph)])


def partial_k_tree(n: int, k: int, keep: float, seed: int) -> nx.Graph:
    """A random k-tree on n vertices of which each edge is kept with probability ``keep``."""
    rng = np.random.default_rng(seed)
    graph = nx.complete_graph(k + 1)
    cliques = [tuple(range(k + 1))]
    for vertex in range(k + 1, n):
        base = cliques[rng.integers(len(cliques))]
        left_out = base[rng.integers(k + 1)]
        chosen = tuple(v for v in base if v != left_out)
        graph.add_edges_from((vertex, v) for v in chosen)
        cliques.append((*chosen, vertex))
    dropped = [edge for edge in sorted(graph.edges) if rng.random() > keep]
    graph.remove_edges_from(dropped)
    return graph


def largest_cut(edges: Sequence[tuple[int, int]], weights: np.ndarray, n: int) -> float:
    """The largest cut by trying all 2^(n-1) sides, n <= 20."""
    if n > 20:
        raise ValueError(f"n={n}; expected at most 20 vertices for brute force")
    sides = (np.arange(2 ** (n - 1))[:, None] >> np.arange(n)) & 1
    left, right = np.array(edges).T
    return float(((sides[:, left] != sides[:, right]) @ weights).max())


def best_cut_found(
    edges: Sequence[tuple[int, int]], weights: np.ndarray, n: int, tries: int, seed: int
) -> float:
    """The best of many local searches that flip single vertices while the cut grows."""
    rng = np.random.default_rng(seed)
    matrix = np.zeros((n, n))
    left, right = np.array(edges).T
    matrix[left, right] = matrix[right, left] = weights
    sides, best = rng.choice([-1.0, 1.0], size=(tries, n)), -np.inf
    for side in sides:
        while (gain := side * (matrix @ side)).max() > 1e-12:
            side[gain.argmax()] *= -1
        best = max(best, float(weights @ (side[left] != side[right])))
    return best
