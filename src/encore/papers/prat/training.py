"""One trainer for every network: full-batch Adam, the best validation score decides."""

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from encore.papers.prat.models import to_csr

SPARSE_BELOW = 0.1  # share of non-zero features below which they are held as CSR
NEGATIVES = 1  # sampled non-edges per edge of the link loss


@dataclass(frozen=True)
class Training:
    """How a network is trained.

    Attributes:
        lr, weight_decay: of Adam.
        epochs: at most.
        every: epochs between validations.
        patience: validations without a better score that end training.
        by_rank: score by ROC-AUC of class 1 instead of accuracy.
        geometry_weight: of the link loss of PRAT's metric (0: none).
    """

    lr: float = 0.01
    weight_decay: float = 5e-4
    epochs: int = 100
    every: int = 5
    patience: int = 8
    by_rank: bool = False
    geometry_weight: float = 0.0


@dataclass(frozen=True)
class Inputs:
    """A graph as tensors: x (N, F) dense or sparse CSR, y (N,), edge_index (2, E), masks (N, S) of its splits."""

    x: Tensor
    y: Tensor
    edge_index: Tensor
    train: Tensor
    val: Tensor
    test: Tensor

    @staticmethod
    def of(data: Any) -> "Inputs":
        """From a PyG ``Data`` with split masks in columns (or one mask); mostly-zero features become CSR."""
        x = data.x
        if (x != 0).float().mean() < SPARSE_BELOW:
            x = to_csr(x)
        masks = (data.train_mask, data.val_mask, data.test_mask)
        masks = [mask if mask.dim() == 2 else mask[:, None] for mask in masks]
        return Inputs(x, data.y, data.edge_index, *masks)


def score(scores: Tensor, y: Tensor, mask: Tensor, by_rank: bool) -> float:
    """Accuracy of class scores (N, C) inside a mask, or ROC-AUC of class 1; in [0, 1]."""
    if by_rank:
        from sklearn.metrics import roc_auc_score

        return float(roc_auc_score(y[mask].numpy(), (scores[:, 1] - scores[:, 0])[mask].numpy()))
    return float((scores[mask].argmax(1) == y[mask]).float().mean())


def fit(
    model: nn.Module, inputs: Inputs, split: int, plan: Training, seed: int
) -> tuple[float, float]:
    """Train in place; the model ends with the weights of its best validation score.

    Args:
        model: maps (x, edge_index) to class scores (N, C).
        inputs: the graph.
        split: column of its masks.
        plan: how.
        seed: of dropout and sampled non-edges.

    Returns:
        Validation and test score at that point.
    """
    torch.manual_seed(seed)
    train, val, test = (mask[:, split] for mask in (inputs.train, inputs.val, inputs.test))
    optimizer = torch.optim.Adam(model.parameters(), lr=plan.lr, weight_decay=plan.weight_decay)
    best, state, waited = (-1.0, 0.0), model.state_dict(), 0
    for epoch in range(1, plan.epochs + 1):
        model.train()
        optimizer.zero_grad()
        scores = model(inputs.x, inputs.edge_index)
        loss = functional.cross_entropy(scores[train], inputs.y[train])
        if plan.geometry_weight:
            loss = loss + plan.geometry_weight * link_loss(model, inputs)
        loss.backward()
        optimizer.step()
        if epoch % plan.every and epoch != plan.epochs:
            continue
        scores = predict(model, inputs)
        found = tuple(score(scores, inputs.y, mask, plan.by_rank) for mask in (val, test))
        waited += 1
        if found[0] > best[0]:
            best, state, waited = found, copy.deepcopy(model.state_dict()), 0
        if waited >= plan.patience:
            break
    model.load_state_dict(state)
    return best


@torch.no_grad()
def predict(model: nn.Module, inputs: Inputs) -> Tensor:
    """Class scores (N, C) without dropout; leaves the model in evaluation mode."""
    model.eval()
    return model(inputs.x, inputs.edge_index)


def link_loss(model: Any, inputs: Inputs) -> Tensor:
    """Cross-entropy of edges against sampled pairs, scored by the metric's inner product <u_i, u_j>_eta."""
    count = inputs.edge_index.size(1)
    pairs = torch.randint(inputs.x.size(0), (2, NEGATIVES * count))
    losses = []
    for layer, h in zip(model.layers, model.inputs(inputs.x, inputs.edge_index), strict=True):
        u = layer.project(h)
        weighted = u * layer.metric().reshape(1, -1)
        logits = [(weighted[i] * u[j]) @ layer.of_metric for i, j in (inputs.edge_index, pairs)]
        losses.append(
            functional.softplus(-logits[0]).mean() + functional.softplus(logits[1]).mean()
        )
    return torch.stack(losses).mean() / 2


def negative_entries(gsi: float, metric_dim: int) -> tuple[int, int]:
    """The signature (p, q) that an index asks for: round(gsi * m) negative entries."""
    q = int(np.floor(gsi * metric_dim + 0.5))
    return metric_dim - q, q
