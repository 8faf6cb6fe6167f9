"""The layer against its formula, its twin, PyG's conventions and numerical gradients."""

import pytest
import torch
from torch.nn import functional
from torch_geometric.utils import softmax

from encore.papers.prat import PRATConv
from encore.papers.prat.conv import inverse_softplus
from encore.papers.prat.models import to_csr


@pytest.fixture
def graph():
    """Twelve nodes, the last one isolated; (x, edge_index)."""
    generator = torch.Generator().manual_seed(0)
    edges = torch.randint(11, (2, 40), generator=generator)
    return torch.randn(12, 8, generator=generator, dtype=torch.float64), edges


def make(seed=0, **options):
    torch.manual_seed(seed)
    return PRATConv(8, 8, heads=2, metric_dim=4, **options).double()


def by_loops(conv, x, edges):
    """Weights (E, H) and output of update "residual", one edge after the other."""
    u = conv.project(x).reshape(len(x), conv.heads, -1)
    eta, kappa = conv.metric(), functional.softplus(conv.kappa)
    d2 = torch.stack([(eta * (u[i] - u[j]) ** 2).sum(1) for j, i in edges.T])
    size = -torch.sqrt(d2**2 + 1e-6) / conv.metric_dim**0.5
    alpha = torch.empty_like(d2)
    for i in range(len(x)):
        mine = edges[1] == i
        alpha[mine] = torch.softmax(size[mine], 0) * torch.tanh(kappa * d2[mine] + 0.5)
    z = conv.value(x).reshape(len(x), conv.heads, -1)
    total = torch.zeros_like(z)
    for e, (j, i) in enumerate(edges.T.tolist()):
        total[i] += alpha[e][:, None] * z[j]
    return alpha, conv.out(total.reshape(len(x), -1)) + conv.own(x)


@pytest.mark.parametrize("metric", ["indefinite", "riemannian", "lorentz"])
def test_agrees_with_loops_over_edges(graph, metric):
    conv = make(metric=metric)
    out, (edges, alpha) = conv(*graph, return_attention_weights=True)
    expected, total = by_loops(conv, *graph)
    assert edges is graph[1]
    assert torch.allclose(alpha, expected, atol=1e-12)
    assert torch.allclose(out, total, atol=1e-12)


def test_flow_is_a_step_towards_or_away_from_neighbours(graph):
    x, edges = graph
    conv = make(update="flow")
    out, (_, alpha) = conv(x, edges, return_attention_weights=True)
    step = torch.zeros_like(x)
    for e, (j, i) in enumerate(edges.T.tolist()):
        step[i] += alpha[e].repeat_interleave(4) * (x[j] - x[i])
    assert torch.allclose(out, x + functional.softplus(conv.gain) * step, atol=1e-12)


def test_magnitudes_are_pygs_softmax(graph):
    x, edges = graph
    conv = make()
    alpha = conv.weights(x, edges)
    u = conv.project(x)
    d2 = conv.squared_distance(u[edges[1]], u[edges[0]])
    sign = torch.tanh(functional.softplus(conv.kappa) * d2 + 0.5)
    size = softmax(-torch.sqrt(d2**2 + 1e-6) / 2, edges[1], num_nodes=12)
    assert torch.allclose(alpha, sign * size)
    assert (alpha < 0).any()


@pytest.mark.parametrize("update", ["residual", "flow"])
@pytest.mark.parametrize("edge_adaptive", [False, True])
def test_permutation_equivariance(graph, update, edge_adaptive):
    x, edges = graph
    conv = make(update=update, edge_adaptive=edge_adaptive)
    order = torch.randperm(12, generator=torch.Generator().manual_seed(1))
    place = torch.argsort(order)
    shuffled = place[edges][:, torch.randperm(40, generator=torch.Generator().manual_seed(2))]
    assert torch.allclose(conv(x[order], shuffled), conv(x, edges)[order], atol=1e-6)


@pytest.mark.parametrize("update", ["residual", "flow"])
def test_the_twin_never_repels_and_equals_the_absolute_metric(graph, update):
    twin = make(metric="riemannian", update=update)
    assert (twin.weights(*graph) >= 0).all()
    free = make(metric="indefinite", update=update)
    free.load_state_dict(twin.state_dict() | {"theta": twin.metric().detach()})
    assert torch.allclose(free(*graph), twin(*graph), atol=1e-12)
    with torch.no_grad():
        signs = torch.sign(torch.randn_like(free.theta))
        free.theta.mul_(signs)
        twin.theta.copy_(inverse_softplus(free.theta.abs()))
    assert torch.allclose(twin.metric(), free.theta.abs())


def test_signatures_start_as_asked():
    conv = PRATConv(8, 8, heads=2, metric_dim=6, signature=(4, 2))
    assert (conv.metric()[:, :4] > 0).all()
    assert (conv.metric()[:, 4:] < 0).all()
    lorentz = make(metric="lorentz")
    assert (lorentz.metric() < 0).sum(1).tolist() == [1, 1]


@pytest.mark.parametrize("update", ["residual", "flow"])
def test_gradients_are_those_of_differences(graph, update):
    conv = make(update=update, edge_adaptive=True)
    x, edges = graph
    x = x.clone().requires_grad_()
    parameters = list(conv.parameters())
    assert torch.autograd.gradcheck(
        lambda x, *_: conv(x, edges), (x, *parameters), eps=1e-6, atol=1e-5
    )


def test_entries_of_the_metric_can_cross_zero(graph):
    """At eta = 0 all distances vanish, and the gradient of the sign still moves them."""
    conv = make()
    with torch.no_grad():
        conv.theta.zero_()
    conv(*graph).sum().backward()
    assert (conv.theta.grad.abs() > 0).all()


def test_isolated_nodes_and_empty_graphs(graph):
    x, edges = graph
    conv = make()
    assert torch.allclose(conv(x, edges)[11], (conv.out.bias + conv.own(x[11])))
    nothing = torch.zeros(2, 0, dtype=torch.long)
    assert torch.isfinite(conv(x, nothing)).all()
    assert torch.equal(make(update="flow")(x, nothing), x)


def test_a_sparse_adjacency_is_taken(graph):
    x, edges = graph
    edges = torch.unique(edges, dim=1)
    ones = torch.ones(edges.size(1), dtype=torch.float64)
    adj_t = torch.sparse_coo_tensor(edges.flip(0), ones, (12, 12), check_invariants=True)
    conv = make()
    for layout in (adj_t.coalesce(), to_csr(adj_t)):
        assert torch.allclose(conv(x, layout), conv(x, edges))


def test_energies_are_the_parts_of_mean_squared_distance(graph):
    x, edges = graph
    for adaptive in (False, True):
        conv = make(edge_adaptive=adaptive)
        u, tilt = conv.project(x), conv.tilt(x) if adaptive else None
        lifted = (tilt[edges[1]], tilt[edges[0]]) if adaptive else ()
        d2 = conv.squared_distance(u[edges[1]], u[edges[0]], *lifted)
        assert torch.allclose(conv.energies(x, edges).sum(1), d2.mean(0))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metric": "hyperbolic"}, "hyperbolic"),
        ({"update": "sideways"}, "sideways"),
        ({"signature": (5, 5)}, "metric_dim = 8"),
        ({"signature": (7, 1), "metric": "riemannian"}, "riemannian"),
        ({"heads": 3}, "multiple of heads"),
        ({"in_channels": 4, "update": "flow"}, "flow"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        PRATConv(**{"in_channels": 8, "out_channels": 8} | options)


def test_bad_edges_are_refused(graph):
    conv, x = make(), graph[0]
    with pytest.raises(TypeError, match="integers"):
        conv(x, torch.zeros(2, 3))
    with pytest.raises(ValueError, match=r"\(2, E\)"):
        conv(x, torch.zeros(3, 2, dtype=torch.long))
    with pytest.raises(ValueError, match="node 12"):
        conv(x, torch.tensor([[0], [12]]))
