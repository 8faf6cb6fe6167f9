"""The Graph Signature Index: how much of a graph's class structure needs negative metric directions.

A graph whose classes connect by an affinity matrix B is a Gram matrix in R^{p,q}, with p and q the
numbers of positive and negative eigenvalues of B (Rubin-Delanchy et al., JRSS B 2022); a positive
definite geometry represents it exactly if and only if B has no negative eigenvalue. The index is the
share of negative eigenvalues in the spectrum of the normalised B, its trivial top one left out
(our definition: the paper's formula is not public).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from encore.papers.prat.graphs import clean_edges

TOL = 1e-9
DENSE_BELOW = 600  # nodes: below, all eigenvalues by LAPACK are cheaper than ARPACK's few
SHUFFLES = 200


@dataclass(frozen=True)
class SignatureReport:
    """A signature with the numbers behind it.

    Attributes:
        gsi: share of negative spectrum (or of negative energy) in [0, 1].
        p, q: numbers of positive and negative eigenvalues (metric entries), the top one included.
        eigenvalues: their values, descending; for a learned metric (layers, heads, dim) energies.
        rank: how many eigenvalues entered gsi.
        strength: largest |eigenvalue| below the top one; gsi is a ratio and does not see it.
        noise: strength that shuffled labels reach by chance, about 2 sqrt(C / 2E); 0 if not defined.
        p_value: share of 200 label shuffles at least as strong; NaN without labels.
    """

    gsi: float
    p: int
    q: int
    eigenvalues: np.ndarray
    rank: int
    strength: float
    noise: float = 0.0
    p_value: float = float("nan")

    @property
    def is_noise(self) -> bool:
        """Whether the structure is too weak for its signs to mean anything."""
        return self.strength < self.noise


def signature(matrix: Any, tol: float = TOL) -> tuple[int, int, int]:
    """Inertia of a symmetric matrix: numbers of positive, negative and zero eigenvalues.

    Args:
        matrix: (n, n), symmetric.
        tol: eigenvalues up to ``tol`` times the largest magnitude (or 1, if that is larger) are zero.

    Raises:
        ValueError: not square, not finite, or not symmetric.
    """
    values = np.linalg.eigvalsh(symmetric(matrix))
    zero = np.abs(values) <= tol * max(1.0, np.abs(values).max(initial=0.0))
    return int((values[~zero] > 0).sum()), int((values[~zero] < 0).sum()), int(zero.sum())


def symmetric(matrix: Any) -> np.ndarray:
    """The matrix as float64, both triangles equal; ``ValueError`` if it is not square, finite and symmetric."""
    matrix = np.asarray(matrix, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"matrix must be square, got shape {matrix.shape}")
    if not np.isfinite(matrix).all():
        raise ValueError(f"matrix is not finite at {np.argwhere(~np.isfinite(matrix))[0].tolist()}")
    size = np.abs(matrix).max(initial=0.0)
    if np.abs(matrix - matrix.T).max(initial=0.0) > 1e-8 * max(size, 1.0):
        raise ValueError("matrix is not symmetric")
    return (matrix + matrix.T) / 2


def graph_signature_index(
    edge_index: Any,
    num_nodes: int,
    labels: Any = None,
    mask: Any = None,
    rank: int | None = None,
    method: str | None = None,
    return_spectrum: bool = False,
) -> float | SignatureReport:
    """Share of a graph's spectrum that is negative, in [0, 1].

    Args:
        edge_index: (2, E) integers; one-way edges are symmetrised (with a warning), repeated edges
            and self-loops dropped.
        num_nodes: N.
        labels: (N,) integers, -1 for unknown.
        mask: (N,) bool, the nodes whose labels may be used (training nodes); default: all with a label.
        rank: for "spectral", how many eigenvalues below the top one; default C - 1, or 8 without labels.
        method: "labels" (default where labels are given): eigenvalues of the normalised class
            affinity, both ends of an edge in ``mask``. "spectral": the largest eigenvalues of the
            normalised adjacency by magnitude. The latter needs no labels, but on real graphs
            it does not separate homophily from heterophily.
        return_spectrum: return the ``SignatureReport``, with strength and a permutation p-value.

    Raises:
        TypeError: edge_index is not integer.
        ValueError: edge_index not (2, E) or out of range, no nodes, labels missing, of another length
            or -1 inside mask, fewer than two classes, rank not in [1, N - 1).
    """
    edges = clean_edges(edge_index, num_nodes).edge_index
    method = method or ("spectral" if labels is None else "labels")
    if method == "labels":
        report = _by_labels(edges, *_labelled(labels, mask, num_nodes), return_spectrum)
    elif method == "spectral":
        report = _by_spectrum(edges, num_nodes, labels, rank)
    else:
        raise ValueError(f"method is {method!r}; expected 'labels' or 'spectral'")
    return report if return_spectrum else report.gsi


def _labelled(labels: Any, mask: Any, num_nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Class numbers 0..C-1 of the nodes (anything outside the mask) and the mask."""
    if labels is None:
        raise ValueError("labels is None; method='labels' needs them")
    labels = np.asarray(labels)
    if labels.shape != (num_nodes,):
        raise ValueError(f"labels must be ({num_nodes},), got shape {labels.shape}")
    mask = labels >= 0 if mask is None else np.asarray(mask, dtype=bool)
    if mask.shape != (num_nodes,):
        raise ValueError(f"mask must be ({num_nodes},), got shape {mask.shape}")
    if (labels[mask] < 0).any():
        node = np.flatnonzero(mask & (labels < 0))[0]
        raise ValueError(f"labels of node {node} is {labels[node]} inside mask; expected >= 0")
    known = np.unique(labels[mask])
    if len(known) < 2:
        raise ValueError(f"labels has {len(known)} class inside mask; expected at least 2")
    return np.searchsorted(known, labels).clip(max=len(known) - 1), mask


def class_affinity(edges: np.ndarray, labels: np.ndarray, classes: int) -> np.ndarray:
    """D^{-1/2} E D^{-1/2} of the counts E of edge ends between classes; classes without edges are left out.

    Args:
        edges: (2, E) both directions.
        labels: (N,) in 0..classes-1.
    """
    counts = np.bincount(labels[edges[0]] * classes + labels[edges[1]], minlength=classes**2)
    counts = counts.reshape(classes, classes).astype(float)
    ends = counts.sum(1)
    used = ends > 0
    scale = np.sqrt(ends[used])
    return counts[np.ix_(used, used)] / np.outer(scale, scale)


def _by_labels(
    edges: np.ndarray, labels: np.ndarray, mask: np.ndarray, test: bool
) -> SignatureReport:
    edges = edges[:, mask[edges].all(0)]
    classes = int(labels[mask].max()) + 1
    values = np.linalg.eigvalsh(class_affinity(edges, labels, classes))[::-1]
    strength = np.abs(values[1:]).max(initial=0.0)
    p_value = _p_value(edges, labels, mask, classes, strength) if test else float("nan")
    count = edges.shape[1] / 2
    noise = 2 * np.sqrt(classes / (2 * count)) if count else 0.0
    return _report(values, noise=float(noise), p_value=p_value)


def _p_value(
    edges: np.ndarray, labels: np.ndarray, mask: np.ndarray, classes: int, strength: float
) -> float:
    """How often labels shuffled among the nodes of the mask give a structure as strong."""
    rng = np.random.default_rng(0)
    nodes, shuffled, reached = np.flatnonzero(mask), labels.copy(), 0
    for _ in range(SHUFFLES):
        shuffled[nodes] = rng.permutation(labels[nodes])
        values = np.linalg.eigvalsh(class_affinity(edges, shuffled, classes))[::-1]
        reached += np.abs(values[1:]).max(initial=0.0) >= strength - TOL
    return (1 + reached) / (1 + SHUFFLES)


def _by_spectrum(
    edges: np.ndarray, num_nodes: int, labels: Any, rank: int | None
) -> SignatureReport:
    if rank is None:
        classes = (
            9 if labels is None else len(np.unique(np.asarray(labels)[np.asarray(labels) >= 0]))
        )
        rank = max(1, min(classes - 1, num_nodes - 2))
    if not 1 <= rank < max(num_nodes - 1, 2):
        raise ValueError(f"rank is {rank}; expected 1 <= rank < N - 1 = {num_nodes - 1}")
    values = largest_eigenvalues(normalised_adjacency(edges, num_nodes), rank + 1)
    return _report(np.sort(values)[::-1])


def normalised_adjacency(edges: np.ndarray, num_nodes: int) -> Any:
    """D^{-1/2} A D^{-1/2} without self-loops, scipy CSR (N, N); rows of isolated nodes are zero."""
    from scipy import sparse

    degree = np.bincount(edges[0], minlength=num_nodes).astype(float)
    scale = np.divide(1.0, np.sqrt(degree), out=np.zeros(num_nodes), where=degree > 0)
    weights = scale[edges[0]] * scale[edges[1]]
    return sparse.csr_matrix((weights, (edges[0], edges[1])), shape=(num_nodes, num_nodes))


def largest_eigenvalues(matrix: Any, count: int) -> np.ndarray:
    """The ``count`` eigenvalues of largest magnitude of a symmetric sparse matrix."""
    n = matrix.shape[0]
    if n < DENSE_BELOW or count >= n - 1:
        values = np.linalg.eigvalsh(matrix.toarray())
        return values[np.argsort(-np.abs(values), kind="stable")[:count]]
    from scipy.sparse.linalg import eigsh

    start = np.random.default_rng(0).normal(size=n)
    return eigsh(matrix, k=count, which="LM", return_eigenvectors=False, v0=start)


def _report(values: np.ndarray, **extra: float) -> SignatureReport:
    """Index of a descending spectrum, its first value left out."""
    values = np.where(np.abs(values) <= TOL, 0.0, values)
    rest = values[1:]
    total = np.abs(rest).sum()
    gsi = float(np.abs(rest[rest < 0]).sum() / total) if total > 0 else 0.0
    return SignatureReport(
        gsi=min(gsi, 1.0),
        p=int((values > 0).sum()),
        q=int((values < 0).sum()),
        eigenvalues=values,
        rank=len(rest),
        strength=float(np.abs(rest).max(initial=0.0)),
        **extra,
    )
