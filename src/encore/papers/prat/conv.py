"""One attention layer with a learned metric of any signature, as a PyTorch Geometric module."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.nn import MessagePassing
from torch_geometric.typing import OptTensor
from torch_geometric.utils import softmax, to_edge_index

METRICS = ("indefinite", "riemannian", "lorentz")
UPDATES = ("residual", "flow")
START = 0.5  # size of a metric entry before training
JITTER = 0.1  # standard deviation of its start
SHIFT = 0.5  # sign of the weight is tanh(kappa d^2 + SHIFT): coincident points attract
SMOOTH = 1e-6  # |d^2| is sqrt(d^4 + SMOOTH), so that metric entries can cross zero


class PRATConv(MessagePassing):
    """Pseudo-Riemannian attention: near-null neighbours weigh most, and timelike ones repel.

    With u = P h per head and metric diag(eta), d2_ij = sum_k eta_k (u_ik - u_jk)^2, the signed weight of
    neighbour j is ``softmax_j(-|d2_ij| / sqrt(m)) * tanh(kappa d2_ij + 1/2)`` (our definition). Update
    "residual" gives W_s h_i + W_o concat_heads sum_j alpha_ij W_v h_j; "flow" gives
    h_i + g * sum_j alpha_ij (h_j - h_i) with g >= 0, a step in which negative weights truly repel.

    Args:
        in_channels, out_channels: F and F'; equal for "flow". F' is a multiple of heads.
        heads: H.
        metric_dim: m, dimensions of the metric space of each head.
        metric: "indefinite" (free signs), "riemannian" (all positive, the twin), "lorentz" (all but the
            last positive; sizes are learned, signs are fixed).
        signature: (p, q) metric entries that start positive and negative; default half and half
            for "indefinite".
        edge_adaptive: let the metric of edge ij be eta + (A h_i + A h_j) / 2.
        dropout: of the weights, in training.
        add_self: whether "residual" has the term W_s h_i.
        update: "residual" or "flow".

    Raises:
        ValueError: an unknown metric or update, p + q != metric_dim, q > 0 for "riemannian",
            out_channels not a multiple of heads, or in_channels != out_channels for "flow".
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        heads: int = 4,
        metric_dim: int = 8,
        metric: str = "indefinite",
        signature: tuple[int, int] | None = None,
        edge_adaptive: bool = False,
        dropout: float = 0.0,
        add_self: bool = True,
        update: str = "residual",
    ) -> None:
        super().__init__(aggr="add", node_dim=0)
        _check(metric, update, in_channels, out_channels, heads)
        self.in_channels, self.out_channels = in_channels, out_channels
        self.heads, self.metric_dim = heads, metric_dim
        self.metric_kind, self.update_kind, self.dropout = metric, update, dropout
        self.signature = start_signature(metric, signature, metric_dim)
        width = heads * metric_dim
        self.project = nn.Linear(in_channels, width, bias=False)
        self.theta = nn.Parameter(torch.empty(heads, metric_dim))
        self.kappa = nn.Parameter(torch.empty(heads))
        self.tilt = nn.Linear(in_channels, width, bias=False) if edge_adaptive else None
        if update == "flow":
            self.gain = nn.Parameter(torch.empty(out_channels))
        else:
            self.value = nn.Linear(in_channels, out_channels)
            self.out = nn.Linear(out_channels, out_channels)
            self.own = nn.Linear(in_channels, out_channels) if add_self else None
        eye = torch.eye(heads)
        self.register_buffer("of_metric", eye.repeat_interleave(metric_dim, 0), persistent=False)
        spread = eye.repeat_interleave(out_channels // heads, 1)
        self.register_buffer("of_channel", spread, persistent=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all weights anew; metric entries start at +-1/2 + N(0, 1/100) by the signature."""
        super().reset_parameters()
        for layer in self.children():
            if isinstance(layer, nn.Linear):
                layer.reset_parameters()
        p, q = self.signature
        start = START * torch.tensor([1.0] * p + [-1.0] * q)
        with torch.no_grad():
            entries = start + JITTER * torch.randn(self.heads, self.metric_dim)
            if self.metric_kind != "indefinite":
                entries = inverse_softplus(entries.abs())
            self.theta.copy_(entries)
            self.kappa.copy_(inverse_softplus(torch.ones(self.heads)))
            if self.tilt is not None:
                self.tilt.weight.mul_(JITTER)
            if self.update_kind == "flow":
                self.gain.copy_(inverse_softplus(torch.ones(self.out_channels)))

    def metric(self) -> Tensor:
        """Metric entries eta (heads, metric_dim), those of a fixed sign included."""
        if self.metric_kind == "indefinite":
            return self.theta
        eta = functional.softplus(self.theta)
        if self.metric_kind == "lorentz":
            return torch.cat([eta[:, :-1], -eta[:, -1:]], dim=1)
        return eta

    def forward(
        self, x: Tensor, edge_index: Tensor, return_attention_weights: bool | None = None
    ) -> Tensor | tuple[Tensor, tuple[Tensor, Tensor]]:
        """Attend along the edges as they are given (none are added, repaired or dropped).

        Args:
            x: (N, F) float.
            edge_index: (2, E) int64, source over target, or a sparse (N, N) matrix whose row i holds
                the sources of node i (PyG's ``adj_t``).
            return_attention_weights: if not None, also return (edge_index, alpha (E, H)).

        Raises:
            TypeError, ValueError: edge_index of another type or shape, or an id out of range.
        """
        edge_index = as_index(edge_index, x.size(0))
        alpha = self.weights(x, edge_index)
        used = functional.dropout(alpha, self.dropout, self.training)
        z = x if self.update_kind == "flow" else self.value(x)
        out = self.propagate(edge_index, z=z, alpha=used, size=(x.size(0), x.size(0)))
        if self.update_kind == "flow":
            total = self._sum(used, edge_index[1], x.size(0)) @ self.of_channel
            out = x + functional.softplus(self.gain) * (out - total * x)
        else:
            out = self.out(out)
            out = out if self.own is None else out + self.own(x)
        return out if return_attention_weights is None else (out, (edge_index, alpha))

    def weights(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Signed attention weights (E, H) of the edges, before dropout."""
        u = self.project(x)
        tilt = None if self.tilt is None else self.tilt(x)
        return self.edge_updater(edge_index, u=u, tilt=tilt, size=(x.size(0), x.size(0)))

    def edge_update(
        self,
        u_i: Tensor,
        u_j: Tensor,
        tilt_i: OptTensor,
        tilt_j: OptTensor,
        index: Tensor,
        size_i: int,
    ) -> Tensor:
        """Weights from squared distances (PyG calls this for every edge)."""
        d2 = self.squared_distance(u_i, u_j, tilt_i, tilt_j)
        size = torch.sqrt(d2 * d2 + SMOOTH)
        magnitude = softmax(-size / math.sqrt(self.metric_dim), index, num_nodes=size_i)
        return magnitude * torch.tanh(functional.softplus(self.kappa) * d2 + SHIFT)

    def squared_distance(
        self, u_i: Tensor, u_j: Tensor, tilt_i: Tensor | None = None, tilt_j: Tensor | None = None
    ) -> Tensor:
        """d2 (E, H) of pairs of projected points (E, H * m); matrix products instead of broadcasts."""
        square = (u_i - u_j).square()
        eta = self.metric().reshape(-1, 1)
        if tilt_i is None or tilt_j is None:
            return square @ (eta * self.of_metric)
        return (square * (eta.T + (tilt_i + tilt_j) / 2)) @ self.of_metric

    def energies(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Mean contribution of each metric entry to d2 over the edges, signs kept (heads, metric_dim).

        With an edge-adaptive metric its tilt is included.
        """
        u = self.project(x)
        source, target = edge_index
        square = (u[target] - u[source]).square()
        eta = self.metric().reshape(1, -1)
        if self.tilt is not None:
            tilt = self.tilt(x)
            eta = eta + (tilt[target] + tilt[source]) / 2
        total = (square * eta).sum(0) / max(len(square), 1)
        return total.reshape(self.heads, self.metric_dim)

    def message(self, z_j: Tensor, alpha: Tensor) -> Tensor:
        """What neighbour j sends (PyG calls this for every edge)."""
        return z_j * (alpha @ self.of_channel)

    @staticmethod
    def _sum(alpha: Tensor, target: Tensor, num_nodes: int) -> Tensor:
        return alpha.new_zeros(num_nodes, alpha.size(1)).index_add(0, target, alpha)


def inverse_softplus(value: Tensor) -> Tensor:
    """x with log(1 + e^x) = value > 0."""
    return value + torch.log(-torch.expm1(-value))


def start_signature(
    metric: str, signature: tuple[int, int] | None, metric_dim: int
) -> tuple[int, int]:
    """The (p, q) that a layer starts from; ``ValueError`` if it does not fit the metric."""
    if metric == "lorentz":
        default = (metric_dim - 1, 1)
    elif metric == "riemannian":
        default = (metric_dim, 0)
    else:
        default = (metric_dim - metric_dim // 2, metric_dim // 2)
    p, q = default if signature is None else signature
    if p < 0 or q < 0 or p + q != metric_dim:
        raise ValueError(f"signature is ({p}, {q}); expected p + q = metric_dim = {metric_dim}")
    if metric != "indefinite" and (p, q) != default:
        raise ValueError(f"signature is ({p}, {q}); metric {metric!r} has {default}")
    return p, q


def _check(metric: str, update: str, in_channels: int, out_channels: int, heads: int) -> None:
    if metric not in METRICS:
        raise ValueError(f"metric is {metric!r}; expected one of {METRICS}")
    if update not in UPDATES:
        raise ValueError(f"update is {update!r}; expected one of {UPDATES}")
    if out_channels % heads:
        raise ValueError(f"out_channels is {out_channels}; expected a multiple of heads = {heads}")
    if update == "flow" and in_channels != out_channels:
        raise ValueError(
            f"in_channels is {in_channels}; update 'flow' needs out_channels = {out_channels}"
        )


def as_index(edge_index: Tensor, num_nodes: int) -> Tensor:
    """A (2, E) int64 edge index from itself or from a sparse ``adj_t``.

    Raises:
        TypeError: entries are not integers.
        ValueError: another shape, or a node id out of range (it is named).
    """
    if edge_index.layout != torch.strided:
        return to_edge_index(edge_index)[0].flip(0)
    if edge_index.is_floating_point() or edge_index.dtype == torch.bool:
        raise TypeError(f"edge_index must hold integers, got {edge_index.dtype}")
    if edge_index.dim() != 2 or edge_index.size(0) != 2:
        raise ValueError(f"edge_index must be (2, E), got shape {tuple(edge_index.shape)}")
    if edge_index.numel():
        low, high = torch.aminmax(edge_index)
        if low < 0 or high >= num_nodes:
            wrong = int(low) if low < 0 else int(high)
            raise ValueError(f"edge_index holds node {wrong}; expected ids in [0, {num_nodes})")
    return edge_index
