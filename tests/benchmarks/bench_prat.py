"""Costs of prat beside PyG's layer; prints ratios of one run, asserts nothing.

Run: python tests/benchmarks/bench_prat.py (set OMP_NUM_THREADS=1).
"""

import time

import numpy as np
import torch
from torch_geometric.nn import GATv2Conv

from encore.papers.prat import PRATConv, clean_edges, csbm, graph_signature_index
from encore.papers.prat.graphs import Graph

HIDDEN, HEADS, REPEATS = 48, 4, 9


def king_grid(side: int = 100) -> np.ndarray:
    """Every cell joined to its eight neighbours: the graph of minesweeper (10,000 nodes, 39,402 edges)."""
    cells = np.arange(side * side).reshape(side, side)
    pairs = [
        (cells[:, 1:], cells[:, :-1]),
        (cells[1:], cells[:-1]),
        (cells[1:, 1:], cells[:-1, :-1]),
        (cells[1:, :-1], cells[:-1, 1:]),
    ]
    once = np.hstack([np.stack([a.ravel(), b.ravel()]) for a, b in pairs])
    return clean_edges(np.hstack([once, once[::-1]]), side * side).edge_index


def step(layer: torch.nn.Module, x: torch.Tensor, edges: torch.Tensor) -> float:
    """CPU seconds of one forward and backward pass."""
    start = time.process_time()
    layer(x, edges).sum().backward()
    return time.process_time() - start


def layers() -> None:
    """Every kind of PRATConv against GATv2Conv of the same heads and width, interleaved."""
    edges = torch.from_numpy(king_grid())
    x = torch.randn(10_000, HIDDEN, requires_grad=True)
    peer = GATv2Conv(HIDDEN, HIDDEN // HEADS, HEADS)
    kinds = {
        "residual": {},
        "flow": {"update": "flow"},
        "riemannian": {"metric": "riemannian"},
        "edge-adaptive": {"edge_adaptive": True},
    }
    for name, options in kinds.items():
        ours = PRATConv(HIDDEN, HIDDEN, HEADS, **options)
        times = np.array([[step(f, x, edges) for f in (ours, peer)] for _ in range(REPEATS)])
        mine, theirs = np.median(times, axis=0) * 1e3
        print(
            f"PRATConv, {name}: {mine:.1f} ms; GATv2Conv {theirs:.1f} ms; "
            f"ratio {np.median(times[:, 0] / times[:, 1]):.2f} (target 1.5)"
        )


def fastest(function, repeats: int = 5) -> float:
    """Least CPU milliseconds of several calls."""
    found = []
    for _ in range(repeats):
        start = time.process_time()
        function()
        found.append(time.process_time() - start)
    return min(found) * 1e3


def index_of(graph: Graph, **options) -> float:
    """Milliseconds of one index."""
    return fastest(lambda: graph_signature_index(graph.edge_index, graph.num_nodes, **options))


def main() -> None:
    """Print every row."""
    torch.set_num_threads(1)
    layers()
    graph = csbm(7600, 4, 0.2, 13.2, 1.0, seed=0)
    count = graph.edge_index.shape[1] // 2
    print(
        f"index from labels, {count} edges: {index_of(graph, labels=graph.labels):.0f} ms (target 50 ms)"
    )
    graph = csbm(7600, 4, 0.2, 7.0, 1.0, seed=0)
    print(
        f"index from the spectrum, 7,600 nodes, rank 8: {index_of(graph, rank=8):.0f} ms (target 2 s)"
    )
    report = fastest(
        lambda: graph_signature_index(
            graph.edge_index, graph.num_nodes, graph.labels, return_spectrum=True
        ),
        repeats=1,
    )
    print(f"report with 200 label shuffles: {report:.0f} ms")


if __name__ == "__main__":
    main()
