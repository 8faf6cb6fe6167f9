"""What people do instead: scalarised, Pareto-based, unbundled and naive portfolios.

All take a ``Feasibility`` and return the same ``Portfolio``; all but ``marginal_coverage`` look only at
the archive, so the profiles merely score them.  They work in rank space (each column's average ranks
scaled to [0, 1], 0 best), which makes them independent of units, and choose among Pareto-optimal models
unless said otherwise.
"""

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from encore.papers.portfolio.archive import Archive
from encore.papers.portfolio.feasibility import Feasibility, PackedMatrix, meet
from encore.papers.portfolio.profiles import ProfileSet
from encore.papers.portfolio.selection import Portfolio, _check_size, _spare, portfolio, select

Norm = Callable[..., np.ndarray]  # of weighted ranks, along an axis

_DRAWS = 20  # weight vectors tried per model asked for
_AUGMENT = 1e-3  # weight of the sum in the augmented Tchebycheff norm


def scalarization(
    feasibility: Feasibility, k: int, *, seed: int | Sequence[int] = 0, restarts: int = 1
) -> Portfolio:
    """The best model of each of ``k`` weighted sums of ranks (lower is better).

    The first weight vector is equal, the others are Dirichlet(1); vectors whose best model is already
    kept are passed over, which is kinder to the baseline than keeping a model twice.

    Args:
        feasibility: scores the result.
        k: number of models.
        seed: of the weight vectors.
        restarts: tuned variant: of this many sequences of weight vectors the one with the best
            coverage of these profiles is kept (a hybrid: it looks at bundled coverage).

    Raises:
        ValueError: ``k`` or ``restarts`` < 1.
    """
    return _by_weights(feasibility, k, seed, restarts, "scalarization", np.sum)


def tchebycheff(
    feasibility: Feasibility, k: int, *, seed: int | Sequence[int] = 0, restarts: int = 1
) -> Portfolio:
    """The same with the augmented weighted maximum of ranks, which reaches concave parts of the front."""

    def norm(weighted: np.ndarray, axis: int) -> np.ndarray:
        return weighted.max(axis=axis) + _AUGMENT * weighted.sum(axis=axis)

    return _by_weights(feasibility, k, seed, restarts, "tchebycheff", norm)


def _by_weights(
    feasibility: Feasibility,
    k: int,
    seed: int | Sequence[int],
    restarts: int,
    name: str,
    norm: Norm,
) -> Portfolio:
    k = _size(feasibility.archive, k)
    if restarts < 1:
        raise ValueError(f"restarts={restarts}; expected at least 1")
    sequences = _sequences(feasibility.archive, k, seed, restarts, norm)
    best = 0 if restarts == 1 else int(np.argmax(_curves(feasibility, sequences)[:, -1]))
    return _describe(feasibility, sequences[best], k, name)


def tuned_scalarization(
    feasibility: Feasibility,
    ks: Sequence[int],
    *,
    seed: int | Sequence[int] = 0,
    restarts: int = 32,
) -> dict[int, np.ndarray]:
    """``scalarization(..., restarts=restarts)`` for several ``k`` at once: positions by ``k``."""
    top = _size(feasibility.archive, max(ks))
    sequences = _sequences(feasibility.archive, top, seed, restarts, np.sum)
    best = np.argmax(_curves(feasibility, sequences), axis=0)
    return {k: sequences[best[min(k, sequences.shape[1]) - 1]][:k] for k in ks}


def _sequences(
    archive: Archive, k: int, seed: int | Sequence[int], restarts: int, norm: Norm
) -> np.ndarray:
    """For each restart the winners of successive weight vectors, (restarts, min(k, front))."""
    front = archive.pareto()
    ranks = archive.ranks[front]
    weights = np.random.default_rng(seed).dirichlet(
        np.ones(ranks.shape[1]), size=(restarts, _DRAWS * k)
    )
    weights[:, 0] = 1.0 / ranks.shape[1]
    order = np.argsort(norm(ranks * weights[0, 0], axis=1), kind="stable")
    return np.stack(
        [
            front[list(dict.fromkeys([*_winners(ranks, vectors, norm), *order]))[:k]]
            for vectors in weights
        ]
    )


def _curves(feasibility: Feasibility, sequences: np.ndarray) -> np.ndarray:
    """Covered weight of the first 1..k models of each sequence, (sequences, k)."""
    used = np.unique(sequences)
    rows = feasibility.rows(used)
    return np.stack(
        [
            np.logical_or.accumulate(rows[np.searchsorted(used, sequence)], axis=0)
            @ feasibility.profiles.weight
            for sequence in sequences
        ]
    )


def _winners(ranks: np.ndarray, weights: np.ndarray, norm: Norm) -> list[int]:
    """Positions of the best model of each weight vector, in order."""
    blocks = [weights[i : i + 256] for i in range(0, len(weights), 256)]
    return np.concatenate(
        [norm(block[:, None, :] * ranks[None], axis=2).argmin(axis=1) for block in blocks]
    ).tolist()


def hypervolume_greedy(
    feasibility: Feasibility, k: int, *, points: int = 4000, seed: int | Sequence[int] = 0
) -> Portfolio:
    """Greedy hypervolume: coverage of thresholds drawn uniformly in rank space.

    The share of the unit cube of rank utilities that a portfolio dominates, by Monte Carlo: bundled
    coverage under a demand that knows nothing, and the strongest of the baselines.

    Args:
        feasibility: scores the result.
        k: number of models.
        points: of Monte Carlo.
        seed: of the points.

    Raises:
        ValueError: ``k`` or ``points`` < 1.
    """
    archive = feasibility.archive
    k = _size(archive, k)
    if points < 1:
        raise ValueError(f"points={points}; expected at least 1")
    names = [f"rank{i}" for i in range(len(archive.columns))]
    utility = pd.DataFrame(1.0 - archive.ranks, columns=names)
    thresholds = np.random.default_rng(seed).random((points, len(names)))
    cube = Feasibility.build(
        Archive(utility, dict.fromkeys(names, "max")),
        ProfileSet(pd.DataFrame(thresholds, columns=[f"{name}>=" for name in names])),
    )
    return _describe(feasibility, select(cube, k).indices, k, "hypervolume_greedy")


def pareto_kmedoids(feasibility: Feasibility, k: int) -> Portfolio:
    """k-medoids (PAM: greedy build, then best swaps) of the Pareto front in rank space, Euclidean.

    Raises:
        ValueError: ``k`` < 1.
    """
    archive = feasibility.archive
    k = _size(archive, k)
    front = archive.pareto()
    points = archive.ranks[front]
    distance = np.sqrt(((points[:, None, :] - points[None, :, :]) ** 2).sum(axis=2))
    medoids = kmedoids(distance, min(k, len(front)))
    return _describe(feasibility, front[medoids], k, "pareto_kmedoids")


def kmedoids(distance: np.ndarray, k: int) -> np.ndarray:
    """Positions of ``k`` medoids of a distance matrix (n, n): PAM with the swap costs of FastPAM1.

    Source: Kaufman & Rousseeuw 1987; Schubert & Rousseeuw 2019.
    """
    nearest = np.full(len(distance), np.inf)
    medoids: list[int] = []
    for _ in range(k):
        saved = np.minimum(distance, nearest[:, None]).sum(axis=0)
        saved[medoids] = np.inf
        medoids.append(int(np.argmin(saved)))
        nearest = np.minimum(nearest, distance[:, medoids[-1]])
    current = np.array(medoids)
    while k < len(distance):
        change = _swap_costs(distance, current)
        out, into = np.unravel_index(np.argmin(change), change.shape)
        if change[out, into] >= -1e-12:
            break
        current[out] = into
    return current


def _swap_costs(distance: np.ndarray, medoids: np.ndarray) -> np.ndarray:
    """Change of the total distance if medoid i gives way to point h, (k, n)."""
    to_medoid = distance[:, medoids]
    order = np.argsort(to_medoid, axis=1, kind="stable")
    points = np.arange(len(distance))
    first = to_medoid[points, order[:, 0]]
    second = to_medoid[points, order[:, 1]] if len(medoids) > 1 else np.full(len(distance), np.inf)
    # As if nothing were removed, and the correction for points that lose their nearest medoid.
    shared = np.minimum(distance - first[:, None], 0.0).sum(axis=0)
    own = np.minimum(distance, second[:, None]) - first[:, None]
    own -= np.minimum(distance - first[:, None], 0.0)
    change = np.tile(shared, (len(medoids), 1))
    np.add.at(change, order[:, 0], own)
    change[:, medoids] = 0.0
    return change


def marginal_coverage(feasibility: Feasibility, k: int) -> Portfolio:
    """Greedy coverage of single constraints: each (profile, constraint) counts by itself.

    What is left of coverage when the bundle is taken apart: different models may meet the constraints
    of one profile.  Once all constraints are met, models follow by how many they meet alone.

    Raises:
        ValueError: ``k`` < 1.
    """
    archive, profiles = feasibility.archive, feasibility.profiles
    k = _size(archive, k)
    front = archive.pareto(list(profiles.required))
    columns, required = profiles.thresholds(archive)
    words = [
        meet(archive.utility[front][:, [column]], required[:, [i]])
        for i, column in enumerate(columns)
    ]
    bits = 64 * words[0].shape[1]
    live = np.zeros((len(columns), bits))
    live[:, : len(profiles)] = profiles.weight
    live = live.ravel()
    matrix = PackedMatrix(np.concatenate(words, axis=1), live.size)
    alone = matrix.gains(live)
    chosen: list[int] = []
    for _ in range(min(k, len(front))):
        gains = matrix.gains(live)
        gains[chosen] = -1.0
        ties = np.flatnonzero(gains == gains.max())
        chosen.append(int(ties[np.argmax(alone[ties])]))
        live[matrix.rows(np.array(chosen[-1:]))[0]] = 0.0
    return _describe(feasibility, front[chosen], k, "marginal_coverage")


def accuracy_top(feasibility: Feasibility, k: int, *, column: str | None = None) -> Portfolio:
    """The ``k`` models of the archive that are best in one column (by default the first to maximise).

    Raises:
        ValueError: ``k`` < 1, an unknown column, or no column to be maximised.
    """
    archive = feasibility.archive
    k = _size(archive, k)
    if column is None:
        column = next((name for name, sense in archive.sense.items() if sense == "max"), None)
        if column is None:
            raise ValueError("the archive has no column to be maximised; name one")
    utility = archive.utility[:, archive.column(column)]
    return _describe(feasibility, np.argsort(-utility, kind="stable")[:k], k, "accuracy_top")


def random_portfolio(
    feasibility: Feasibility, k: int, *, seed: int | Sequence[int] = 0, pool: str = "pareto"
) -> Portfolio:
    """``k`` models at random from the Pareto front, or from the whole archive (``pool="archive"``).

    Raises:
        ValueError: ``k`` < 1 or an unknown pool.
    """
    archive = feasibility.archive
    k = _size(archive, k)
    if pool not in ("pareto", "archive"):
        raise ValueError(f"pool={pool!r}; expected 'pareto' or 'archive'")
    models = archive.pareto() if pool == "pareto" else np.arange(len(archive))
    order = np.random.default_rng(seed).permutation(models)
    return _describe(feasibility, order[:k], k, "random_portfolio")


def _size(archive: Archive, k: int) -> int:
    none = np.array([], dtype=np.int64)
    return _check_size(k, len(archive), none, none)


def _describe(feasibility: Feasibility, indices: np.ndarray, k: int, name: str) -> Portfolio:
    indices = [int(i) for i in indices]
    indices += _spare(feasibility, indices, k - len(indices))
    return portfolio(feasibility, indices, method=name)
