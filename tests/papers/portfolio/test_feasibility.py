import numpy as np
import pandas as pd
import pytest

from encore.papers.portfolio import Archive, Feasibility, ProfileSet
from encore.papers.portfolio.feasibility import column_counts, pack_bits, unpack_bits


def by_definition(archive, profiles):
    rows = np.ones((len(archive), len(profiles)), dtype=bool)
    for name, (sense, bound) in profiles.required.items():
        value = archive.values[:, archive.column(name)][:, None]
        met = value >= bound if sense == "max" else value <= bound
        rows &= met | np.isnan(bound)
    return rows


@pytest.mark.parametrize("storage", ["packed", "dense", "csr"])
@pytest.mark.parametrize("m", [1, 63, 64, 65, 5000])
def test_every_storage_agrees_with_the_definition(make, storage, m):
    archive, profiles = make(m, n=30, m=m)
    expected = by_definition(archive, profiles)
    full = Feasibility.build(archive, profiles, storage, prune=False)
    assert np.array_equal(full.rows(np.arange(30)), expected)
    assert np.allclose(full.coverability, expected.mean(axis=0))
    assert np.array_equal(full.feasible, expected.any(axis=0))
    pruned = Feasibility.build(archive, profiles, storage)
    assert np.array_equal(pruned.rows(np.arange(30)), expected)  # pruned models, too
    assert np.array_equal(pruned.coverability, full.coverability)
    assert np.array_equal(pruned.feasible, full.feasible)
    weight = np.random.default_rng(0).integers(0, 9, m).astype(float)
    assert np.array_equal(full.matrix.gains(weight), expected @ weight)
    assert full.gain(4, expected[7]) == (expected[4] & expected[7]).sum()


def test_a_value_equal_to_the_bound_meets_it_and_nan_means_unconstrained():
    archive = Archive(
        pd.DataFrame({"accuracy": [0.1 + 0.2, 0.3], "latency": [1.0, 2.0]}),
        {"accuracy": "max", "latency": "min"},
    )
    bounds = pd.DataFrame({"accuracy>=": [0.1 + 0.2, np.nan, 0.3], "latency<=": [1.0, 2.0, np.nan]})
    rows = Feasibility.build(archive, ProfileSet(bounds), prune=False).rows([0, 1])
    assert rows.tolist() == [[True, True, True], [False, True, True]]


def test_missing_values_never_meet_a_bound():
    frame = pd.DataFrame({"accuracy": [np.nan, 1.0], "latency": [1.0, 5.0]})
    archive = Archive(frame, {"accuracy": "max", "latency": "min"}, missing="infeasible")
    bounds = pd.DataFrame({"accuracy>=": [-1e9, np.nan], "latency<=": [2.0, 2.0]})
    rows = Feasibility.build(archive, ProfileSet(bounds)).rows([0, 1])
    assert rows.tolist() == [[False, True], [False, False]]


def test_bounds_must_fit_the_archive(make):
    archive, _ = make(0)
    with pytest.raises(ValueError, match="unknown column 'speed'"):
        Feasibility.build(archive, ProfileSet(pd.DataFrame({"speed<=": [1.0]})))
    with pytest.raises(ValueError, match="expected 'latency<='"):
        Feasibility.build(archive, ProfileSet(pd.DataFrame({"latency>=": [1.0]})))
    with pytest.raises(ValueError, match="storage='bits'"):
        Feasibility.build(*make(0), storage="bits")
    with pytest.raises(ValueError, match=r"outside 0\.\.9"):
        Feasibility.build(*make(0)).rows([10])


@pytest.mark.parametrize(("n", "m"), [(1, 10), (2, 70), (3, 64), (1000, 130)])
def test_bits(n, m):
    mask = np.random.default_rng(n).random((n, m)) < 0.4
    words = pack_bits(mask)
    assert words.shape == (n, -(-m // 64))
    assert np.array_equal(unpack_bits(words, m), mask)
    assert np.array_equal(column_counts(words, m), mask.sum(axis=0))


def test_storage_sizes(make):
    archive, profiles = make(0, n=100, m=2048)
    sizes = {
        s: Feasibility.build(archive, profiles, s, prune=False).nbytes for s in ("packed", "dense")
    }
    assert sizes == {"packed": 100 * 2048 // 8, "dense": 100 * 2048}
    ratio = Feasibility.build(*make(0, n=50, m=20_000), prune=False).nbytes / (50 * 20_000)
    assert ratio <= 0.125 * 1.01
    assert 15_625 * -(-2000 // 64) * 8 <= 4.2e6  # the full archive with 2,000 profiles
