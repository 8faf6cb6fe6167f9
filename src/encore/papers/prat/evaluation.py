"""What is measured without training: the index, the price of a positive definite metric, gains between methods."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd

from encore.papers.prat.embedding import gram_gap
from encore.papers.prat.graphs import Graph
from encore.papers.prat.index import (
    class_affinity,
    graph_signature_index,
    normalised_adjacency,
)
from encore.papers.prat.methods import EGO, OURS, VANILLA

HETEROPHILIC_BELOW = 0.5  # edge homophily
DENSE_UP_TO = 1000  # nodes of a graph whose whole adjacency is embedded
SUBSTANTIAL = 0.05  # gain in accuracy
SENSIBLE = 0.55  # AUC of signed weights


@dataclass(frozen=True)
class Number:
    """A row of the table without its data set and seed."""

    metric: str
    value: float
    method: str
    better: str = ""


def facts(graph: Graph, h: float | None = None) -> dict[str, Any]:
    """Factor columns of a graph: its name, homophily (or the h that it was drawn with), and index."""
    h = graph.homophily() if h is None else h
    gsi = graph_signature_index(graph.edge_index, graph.num_nodes, graph.labels)
    return {"graph": graph.name, "h": h, "heterophilic": int(h < HETEROPHILIC_BELOW), "gsi": gsi}


def diagnose(graph: Graph) -> Iterator[Number]:
    """Both variants of the index from all labels, with the strength that the ratio does not see."""
    for method in ("labels", "spectral"):
        report = graph_signature_index(
            graph.edge_index, graph.num_nodes, graph.labels, method=method, return_spectrum=True
        )
        yield Number("index", report.gsi, method)
        yield Number("strength", report.strength, method)
    report = graph_signature_index(
        graph.edge_index, graph.num_nodes, graph.labels, return_spectrum=True
    )
    yield Number("noise_strength", report.noise, "labels")
    yield Number("p_value", report.p_value, "labels")


def mismatch(graph: Graph) -> Iterator[Number]:
    """What a positive definite Gram matrix loses against an indefinite one, of classes and of nodes.

    ``iff_violations`` counts ranks at which the gap is positive without a negative eigenvalue among
    the largest, or zero with one.
    """
    known = graph.labels[graph.edge_index].min(0) >= 0
    classes = int(graph.labels.max()) + 1
    affinity = class_affinity(graph.edge_index[:, known], graph.labels, classes)
    violations = 0
    for rank in range(1, len(affinity) + 1):
        gap, negative = gram_gap(affinity, rank)
        violations += (gap > 1e-12) != (negative > 0)
    yield Number("gram_gap", gap, "class_affinity", "lower")
    if graph.num_nodes <= DENSE_UP_TO:
        adjacency = normalised_adjacency(graph.edge_index, graph.num_nodes).toarray()
        gap, negative = gram_gap(adjacency, classes)
        violations += (gap > 1e-12) != (negative > 0)
        yield Number("gram_gap", gap, "adjacency", "lower")
    yield Number("iff_violations", violations, "eckart_young", "lower")


def strongest(scores: pd.DataFrame, methods: tuple[str, ...]) -> dict[str, str]:
    """For every graph the method with the best mean validation score (not test score)."""
    rows = scores[(scores["metric"] == "val_accuracy") & scores["method"].isin(methods)]
    means = rows.groupby(["graph", "method"])["value"].mean()
    return {graph: group.idxmax()[1] for graph, group in means.groupby(level=0)}


def gains(scores: pd.DataFrame) -> pd.DataFrame:
    """Test accuracy of our methods minus that of the strongest of each family, by graph, split and seed.

    Columns: method, graph, split, seed, over (vanilla, ego), value, and the factors of the graph.
    """
    keys = ["graph", "split", "seed"]
    test = scores[scores["metric"] == "accuracy"]
    parts = []
    for over, members in (("vanilla", VANILLA), ("ego", EGO)):
        best = strongest(scores, members)
        peer = test[test["method"] == test["graph"].map(best)].set_index(keys)["value"]
        for method in OURS:
            mine = test[test["method"] == method].copy()
            index = pd.MultiIndex.from_frame(mine[keys])
            mine["value"] = mine["value"].to_numpy() - peer.reindex(index).to_numpy()
            parts.append(mine.assign(over=over))
    return pd.concat(parts, ignore_index=True).dropna(subset=["value"])


def counts(scores: pd.DataFrame, gained: pd.DataFrame) -> Iterator[tuple[str, str, int]]:
    """(metric, method, number of graphs): substantial mean gain over vanilla, sensible signed weights."""
    over = gained[gained["over"] == "vanilla"]
    for method, rows in over.groupby("method"):
        held = rows.groupby("graph")["value"].mean() > SUBSTANTIAL
        yield "graphs_gained", str(method), int(held.sum())
    signs = scores[scores["metric"] == "attention_auc"].dropna(subset=["value"])
    for method, rows in signs.groupby("method"):
        held = rows.groupby("graph")["value"].mean() > SENSIBLE
        yield "graphs_sensible", str(method), int(held.sum())
