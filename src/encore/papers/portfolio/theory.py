"""The guarantees: how many profiles to sample, the reduction from set cover, and hard instances."""

import math
from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from encore.papers.portfolio.archive import Archive
from encore.papers.portfolio.feasibility import Feasibility
from encore.papers.portfolio.profiles import ProfileSet
from encore.papers.portfolio.selection import quantize


def finite_sample_bound(n_models: int, k: int, m: int, delta: float) -> float:
    """Uniform error of coverage estimated from ``m`` i.i.d. profiles.

    With probability 1 - delta, |c_hat(S) - c(S)| <= eps for all sets S of at most ``k`` of ``n_models``
    models at once: Hoeffding's inequality and a union bound over at most (e N / K)^K sets, so
    eps = sqrt((K log(e N / K) + log(2 / delta)) / (2 m)).  Greedy selection on the sample then covers at
    least (1 - 1/e) OPT - (2 - 1/e) eps.  ``n_models`` may be the number of undominated models, since
    pruning does not look at profiles.

    Raises:
        ValueError: a count < 1, ``k`` > ``n_models``, or ``delta`` outside (0, 1).
    """
    _check(n_models, k, delta)
    if m < 1:
        raise ValueError(f"m={m}; expected at least 1")
    return math.sqrt(_complexity(n_models, k, delta) / (2.0 * m))


def sample_size(n_models: int, k: int, eps: float, delta: float) -> int:
    """Fewest profiles for which ``finite_sample_bound`` is at most ``eps``.

    Raises:
        ValueError: as there, or ``eps`` <= 0.
    """
    _check(n_models, k, delta)
    if not eps > 0:
        raise ValueError(f"eps={eps}; expected > 0")
    return math.ceil(_complexity(n_models, k, delta) / (2.0 * eps**2))


def _complexity(n_models: int, k: int, delta: float) -> float:
    return k * math.log(math.e * n_models / k) + math.log(2.0 / delta)


def _check(n_models: int, k: int, delta: float) -> None:
    if n_models < 1 or k < 1:
        raise ValueError(f"n_models={n_models}, k={k}; expected at least 1")
    if k > n_models:
        raise ValueError(f"k={k} exceeds n_models={n_models}")
    if not 0 < delta < 1:
        raise ValueError(f"delta={delta}; expected a number in (0, 1)")


def from_set_system(
    sets: Sequence[Iterable[int]],
    n_elements: int,
    weight: Sequence[float] | np.ndarray | None = None,
) -> tuple[Archive, ProfileSet]:
    """Any instance of maximum coverage as bundled coverage (the reduction behind NP-hardness).

    Model j has in column ``e<i>`` the value 1 if set j holds element i, else 0; profile i asks for
    ``e<i> >= 1`` and nothing else.  Then a set of models covers exactly the elements of its union.

    Raises:
        ValueError: no sets, no elements, or an element outside 0..n_elements - 1.
    """
    if not sets or n_elements < 1:
        raise ValueError(
            f"{len(sets)} sets of {n_elements} elements; expected at least one of each"
        )
    member = np.zeros((len(sets), n_elements))
    for row, items in enumerate(sets):
        for item in items:
            if not 0 <= item < n_elements:
                raise ValueError(f"set {row} holds {item}; expected 0..{n_elements - 1}")
            member[row, item] = 1.0
    names = [f"e{i}" for i in range(n_elements)]
    archive = Archive(pd.DataFrame(member, columns=names), dict.fromkeys(names, "max"))
    bounds = np.where(np.eye(n_elements, dtype=bool), 1.0, np.nan)
    return archive, ProfileSet(pd.DataFrame(bounds, columns=[f"{n}>=" for n in names]), weight)


def to_set_system(feasibility: Feasibility) -> list[frozenset[int]]:
    """For each model of the archive the set of profiles that it meets."""
    rows = feasibility.rows(np.arange(len(feasibility.archive)))
    return [frozenset(np.flatnonzero(row).tolist()) for row in rows]


def random_instance(n: int, m: int, seed: int | Sequence[int]) -> tuple[Archive, ProfileSet]:
    """``n`` random models with ties, ``m`` random bundles of up to four constraints, random weights.

    Raises:
        ValueError: ``n`` or ``m`` < 1.
    """
    if n < 1 or m < 1:
        raise ValueError(f"n={n}, m={m}; expected at least 1")
    rng = np.random.default_rng(seed)
    sense = {"accuracy": "max", "latency": "min", "energy": "min", "memory": "min"}
    models = pd.DataFrame(rng.integers(0, 7, (n, 4)).astype(float), columns=list(sense))
    bounds = pd.DataFrame(
        rng.integers(0, 7, (m, 4)).astype(float),
        columns=["accuracy>=", "latency<=", "energy<=", "memory<="],
    )
    return (
        Archive(models, sense),
        ProfileSet(bounds.mask(rng.random((m, 4)) < 0.4), rng.random(m) + 0.1),
    )


def greedy_trap(
    k: int, n_distractors: int, seed: int | Sequence[int]
) -> tuple[Archive, ProfileSet]:
    """An instance on which greedy covers about 1 - (1 - 1/k)^k of what the best ``k`` models cover.

    ``k`` disjoint sets cover everything; ``k`` others cut across them and each take 1/k of what is left,
    by a hair more than any of the first.  Every element is split at random into one to three, and
    ``n_distractors`` subsets of the sets are added.

    Raises:
        ValueError: ``k`` < 2 or a negative number of distractors.
    """
    if k < 2 or n_distractors < 0:
        raise ValueError(f"k={k}, n_distractors={n_distractors}; expected k >= 2 and no negatives")
    rng = np.random.default_rng(seed)
    layer = np.append((1 - 1 / k) ** np.arange(k) / k**2, (1 - 1 / k) ** k / k * (1 - 1e-6))
    cell_layer, cell_column = (a.ravel() for a in np.indices((k + 1, k)))
    pieces = rng.integers(1, 4, size=len(cell_layer))
    layers, columns = np.repeat(cell_layer, pieces), np.repeat(cell_column, pieces)
    cell = np.repeat(np.arange(len(cell_layer)), pieces)
    share = rng.random(len(cell)) + 0.5
    weight = layer[layers] * share / np.bincount(cell, share)[cell]
    sets = [np.flatnonzero(columns == j) for j in range(k)]
    sets += [np.flatnonzero(layers == i) for i in range(k)]
    for _ in range(n_distractors):
        source = sets[rng.integers(2 * k)]
        sets.append(rng.choice(source, size=max(1, len(source) // 2), replace=False))
    order = rng.permutation(len(sets))
    return from_set_system([sets[i].tolist() for i in order], len(cell), weight)


def violations(feasibility: Feasibility) -> dict[str, int]:
    """Exhaustive check that coverage is monotone and submodular, by exact arithmetic.

    All 2^n sets of the stored models are evaluated, see ``set_function_violations``.

    Raises:
        ValueError: more than 14 stored models.
    """
    rows = feasibility.rows(feasibility.kept)
    if len(rows) > 14:
        raise ValueError(f"{len(rows)} stored models; expected at most 14 for an exhaustive check")
    covered = np.zeros((1, rows.shape[1]), dtype=bool)
    for row in rows:  # set s + 2^i is row i added to set s
        covered = np.concatenate([covered, covered | row])
    return set_function_violations(covered @ quantize(feasibility.profiles.weight))


def set_function_violations(value: np.ndarray) -> dict[str, int]:
    """Inequalities that a set function breaks: c(S + x) >= c(S), and for all S and x != y outside S
    c(S + x) - c(S) >= c(S + y + x) - c(S + y).

    Args:
        value: c of every set, (2^n,); bit i of a position says whether element i is in the set.

    Returns:
        ``{"monotone": violations, "submodular": violations, "checked": inequalities}``.
    """
    n = len(value).bit_length() - 1
    sets, found = np.arange(2**n), {"monotone": 0, "submodular": 0, "checked": 0}
    for x in range(n):
        without = sets[(sets >> x) & 1 == 0]
        gain = np.full(2**n, np.nan)
        gain[without] = value[without | 1 << x] - value[without]
        found["monotone"] += int((gain[without] < 0).sum())
        found["checked"] += len(without)
        for y in range(n):
            if y != x:
                larger = without[(without >> y) & 1 == 1]
                found["submodular"] += int((gain[larger ^ (1 << y)] < gain[larger]).sum())
                found["checked"] += len(larger)
    return found


def pair_coverage(member: np.ndarray) -> np.ndarray:
    """Coverage of each pair of models (the diagonal: of one model), float64 (models, models)."""
    both = member.astype(np.float32)  # counts below 2^24 are exact
    both = (both @ both.T).astype(np.float64)
    alone = np.diag(both)
    return (alone[:, None] + alone[None, :] - both) / member.shape[1]
