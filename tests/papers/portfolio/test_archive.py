import numpy as np
import pandas as pd
import pytest

from encore.papers.portfolio import Archive, DemandModel, ProfileSet, remeasure

SENSE = {"accuracy": "max", "latency": "min"}


def table(**columns):
    return pd.DataFrame(columns, index=list("abcd")[: len(next(iter(columns.values())))])


def test_pareto_keeps_the_first_of_equal_models_and_drops_dominated_ones():
    archive = Archive(table(accuracy=[2.0, 2.0, 3.0, 1.0], latency=[1.0, 1.0, 2.0, 1.5]), SENSE)
    assert archive.pareto().tolist() == [0, 2]
    assert archive.pareto(["accuracy"]).tolist() == [2]


@pytest.mark.parametrize("seed", range(5))
def test_pareto_agrees_with_the_definition(make, seed):
    archive, _ = make(seed, n=60, levels=5)
    u = archive.utility
    expected = [
        i
        for i in range(len(u))
        if not any(
            (u[j] >= u[i]).all() and ((u[j] > u[i]).any() or j < i) for j in range(len(u)) if j != i
        )
    ]
    assert archive.pareto().tolist() == expected


def test_ranks_are_average_ranks(make):
    from scipy.stats import rankdata

    archive, _ = make(1, n=50, levels=9)
    expected = (rankdata(-archive.utility, axis=0) - 1) / 49
    assert np.allclose(archive.ranks, expected)


@pytest.mark.parametrize(
    ("columns", "sense", "message"),
    [
        ({"accuracy": [1.0, np.nan], "latency": [1.0, 2.0]}, SENSE, "'b' has accuracy=nan"),
        ({"accuracy": [1.0, np.inf], "latency": [1.0, 2.0]}, SENSE, "'b' has accuracy=inf"),
        ({"accuracy": [1.0, 2.0]}, SENSE, "lacks the column 'latency'"),
        ({"accuracy": [1.0, 2.0]}, {"accuracy": "up"}, "expected 'max' or 'min'"),
        ({"accuracy": [1.0]}, {}, "sense is empty"),
    ],
)
def test_bad_archives_are_named(columns, sense, message):
    with pytest.raises(ValueError, match=message):
        Archive(table(**columns), sense)


def test_duplicate_names_and_empty_tables_are_refused():
    frame = pd.DataFrame({"accuracy": [1.0, 2.0]}, index=["a", "a"])
    with pytest.raises(ValueError, match="duplicate model name 'a'"):
        Archive(frame, {"accuracy": "max"})
    with pytest.raises(ValueError, match="no rows"):
        Archive(frame.iloc[:0], {"accuracy": "max"})


def test_remeasure_has_the_asked_for_mean_and_spread():
    n = 20_000
    frame = pd.DataFrame({"accuracy": np.ones(n), "latency": np.full(n, 5.0)})
    archive = Archive(frame, SENSE)
    noisy = remeasure(archive, 0.1, seed=0)
    latency = noisy.values[:, 1]
    assert np.array_equal(noisy.values[:, 0], archive.values[:, 0])  # accuracy is not a cost
    assert latency.mean() == pytest.approx(5.0, rel=5e-3)
    assert latency.std() / latency.mean() == pytest.approx(0.1, rel=0.05)
    assert np.array_equal(remeasure(archive, 0.0, seed=1).values, archive.values)
    assert np.array_equal(noisy.values, remeasure(archive, 0.1, seed=0).values)


@pytest.mark.parametrize(
    ("cv", "message"),
    [(-0.1, "negative"), ({"speed": 0.1}, "unknown column"), ({"latency": np.ones(3)}, "shape")],
)
def test_bad_noise_is_named(make, cv, message):
    with pytest.raises(ValueError, match=message):
        remeasure(make(0)[0], cv, seed=0)


@pytest.mark.parametrize(
    ("bounds", "weight", "message"),
    [
        ({"accuracy": [1.0]}, None, "expected 'name>=' or 'name<='"),
        ({"accuracy>=": [1.0], "accuracy<=": [2.0]}, None, "constrains 'accuracy' twice"),
        ({"accuracy>=": [1.0, 2.0]}, [1.0, -2.0], r"weight\[1\]=-2.0"),
        ({"accuracy>=": [1.0, 2.0]}, [1.0], "shape"),
        ({"accuracy>=": [1.0]}, [0.0], "zero everywhere"),
        ({}, None, "expected rows and columns"),
    ],
)
def test_bad_profiles_are_named(bounds, weight, message):
    with pytest.raises(ValueError, match=message):
        ProfileSet(pd.DataFrame(bounds), weight)


@pytest.mark.parametrize("name", ["uniform", "accuracy_heavy", "edge_heavy", "correlated"])
def test_demands_are_quantiles_of_the_archive(make, name):
    archive, _ = make(3, n=500, levels=1000)
    profiles = DemandModel(name).sample(archive, 4000, seed=1)
    for position, (column, (sense, bound)) in enumerate(profiles.required.items()):
        values = archive.values[:, position]
        assert np.isin(bound, values).all()
        share = (values[:, None] <= bound[None, :]).mean(axis=0)
        low, high = (0.3, 0.99) if sense == "max" else (0.03, 0.8)
        assert share.min() >= low - 1e-9, column
        assert share.max() <= high + 0.01, column
    again = DemandModel(name).sample(archive, 4000, seed=1)
    pd.testing.assert_frame_equal(profiles.bounds, again.bounds)


def test_demand_errors(make):
    with pytest.raises(ValueError, match="expected one of"):
        DemandModel("heavy")
    with pytest.raises(ValueError, match="at least 1"):
        DemandModel("uniform").sample(make(0)[0], 0, seed=0)
