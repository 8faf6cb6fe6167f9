"""What the workflow derives: gains, counts, the index of a graph, rows of trained networks."""

import numpy as np
import pandas as pd
import pytest

from encore.core.metrics import Table
from encore.papers.prat import csbm
from encore.papers.prat.evaluation import counts, diagnose, facts, gains, mismatch, strongest
from encore.papers.prat.experiments import attention_numbers, fit_graph, mean_attention
from encore.papers.prat.graphs import packaged
from encore.papers.prat.records import Trained, add_scores
from encore.papers.prat.training import Inputs


def scores(**accuracy):
    """Rows of one graph and split; validation scores are test scores, those of GATv2 exchanged with GCN's."""
    rows = []
    for method, value in accuracy.items():
        row = {"graph": "g", "split": 2, "seed": 100, "method": method}
        seen = accuracy[{"gcn": "gatv2", "gatv2": "gcn"}.get(method, method)]
        rows += [row | {"metric": "accuracy", "value": value}]
        rows += [row | {"metric": "val_accuracy", "value": seen}]
    return pd.DataFrame(rows)


def test_the_strongest_peer_is_chosen_by_validation():
    table = scores(gcn=0.6, gatv2=0.5, sage=0.7, prat=0.62)
    assert strongest(table, ("gcn", "gatv2")) == {"g": "gatv2"}
    gained = gains(table).set_index("over")["value"]
    assert gained["vanilla"] == pytest.approx(0.12)
    assert gained["ego"] == pytest.approx(-0.08)
    assert list(counts(table, gains(table))) == [("graphs_gained", "prat", 1)]


def test_numbers_of_a_graph():
    graph = packaged("southern_women")
    found = {(n.metric, n.method): n.value for n in [*diagnose(graph), *mismatch(graph)]}
    assert found["index", "labels"] == 1.0
    assert found["strength", "labels"] == pytest.approx(1.0)
    assert found["p_value", "labels"] < 0.01
    assert found["gram_gap", "class_affinity"] == pytest.approx(0.5)
    assert found["iff_violations", "eckart_young"] == 0
    assert facts(graph) == {"graph": "southern_women", "h": 0.0, "heterophilic": 1, "gsi": 1.0}


def test_rows_and_arrays_of_a_trained_network():
    graph = csbm(120, 4, 0.3, 10, 1.0, seed=0)
    inputs, table, trained = Inputs.of(graph.to_data()), Table("prat"), Trained(graph)
    draw = {"lr": 0.01, "weight_decay": 0.0, "dropout": 0.0, "layers": 1}
    shape = {"hidden": 16, "heads": 2, "metric_dim": 4}
    schedule = {"epochs": 5, "every": 5, "patience": 1}
    methods = ["gcn", "flow_riemannian", "flow_prat"]
    for found in fit_graph(graph, inputs, methods, [0], [0], [draw], {}, shape, schedule):
        add_scores(table, "csbm", graph, inputs, found, instance="x", h=0.3)
        trained.keep(inputs, found)
        numbers = attention_numbers(graph, inputs, found)
        assert bool(numbers) == (found.method != "gcn")
        if found.method == "flow_riemannian":
            assert numbers["negative_mass"] == numbers["negative_energy"] == 0.0
    rows = table.frame(timing=False)
    assert rows.groupby("metric").size()["accuracy"] == 3
    assert set(rows["geometry"]) == {"none", "riemannian", "indefinite"}
    assert trained.arrays["csbm_h0.3/flow_prat/0/eta"].shape == (8,)
    alpha = trained.arrays["csbm_h0.3/alpha"]
    assert alpha.shape == (graph.edge_index.shape[1],)
    assert np.array_equal(alpha, mean_attention(inputs, found.model))
