from itertools import combinations

import numpy as np
import pytest

from encore.papers.portfolio import (
    Feasibility,
    finite_sample_bound,
    from_set_system,
    greedy_trap,
    sample_size,
    select,
    to_set_system,
)
from encore.papers.portfolio.theory import (
    pair_coverage,
    set_function_violations,
    violations,
)


def test_sample_size_inverts_the_bound():
    m = sample_size(300, 3, 0.05, 0.05)
    assert finite_sample_bound(300, 3, m, 0.05) <= 0.05 < finite_sample_bound(300, 3, m - 1, 0.05)
    # By hand: 3 (1 + log 100) + log 40 = 20.504, over 2 * 0.0025.
    assert m == 4101


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 1, 10, 0.1), "at least 1"),
        ((3, 4, 10, 0.1), "exceeds"),
        ((3, 2, 0, 0.1), "m=0"),
        ((3, 2, 10, 1.0), "delta=1.0"),
    ],
)
def test_bound_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        finite_sample_bound(*arguments)


def test_bound_holds_for_random_profiles(build):
    feasibility = build(0, n=12, m=3000, levels=20)
    member = feasibility.rows(feasibility.kept)
    truth = pair_coverage(member)
    rng = np.random.default_rng(0)
    n, held = len(member), 0
    for _ in range(200):
        sample = rng.integers(0, 3000, 100)
        gap = np.abs(pair_coverage(member[:, sample]) - truth).max()
        held += gap <= finite_sample_bound(n, 2, 100, 0.05)
    assert held >= 190


def test_pair_coverage(build):
    member = build(1).rows(np.arange(5))
    found = pair_coverage(member)
    for i, j in combinations(range(5), 2):
        assert found[i, j] == pytest.approx((member[i] | member[j]).mean())
    assert np.allclose(np.diag(found), member.mean(axis=1))


@pytest.mark.parametrize("seed", range(5))
def test_set_systems_go_there_and_back(seed):
    rng = np.random.default_rng(seed)
    sets = [frozenset(np.flatnonzero(rng.random(12) < 0.3).tolist()) for _ in range(7)]
    archive, profiles = from_set_system(sets, 12)
    feasibility = Feasibility.build(archive, profiles)
    assert to_set_system(feasibility) == sets
    best = max(len(frozenset().union(*chosen)) for chosen in combinations(sets, 3))
    assert select(feasibility, 3, method="exact").coverage_all == pytest.approx(best / 12)


def test_set_system_errors():
    with pytest.raises(ValueError, match="set 1 holds 5"):
        from_set_system([[0], [5]], 3)
    with pytest.raises(ValueError, match="at least one of each"):
        from_set_system([], 3)


@pytest.mark.parametrize("k", [2, 3, 5])
def test_trap_brings_greedy_down_to_its_guarantee(k):
    feasibility = Feasibility.build(*greedy_trap(k, 4, seed=k))
    greedy = select(feasibility, k).coverage
    best = select(feasibility, k, method="exact").coverage
    assert best == pytest.approx(1.0)
    assert greedy == pytest.approx(1 - (1 - 1 / k) ** k, abs=1e-4)
    assert greedy >= 1 - 1 / np.e


@pytest.mark.parametrize("weight", [None, "random"])
def test_coverage_is_monotone_and_submodular(build, weight):
    for seed in range(5):
        found = violations(build(seed, n=8, weight=weight, prune=False))
        assert found["monotone"] == found["submodular"] == 0
        assert found["checked"] == 8 * 2**7 + 8 * 7 * 2**6


def test_the_check_sees_violations(build):
    size = np.array([s.bit_count() for s in range(16)], dtype=float)
    assert set_function_violations(size)["submodular"] == 0
    assert set_function_violations(size**2)["submodular"] == 4 * 3 * 2**2  # every inequality
    assert set_function_violations(np.sqrt(size)) == {"monotone": 0, "submodular": 0, "checked": 80}
    assert set_function_violations(-size)["monotone"] == 4 * 2**3
    with pytest.raises(ValueError, match="at most 14"):
        violations(build(0, n=40, levels=1000, prune=False))
