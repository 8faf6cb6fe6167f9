"""Graphs with labels, features and splits: real ones from ``data/``, two packaged ones, and a generator."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from encore.core.job import read_npz
from encore.core.sources import ROOT

DATASETS = {
    "heterophilous": (
        "texas", "cornell", "wisconsin", "actor", "chameleon_filtered", "squirrel_filtered",
        "minesweeper", "tolokers",
    ),
    "planetoid_geomgcn": ("cora", "citeseer"),
}  # fmt: skip
PACKAGED = ("karate", "southern_women")
BY_RANK = ("minesweeper", "tolokers")  # unbalanced pairs of classes: ROC-AUC instead of accuracy


@dataclass(frozen=True)
class Graph:
    """An undirected graph for node classification.

    Attributes:
        name: what it is called.
        features: (N, F) float32.
        labels: (N,) int64, -1 where a node has none.
        edge_index: (2, E) int64, both directions of each edge, sorted by target, no self-loops.
        train, val, test: (S, N) bool masks of S splits; nodes without a label are in none.
    """

    name: str
    features: np.ndarray
    labels: np.ndarray
    edge_index: np.ndarray
    train: np.ndarray
    val: np.ndarray
    test: np.ndarray

    @property
    def num_nodes(self) -> int:
        """Number of nodes N."""
        return len(self.labels)

    def homophily(self) -> float:
        """Share of edges (with labels at both ends) that join nodes of one class; NaN without any."""
        ends = self.labels[self.edge_index]
        ends = ends[:, (ends >= 0).all(0)]
        return float((ends[0] == ends[1]).mean()) if ends.size else float("nan")

    def to_data(self) -> Any:
        """The same as ``torch_geometric.data.Data`` with masks of shape (N, S), as PyG has them."""
        import torch
        from torch_geometric.data import Data

        return Data(
            x=torch.from_numpy(self.features),
            y=torch.from_numpy(self.labels),
            edge_index=torch.from_numpy(self.edge_index),
            train_mask=torch.from_numpy(self.train.T.copy()),
            val_mask=torch.from_numpy(self.val.T.copy()),
            test_mask=torch.from_numpy(self.test.T.copy()),
        )


@dataclass(frozen=True)
class CleanEdges:
    """Edges in both directions, once each, and what was repaired on the way.

    Attributes:
        edge_index: (2, E) int64, sorted by target, then source.
        self_loops, duplicates: how many columns were dropped as such.
        one_way: how many edges had no partner in the other direction.
    """

    edge_index: np.ndarray
    self_loops: int
    duplicates: int
    one_way: int


def check_edges(edge_index: Any, num_nodes: int) -> np.ndarray:
    """The edge index as an int64 array.

    Raises:
        TypeError: entries are not integers.
        ValueError: the shape is not (2, E), there are no nodes, or an id is out of range (it is named).
    """
    edges = np.asarray(edge_index)
    if edges.size and not np.issubdtype(edges.dtype, np.integer):
        raise TypeError(f"edge_index must hold integers, got {edges.dtype}")
    if edges.ndim != 2 or edges.shape[0] != 2:
        raise ValueError(f"edge_index must be (2, E), got shape {edges.shape}")
    if num_nodes < 1:
        raise ValueError(f"num_nodes is {num_nodes}; expected a graph with at least one node")
    wrong = edges[(edges < 0) | (edges >= num_nodes)]
    if wrong.size:
        raise ValueError(f"edge_index holds node {wrong[0]}; expected ids in [0, {num_nodes})")
    return edges.astype(np.int64)


def clean_edges(edge_index: Any, num_nodes: int) -> CleanEdges:
    """Drop self-loops and repeated edges and add missing directions, counting each.

    Args:
        edge_index: (2, E) integers, array or tensor.
        num_nodes: N.

    A graph with one-way edges warns that it is treated as undirected.

    Raises:
        TypeError, ValueError: as ``check_edges``.
    """
    edges = check_edges(edge_index, num_nodes)
    loops = edges[0] == edges[1]
    codes = edges[1, ~loops] * num_nodes + edges[0, ~loops]
    forward = np.unique(codes)
    backward = (forward % num_nodes) * num_nodes + forward // num_nodes
    both = np.union1d(forward, backward)
    one_way = len(both) - len(forward)
    if one_way:
        warnings.warn(
            f"{one_way} edges have one direction only; the graph is taken as undirected",
            stacklevel=2,
        )
    index = np.stack([both % num_nodes, both // num_nodes])
    return CleanEdges(index, int(loops.sum()), len(codes) - len(forward), one_way)


def dataset_of(name: str) -> str:
    """The data set that a graph is part of; ``ValueError`` lists the graphs for an unknown one."""
    for dataset, names in DATASETS.items():
        if name in names:
            return dataset
    known = ", ".join([*PACKAGED, *(n for names in DATASETS.values() for n in names)])
    raise ValueError(f"unknown graph {name!r}; known: {known}")


def load_graph(name: str) -> Any:
    """A graph by name, as ``torch_geometric.data.Data`` with 10 split masks in the columns.

    Args:
        name: one of the eight of ``heterophilous``, the two of ``planetoid_geomgcn``, or the packaged
            ``karate`` and ``southern_women`` (features one-hot, five random splits).

    Raises:
        ValueError: unknown name.
        FileNotFoundError: its file is not in ``data/``; the message says how to fetch it.
    """
    if name in PACKAGED:
        return packaged(name).to_data()
    return read_graph(ROOT / "data" / dataset_of(name) / f"{name}.npz").to_data()


def read_graph(path: str | Path) -> Graph:
    """Read one npz file of the two real data sets (features dense, or in three CSR arrays).

    Raises:
        FileNotFoundError: it is not there; the message says how to fetch it.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(
            f"{path} is not here: run `encore data fetch {path.parent.name}`, or name a folder that "
            f"holds {path.parent.name}/{path.name} in `mirrors` of config/config.yaml"
        )
    raw = read_npz(path)
    labels = raw["node_labels"].astype(np.int64)
    masks = {part: raw[f"{part}_masks"] & (labels >= 0) for part in ("train", "val", "test")}
    edges = raw["edges"].astype(np.int64).T
    return Graph(
        name=path.stem,
        features=_features(raw),
        labels=labels,
        edge_index=clean_edges(np.hstack([edges, edges[::-1]]), len(labels)).edge_index,
        **masks,
    )


def _features(raw: dict[str, np.ndarray]) -> np.ndarray:
    if "node_features" in raw:
        return raw["node_features"].astype(np.float32)
    from scipy import sparse

    arrays = (raw["feat_data"], raw["feat_indices"], raw["feat_indptr"])
    return sparse.csr_matrix(arrays, shape=tuple(raw["feat_shape"])).toarray().astype(np.float32)


def packaged(name: str) -> Graph:
    """Zachary's karate club (two factions), or the Southern women and the events they attended.

    Both ship with networkx; features are one-hot, and the five splits are random (seed 0).
    """
    import networkx as nx

    if name == "karate":
        graph = nx.karate_club_graph()
        labels = [int(kind != "Mr. Hi") for _, kind in graph.nodes(data="club")]
    elif name == "southern_women":
        graph = nx.davis_southern_women_graph()
        labels = [int(side) for _, side in graph.nodes(data="bipartite")]
    else:
        raise ValueError(f"unknown graph {name!r}; packaged are {', '.join(PACKAGED)}")
    edges = np.array(nx.convert_node_labels_to_integers(graph).edges, dtype=np.int64).T
    n = len(labels)
    masks = random_splits(n, (0.5, 0.25), np.random.default_rng(0), count=5)
    index = clean_edges(np.hstack([edges, edges[::-1]]), n).edge_index
    return Graph(name, np.eye(n, dtype=np.float32), np.array(labels), index, *masks)


def random_splits(
    n: int, shares: Sequence[float], rng: np.random.Generator, count: int = 1
) -> list[np.ndarray]:
    """Train, val and test masks (count, n), the rest of the nodes being test."""
    ends = [*np.cumsum([0, *(round(share * n) for share in shares)]).tolist(), n]
    masks = [np.zeros((count, n), bool) for _ in range(3)]
    for split in range(count):
        order = rng.permutation(n)
        for mask, start, stop in zip(masks, ends, ends[1:], strict=False):
            mask[split, order[start:stop]] = True
    return masks
