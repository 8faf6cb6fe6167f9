"""Node classification by PRAT on a PyG ``Data``, in the manner of scikit-learn."""

from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator
from torch import Tensor
from torch_geometric.data import Data

from encore.papers.prat.graphs import clean_edges
from encore.papers.prat.index import graph_signature_index
from encore.papers.prat.models import PRAT, check_finite
from encore.papers.prat.training import Inputs, Training, fit, negative_entries, predict


class PRATClassifier(BaseEstimator):
    """Pseudo-Riemannian attention whose signature starts from the index of the training labels.

    Args:
        hidden, num_layers, heads, metric_dim, metric, update, dropout: of ``PRAT``.
        signature: (p, q), or None: round(GSI * metric_dim) negative entries.
        lr, weight_decay, epochs, patience: of training; patience counts validations, five epochs apart.
        seed: of weights, dropout and, without a validation mask, of the fifth of the training nodes
            that is held out.

    Attributes:
        index_: the ``SignatureReport`` of the training labels.
        edges_: the cleaned edges with counts of what was repaired.
        model_: the trained ``PRAT``.
        classes_: (C,) sorted labels.
        val_score_: accuracy on the validation nodes.
    """

    def __init__(
        self,
        hidden: int = 48,
        num_layers: int = 2,
        heads: int = 4,
        metric_dim: int = 8,
        metric: str = "indefinite",
        update: str = "residual",
        signature: tuple[int, int] | None = None,
        dropout: float = 0.3,
        lr: float = 0.01,
        weight_decay: float = 5e-4,
        epochs: int = 100,
        patience: int = 8,
        seed: int = 0,
    ) -> None:
        self.hidden = hidden
        self.num_layers = num_layers
        self.heads = heads
        self.metric_dim = metric_dim
        self.metric = metric
        self.update = update
        self.signature = signature
        self.dropout = dropout
        self.lr = lr
        self.weight_decay = weight_decay
        self.epochs = epochs
        self.patience = patience
        self.seed = seed

    def fit(self, data: Data, train_mask: Any = None, val_mask: Any = None) -> "PRATClassifier":
        """Train on a graph.

        Args:
            data: with x (N, F), y (N,) integer labels (-1: unknown), edge_index (2, E).
            train_mask: (N,) bool; default ``data.train_mask``, or all nodes with a label.
            val_mask: (N,) bool; default ``data.val_mask``, or a fifth of the training nodes.

        Raises:
            TypeError, ValueError: edges as ``graph_signature_index``; x not finite; a label of -1
                inside the masks; fewer than two classes; a mask of another shape, or empty.
        """
        check_finite(data.x)
        y = data.y.numpy()
        train, val = self._masks(data, y, train_mask, val_mask)
        self.edges_ = clean_edges(data.edge_index, len(y))
        index = self.edges_.edge_index
        self.index_ = graph_signature_index(index, len(y), y, train, return_spectrum=True)
        self.classes_ = np.unique(y[train])
        torch.manual_seed(self.seed)
        signature = self.signature
        if signature is None and self.metric == "indefinite":
            signature = negative_entries(self.index_.gsi, self.metric_dim)
        self.model_ = PRAT(
            data.x.size(1), self.hidden, len(self.classes_), self.num_layers, self.heads,
            self.metric_dim, self.metric, signature, dropout=self.dropout, update=self.update,
        )  # fmt: skip
        codes = np.searchsorted(self.classes_, y).clip(max=len(self.classes_) - 1)
        known = Data(
            x=data.x, y=torch.from_numpy(codes), edge_index=torch.from_numpy(index),
            train_mask=torch.from_numpy(train), val_mask=torch.from_numpy(val),
            test_mask=torch.from_numpy(val),
        )  # fmt: skip
        plan = Training(self.lr, self.weight_decay, self.epochs, patience=self.patience)
        self.val_score_, _ = fit(self.model_, Inputs.of(known), 0, plan, self.seed)
        return self

    def predict_proba(self, data: Data) -> np.ndarray:
        """Class probabilities (N, C) in the order of ``classes_``; a graph with the same features."""
        check_finite(data.x)
        index = torch.from_numpy(clean_edges(data.edge_index, data.x.size(0)).edge_index)
        nothing = torch.zeros(data.x.size(0), 1, dtype=torch.bool)
        inputs = Inputs(data.x, nothing[:, 0], index, nothing, nothing, nothing)
        return predict(self.model_, inputs).softmax(1).numpy()

    def predict(self, data: Data) -> np.ndarray:
        """Labels (N,) of all nodes."""
        return self.classes_[self.predict_proba(data).argmax(1)]

    def score(self, data: Data, mask: Any) -> float:
        """Accuracy on the nodes of a mask (N,)."""
        mask = np.asarray(mask, dtype=bool)
        return float((self.predict(data) == data.y.numpy())[mask].mean())

    def _masks(
        self, data: Data, y: np.ndarray, train_mask: Any, val_mask: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        train = _mask("train_mask", train_mask, data, y, y >= 0)
        if val_mask is None and data.get("val_mask") is None:
            val = np.zeros_like(train)
            nodes = np.random.default_rng(self.seed).permutation(np.flatnonzero(train))
            val[nodes[: max(1, len(nodes) // 5)]] = True
            train = train & ~val
        else:
            val = _mask("val_mask", val_mask, data, y, None)
        for name, mask in (("train_mask", train), ("val_mask", val)):
            if not mask.any():
                raise ValueError(f"{name} holds no node")
            if (y[mask] < 0).any():
                node = np.flatnonzero(mask & (y < 0))[0]
                raise ValueError(f"y of node {node} is {y[node]} inside {name}; expected >= 0")
        return train, val


def _mask(
    name: str, given: Any, data: Data, y: np.ndarray, default: np.ndarray | None
) -> np.ndarray:
    """A mask (N,) as given, from the data, or the default."""
    if given is None:
        given = data.get(name) if data.get(name) is not None else default
    mask = given.numpy() if isinstance(given, Tensor) else np.asarray(given)
    if mask.shape != y.shape:
        raise ValueError(f"{name} must be {y.shape}, got shape {mask.shape}; pass one split of it")
    return mask.astype(bool)
