"""Low-rank embeddings of a symmetric matrix with a metric of either sign, and the price of forbidding the negative ones."""

from typing import Any

import numpy as np

from encore.papers.prat.graphs import clean_edges
from encore.papers.prat.index import TOL, symmetric

TIE_DIGITS = 10  # eigenvalues that agree so far (relative to the largest) are a tie: positive first


def pseudo_euclidean_embedding(
    matrix: Any, rank: int, indefinite: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates X and metric signs eta whose Gram matrix X diag(eta) X' is the best of its rank.

    By Eckart and Young the best approximation keeps the eigenvalues of largest magnitude; without
    negative directions it keeps the largest positive ones.

    Args:
        matrix: (N, N) symmetric floats, or a (2, E) integer edge index (its adjacency is embedded;
            node ids run from 0 to the largest one).
        rank: 1 <= rank < N (rank = N is allowed for a matrix).
        indefinite: whether eta may be -1.

    Returns:
        coords (N, rank) float64 and eta (rank,) of +1, -1; directions with nothing to give are zero.

    Raises:
        ValueError: matrix not square, finite and symmetric, or rank out of range.
    """
    dense = _dense(matrix)
    n = len(dense)
    if not 1 <= rank <= n:
        raise ValueError(f"rank is {rank}; expected 1 <= rank <= N = {n}")
    values, vectors = np.linalg.eigh(dense)
    score = np.abs(values) if indefinite else values
    score = np.round(score / (np.abs(values).max() or 1.0), TIE_DIGITS)
    keep = np.lexsort((values < 0, -score))[:rank]
    size = np.abs(values[keep]) if indefinite else values[keep].clip(min=0.0)
    eta = np.where((values[keep] < 0) & indefinite, -1.0, 1.0)
    return vectors[:, keep] * np.sqrt(size), eta


def _dense(matrix: Any) -> np.ndarray:
    array = np.asarray(matrix)
    if array.ndim == 2 and array.shape[0] == 2 and np.issubdtype(array.dtype, np.integer):
        n = int(array.max(initial=0)) + 1
        edges = clean_edges(array, n).edge_index
        dense = np.zeros((n, n))
        dense[edges[0], edges[1]] = 1.0
        return dense
    return symmetric(array)


def gram_gap(matrix: Any, rank: int) -> tuple[float, int]:
    """How much worse the best positive semidefinite Gram matrix of a rank is than the best indefinite one.

    Returns:
        The difference of squared Frobenius errors over ||matrix||_F^2, and the number of negative
        eigenvalues among the ``rank`` largest by magnitude (the gap is 0 exactly if that is 0).
    """
    dense = _dense(matrix)
    errors, eta = [], np.ones(0)
    for indefinite in (False, True):
        coords, eta = pseudo_euclidean_embedding(dense, rank, indefinite)
        errors.append(float(((dense - (coords * eta) @ coords.T) ** 2).sum()))
    total = float((dense**2).sum()) or 1.0
    substantial = (coords**2).sum(0) > TOL * np.abs(dense).max(initial=1.0)
    return (errors[0] - errors[1]) / total, int((substantial & (eta < 0)).sum())
