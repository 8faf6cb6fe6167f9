"""Networks, peers, training and the classifier."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv

from encore.papers.prat import H2GCN, PRAT, PRATClassifier, build, csbm, learned_signature
from encore.papers.prat.baselines import hops
from encore.papers.prat.experiments import auc, fit_graph, tune
from encore.papers.prat.methods import TUNED, VARIANTS, family
from encore.papers.prat.models import to_csr
from encore.papers.prat.training import Inputs, Training, fit, negative_entries, predict, score

DRAW = {"lr": 0.01, "weight_decay": 5e-4, "dropout": 0.2, "layers": 2}
SHAPE = {"hidden": 16, "heads": 2, "metric_dim": 4}
SCHEDULE = {"epochs": 40, "every": 5, "patience": 8}


@pytest.fixture(scope="module")
def graph():
    return csbm(200, 4, 0.7, 12, 1.5, seed=0)


@pytest.mark.parametrize("method", [*TUNED, *VARIANTS])
def test_every_method_learns_more_than_chance(graph, method):
    inputs = Inputs.of(graph.to_data())
    choice = {method: 0}
    (found,) = fit_graph(graph, inputs, [method], [0], [1], [DRAW], choice, SHAPE, SCHEDULE)
    assert found.test > 0.35
    (again,) = fit_graph(graph, inputs, [method], [0], [1], [DRAW], choice, SHAPE, SCHEDULE)
    assert (found.val, found.test) == (again.val, again.test)


def test_sparse_features_give_what_dense_ones_give(graph):
    x = torch.from_numpy(graph.features)
    x = x * (x > 1.6)
    edges = torch.from_numpy(graph.edge_index)
    for method in TUNED:
        torch.manual_seed(0)
        model = build(method, 16, 4, 200, 16, heads=2, metric_dim=4).eval()
        with torch.no_grad():
            dense, sparse = model(x, edges), model(to_csr(x), edges)
        assert torch.allclose(dense, sparse, atol=1e-5), method


def test_hops_are_strict_and_normalised():
    path = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])
    one, two = hops(path, 4)
    expected = torch.zeros(4, 4)
    expected[0, 2] = expected[2, 0] = expected[1, 3] = expected[3, 1] = 1.0
    assert torch.equal(two.to_dense(), expected)
    gcn = GCNConv(4, 4, add_self_loops=False, bias=False)
    with torch.no_grad():
        gcn.lin.weight.copy_(torch.eye(4))
        assert torch.allclose(one.to_dense(), gcn(torch.eye(4), path), atol=1e-6)
    assert H2GCN(5, 8, 3, 2, 0.0)(torch.randn(4, 5), path).shape == (4, 3)


def test_the_best_validation_weights_are_kept(graph):
    torch.manual_seed(0)
    model = build("gcn_ego", 16, 4, 200, 16)
    inputs = Inputs.of(graph.to_data())
    val, test = fit(model, inputs, 0, Training(epochs=60), 0)
    scores = predict(model, inputs)
    assert score(scores, inputs.y, inputs.val[:, 0], False) == val
    assert score(scores, inputs.y, inputs.test[:, 0], False) == test


def test_rank_scores_are_those_of_scikit_learn():
    scores = torch.tensor([[0.0, 1.0], [1.0, 0.0], [0.0, 0.2], [0.0, 0.1]])
    y, mask = torch.tensor([1, 0, 0, 1]), torch.ones(4, dtype=torch.bool)
    assert score(scores, y, mask, by_rank=True) == 0.75
    assert np.isnan(auc(np.ones(3), np.ones(3, bool)))


def test_tuning_takes_the_best_validation_score(graph):
    useless = DRAW | {"lr": 1e-9}
    found = tune([graph], ["mlp", "prat"], [0], [useless, DRAW], SHAPE, SCHEDULE)
    assert found == {"mlp": 1, "prat": 1}


def test_the_learned_signature_follows_the_metric(graph):
    model = PRAT(16, 16, 4, heads=2, metric_dim=4, metric="riemannian")
    x, edges = torch.from_numpy(graph.features), torch.from_numpy(graph.edge_index)
    assert learned_signature(model).gsi == learned_signature(model, x, edges).gsi == 0.0
    model = PRAT(16, 16, 4, heads=2, metric_dim=4, signature=(0, 4))
    report = learned_signature(model, x, edges)
    assert report.gsi == 1.0
    assert (report.p, report.q, report.eigenvalues.shape) == (0, 16, (2, 2, 4))
    half = learned_signature(PRAT(16, 16, 4), x, edges)
    assert 0.2 < half.gsi < 0.8
    with pytest.raises(ValueError, match="together"):
        learned_signature(model, x)


def test_attention_has_a_weight_per_layer_edge_and_head(graph):
    model = PRAT(16, 16, 4, heads=2, metric_dim=4)
    x, edges = torch.from_numpy(graph.features), torch.from_numpy(graph.edge_index)
    assert model.attention(x, edges).shape == (2, edges.size(1), 2)


def test_the_index_asks_for_whole_entries():
    assert [negative_entries(g, 8) for g in (0.0, 0.3, 0.5, 1.0)] == [
        (8, 0),
        (6, 2),
        (4, 4),
        (0, 8),
    ]


def test_families():
    names = [family(m) for m in ("mlp", "gcn", "h2gcn", "prat", "flow_half")]
    assert names == ["mlp", "vanilla", "ego", "ours", "variant"]
    with pytest.raises(ValueError, match="transformer"):
        build("transformer", 3, 2, 5)


def test_features_that_are_not_finite_are_named(graph):
    x, edges = torch.from_numpy(graph.features.copy()), torch.from_numpy(graph.edge_index)
    x[7, 2] = torch.nan
    for given in (x, to_csr(x)):
        with pytest.raises(ValueError, match="node 7, feature 2"):
            PRAT(16, 16, 4)(given, edges)


def one_split(graph):
    data = graph.to_data()
    data.train_mask, data.val_mask = data.train_mask[:, 0], data.val_mask[:, 0]
    data.test_mask = data.test_mask[:, 0]
    return data


@pytest.mark.parametrize("update", ["residual", "flow"])
def test_the_classifier_classifies(graph, update):
    data = one_split(graph)
    data.y = data.y * 10 + 3  # any integers
    found = PRATClassifier(hidden=16, epochs=40, update=update).fit(data)
    assert found.classes_.tolist() == [3, 13, 23, 33]
    assert found.score(data, data.test_mask) > 0.6
    assert found.index_.gsi < 0.2
    assert np.allclose(found.predict_proba(data).sum(1), 1, atol=1e-5)
    assert found.get_params()["hidden"] == 16


def test_the_classifier_needs_no_masks_and_repairs_edges(graph):
    data = one_split(graph)
    half = data.edge_index[:, data.edge_index[0] < data.edge_index[1]]
    loops = torch.tensor([[5], [5]])
    plain = Data(x=data.x, y=data.y, edge_index=torch.cat([half, loops], dim=1))
    with pytest.warns(UserWarning, match="one direction"):
        found = PRATClassifier(hidden=16, epochs=10).fit(plain)
    assert found.edges_.self_loops == 1
    assert found.edges_.edge_index.shape == tuple(data.edge_index.shape)


def broken(data, **changes):
    return Data(**{name: changes.get(name, data[name]) for name in ("x", "y", "edge_index")})


def test_the_classifier_refuses_bad_input(graph):
    data, model = one_split(graph), PRATClassifier(hidden=16, epochs=1)
    bad = data.x.clone()
    bad[3, 1] = torch.inf
    with pytest.raises(ValueError, match="node 3, feature 1"):
        model.fit(broken(data, x=bad))
    with pytest.raises(ValueError, match="at least 2"):
        model.fit(broken(data, y=torch.zeros_like(data.y)))
    with pytest.raises(ValueError, match="y of node 0 is -1 inside train_mask"):
        y = data.y.clone()
        y[0] = -1
        model.fit(broken(data, y=y), train_mask=np.ones(200, bool), val_mask=np.ones(200, bool))
    with pytest.raises(ValueError, match="train_mask must be"):
        model.fit(data, train_mask=np.ones(5, bool))
    with pytest.raises(TypeError, match="integers"):
        model.fit(broken(data, edge_index=data.edge_index.double()))
