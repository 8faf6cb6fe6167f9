"""Graphs: loading, cleaning, generation."""

import numpy as np
import pytest

from encore.papers.prat import clean_edges, csbm, load_graph
from encore.papers.prat.generator import affinity_matrix
from encore.papers.prat.graphs import read_graph


def test_edges_are_cleaned_and_what_was_found_is_counted():
    edges = np.array([[0, 1, 0, 2, 2, 1], [1, 0, 1, 2, 1, 2]])
    found = clean_edges(edges, 4)
    assert (found.self_loops, found.duplicates, found.one_way) == (1, 1, 0)
    assert found.edge_index.tolist() == [[1, 0, 2, 1], [0, 1, 1, 2]]


@pytest.mark.parametrize("name", ["texas", "minesweeper"])
def test_heterophilous_graphs_are_read(dataset, name):
    graph = read_graph(dataset("heterophilous") / f"{name}.npz")
    assert graph.train.shape == (10, graph.num_nodes)
    assert not (graph.train & graph.test).any()
    assert graph.edge_index.shape[1] == {"texas": 558, "minesweeper": 78804}[name]
    data = graph.to_data()
    assert data.is_undirected()
    assert not data.has_self_loops()
    assert data.train_mask.shape == (graph.num_nodes, 10)


def test_citeseer_nodes_without_a_label_are_in_no_mask(dataset):
    graph = read_graph(dataset("planetoid_geomgcn") / "citeseer.npz")
    unknown = graph.labels < 0
    assert unknown.sum() == 15
    assert not (graph.train | graph.val | graph.test)[:, unknown].any()
    assert graph.features.shape == (3327, 3703)
    assert 0.7 < graph.homophily() < 0.75


def test_packaged_graphs_need_no_file():
    data = load_graph("karate")
    assert (data.num_nodes, data.num_edges) == (34, 156)
    assert load_graph("southern_women").train_mask.shape == (32, 5)


def test_a_missing_graph_says_how_to_fetch_it(tmp_path):
    with pytest.raises(ValueError, match=r"known: .*texas"):
        load_graph("texsa")
    with pytest.raises(FileNotFoundError, match="encore data fetch heterophilous"):
        read_graph(tmp_path / "heterophilous/texas.npz")


def test_the_generator_draws_what_is_asked_for():
    graph = csbm(2000, 4, 0.3, 10, 2.0, seed=4, affinity="uniform")
    assert graph.homophily() == pytest.approx(0.3, abs=0.03)
    assert graph.edge_index.shape[1] / 2000 == pytest.approx(10, rel=0.05)
    assert np.bincount(graph.labels).tolist() == [500] * 4
    centroids = np.array([graph.features[graph.labels == c].mean(0) for c in range(4)])
    assert np.linalg.norm(centroids, axis=1) == pytest.approx(2.0, abs=0.3)
    same = csbm(2000, 4, 0.3, 10, 2.0, seed=4, affinity="uniform")
    assert (same.edge_index == graph.edge_index).all()
    assert (same.features == graph.features).all()


def test_partner_edges_go_to_partners():
    graph = csbm(400, 4, 0.0, 8, 1.0, seed=0)
    ends = graph.labels[graph.edge_index]
    assert (ends[0] == (ends[1] ^ 1)).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((4, 1.2), "h is 1.2"),
        ((1, 0.5), "classes is 1"),
        ((3, 0.5), "even"),
        ((4, 0.5, "x"), "affinity"),
    ],
)
def test_bad_affinities_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        affinity_matrix(*arguments)
    with pytest.raises(ValueError, match="n is 5"):
        csbm(5, 4, 0.5, 3, 1.0)
