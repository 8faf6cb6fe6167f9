"""Trained networks as rows of the table and as the arrays that figures draw."""

import math
from typing import Any

import numpy as np

from encore.core.metrics import Table
from encore.papers.prat.evaluation import facts
from encore.papers.prat.experiments import (
    Fitted,
    attention_numbers,
    mean_attention,
    metric_entries,
)
from encore.papers.prat.graphs import Graph
from encore.papers.prat.methods import FACTORS, family
from encore.papers.prat.training import Inputs

SHOWN = "flow_prat"  # the method whose attention is drawn


def add_scores(
    table: Table,
    dataset: str,
    graph: Graph,
    inputs: Inputs,
    found: Fitted,
    instance: str,
    h: float | None = None,
) -> None:
    """Add the rows of one trained network.

    Args:
        table: where to.
        dataset, instance: columns; an instance is what was drawn independently (a graph).
        graph, inputs, found: the network and the graph that it was trained on.
        h: the homophily that the graph was drawn with, if it was.
    """
    row: dict[str, Any] = {
        "dataset": dataset, "method": found.method, "seed": found.seed, "split": found.split,
        "instance": instance, "family": family(found.method), **facts(graph, h),
        **FACTORS.get(found.method, {"geometry": "none", "update": "none"}),
    }  # fmt: skip
    table.add(metric="accuracy", value=found.test, better="higher", **row)
    table.add(metric="val_accuracy", value=found.val, better="higher", **row)
    for metric, value in attention_numbers(graph, inputs, found).items():
        reason = "edges of one kind only" if math.isnan(value) else ""
        table.add(metric=metric, value=value, reason=reason, **row)


class Trained:
    """Arrays of one graph's networks: metric entries of all, signed weights of the first ``SHOWN``.

    Attributes:
        arrays: "<graph>/<method>/<split>/eta" (all metric entries) and "<graph>/alpha",
            "<graph>/edges", "<graph>/labels".
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.arrays: dict[str, np.ndarray] = {}

    def keep(self, inputs: Inputs, found: Fitted) -> None:
        """Remember what figures need of one network."""
        name = self.graph.name
        if found.method in FACTORS:
            self.arrays[f"{name}/{found.method}/{found.split}/eta"] = metric_entries(found.model)
        if found.method == SHOWN and f"{name}/alpha" not in self.arrays:
            self.arrays[f"{name}/alpha"] = mean_attention(inputs, found.model)
            self.arrays[f"{name}/edges"] = self.graph.edge_index
            self.arrays[f"{name}/labels"] = self.graph.labels
