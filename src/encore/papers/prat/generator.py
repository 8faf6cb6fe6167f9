"""Contextual stochastic block models with classes that attract their own kind or a partner class."""

import numpy as np

from encore.papers.prat.graphs import Graph, clean_edges, random_splits


def partner(classes: int) -> np.ndarray:
    """The class that each class prefers where it does not stay with its own: 0-1, 2-3, ... (C,)."""
    return np.arange(classes) ^ 1


def affinity_matrix(classes: int, h: float, affinity: str = "partner") -> np.ndarray:
    """Where an edge goes: (C, C) symmetric, rows sum to one; h to the own class, the rest by ``affinity``.

    Args:
        classes: C, even for "partner".
        h: expected edge homophily in [0, 1].
        affinity: "partner" (all of 1 - h to one other class, eigenvalues 1 and 2h - 1, C/2 times
            each) or "uniform" (spread evenly, eigenvalues 1 once and (Ch - 1)/(C - 1)).

    Raises:
        ValueError: C < 2, h outside [0, 1], an unknown affinity, or an odd C for "partner".
    """
    if classes < 2:
        raise ValueError(f"classes is {classes}; expected at least 2")
    if not 0 <= h <= 1:
        raise ValueError(f"h is {h}; expected a value in [0, 1]")
    own = np.eye(classes)
    if affinity == "uniform":
        return h * own + (1 - h) / (classes - 1) * (1 - own)
    if affinity != "partner":
        raise ValueError(f"affinity is {affinity!r}; expected 'partner' or 'uniform'")
    if classes % 2:
        raise ValueError(f"classes is {classes}; 'partner' needs an even number")
    return h * own + (1 - h) * own[partner(classes)]


def csbm(
    n: int,
    classes: int,
    h: float,
    degree: float,
    mu: float,
    affinity: str = "partner",
    seed: int = 0,
    features: int = 16,
) -> Graph:
    """Contextual stochastic block model: edges by class affinity, features mu * centroid + N(0, 1).

    Args:
        n: nodes, in classes of equal size (up to one).
        classes: C.
        h: probability that an edge stays in its class.
        degree: mean degree before repeated edges are dropped.
        mu: length of the class centroids, drawn on the sphere of R^features.
        affinity: see ``affinity_matrix``.
        seed: of everything random.
        features: F.

    Returns:
        A graph with one split (half train, a quarter val, a quarter test).

    Raises:
        ValueError: as ``affinity_matrix``, or n < 2 * classes.
    """
    share = affinity_matrix(classes, h, affinity)
    if n < 2 * classes:
        raise ValueError(f"n is {n}; expected at least two nodes for each of {classes} classes")
    rng = np.random.default_rng(seed)
    labels = np.sort(np.arange(n) % classes)
    source = rng.integers(n, size=round(n * degree / 2))
    goal = (rng.random(len(source))[:, None] > share.cumsum(1)[labels[source]]).sum(1)
    first = np.searchsorted(labels, np.arange(classes))
    size = np.bincount(labels, minlength=classes)
    goal = goal.clip(max=classes - 1)
    target = first[goal] + (rng.random(len(source)) * size[goal]).astype(int)
    centroids = rng.normal(size=(classes, features))
    centroids *= mu / np.linalg.norm(centroids, axis=1, keepdims=True)
    x = centroids[labels] + rng.normal(size=(n, features))
    edges = np.stack([source, target])
    return Graph(
        f"csbm_h{h:g}",
        x.astype(np.float32),
        labels,
        clean_edges(np.hstack([edges, edges[::-1]]), n).edge_index,
        *random_splits(n, (0.5, 0.25), rng),
    )
