import numpy as np
import pandas as pd
import pytest

from encore.papers.portfolio import evaluation
from encore.papers.portfolio.evaluation import (
    BASELINES,
    BUNDLED,
    Cell,
    all_gains,
    coverability_halves,
    gains,
    noise_levels,
    reduction_errors,
    remeasured,
    sampling_gaps,
    score,
    storage_sizes,
)

KS = [1, 2, 3]


@pytest.fixture
def archive(make):
    return make(0, n=60, columns=4, levels=300)[0]


@pytest.fixture
def cell(archive):
    return Cell.draw(archive, "uniform", 400, [7, 1])


def test_a_cell_selects_and_scores_on_different_profiles(cell):
    halves = cell.train.profiles.bounds, cell.test.profiles.bounds
    assert [len(half) for half in halves] == [400, 400]
    assert not halves[0].equals(halves[1])
    masks, share = cell.masks, cell.test.coverability
    assert (masks["hardest"] <= masks["all"]).all()
    assert masks["hardest"].sum() >= 0.25 * masks["all"].sum()
    easier = masks["all"] & ~masks["hardest"]
    assert share[masks["hardest"]].max() < share[easier].min()


def test_scores_are_coverages(cell):
    choices = evaluation.archive_choices(cell.train, KS, [3])
    choices |= evaluation.profile_choices(cell.train, KS)
    assert set(choices) == {BUNDLED, *BASELINES}
    scores = score(cell.test, choices, cell.masks).set_index(["method", "k", "scope"])["coverage"]
    for method, by_k in choices.items():
        for k, indices in by_k.items():
            assert len(indices) == k
            assert scores[method, k, "all"] == pytest.approx(cell.test.coverage(indices))
            assert scores[method, k, "everyone"] == pytest.approx(
                cell.test.coverage(indices, of="all")
            )


def scores_of(values, scope="all"):
    return pd.DataFrame(
        [(m, 3, scope, c) for m, c in values.items()], columns=["method", "k", "scope", "coverage"]
    )


def test_gain_is_over_the_best_baseline_of_the_reference():
    test = scores_of(
        {BUNDLED: 0.8, "scalarization": 0.7, "tchebycheff": 0.9, "scalarization_tuned": 0.75}
    )
    train = scores_of(
        {BUNDLED: 0.8, "scalarization": 0.9, "tchebycheff": 0.1, "scalarization_tuned": 1.0}
    )
    on_test, on_train = gains(test).iloc[0], gains(test, train).iloc[0]
    assert (on_test["best"], on_test["gain"]) == ("tchebycheff", pytest.approx(-0.1))
    assert (on_train["best"], on_train["gain"]) == ("scalarization", pytest.approx(0.1))
    every = all_gains(test, train).set_index("reference")
    assert every.at["tuned", "gain"] == pytest.approx(0.05)
    assert every.at["tuned", "best"] == "scalarization_tuned"
    assert every["loses"].to_dict() == {"test": 1.0, "train": 0.0, "tuned": 0.0}
    assert every["wins"].to_dict() == {"test": 0.0, "train": 1.0, "tuned": 1.0}


def test_halves_are_equal_in_size():
    cells = pd.DataFrame(
        {"family": list("aabb"), "demand": ["u", "v"] * 2, "seed": 0, "coverability": [4, 1, 2, 3]}
    )
    half = coverability_halves(cells).set_index(["family", "demand"])["half"]
    assert half.to_dict() == {
        ("a", "u"): "high",
        ("a", "v"): "low",
        ("b", "u"): "low",
        ("b", "v"): "high",
    }


def test_only_measured_costs_are_noisy():
    table = pd.DataFrame({"latency": [1.0], "energy": [np.nan], "latency_cv": [0.3]})
    levels = noise_levels(table, [0.05])
    assert set(levels) == {"0.05", "own"}
    assert set(levels["0.05"]) == {"latency"}
    assert levels["own"]["latency"].tolist() == [0.3]


def test_no_noise_loses_nothing(archive):
    levels = {"none": {"latency": np.float64(0.0)}}
    found = remeasured(archive, levels, "uniform", 200, [3], [5])
    value = found.set_index(["metric", "method", "direction"])["value"]
    assert value["coverage_lost", BUNDLED, "choose"] == 0
    assert value["coverage_lost", BUNDLED, "deploy"] == 0
    assert value["overlap", BUNDLED, "choose"] == 1
    noisy = remeasured(archive, {"much": {"latency": np.float64(1.0)}}, "uniform", 200, [3], [5])
    lost = noisy[(noisy["metric"] == "coverage_lost") & (noisy["method"] == BUNDLED)]["value"]
    assert lost.max() > 0.02


def test_sampling_errors_shrink_and_stay_within_the_bound(archive):
    options = {"k": 3, "delta": 0.05, "population": 3000, "draws": 20}
    small, large = (sampling_gaps(archive, options, m, [1]) for m in (100, 1600))
    for found in (small, large):
        assert found["pair_within"].all()
        assert found["greedy_within"].all()
        assert found["greedy_guaranteed"].all()
        assert (found["pair_gap"] < found["pair_bound"]).all()
    assert small["pair_gap"].mean() > 2.5 * large["pair_gap"].mean()


def test_the_reduction_makes_no_errors():
    assert [reduction_errors(7, 15, seed) for seed in range(5)] == [0] * 5


def test_bytes_of_every_storage(archive):
    rows = {(r["method"], r["metric"]): r["value"] for r in storage_sizes(archive, 2048, [0])}
    assert rows["dense", "bytes"] == 60 * 2048
    assert rows["packed", "share_of_dense"] == 0.125
    assert rows["packed_pruned", "pruning_factor"] == 60 / len(archive.pareto())
