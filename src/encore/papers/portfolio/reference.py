"""Greedy selection as one would first write it: what speed is measured against, and what tests trust."""

from collections.abc import Sequence

import numpy as np


def greedy_dense(rows: np.ndarray, k: int) -> list[int]:
    """Greedy maximum coverage on a boolean matrix (models, profiles), ties to the first model."""
    uncovered, chosen = np.ones(rows.shape[1], dtype=bool), []
    for _ in range(k):
        gains = (rows & uncovered).sum(axis=1)
        gains[chosen] = -1
        chosen.append(int(np.argmax(gains)))
        uncovered &= ~rows[chosen[-1]]
    return chosen


def greedy_sets(sets: Sequence[frozenset[int]], k: int) -> list[int]:
    """Greedy maximum coverage on Python sets, ties to the first model."""
    covered: set[int] = set()
    chosen: list[int] = []
    for _ in range(k):
        left = [i for i in range(len(sets)) if i not in chosen]
        chosen.append(max(left, key=lambda i: (len(sets[i] - covered), -i)))
        covered |= sets[chosen[-1]]
    return chosen
