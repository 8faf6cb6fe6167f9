"""Learning polynomials and graphs through the layer."""

import networkx as nx
import numpy as np
import torch
from torch import Tensor

from encore.papers.sparse_sos.arms import (
    first_moments,
)
from encore.papers.sparse_sos.chains import chained_quartic
from encore.papers.sparse_sos.graphs import maxcut_program, partial_k_tree, weights_of
from encore.papers.sparse_sos.layer import SOSLayer
from encore.papers.sparse_sos.program import SOSProgram
from encore.papers.sparse_sos.training import Run, descend, proven, tensor


def learn_chain(seed: int, n: int, mu: float, steps: int, rate: float) -> Run:
    """Move the certified minimiser (first moments) of a chained quartic to a target.

    Terms of degree 1 and 2 are learned.
    """
    poly = chained_quartic(n, seed)
    program = SOSProgram.build(poly.exponents)
    layer = SOSLayer(program, mu=mu, outputs=("moments",))
    places = first_moments(program)
    learned = np.flatnonzero(poly.exponents.sum(1) <= 2)
    target = torch.from_numpy(np.random.default_rng(seed + 1).uniform(-1, 1, n))
    base, values = torch.from_numpy(poly.coeffs), tensor(poly.coeffs[learned])

    def coeffs() -> Tensor:
        return base.index_put((torch.from_numpy(learned),), values)

    def loss() -> Tensor:
        return ((layer(coeffs()[None]).moments[0, places] - target) ** 2).mean()

    start = proven(layer, coeffs())
    curve = descend([values], loss, steps, rate)
    end = proven(layer, coeffs())
    return Run({"loss": curve[0]} | start, {"loss": curve.min()} | end, curve)


def learn_cut(seed: int, graph: str, mu: float, steps: int, rate: float) -> Run:
    """Move edge weights of constant sum until the Shor bound is halfway to that sum."""
    makers = {"karate": nx.karate_club_graph, "les_miserables": nx.les_miserables_graph}
    made = makers[graph]() if graph in makers else partial_k_tree(int(graph), 4, 0.8, seed)
    weights = weights_of(made)
    weights = weights * np.random.default_rng(seed).uniform(0.5, 1.5, len(weights))
    layer = SOSLayer(maxcut_program(made), mu=mu)
    logs, total = tensor(np.log(weights)), float(weights.sum())
    bound = -layer(torch.from_numpy(weights)[None]).bound.item()
    target = bound + 0.5 * (total - bound)

    def coeffs() -> Tensor:
        return total * torch.softmax(logs, 0)

    def loss() -> Tensor:
        return ((-layer(coeffs()[None]).bound[0] - target) / target) ** 2

    start = proven(layer, coeffs())
    curve = descend([logs], loss, steps, rate)
    return Run({"loss": curve[0]} | start, {"loss": curve.min()} | proven(layer, coeffs()), curve)
