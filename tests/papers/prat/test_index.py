"""The index and inertia against closed forms, invariances and brute force."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ortho_group

from encore.papers.prat import csbm, graph_signature_index, pseudo_euclidean_embedding, signature
from encore.papers.prat.embedding import gram_gap
from encore.papers.prat.generator import affinity_matrix
from encore.papers.prat.graphs import packaged
from encore.papers.prat.index import class_affinity, largest_eigenvalues, normalised_adjacency


def both_ways(pairs):
    pairs = np.asarray(pairs, dtype=np.int64).T
    return np.hstack([pairs, pairs[::-1]])


def cliques(*sizes):
    """Disjoint complete graphs and the clique of each node."""
    labels = np.repeat(np.arange(len(sizes)), sizes)
    pairs = [(i, j) for i in range(len(labels)) for j in range(i) if labels[i] == labels[j]]
    return both_ways(pairs), labels


def bipartite(left, right):
    pairs = [(i, left + j) for i in range(left) for j in range(right)]
    return both_ways(pairs), np.repeat([0, 1], [left, right])


def test_two_blocks_have_the_eigenvalue_of_the_expectation():
    """10 + 10 nodes: p within counts edge ends in the ratio (p - q) / (p + q)."""
    labels = np.repeat([0, 1], 10)
    for within, between in ((3, 1), (1, 3)):
        pairs = [(i, (i + s) % 10) for i in range(10) for s in range(1, within + 1)]
        pairs += [(a + 10, b + 10) for a, b in pairs]
        pairs += [(i, 10 + (i + s) % 10) for i in range(10) for s in range(2 * between)]
        report = graph_signature_index(both_ways(pairs), 20, labels, return_spectrum=True)
        assert report.eigenvalues[0] == pytest.approx(1.0, abs=1e-12)
        assert report.eigenvalues[1] == pytest.approx((within - between) / (within + between))
        assert report.gsi == float(between > within)


def test_a_complete_bipartite_graph_has_index_one_and_cliques_zero():
    edges, sides = bipartite(4, 7)
    assert graph_signature_index(edges, 11, sides) == 1.0
    edges, labels = cliques(3, 4, 5)
    assert graph_signature_index(edges, 12, labels) == 0.0


def test_packaged_graphs_lie_at_the_two_ends():
    karate, women = packaged("karate"), packaged("southern_women")
    assert graph_signature_index(karate.edge_index, 34, karate.labels) == 0.0
    assert graph_signature_index(women.edge_index, 32, women.labels) == 1.0


@pytest.mark.parametrize("h", [0.0, 0.2, 0.4, 0.5, 0.8, 1.0])
def test_the_expected_index_of_the_generator(h):
    """Partner affinity, C = 4: eigenvalues 1, 1 and 2h - 1 twice."""
    values = np.linalg.eigvalsh(affinity_matrix(4, h))
    assert np.allclose(np.sort(values), np.sort([1, 1, 2 * h - 1, 2 * h - 1]))
    graph = csbm(4000, 4, h, 20, 1.0, seed=1)
    low = max(0.0, 1 - 2 * h)
    expected = 2 * low / (1 + 2 * low)
    found = graph_signature_index(graph.edge_index, 4000, graph.labels)
    assert found == pytest.approx(expected, abs=0.03)
    assert graph.homophily() == pytest.approx(h, abs=0.02)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6))
def test_the_index_is_invariant_to_names_of_nodes_and_classes(seed):
    rng = np.random.default_rng(seed)
    n, classes = 30, 4
    labels = np.concatenate([np.arange(classes), rng.integers(classes, size=n - classes)])
    edges = rng.integers(n, size=(2, 60))
    edges = np.hstack([edges, edges[::-1]])
    expected = graph_signature_index(edges, n, labels)
    nodes, names = rng.permutation(n), rng.permutation(classes)
    shuffled = np.empty(n, dtype=int)
    shuffled[nodes] = names[labels]
    assert graph_signature_index(nodes[edges], n, shuffled) == pytest.approx(expected, abs=1e-9)
    assert 0 <= expected <= 1


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 6), st.integers(0, 6), st.integers(0, 3), st.integers(0, 10**6))
def test_inertia_obeys_sylvester(p, q, zero, seed):
    n = p + q + zero + 2
    rng = np.random.default_rng(seed)
    diagonal = np.diag([1.0] * (p + 1) + [-1.0] * (q + 1) + [0.0] * zero)
    left, right = ortho_group.rvs(n, size=2, random_state=seed)
    mix = left @ np.diag(rng.uniform(0.3, 3.0, n)) @ right
    assert signature(mix @ diagonal @ mix.T) == (p + 1, q + 1, zero)


def test_only_edges_inside_the_mask_count():
    edges, labels = bipartite(3, 3)
    inside, names = cliques(4, 4)
    joined = np.hstack([edges, inside + 6])
    labels, mask = np.concatenate([labels, names]), np.repeat([False, True], [6, 8])
    assert graph_signature_index(joined, 14, labels, mask) == 0.0
    assert graph_signature_index(joined, 14, labels, ~mask) == 1.0


def test_edges_are_repaired_and_a_directed_graph_warns():
    edges, labels = bipartite(3, 4)
    once = edges[:, : edges.shape[1] // 2]
    with pytest.warns(UserWarning, match="12 edges have one direction"):
        assert graph_signature_index(once, 7, labels) == 1.0
    noisy = np.hstack([edges, edges[:, :5], [[2], [2]]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert graph_signature_index(noisy, 7, labels) == 1.0


def test_no_edges_and_isolated_nodes_are_defined():
    nothing = np.zeros((2, 0), dtype=int)
    report = graph_signature_index(nothing, 4, [0, 1, 0, 1], return_spectrum=True)
    assert (report.gsi, report.rank, report.strength) == (0.0, 0, 0.0)
    edges, sides = bipartite(2, 2)
    assert graph_signature_index(edges, 9, [*sides, 0, 1, 0, 1, 0]) == 1.0
    assert 0 <= graph_signature_index(edges, 9, rank=3) <= 1


def test_the_spectral_variant_agrees_with_a_dense_decomposition():
    graph = csbm(700, 4, 0.2, 12, 1.0, seed=3)
    matrix = normalised_adjacency(graph.edge_index, 700)
    found = np.sort(np.abs(largest_eigenvalues(matrix, 9)))
    values = np.linalg.eigvalsh(matrix.toarray())
    assert np.allclose(found, np.sort(np.abs(values))[-9:])
    rest = np.sort(values[np.argsort(-np.abs(values))[:9]])[::-1][1:]
    expected = -rest[rest < 0].sum() / np.abs(rest).sum()
    assert graph_signature_index(graph.edge_index, 700) == pytest.approx(expected)


def test_shuffled_labels_are_called_noise_and_true_ones_are_not():
    graph = csbm(400, 4, 0.1, 10, 1.0, seed=0)
    truth = graph_signature_index(graph.edge_index, 400, graph.labels, return_spectrum=True)
    shuffled = np.random.default_rng(5).permutation(graph.labels)
    wrong = graph_signature_index(graph.edge_index, 400, shuffled, return_spectrum=True)
    assert (truth.is_noise, wrong.is_noise) == (False, True)
    assert truth.p_value < 0.01 < wrong.p_value


ERRORS = [
    ({"labels": [0, 0, 0]}, ValueError, "at least 2"),
    ({"labels": [0, 1]}, ValueError, r"\(3,\)"),
    ({"labels": [0, -1, 1], "mask": [True] * 3}, ValueError, "node 1 is -1"),
    ({"num_nodes": 0}, ValueError, "at least one node"),
    ({"edge_index": [[0, 5], [1, 0]]}, ValueError, "node 5"),
    ({"edge_index": [0, 1]}, ValueError, r"\(2, E\)"),
    ({"edge_index": [[0.0], [1.0]]}, TypeError, "integers"),
    ({"rank": 3}, ValueError, "rank is 3"),
    ({"method": "magic"}, ValueError, "magic"),
    ({"method": "labels"}, ValueError, "labels is None"),
]


@pytest.mark.parametrize(("change", "error", "message"), ERRORS)
def test_errors_name_the_argument(change, error, message):
    arguments = {"edge_index": [[0, 1, 1, 2], [1, 0, 2, 1]], "num_nodes": 3} | change
    with pytest.raises(error, match=message):
        graph_signature_index(**arguments)


@pytest.mark.parametrize(
    "matrix", [np.ones((2, 3)), [[0, np.nan], [np.nan, 0]], [[0, 1], [2, 0.0]]]
)
def test_inertia_refuses_what_is_not_symmetric(matrix):
    with pytest.raises(ValueError, match="matrix"):
        signature(matrix)


def test_the_embedding_is_the_best_of_its_rank():
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(12, 12))
    matrix = matrix + matrix.T
    values = np.linalg.eigvalsh(matrix)
    for rank in (1, 4, 12):
        coords, eta = pseudo_euclidean_embedding(matrix, rank)
        error = ((matrix - (coords * eta) @ coords.T) ** 2).sum()
        assert error == pytest.approx((np.sort(np.abs(values))[: 12 - rank] ** 2).sum(), abs=1e-9)
        coords, eta = pseudo_euclidean_embedding(matrix, rank, indefinite=False)
        assert (eta == 1).all()
        kept = np.sort(values)[::-1][:rank].clip(min=0)
        error = ((matrix - coords @ coords.T) ** 2).sum()
        assert error == pytest.approx((values**2).sum() - (kept**2).sum(), abs=1e-9)


def test_an_edge_index_is_embedded_as_its_adjacency():
    edges, _ = bipartite(3, 3)
    coords, eta = pseudo_euclidean_embedding(edges, 2)
    gram = (coords * eta) @ coords.T
    assert sorted(eta) == [-1, 1]
    assert np.allclose(gram[:3, 3:], 1)
    assert np.allclose(gram[:3, :3], 0)
    with pytest.raises(ValueError, match="rank is 7"):
        pseudo_euclidean_embedding(edges, 7)


def test_a_positive_metric_loses_exactly_where_a_negative_direction_is_among_the_largest():
    for h, negative in ((0.1, 2), (0.9, 0)):
        gap, count = gram_gap(affinity_matrix(4, h), 4)
        assert count == negative
        assert (gap > 1e-12) == (negative > 0)
        expected = negative * (2 * h - 1) ** 2 / (2 + 2 * (2 * h - 1) ** 2)
        assert gap == pytest.approx(expected)
    assert gram_gap(np.array([[0.0, 1.0], [1.0, 0.0]]), 1) == (0.0, 0)  # a tie of +1 and -1


def test_classes_without_edges_are_left_out():
    edges, sides = bipartite(2, 3)
    assert class_affinity(edges, sides, 4).shape == (2, 2)
