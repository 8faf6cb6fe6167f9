from itertools import combinations

import numpy as np
import pytest

from encore.papers.portfolio import baselines
from encore.papers.portfolio.baselines import kmedoids

METHODS = [
    baselines.scalarization,
    baselines.tchebycheff,
    baselines.hypervolume_greedy,
    baselines.pareto_kmedoids,
    baselines.marginal_coverage,
    baselines.accuracy_top,
    baselines.random_portfolio,
]


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.__name__)
def test_every_baseline_is_a_portfolio(build, method):
    feasibility = build(1, n=60, m=300, columns=4, levels=50)
    found = method(feasibility, 4)
    assert len(set(found.indices.tolist())) == 4
    assert found.method == method.__name__
    assert found.coverage == pytest.approx(feasibility.coverage(found.indices))
    assert found.bound >= found.coverage
    again = method(feasibility, 4)
    assert again.indices.tolist() == found.indices.tolist()
    with pytest.raises(ValueError, match="k=0"):
        method(feasibility, 0)


def test_first_scalarization_is_the_best_equal_sum_and_all_are_pareto(build):
    feasibility = build(2, n=80, columns=4, levels=40)
    archive = feasibility.archive
    found = baselines.scalarization(feasibility, 5)
    assert archive.ranks[found.indices[0]].sum() == pytest.approx(archive.ranks.sum(axis=1).min())
    assert np.isin(found.indices, archive.pareto()).all()
    assert baselines.scalarization(feasibility, 3).indices.tolist() == found.indices[:3].tolist()


def test_tuning_never_lowers_coverage_of_the_profiles_it_sees(build):
    feasibility = build(6, n=80, m=300, columns=4, levels=60)
    plain = baselines.scalarization(feasibility, 3)
    tuned = baselines.scalarization(feasibility, 3, restarts=20)
    assert tuned.coverage >= plain.coverage
    several = baselines.tuned_scalarization(feasibility, [1, 3], restarts=20)
    assert feasibility.coverage(several[3]) == pytest.approx(tuned.coverage, abs=0.1)
    with pytest.raises(ValueError, match="restarts=0"):
        baselines.scalarization(feasibility, 3, restarts=0)


def test_marginal_coverage_takes_the_bundle_apart(build):
    feasibility = build(3, n=40, m=200, columns=3, levels=30)
    archive, profiles = feasibility.archive, feasibility.profiles
    columns, required = profiles.thresholds(archive)
    met = archive.utility[:, None, columns] >= required[None]

    def marginal(selection):
        return met[list(selection)].any(axis=0).sum()

    front = archive.pareto()
    best = max(marginal(pair) for pair in combinations(front, 2))
    found = baselines.marginal_coverage(feasibility, 2)
    assert marginal(found.indices) >= (1 - 1 / np.e) * best


def test_kmedoids_reaches_a_local_optimum_that_brute_force_confirms():
    points = np.random.default_rng(0).random((14, 2))
    distance = np.sqrt(((points[:, None] - points[None]) ** 2).sum(axis=2))

    def cost(medoids):
        return distance[:, list(medoids)].min(axis=1).sum()

    for k in (1, 2, 3):
        found = kmedoids(distance, k)
        assert len(set(found.tolist())) == k
        swaps = [[*np.delete(found, i), h] for i in range(k) for h in range(14) if h not in found]
        assert cost(found) <= min(cost(swap) for swap in swaps) + 1e-12
        assert cost(found) <= 1.1 * min(cost(s) for s in combinations(range(14), k))


def test_errors(build):
    feasibility = build(0)
    with pytest.raises(ValueError, match="pool='all'"):
        baselines.random_portfolio(feasibility, 2, pool="all")
    with pytest.raises(ValueError, match="points=0"):
        baselines.hypervolume_greedy(feasibility, 2, points=0)
    with pytest.raises(ValueError, match="unknown column"):
        baselines.accuracy_top(feasibility, 2, column="speed")
