"""What the workflow runs: networks of every method on the splits of one graph, and what their attention does."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from encore.papers.prat.baselines import build
from encore.papers.prat.graphs import BY_RANK, Graph
from encore.papers.prat.index import graph_signature_index
from encore.papers.prat.methods import FACTORS, TUNED, tuned_as
from encore.papers.prat.models import PRAT, learned_signature
from encore.papers.prat.training import Inputs, Training, fit, negative_entries


@dataclass(frozen=True)
class Fitted:
    """A trained network with its scores in [0, 1]."""

    method: str
    split: int
    seed: int
    val: float
    test: float
    model: nn.Module


def fit_once(
    graph: Graph,
    inputs: Inputs,
    method: str,
    split: int,
    seed: int,
    draw: Mapping[str, Any],
    shape: Mapping[str, int],
    schedule: Mapping[str, int],
) -> Fitted:
    """Build and train one network; PRAT starts from the signature of the split's training labels.

    Args:
        graph, inputs: the same graph twice, as arrays and as tensors.
        method: name in ``methods``.
        split: column of the masks.
        seed: of weights, dropout and sampling.
        draw: lr, weight_decay, dropout, layers.
        shape: hidden, heads, metric_dim.
        schedule: epochs, every, patience.
    """
    gsi = graph_signature_index(graph.edge_index, graph.num_nodes, graph.labels, graph.train[split])
    torch.manual_seed(seed)
    model = build(
        method,
        graph.features.shape[1],
        int(graph.labels.max()) + 1,
        graph.num_nodes,
        signature=negative_entries(float(gsi), shape["metric_dim"]),
        layers=draw["layers"],
        dropout=draw["dropout"],
        **shape,
    )
    plan = Training(
        lr=draw["lr"],
        weight_decay=draw["weight_decay"],
        by_rank=graph.name in BY_RANK,
        geometry_weight=1.0 if method.endswith("geometry") else 0.0,
        **schedule,
    )
    return Fitted(method, split, seed, *fit(model, inputs, split, plan, seed), model)


def fit_graph(
    graph: Graph,
    inputs: Inputs,
    methods: Sequence[str],
    splits: Sequence[int],
    seeds: Sequence[int],
    draws: Sequence[Mapping[str, Any]],
    choice: Mapping[str, int],
    shape: Mapping[str, int],
    schedule: Mapping[str, int],
) -> Iterator[Fitted]:
    """Every method on every split (the k-th with the k-th seed), each with its tuned draw (default: the first)."""
    torch.set_num_threads(1)
    for split, seed in zip(splits, seeds, strict=False):
        for method in methods:
            draw = draws[choice.get(tuned_as(method), 0)]
            yield fit_once(graph, inputs, method, split, seed, draw, shape, schedule)


def tune(
    graphs: Sequence[Graph],
    methods: Sequence[str],
    splits: Sequence[int],
    draws: Sequence[Mapping[str, Any]],
    shape: Mapping[str, int],
    schedule: Mapping[str, int],
) -> dict[str, int]:
    """For every method the draw with the best mean validation score over graphs and splits.

    The seed of a fit is the number of its split, so that no judging seed is used. Methods that take
    another one's draw are passed over.
    """
    torch.set_num_threads(1)
    methods = [method for method in methods if method in TUNED]
    total = np.zeros((len(methods), len(draws)))
    for graph in graphs:
        inputs = Inputs.of(graph.to_data())
        for split in splits:
            for i, method in enumerate(methods):
                for j, draw in enumerate(draws):
                    found = fit_once(graph, inputs, method, split, split, draw, shape, schedule)
                    total[i, j] += found.val
    return {method: int(row.argmax()) for method, row in zip(methods, total, strict=True)}


def attention_numbers(graph: Graph, inputs: Inputs, found: Fitted) -> dict[str, float]:
    """How a trained PRAT uses its signs; empty for other networks.

    Returns:
        attention_auc: how well the weights (mean over layers and heads, times the target's degree)
            tell edges within a class from edges between classes, on edges with a test node at one end
            at least; NaN if there is only one kind.
        negative_mass: share of the absolute weight that is negative.
        negative_energy: share of the metric's energy that is negative, on the edges.
    """
    if found.method not in FACTORS:
        return {}
    alpha = mean_attention(inputs, found.model)
    source, target = graph.edge_index
    seen = (graph.test[found.split][graph.edge_index]).any(0)
    same = graph.labels[source[seen]] == graph.labels[target[seen]]
    report = learned_signature(found.model, inputs.x, inputs.edge_index)
    return {
        "attention_auc": auc(alpha[seen], same),
        "negative_mass": float(np.abs(alpha[alpha < 0]).sum() / np.abs(alpha).sum()),
        "negative_energy": report.gsi,
    }


@torch.no_grad()
def mean_attention(inputs: Inputs, model: PRAT) -> np.ndarray:
    """Weights (E,) averaged over layers and heads, times the degree of the target."""
    model.eval()
    alpha = model.attention(inputs.x, inputs.edge_index).mean((0, 2)).numpy()
    target = inputs.edge_index[1].numpy()
    return alpha * np.bincount(target)[target]


def auc(values: np.ndarray, positive: np.ndarray) -> float:
    """Area under the ROC curve; NaN if all are of one kind."""
    from sklearn.metrics import roc_auc_score

    if positive.all() or not positive.any():
        return float("nan")
    return float(roc_auc_score(positive, values))


def metric_entries(model: PRAT) -> np.ndarray:
    """All metric entries of a model, (layers * heads * metric_dim,)."""
    return np.concatenate([layer.metric().detach().numpy().ravel() for layer in model.layers])
