import subprocess
import sys
from importlib.util import find_spec
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from encore.papers.portfolio import Archive, Feasibility, ProfileSet, select
from encore.papers.portfolio.reference import greedy_dense, greedy_sets


def brute_force(feasibility, k):
    return max(
        feasibility.coverage(list(s)) for s in combinations(range(len(feasibility.archive)), k)
    )


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("weight", [None, "random"])
def test_exact_is_the_best_of_all_sets(build, seed, weight):
    for k in (1, 2, 3):
        full = build(seed, weight=weight, prune=False)
        best = brute_force(full, k)
        for prune in (True, False):
            feasibility = build(seed, weight=weight, prune=prune)
            found = select(feasibility, k, method="exact")
            assert found.coverage == pytest.approx(best, abs=1e-12)
            assert found.coverage == pytest.approx(feasibility.coverage(found.indices), abs=1e-9)
            assert found.optimal
            greedy = select(feasibility, k)
            assert greedy.coverage >= (1 - 1 / np.e) * best - 1e-12
            assert greedy.bound >= best - 1e-9
            assert (np.diff(found.gains) <= 1e-12).all()


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("weight", [None, "random"])
def test_greedy_variants_and_storages_agree(build, seed, weight):
    expected = select(build(seed, n=40, m=150, weight=weight, columns=4), 6)
    for storage in ("packed", "dense", "csr"):
        feasibility = build(seed, n=40, m=150, weight=weight, columns=4, storage=storage)
        for options in (
            {"method": "greedy"},
            {"method": "lazy"},
            {"method": "stochastic", "sample": 40, "seed": 3},
        ):
            found = select(feasibility, 6, **options)
            assert found.indices.tolist() == expected.indices.tolist(), (storage, options)
            assert found.coverage == expected.coverage
    assert (np.diff(expected.curve) >= 0).all()
    assert (np.diff(expected.gains) <= 1e-12).all()
    assert expected.curve[-1] == expected.coverage
    assert expected.gains.sum() == pytest.approx(expected.coverage)


def test_scaled_weights_and_doubled_profiles_change_nothing(make):
    archive, profiles = make(4, n=30, m=60, columns=4)
    weight = np.random.default_rng(1).integers(1, 4, 60).astype(float)
    bounds = profiles.bounds
    plain = select(Feasibility.build(archive, ProfileSet(bounds, weight)), 5)
    scaled = select(Feasibility.build(archive, ProfileSet(bounds, 7.3 * weight)), 5)
    repeated = bounds.loc[np.repeat(np.arange(60), weight.astype(int))].reset_index(drop=True)
    doubled = select(Feasibility.build(archive, ProfileSet(repeated)), 5)
    assert plain.indices.tolist() == scaled.indices.tolist() == doubled.indices.tolist()
    assert plain.coverage == pytest.approx(doubled.coverage)
    override = select(Feasibility.build(archive, profiles), 5, weights=weight)
    assert override.indices.tolist() == plain.indices.tolist()


def test_order_of_the_models_changes_indices_only(make):
    archive, profiles = make(8, n=30, m=400, columns=4, levels=400, weight="random")
    order = np.random.default_rng(0).permutation(30)
    a = select(Feasibility.build(archive, profiles), 3, method="exact")
    b = select(Feasibility.build(archive.take(order), profiles), 3, method="exact")
    assert sorted(a.names) == sorted(b.names)
    assert a.coverage == b.coverage


def test_two_denominators(make):
    archive, profiles = make(2, m=200)
    feasibility = Feasibility.build(archive, profiles)
    found = select(feasibility, 2)
    covered = feasibility.covered_by(found.indices).sum()
    assert not feasibility.feasible.all()
    assert found.coverage == pytest.approx(covered / feasibility.feasible.sum())
    assert found.coverage_all == pytest.approx(covered / 200)
    assert feasibility.coverage(found.indices, of="all") == pytest.approx(found.coverage_all)


@pytest.mark.parametrize("method", ["greedy", "lazy", "exact", "stochastic"])
def test_included_and_forbidden_models(make, method):
    archive, profiles = make(5, n=12, m=80)
    feasibility = Feasibility.build(archive, profiles)
    free = select(feasibility, 3)
    banned = int(free.indices[0])
    found = select(feasibility, 3, method=method, forbid=[banned], seed=0)
    assert banned not in found.indices
    dominated = int(np.setdiff1d(np.arange(12), feasibility.kept)[0])
    kept = select(feasibility, 3, method=method, must_include=[archive.names[dominated]], seed=0)
    assert kept.indices[0] == dominated
    assert len(set(kept.indices.tolist())) == 3


def test_forbidding_brings_dominated_models_back():
    table = pd.DataFrame({"accuracy": [3.0, 2.0], "latency": [1.0, 1.0]}, index=["best", "next"])
    archive = Archive(table, {"accuracy": "max", "latency": "min"})
    profiles = ProfileSet(pd.DataFrame({"accuracy>=": [2.0, 3.0]}))
    feasibility = Feasibility.build(archive, profiles)
    assert feasibility.kept.tolist() == [0]
    found = select(feasibility, 1, forbid=["best"])
    assert found.names == ["next"]
    assert found.coverage == 0.5  # of the profiles that the whole archive meets


def test_exact_with_constraints_is_the_best_of_the_allowed_sets(make):
    archive, profiles = make(11, n=11, m=60)
    feasibility = Feasibility.build(archive, profiles, prune=False)
    allowed = [s for s in combinations(range(11), 3) if 4 in s and 2 not in s]
    best = max(feasibility.coverage(list(s)) for s in allowed)
    found = select(
        Feasibility.build(archive, profiles), 3, method="exact", must_include=[4], forbid=[2]
    )
    assert found.coverage == pytest.approx(best)


def test_too_large_k_returns_all_models(build):
    feasibility = build(0, n=6)
    with pytest.warns(UserWarning, match="k=9 exceeds the 6 models"):
        found = select(feasibility, 9)
    assert sorted(found.indices.tolist()) == list(range(6))
    assert found.coverage == 1.0


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"k": 0}, ValueError, "k=0"),
        ({"k": 2.0}, TypeError, "expected an integer"),
        ({"k": 2, "method": "best"}, ValueError, "method='best'"),
        ({"k": 2, "weights": [-1.0] * 40}, ValueError, r"weight\[0\]=-1.0"),
        ({"k": 2, "forbid": ["nobody"]}, ValueError, "unknown model 'nobody'"),
        ({"k": 2, "forbid": [1], "must_include": [1]}, ValueError, "both"),
        ({"k": 1, "must_include": [1, 2]}, ValueError, "must_include has 2"),
    ],
)
def test_bad_arguments_are_named(build, options, error, message):
    with pytest.raises(error, match=message):
        select(build(0), **options)


def test_no_feasible_profile(make):
    archive, _ = make(0)
    profiles = ProfileSet(pd.DataFrame({"accuracy>=": [1e9, 1e9]}))
    with pytest.raises(ValueError, match="no profile is met by any model"):
        select(Feasibility.build(archive, profiles), 2)


def test_time_limit_still_gives_a_bound(build):
    feasibility = build(3, n=60, m=2000, columns=4, levels=100)
    found = select(feasibility, 5, method="exact", time_limit=0.0)
    assert found.coverage <= found.bound <= 1.0
    assert found.coverage >= select(feasibility, 5).coverage


def test_to_dict_is_plain(build):
    import json

    assert json.loads(json.dumps(select(build(0), 2).to_dict()))["method"] == "greedy"


PEER = """
import sys, numpy, apricot
peer = apricot.MaxCoverageSelection(5, optimizer="naive").fit(numpy.load(sys.argv[1]))
print(*peer.ranking)
"""


def test_peer_finds_the_same_models(build, tmp_path):
    """apricot runs in a process of its own: importing it makes torch many times slower."""
    if find_spec("apricot") is None:
        pytest.skip("apricot-select is not installed (extra `peers`)")
    feasibility = build(0, n=80, m=500, columns=4, levels=100, storage="dense")
    np.save(tmp_path / "met.npy", feasibility.matrix.dense.astype(np.float64))
    command = [sys.executable, "-c", PEER, tmp_path / "met.npy"]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    ranking = np.array(run.stdout.split(), dtype=int)
    found = select(feasibility, 5)
    assert feasibility.coverage(feasibility.kept[ranking]) == pytest.approx(found.coverage)


@pytest.mark.parametrize("seed", range(4))
def test_text_book_implementations_agree(build, seed):
    feasibility = build(seed, n=40, m=200, columns=4, prune=False)
    rows = feasibility.rows(np.arange(40))
    sets = [frozenset(np.flatnonzero(row).tolist()) for row in rows]
    expected = select(feasibility, 6).indices.tolist()
    assert greedy_dense(rows, 6) == greedy_sets(sets, 6) == expected
