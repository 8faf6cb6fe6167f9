"""Policies, and what is certified about the attention that a threshold drops."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from encore.papers.louver import (
    Budget,
    CertifiedMass,
    Fixed,
    LouverIndex,
    SampleGap,
    SampleMax,
    SampleMeanMax,
)
from encore.papers.louver.evaluation import oracle_scores


def held(n=400, spread=1.0, seed=0, dim=16, **options):
    """An index over normal keys, with its keys, values and queries."""
    draw = torch.Generator().manual_seed(seed)
    keys = spread * torch.randn(2, n, dim, generator=draw)
    values = torch.randn(2, n, 5, generator=draw)
    queries = torch.randn(4, dim, generator=draw)
    return LouverIndex(dim, 2, buffer=64, **options).build(keys, values), keys, values, queries


def lost_mass(keys, queries, threshold, scale):
    """The share of the softmax on keys below the threshold, in float64."""
    scores = oracle_scores(keys, queries)
    weights = torch.softmax(scores * scale, 1)
    return (weights * (scores < threshold[:, None])).sum(1)


@settings(max_examples=40, deadline=None)
@given(
    n=st.sampled_from([3, 70, 400]),
    spread=st.sampled_from([0.0, 0.1, 1.0, 10.0, 1e3]),
    eps=st.sampled_from([0.001, 0.02, 0.3]),
    kind=st.sampled_from(["int8", "subspace"]),
    seed=st.integers(0, 100),
)
def test_certified_mass_never_loses_more_than_it_says(n, spread, eps, kind, seed):
    index, keys, _, queries = held(n, spread, seed, kind=kind, subspaces=4)
    threshold = CertifiedMass(eps).threshold(index, queries)
    assert (lost_mass(keys, queries, threshold, 0.25) <= eps).all()


def test_certified_mass_drops_what_does_not_matter():
    index, _, _, queries = held(4000, 10.0)
    threshold = CertifiedMass(0.02).threshold(index, queries)
    assert index.attend(queries, threshold).kept.max() < 400


def test_certified_mass_keeps_everything_where_bounds_overflow():
    index, keys, values, queries = held(100)
    index.build(keys * 1e37, values)
    assert CertifiedMass(0.1).threshold(index, queries * 100).tolist() == [-torch.inf] * 4


@pytest.mark.parametrize("spread", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("policy", [Budget(0.2), SampleMax(), CertifiedMass(0.1), Fixed(2.0)])
def test_the_reported_bound_holds(policy, spread):
    index, keys, values, queries = held(300, spread)
    threshold = policy.threshold(index, queries)
    result = index.attend(queries, threshold)
    weights = torch.softmax(oracle_scores(keys, queries) / 4, 1)
    found = index.search(
        queries, threshold
    )  # with keys in doubt, that a float64 threshold may drop
    heads = torch.arange(4).repeat_interleave(found.indptr.diff())
    lost = 1 - torch.zeros(4, dtype=torch.double).index_add(
        0, heads, weights[heads, found.indices.long()]
    )
    assert (lost <= result.dropped_mass_bound + 1e-12).all()
    dense = torch.einsum("hn,hnd->hd", weights, values.double().repeat_interleave(2, 0))
    error = (result.output - dense).norm(dim=1)
    largest = values.norm(dim=2).amax(1).repeat_interleave(2)
    assert (error <= 2 * result.dropped_mass_bound * largest + 1e-5).all()


def test_a_budget_keeps_about_its_share():
    index, _, _, queries = held(20000)
    for fraction in (0.05, 0.25):
        kept = index.attend(queries, Budget(fraction).threshold(index, queries)).kept
        assert kept.double().mean() / 20000 == pytest.approx(fraction, rel=0.35)


def test_policies_by_hand():
    index, keys, values, _ = held(4, dim=2)
    keys[:] = torch.tensor([[1.0, 0.0], [2.0, 0.0], [7.0, 0.0], [8.0, 0.0]])
    index.build(keys, values)
    q = torch.tensor([[1.0, 0.0]] * 4)
    expected = {Fixed(3.0): 3.0, SampleMax(): 8.0, SampleMeanMax(): 6.25, Budget(0.5): 7.0}
    for policy, limit in expected.items():
        assert policy.threshold(index, q).tolist() == [limit] * 4
    more = torch.cat([keys, torch.zeros(2, 4, 2)], 1)
    index.build(more, values.repeat(1, 2, 1))
    assert SampleGap().threshold(index, q).tolist() == [7.0] * 4


@pytest.mark.parametrize("policy", [Budget(0.1), SampleMax(), CertifiedMass(0.1)])
def test_masked_keys_do_not_count(policy):
    index, keys, values, queries = held(300)
    mask = torch.arange(300) >= 100
    rest = LouverIndex(16, 2, buffer=64).build(keys[:, 100:], values[:, 100:])
    threshold = policy.threshold(index, queries, mask=mask)
    if isinstance(policy, CertifiedMass):
        assert (lost_mass(keys[:, 100:], queries, threshold, 0.25) <= 0.1).all()
    else:
        sampled = index.sample_scores(queries, mask)
        assert sampled.shape[1] == int((index.sample.positions >= 100).sum())
    kept = index.attend(queries, threshold, mask=mask).kept
    assert torch.equal(kept, rest.attend(queries, threshold).kept)


def test_an_empty_index_has_no_threshold():
    empty, queries = LouverIndex(16, 2), torch.zeros(4, 16)
    for policy in (Budget(0.1), SampleMax(), CertifiedMass(0.1)):
        assert policy.threshold(empty, queries).tolist() == [-torch.inf] * 4


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Budget(0), "fraction=0; expected"),
        (lambda: Budget(0.1, 0), "sample=0; expected 1 to 256"),
        (lambda: CertifiedMass(1.0), "eps=1.0; expected a number in"),
        (lambda: CertifiedMass(0.0), "eps=0.0; expected a number in"),
    ],
)
def test_wrong_policies_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()
