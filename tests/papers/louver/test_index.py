"""The index against brute force in float64: no key is missed, whatever the numbers look like."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from encore.papers.louver import (
    Budget,
    CertifiedMass,
    LouverIndex,
    SampleGap,
    SampleMax,
    SampleMeanMax,
)
from encore.papers.louver.evaluation import ADVERSARIAL, adversarial, oracle_scores

KINDS = [
    {"kind": "int8"},
    {"kind": "int8", "backend": "torch"},
    {"kind": "subspace"},
    {"kind": "subspace", "subspaces": 1, "group": 16},
]
POLICIES = (Budget(0.05), SampleMax(), SampleMeanMax(), SampleGap(), CertifiedMass(0.05))


def normal(heads=2, n=300, dim=64, seed=0, dtype=torch.float32, offset=0.0):
    """Keys, values and queries (three per key head) drawn from a normal distribution."""
    draw = torch.Generator().manual_seed(seed)
    keys = torch.randn(heads, n, dim, generator=draw) + offset
    values = torch.randn(heads, n, dim // 2, generator=draw)
    queries = torch.randn(3 * heads, dim, generator=draw)
    return keys.to(dtype), values.to(dtype), queries


def rows(result):
    """The indices of each head, as lists."""
    return [
        result.indices[a:b].tolist()
        for a, b in zip(result.indptr[:-1], result.indptr[1:], strict=True)
    ]


def assert_exact(index, keys, queries, thresholds, result):
    """All keys at or above the threshold, none below it by more than rounding, in order."""
    exact = oracle_scores(keys, queries)
    norms = queries.double().norm(dim=1)[:, None] * keys.double().norm(dim=2).repeat_interleave(
        len(queries) // len(keys), 0
    )
    slack = 2 * (keys.shape[2] + 8) * 2.0**-23 * norms + 1e-37
    for head, found in enumerate(rows(result)):
        got, limit = torch.zeros(keys.shape[1], dtype=torch.bool), float(thresholds[head])
        got[found] = True
        assert found == sorted(found)
        assert not ((exact[head] >= limit) & ~got).any(), "missed a key"
        assert not (got & (exact[head] < limit - slack[head])).any(), "kept a key far below"


@pytest.mark.parametrize("options", KINDS, ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: type(policy).__name__)
def test_no_key_is_missed(options, dtype, policy):
    keys, values, queries = normal(dtype=dtype, offset=3.0)
    index = LouverIndex(64, 2, **options).build(keys, values)
    threshold = policy.threshold(index, queries)
    assert_exact(index, keys, queries, threshold, index.search(queries, threshold))


@pytest.mark.parametrize("options", KINDS, ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", ADVERSARIAL)
def test_no_key_is_missed_on_adversarial_inputs(options, dtype, name):
    keys, queries = adversarial(name, heads=2, n=333, dim=48, seed=7, dtype=dtype)
    index = LouverIndex(48, 2, **options, buffer=64).build(keys, keys)
    exact = oracle_scores(keys, queries)
    for place in (0, 10, 150, 300):  # thresholds that are scores themselves
        threshold = exact.sort(1, descending=True).values[:, place]
        result = index.search(queries, threshold)
        for head, found in enumerate(rows(result)):
            got = torch.zeros(333, dtype=torch.bool)
            got[found] = True
            assert not ((exact[head] >= threshold[head]) & ~got).any()


@settings(max_examples=60, deadline=None)
@given(
    n=st.sampled_from([1, 15, 16, 17, 40]),
    dim=st.sampled_from([1, 7, 16, 33]),
    kind=st.sampled_from(["int8", "subspace"]),
    scale=st.sampled_from([1e-40, 1e-20, 1.0, 1e15]),
    shape=st.sampled_from(["normal", "constant", "zero", "outlier"]),
    seed=st.integers(0, 1000),
)
def test_any_sizes_and_scales(n, dim, kind, scale, shape, seed):
    keys, _, queries = normal(1, n, dim + dim % 2, seed)
    keys, queries = keys[..., :dim] * scale, queries[..., :dim].contiguous()
    if shape == "constant":
        keys = keys[:, :1].expand(1, n, dim)
    elif shape == "zero":
        keys = torch.zeros(1, n, dim)
    elif shape == "outlier":
        keys = keys.clone()
        keys[..., 0] += 1e4 * scale
    keys = keys.contiguous()
    index = LouverIndex(dim, 1, kind=kind, subspaces=min(4, dim), buffer=8).build(keys, keys)
    threshold = oracle_scores(keys, queries).median(1).values
    assert_exact(index, keys, queries, threshold, index.search(queries, threshold))


@pytest.mark.parametrize("options", KINDS, ids=str)
def test_bounds_enclose_every_score(options):
    keys, values, queries = normal(n=400, offset=-2.0)
    index = LouverIndex(64, 2, **options, buffer=128).build(keys[:, :350], values[:, :350])
    index.append(keys[:, 350:], values[:, 350:])
    lower, upper = index.bounds(queries)
    exact = oracle_scores(keys, queries)
    assert (lower.double() <= exact).all()
    assert (upper.double() >= exact).all()


@pytest.mark.parametrize("options", KINDS, ids=str)
def test_no_threshold_is_dense_attention(options):
    keys, values, queries = normal()
    index = LouverIndex(64, 2, **options).build(keys, values)
    result = index.attend(queries, -torch.inf)
    dense = torch.nn.functional.scaled_dot_product_attention(
        queries[None, :, None], keys[None], values[None], enable_gqa=True
    )[0, :, 0]
    assert (result.output - dense).abs().max() < 1e-5
    assert result.kept.tolist() == [300] * 6
    assert result.dropped_mass_bound.tolist() == [0] * 6


def test_a_threshold_above_all_scores_keeps_only_what_must_be_kept():
    keys, values, queries = normal()
    index = LouverIndex(64, 2).build(keys, values)
    result = index.attend(queries, torch.inf, always_keep=torch.tensor([0, 5]))
    weights = torch.softmax(oracle_scores(keys, queries)[:, [0, 5]] / 8, 1)
    expected = torch.einsum(
        "hn,hnd->hd", weights, values.repeat_interleave(3, 0)[:, [0, 5]].double()
    )
    assert (result.output - expected).abs().max() < 1e-5
    assert result.kept.tolist() == [2] * 6
    nothing = index.attend(queries, torch.inf)
    assert not nothing.output.any()
    assert nothing.dropped_mass_bound.tolist() == [1] * 6


@pytest.mark.parametrize("options", KINDS, ids=str)
def test_permuting_the_keys_permutes_the_indices(options):
    keys, values, queries = normal()
    order = torch.from_numpy(np.random.default_rng(0).permutation(300))
    index = LouverIndex(64, 2, **options).build(keys, values)
    threshold = Budget(0.1).threshold(index, queries)
    before = rows(index.search(queries, threshold))
    index.reorder(order)
    after = rows(index.search(queries, threshold))
    assert before == [sorted(order[found].tolist()) for found in after]


@pytest.mark.parametrize("options", KINDS, ids=str)
def test_appending_one_by_one_is_building_at_once(options):
    keys, values, queries = normal(n=150)
    whole = LouverIndex(64, 2, **options, buffer=16).build(keys, values)
    parts = LouverIndex(64, 2, **options, buffer=16, capacity=8)
    for i in range(150):
        parts.append(keys[:, i : i + 1], values[:, i : i + 1])
    threshold = Budget(0.1).threshold(whole, queries)
    assert torch.equal(threshold, Budget(0.1).threshold(parts, queries))
    assert rows(whole.search(queries, threshold)) == rows(parts.search(queries, threshold))


def test_the_sample_is_the_same_however_keys_came_and_went():
    keys, values, _ = normal(n=1000)
    whole = LouverIndex(64, 2).build(keys[:, :700], values[:, :700])
    parts = LouverIndex(64, 2).build(keys, values)
    parts.crop(300)
    for start in range(300, 700, 100):
        parts.append(keys[:, start : start + 100], values[:, start : start + 100])
    assert np.array_equal(whole.sample.positions, parts.sample.positions)
    assert np.array_equal(whole.sample.keys, parts.sample.keys)


@pytest.mark.parametrize("options", KINDS, ids=str)
def test_cropped_keys_are_gone_and_new_ones_found(options):
    keys, values, queries = normal(n=300)
    index = LouverIndex(64, 2, **options, buffer=32).build(keys, values)
    index.crop(100)
    assert len(index) == 100
    index.append(keys[:, 200:], values[:, 200:])
    now = torch.cat([keys[:, :100], keys[:, 200:]], 1)
    threshold = oracle_scores(now, queries).quantile(0.9, dim=1)
    assert_exact(index, now, queries, threshold, index.search(queries, threshold))


def test_scaling_query_and_threshold_together_changes_nothing():
    keys, values, queries = normal()
    index = LouverIndex(64, 2).build(keys, values)
    threshold = Budget(0.1).threshold(index, queries)
    once, twice = index.search(queries, threshold), index.search(4 * queries, 4 * threshold)
    assert torch.equal(once.indices, twice.indices)
    assert torch.equal(4 * once.scores, twice.scores)


@pytest.mark.parametrize("options", KINDS, ids=str)
def test_masked_keys_are_left_out(options):
    keys, values, queries = normal()
    mask = torch.ones(300, dtype=torch.bool)
    mask[:40] = False
    index = LouverIndex(64, 2, **options).build(keys, values)
    rest = LouverIndex(64, 2, **options).build(keys[:, 40:], values[:, 40:])
    a, b = index.attend(queries, 1.0, mask=mask), rest.attend(queries, 1.0)
    assert (a.output - b.output).abs().max() < 1e-5
    assert torch.equal(a.kept, b.kept)
    assert all(i >= 40 for found in rows(index.search(queries, 1.0, mask=mask)) for i in found)


def test_threads_change_nothing():
    keys, values, queries = normal(n=2000)
    index = LouverIndex(64, 2).build(keys, values)
    one = index.attend(queries, 5.0)
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        two = index.attend(queries, 5.0)
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(one.output, two.output)


def test_bytes_of_the_index():
    keys, _, _ = normal(heads=3, n=32768)
    index = LouverIndex(64, 3).build(keys, keys)
    assert index.nbytes / (2 * keys.nbytes) <= 0.16


def test_kernels_share_their_constants():
    from encore.papers.louver import kernels, torch_kernels

    for name in ("UNIT", "TINY", "MASS_BINS", "MASS_SPAN"):
        assert getattr(kernels, name) == getattr(torch_kernels, name)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"head_dim": 0}, ValueError, "head_dim=0; expected at least 1"),
        ({"kind": "tree"}, ValueError, "kind='tree'; expected 'int8' or 'subspace'"),
        ({"backend": "cuda"}, ValueError, "backend='cuda'; expected"),
        ({"backend": "triton"}, NotImplementedError, "no GPU kernels here"),
        ({"dtype": torch.float64}, ValueError, "dtype=torch.float64; expected float32"),
        ({"kind": "subspace", "subspaces": 99}, ValueError, "subspaces=99; expected at most"),
    ],
)
def test_wrong_settings_are_named(options, error, message):
    with pytest.raises(error, match=message):
        LouverIndex(**{"head_dim": 64, "num_kv_heads": 2, **options})


def test_wrong_inputs_are_named():
    keys, values, queries = normal(n=50)
    index = LouverIndex(64, 2).build(keys, values)
    bad = keys.clone()
    bad[1, 37, 3] = torch.nan
    cases = [
        (lambda: index.append(bad, values), ValueError, "non-finite key at head 1, position 37"),
        (lambda: index.search(queries * torch.inf, 0.0), ValueError, "non-finite query at head 0"),
        (lambda: index.search(queries[:, :32], 0.0), ValueError, "q has d=32; expected 64"),
        (lambda: index.search(queries[:5], 0.0), ValueError, "5 heads; expected a multiple of 2"),
        (lambda: index.search(queries, torch.zeros(3)), ValueError, "threshold has shape"),
        (lambda: index.search(queries, torch.nan), ValueError, "threshold is NaN at head 0"),
        (lambda: index.append(keys.long(), values), TypeError, "keys is torch.int64"),
        (lambda: index.append(keys.double(), values), TypeError, "keys is torch.float64"),
        (lambda: index.append(keys[:1], values), ValueError, "expected \\(2, 50, 64\\)"),
        (lambda: index.append(keys, values[:, :3]), ValueError, "values have shape"),
        (lambda: index.append(keys.to("meta"), values), ValueError, "keys is on meta"),
        (lambda: index.attend(queries, 0.0, scale=0), ValueError, "scale=0.0; expected"),
        (lambda: index.attend(queries, 0.0, always_keep=[50]), ValueError, "always_keep reaches"),
        (lambda: index.search(queries, 0.0, mask=torch.ones(9) > 0), ValueError, "mask is"),
        (lambda: index.crop(51), ValueError, "length=51; expected 0 to 50"),
        (lambda: index.reorder(torch.tensor([50])), ValueError, "positions reach beyond"),
    ]
    for call, error, message in cases:
        with pytest.raises(error, match=message):
            call()
    with pytest.warns(UserWarning, match="float16"):
        index.append(keys.half(), values.half())
    empty = LouverIndex(64, 2)
    assert empty.search(queries, 0.0).indptr.tolist() == [0] * 7
    with pytest.raises(ValueError, match="attend on an empty index"):
        empty.attend(queries, 0.0)


@pytest.mark.parametrize("dim", [1, 3, 4, 8, 20, 33, 64, 128])
def test_integer_scores_are_exact(dim):
    keys, values, queries = normal(n=77, dim=dim + dim % 2)
    index = LouverIndex(dim, 2).build(keys[..., :dim], values)
    index.filter.extend(index._raw_keys, 77)
    codes = torch.from_numpy(index.filter.codes[0, :77]).long()
    dots, _ = index.filter._integer_scores(queries[:, :dim].reshape(2, 3, dim).numpy())
    step = queries[:3, :dim].abs().amax(1, keepdim=True).double() / 127
    expected = (queries[:3, :dim].double() / step.float().double()).round().long()
    assert torch.equal(torch.from_numpy(dots[0]).long(), expected @ codes[:, :dim].T)


def test_kernels_compile_without_a_cache_folder(monkeypatch):
    from encore.papers.louver import kernels

    compiled = kernels.njit

    def refuse(function, *, cache=False, **options):
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return compiled(function, **options)

    monkeypatch.setattr(kernels, "njit", refuse)
    assert kernels._jit(lambda x: x + 1)(1) == 2
