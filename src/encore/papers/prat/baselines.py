"""The networks that PRAT is compared with: PyG's layers in two families, FAGCN, H2GCN and LINKX.

"Vanilla" networks stack convolutions as most papers compare them; "ego-separated" ones keep a node's
own embedding apart from its neighbours' (residual blocks, or the model's own way), which by itself
closes most gaps on heterophilic graphs (Platonov et al., ICLR 2023).
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.nn import FAConv, GATv2Conv, GCNConv, SAGEConv
from torch_geometric.nn.models import LINKX
from torch_geometric.utils import to_scipy_sparse_matrix

from encore.papers.prat.methods import FACTORS, TUNED, VARIANTS
from encore.papers.prat.models import PRAT, Residual, to_csr

DENSE_FROM = 0.05  # density above which a matrix product is faster dense


class Vanilla(nn.Module):
    """Convolutions with ReLU and dropout between them, no residual."""

    def __init__(self, convs: list[nn.Module], dropout: float) -> None:
        super().__init__()
        self.convs = nn.ModuleList(convs)
        self.dropout = dropout

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Class scores (N, C)."""
        for i, conv in enumerate(self.convs):
            if i:
                x = functional.dropout(functional.relu(x), self.dropout, self.training)
            x = conv(x, edge_index)
        return x


class Dense(nn.Linear):
    """A linear map of the nodes' own states: the layer of the MLP."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """W h + b; the edges are not looked at."""
        return super().forward(x)


class FAGCN(nn.Module):
    """Frequency-adaptive GCN with signed weights tanh(a [h_i, h_j]) (Bo et al., AAAI 2021), of PyG's FAConv.

    Args:
        in_channels, hidden, out_channels, num_layers: F, d, C and the depth.
        dropout: of the embedding and the weights.
        eps: share of the embedding that every layer adds (the ego term).
    """

    def __init__(
        self,
        in_channels: int,
        hidden: int,
        out_channels: int,
        num_layers: int,
        dropout: float,
        eps: float = 0.3,
    ) -> None:
        super().__init__()
        self.embed = nn.Linear(in_channels, hidden)
        self.convs = nn.ModuleList(
            FAConv(hidden, eps, dropout, cached=True, add_self_loops=False)
            for _ in range(num_layers)
        )
        self.head = nn.Linear(hidden, out_channels)
        self.dropout = dropout

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Class scores (N, C); the normalisation of the first graph is kept for later calls."""
        first = functional.relu(self.embed(x))
        first = h = functional.dropout(first, self.dropout, self.training)
        for conv in self.convs:
            h = conv(h, first, edge_index)
        return self.head(h)


class H2GCN(nn.Module):
    """One- and two-hop means side by side, all rounds concatenated (Zhu et al., NeurIPS 2020).

    Args:
        in_channels, hidden, out_channels, num_layers: F, d, C and the number of rounds.
        dropout: before the read-out.
    """

    def __init__(
        self, in_channels: int, hidden: int, out_channels: int, num_layers: int, dropout: float
    ) -> None:
        super().__init__()
        self.embed = nn.Linear(in_channels, hidden)
        self.rounds, self.dropout = num_layers, dropout
        self.head = nn.Linear(hidden * (2 ** (num_layers + 1) - 1), out_channels)
        self._hops: tuple[Tensor, list[Tensor]] | None = None

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Class scores (N, C); the hops of the last graph are kept (the same tensor is the same graph)."""
        if self._hops is None or self._hops[0] is not edge_index:
            self._hops = (edge_index, hops(edge_index, x.size(0)))
        states = [functional.relu(self.embed(x))]
        for _ in range(self.rounds):
            states.append(torch.cat([hop @ states[-1] for hop in self._hops[1]], dim=1))
        h = functional.dropout(torch.cat(states, dim=1), self.dropout, self.training)
        return self.head(h)


def hops(edge_index: Tensor, num_nodes: int) -> list[Tensor]:
    """Symmetrically normalised matrices of neighbours and of strict two-hop neighbours, (N, N) each."""
    one = to_scipy_sparse_matrix(edge_index, num_nodes=num_nodes).tocsr()
    one.setdiag(0)
    one.eliminate_zeros()
    one.data[:] = 1.0
    two = one @ one
    two.data[:] = 1.0
    two = two - two.multiply(one)
    two.setdiag(0)
    two.eliminate_zeros()
    return [_normalised(matrix.tocsr()) for matrix in (one, two)]


def _normalised(matrix: Any) -> Tensor:
    from scipy import sparse

    degree = np.asarray(matrix.sum(1)).ravel()
    scale = sparse.diags(1.0 / degree.clip(min=1.0) ** 0.5)
    matrix = (scale @ matrix @ scale).tocsr().astype("float32")
    if matrix.nnz > DENSE_FROM * matrix.shape[0] ** 2:
        return torch.from_numpy(matrix.toarray())
    coo = matrix.tocoo()
    index = torch.from_numpy(np.stack([coo.row, coo.col]).astype("int64"))
    return to_csr(
        torch.sparse_coo_tensor(index, torch.from_numpy(coo.data), coo.shape, check_invariants=True)
    )


def build(
    method: str,
    in_channels: int,
    out_channels: int,
    num_nodes: int,
    hidden: int = 48,
    layers: int = 2,
    dropout: float = 0.3,
    heads: int = 4,
    metric_dim: int = 8,
    signature: tuple[int, int] | None = None,
) -> nn.Module:
    """The network of a method by name, untrained.

    Args:
        method: one of ``methods.TUNED`` or ``methods.VARIANTS``.
        in_channels, out_channels, num_nodes: F, C and N (LINKX has a weight for every node).
        hidden, layers, dropout, heads: of every network that has them.
        metric_dim, signature: of PRAT; the signature is that of the "indefinite" ones.

    Raises:
        ValueError: unknown method.
    """
    if method not in (*TUNED, *VARIANTS):
        raise ValueError(f"method is {method!r}; expected one of {(*TUNED, *VARIANTS)}")
    size = (in_channels, hidden, out_channels)
    if method in FACTORS:
        kind = FACTORS[method]
        indefinite = kind["geometry"] == "indefinite"
        start = signature if indefinite and method not in VARIANTS else None
        return PRAT(
            *size, layers, heads, metric_dim, kind["geometry"], start,
            dropout=dropout, update=kind["update"],
        )  # fmt: skip
    if method == "fagcn":
        return FAGCN(*size, layers, dropout)
    if method == "h2gcn":
        return H2GCN(*size, layers, dropout)
    if method == "linkx":
        return LINKX(num_nodes, *size, num_layers=layers, dropout=dropout)
    make = _conv(method.removesuffix("_ego"), heads)
    if method in ("gcn", "gatv2"):
        widths = [in_channels, *[hidden] * (layers - 1), out_channels]
        pairs = pairwise(widths)
        convs = [make(a, b, i == layers - 1) for i, (a, b) in enumerate(pairs)]
        return Vanilla(convs, dropout)
    return Residual(*size, [make(hidden, hidden, False) for _ in range(layers)], dropout)


def _conv(name: str, heads: int) -> Callable[[int, int, bool], nn.Module]:
    """Maker of one layer (F, F', whether it is the last: its heads are averaged)."""
    makers: dict[str, Callable[[int, int, bool], nn.Module]] = {
        "mlp": lambda a, b, last: Dense(a, b),
        "gcn": lambda a, b, last: GCNConv(a, b, cached=True),
        "sage": lambda a, b, last: SAGEConv(a, b),
        "gatv2": lambda a, b, last: GATv2Conv(a, b if last else b // heads, heads, concat=not last),
    }
    return makers[name]
