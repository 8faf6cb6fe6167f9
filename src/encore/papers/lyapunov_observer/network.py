"""The correction term of the observer: a bias-free network with a linear skip."""

from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from encore.papers.lyapunov_observer.errors import UnsupportedActivationError

ACTIVATIONS: dict[str, tuple[Callable[[Tensor], Tensor], tuple[float, float]]] = {
    "tanh": (torch.tanh, (0.0, 1.0)),
    "relu": (torch.relu, (0.0, 1.0)),
}


class ObserverNet(nn.Module):
    """pi(v) = W_{L+1} w_L + W_{L+2} v with w_i = act(W_i w_{i-1}), w_0 = v, and no biases.

    Source: equations of the paper (arXiv 2609.30819), Sec. "neural observer"; pi(0) = 0 holds by
    construction. Without hidden layers pi(v) = W_{L+2} v, a linear observer.

    Parameters
    ----------
    n_y: number of outputs, the width of the input v.
    n_state, n_dist: numbers of states and of disturbances; pi has n_state + n_dist outputs.
    hidden: widths of the hidden layers.
    activation: "tanh", "relu", or a callable together with its ``sector``.
    seed: seed of the normal initial weights, of variance 1/fan-in (our choice).
    sector: (a, b) with (act(v) - a v)(b v - act(v)) >= 0 for every real v; needed for a callable.

    The weights are float64 of shape (out, in). A net made by ``stack`` carries one more leading
    axis, so that S observers run at once on inputs of shape (S, B, n_y).
    """

    def __init__(
        self,
        n_y: int,
        n_state: int,
        n_dist: int,
        hidden: Sequence[int] = (32, 64, 32),
        activation: str | Callable[[Tensor], Tensor] = "tanh",
        seed: int = 0,
        sector: tuple[float, float] | None = None,
    ):
        super().__init__()
        for name, value in (("n_y", n_y), ("n_state", n_state), ("n_dist", n_dist)):
            if not isinstance(value, int) or value < 1:
                raise ValueError(f"{name} must be a positive integer, got {value!r}")
        hidden = tuple(int(width) for width in hidden)
        if any(width < 1 for width in hidden):
            raise ValueError(f"hidden must hold positive widths, got {hidden}")
        self.n_y, self.n_state, self.n_dist, self.hidden = n_y, n_state, n_dist, hidden
        self.activation, (self.act, self.sector) = activation, _activation(activation, sector)
        generator = torch.Generator().manual_seed(seed)

        def draw(rows: int, columns: int) -> nn.Parameter:
            weight = torch.randn(rows, columns, generator=generator, dtype=torch.float64)
            return nn.Parameter(weight / columns**0.5)

        widths, size = (n_y, *hidden), n_state + n_dist
        layers = [draw(b, a) for a, b in pairwise(widths)]
        readout = [draw(size, hidden[-1])] if hidden else []
        self.weights = nn.ParameterList([*layers, *readout, draw(size, n_y)])

    @property
    def depth(self) -> int:
        """Number L of hidden layers."""
        return len(self.hidden)

    @property
    def neurons(self) -> int:
        """Number of hidden neurons of all layers."""
        return sum(self.hidden)

    def forward(self, v: Tensor) -> Tensor:
        """Correction pi(v): (..., B, n_y) -> (..., B, n_state + n_dist)."""
        if v.shape[-1] != self.n_y:
            raise ValueError(f"v has {v.shape[-1]} columns, the net has n_y={self.n_y}")
        return apply_net(list(self.weights), v, self.act)

    @staticmethod
    def stack(nets: Sequence["ObserverNet"]) -> "ObserverNet":
        """One net whose weights carry a leading axis over ``nets`` (equal shapes, activations)."""
        first = nets[0]
        for i, net in enumerate(nets):
            if [w.shape for w in net.weights] != [w.shape for w in first.weights]:
                raise ValueError(f"nets[{i}] has other weight shapes than nets[0]")
            if net.activation != first.activation or net.sector != first.sector:
                raise ValueError(f"nets[{i}] has another activation or sector than nets[0]")
        stacked = ObserverNet(
            first.n_y,
            first.n_state,
            first.n_dist,
            first.hidden,
            first.activation,
            sector=first.sector,
        )
        rows = zip(*(net.weights for net in nets), strict=True)
        stacked.weights = nn.ParameterList(nn.Parameter(torch.stack([*r]).detach()) for r in rows)
        return stacked


def apply_net(weights: list[Tensor], v: Tensor, act: Callable[[Tensor], Tensor]) -> Tensor:
    """pi(v) of a list W_1..W_{L+2}; leading axes of the weights broadcast against those of v."""
    skip = v @ weights[-1].mT
    if len(weights) == 1:
        return skip
    hidden = v
    for weight in weights[:-2]:
        hidden = act(hidden @ weight.mT)
    return hidden @ weights[-2].mT + skip


def _activation(activation, sector):
    if isinstance(activation, str) and activation in ACTIVATIONS:
        function, known = ACTIVATIONS[activation]
        return function, tuple(map(float, sector or known))
    if not callable(activation) or sector is None:
        raise UnsupportedActivationError(activation)
    a, b = map(float, sector)
    if not a < b:
        raise ValueError(f"sector must be (a, b) with a < b, got {sector}")
    return activation, (a, b)
