"""The network of pseudo-Riemannian attention layers, and the signature that it has learned."""

import warnings
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from encore.papers.prat.conv import PRATConv, as_index
from encore.papers.prat.index import SignatureReport


class Residual(nn.Module):
    """Node classifier with ego-separated layers: h <- h + dropout(gelu(conv(norm(h), edges))).

    Args:
        in_channels, hidden, out_channels: widths F, d, C.
        layers: the convolutions, each ``conv(h (N, d), edge_index) -> (N, d)``.
        dropout: of the blocks' outputs and of the embedding.
    """

    def __init__(
        self, in_channels: int, hidden: int, out_channels: int, layers: list[Any], dropout: float
    ) -> None:
        super().__init__()
        self.embed = nn.Linear(in_channels, hidden)
        self.layers = nn.ModuleList(layers)
        self.norms = nn.ModuleList(nn.LayerNorm(hidden) for _ in layers)
        self.norm = nn.LayerNorm(hidden)
        self.head = nn.Linear(hidden, out_channels)
        self.dropout = dropout

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Class scores (N, C) of features x (N, F), dense or sparse CSR."""
        return self.head(self.norm(self.states(x, edge_index)[-1]))

    def states(self, x: Tensor, edge_index: Tensor) -> list[Tensor]:
        """The embedding and what each layer makes of it, (N, d) each."""
        h = self._drop(functional.gelu(self.embed(x)))
        found = [h]
        for norm, layer in zip(self.norms, self.layers, strict=True):
            h = self._step(h, norm, layer, edge_index)
            found.append(h)
        return found

    def _step(self, h: Tensor, norm: nn.Module, layer: nn.Module, edge_index: Tensor) -> Tensor:
        return h + self._drop(functional.gelu(layer(norm(h), edge_index)))

    def _drop(self, h: Tensor) -> Tensor:
        return functional.dropout(h, self.dropout, self.training)


class PRAT(Residual):
    """Pseudo-Riemannian attention network for node classification.

    Args:
        in_channels, hidden, out_channels: widths F, d, C.
        num_layers: of ``PRATConv``.
        heads, metric_dim, metric, signature, edge_adaptive, update: of every layer, see ``PRATConv``.
        dropout: of the blocks' outputs.

    Raises:
        ValueError: as ``PRATConv``.
    """

    def __init__(
        self,
        in_channels: int,
        hidden: int,
        out_channels: int,
        num_layers: int = 2,
        heads: int = 4,
        metric_dim: int = 8,
        metric: str = "indefinite",
        signature: tuple[int, int] | None = None,
        edge_adaptive: bool = False,
        dropout: float = 0.3,
        update: str = "residual",
    ) -> None:
        options = {
            "heads": heads, "metric_dim": metric_dim, "metric": metric, "signature": signature,
            "edge_adaptive": edge_adaptive, "update": update,
        }  # fmt: skip
        layers = [PRATConv(hidden, hidden, **options) for _ in range(num_layers)]
        super().__init__(in_channels, hidden, out_channels, layers, dropout)
        self.update = update

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Class scores (N, C); ``ValueError`` names the first feature that is not finite."""
        check_finite(x)
        return super().forward(x, edge_index)

    def attention(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Signed weights of every layer (layers, E, heads)."""
        edge_index = as_index(edge_index, x.size(0))
        inputs = self.inputs(x, edge_index)
        return torch.stack(
            [layer.weights(h, edge_index) for layer, h in zip(self.layers, inputs, strict=True)]
        )

    def inputs(self, x: Tensor, edge_index: Tensor) -> list[Tensor]:
        """What each layer's metric sees, (N, d) each: normalised states."""
        states = self.states(x, edge_index)[:-1]
        return [norm(h) for norm, h in zip(self.norms, states, strict=True)]

    def _step(self, h: Tensor, norm: nn.Module, layer: nn.Module, edge_index: Tensor) -> Tensor:
        if self.update == "flow":
            centred = norm(h)
            return h + self._drop(layer(centred, edge_index) - centred)
        return super()._step(h, norm, layer, edge_index)


def to_csr(matrix: Tensor) -> Tensor:
    """The matrix as sparse CSR, without PyTorch's notice that this layout is in beta."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        return matrix.to_sparse_csr()


def check_finite(x: Tensor) -> None:
    """``ValueError`` with the node and feature if x (N, F), dense or sparse CSR, is not finite."""
    values = x.values() if x.layout != torch.strided else x
    if not torch.isfinite(values).all():
        if x.layout != torch.strided:
            x = x.to_dense()
        node, feature = torch.nonzero(~torch.isfinite(x))[0].tolist()
        raise ValueError(f"x is not finite at node {node}, feature {feature}")


@torch.no_grad()
def learned_signature(
    model: PRAT, x: Tensor | None = None, edge_index: Tensor | None = None
) -> SignatureReport:
    """Share of negative energy in the metrics that a model has learned.

    An entry's energy is its mean contribution to d2 over the edges; without data the inputs of each
    layer are taken as white, eta_k |P_k|^2.

    Args:
        model: a trained ``PRAT``.
        x, edge_index: the graph, (N, F) and (2, E), or neither.

    Returns:
        gsi the share over all layers and heads; eigenvalues the energies (layers, heads, metric_dim);
        p and q the numbers of positive and negative entries.

    Raises:
        ValueError: only one of x and edge_index is given.
    """
    if (x is None) != (edge_index is None):
        raise ValueError("x and edge_index are given together, or neither is")
    if x is None or edge_index is None:
        found = []
        for layer in model.layers:
            power = layer.project.weight.square().sum(1).reshape(layer.heads, layer.metric_dim)
            found.append(layer.metric() * power)
    else:
        training = model.training
        model.eval()
        inputs = model.inputs(x, edge_index)
        found = [
            layer.energies(h, edge_index) for layer, h in zip(model.layers, inputs, strict=True)
        ]
        model.train(training)
    energy = torch.stack(found).double().cpu().numpy()
    total = abs(energy).sum()
    return SignatureReport(
        gsi=float(-energy[energy < 0].sum() / total) if total else 0.0,
        p=int((energy > 0).sum()),
        q=int((energy < 0).sum()),
        eigenvalues=energy,
        rank=energy.size,
        strength=float(abs(energy).max()),
    )
