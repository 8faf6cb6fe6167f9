"""Baselines by definition, neighbours, and what the studies measure on made-up captures."""

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from encore.papers.louver import (
    H2O,
    AnnIndex,
    LouverIndex,
    OracleTopK,
    QKVCapture,
    Quest,
    StreamingLLM,
    Twilight,
)
from encore.papers.louver.accuracy import LouverSelect, received_mass
from encore.papers.louver.cli import app
from encore.papers.louver.evaluation import oracle_scores
from encore.papers.louver.latency import Bench, interleaved, long_cache
from encore.papers.louver.studies import (
    adversarial_exactness,
    causal_scores,
    exactness,
    pruning,
    recalls,
    spikes,
    variation,
)


@pytest.fixture(scope="module")
def made():
    """Keys (2, 320, 16), values and queries (4, 6, 16) of a made-up layer."""
    draw = torch.Generator().manual_seed(0)
    keys, values = torch.randn(2, 2, 320, 16, generator=draw)
    return keys, values, 2 * torch.randn(4, 6, 16, generator=draw)


def test_oracle_keeps_the_largest_scores(made):
    keys, _, queries = made
    best = oracle_scores(keys, queries[:, 0]).topk(7, dim=1).indices.sort(1).values
    found = OracleTopK(7).build(keys).select(queries[:, 0])
    assert torch.stack(found).tolist() == best.tolist()


def test_streaming_keeps_sinks_and_a_window(made):
    keys, _, queries = made
    found = StreamingLLM(10).build(keys).select(queries[:, 0])
    assert all(row.tolist() == [0, 1, 2, 3, *range(314, 320)] for row in found)


def test_quest_bounds_hold_and_its_pages_are_whole(made):
    keys, _, queries = made
    quest = Quest(40).build(keys)
    scores = oracle_scores(keys, queries)
    bounds = quest.page_scores(queries)[..., quest.page_of]
    assert (bounds >= scores - 1e-4).all()
    for row in quest.select(queries[:, 0]):
        assert len(row) == 48  # 40 keys need three pages
        assert set(row.tolist()) >= set(range(304, 320))


def test_quest_never_looks_ahead(made):
    """What a step chooses does not depend on later keys."""
    keys, _, queries = made
    lengths = torch.arange(315, 321)
    together = Quest(64).build(keys).choose(queries, lengths)
    for step, length in enumerate(lengths.tolist()):
        alone = Quest(64).build(keys[:, :length]).select(queries[:, step])
        for head, row in enumerate(alone):
            assert together[head, step].nonzero().ravel().tolist() == row.tolist()


def test_twilight_keeps_the_fewest_keys_for_its_mass(made):
    keys, _, queries = made
    weights = torch.softmax(oracle_scores(keys, queries[:, 0]) / 4, 1)
    for head, row in enumerate(Twilight(0.8).build(keys).select(queries[:, 0])):
        assert weights[head, row].sum() >= 0.8
        assert weights[head, row].sum() - weights[head, row].min() < 0.8


def test_h2o_keeps_its_budget_and_never_brings_a_key_back(made):
    keys, _, queries = made
    mass = torch.rand(4, 314, generator=torch.Generator().manual_seed(1))
    lengths = torch.arange(315, 321)
    chosen = H2O(20).build(keys, mass).choose(queries, lengths)
    assert (chosen.sum(2) == 20).all()
    for before, after, new in zip(
        chosen.unbind(1)[:-1], chosen.unbind(1)[1:], lengths[1:] - 1, strict=True
    ):
        added = after & ~before
        assert added.sum() == 4
        assert added[:, new].all()
    first = mass.clone()
    first[:, 305:] = -1
    assert all(chosen[h, 0, first[h].topk(10).indices].all() for h in range(4))


def test_received_mass_is_the_column_sum_of_causal_attention(made):
    keys, _, _ = made
    queries = torch.randn(4, 320, 16, generator=torch.Generator().manual_seed(3))
    total = received_mass(queries, keys, rows=100)
    scores = oracle_scores(keys, queries) / 4
    scores = scores.masked_fill(torch.ones(320, 320).triu(1).bool(), -torch.inf)
    assert torch.allclose(total.double(), torch.softmax(scores, 2).sum(1), atol=1e-4)


def test_louver_in_the_same_interface_keeps_about_its_budget(made):
    keys, _, queries = made
    chosen = LouverSelect(80).build(keys).choose(queries, torch.arange(315, 321))
    assert 40 < chosen.sum(2).double().mean() < 110
    assert chosen[:, :, :4].all()
    assert not chosen[:, 0, 315:].any()


@pytest.mark.parametrize("kind", ["hnsw", "ivf", "pq", "lsh"])
def test_neighbours_are_valid_and_better_than_chance(made, kind):
    keys, _, queries = made
    found = AnnIndex(kind, 30).build(keys).select(queries[:, 0])
    best = oracle_scores(keys, queries[:, 0]).topk(10, dim=1).indices
    hit = [np.isin(best[head], row).mean() for head, row in enumerate(found)]
    assert all(0 < len(row) <= 30 for row in found)
    assert np.mean(hit) > 0.2  # chance: 0.09


def test_wrong_budgets_are_named(made):
    for make, message in (
        (lambda: Quest(0), "budget=0; expected at least 1 key"),
        (lambda: Twilight(1.0), "budget=1.0; expected a share"),
        (lambda: AnnIndex("kd", 5), "kind='kd'; expected one of"),
        (lambda: AnnIndex("pq", 5).build(made[0]).choose(made[2], torch.arange(6)), "is whole"),
    ):
        with pytest.raises(ValueError, match=message):
            make()


# -- studies ---------------------------------------------------------------------------------------


def test_exactness_counts_no_miss_and_its_control_some(made):
    keys, _, queries = made
    rows = [*exactness(keys, queries, {"int8": 6, "subspace": 2})]
    assert sum(row["misses"] for row in rows if row["policy"] != "codes_only") == 0
    assert sum(row["misses"] for row in rows if row["policy"] == "codes_only") > 0
    assert {row["pairs"] for row in rows} == {6 * 4 * 320, 2 * 4 * 320}
    assert sum(row["misses"] for row in adversarial_exactness(120, 16, 0)) == 0


def test_spikes_are_those_of_attention_without_a_key(made):
    keys, values, queries = made
    scores = causal_scores(keys, queries)
    assert scores[0, 0, 314] > -torch.inf
    assert scores[0, 0, 315] == -torch.inf
    error = spikes(scores, values, 0.05, seed=0)["top"][2, 4]
    best, place = scores[2, 4].topk(16)
    outputs = [torch.softmax(best[s:] / 4, 0) @ values[1][place[s:]] for s in (0, 1)]
    expected = (outputs[1] - outputs[0]).norm() / outputs[0].norm()
    assert error == pytest.approx(float(expected), rel=1e-4)


def test_variation_by_hand():
    """One head whose mass sits on one key at half of the steps and on ten at the other half."""
    scores = torch.full((1, 4, 50), -100.0)
    scores[0, :2, 3] = 100
    scores[0, 2:, :10] = 100
    found = variation(scores, 1)
    assert found["mean_size"].tolist() == [5.0]  # 1, 1, 9 and 9 keys hold 90 %
    assert found["short"].tolist() == [0.5]
    assert found["cv"][0] == pytest.approx(np.std([1, 1, 9, 9], ddof=1) / 5)


def test_recall_of_louver_is_one_and_pruning_is_sound(made):
    keys, _, queries = made
    rows = [*recalls(keys, queries, [5, 20], 0.1, 3)]
    assert {row["method"] for row in rows} >= {"louver", "quest", "streaming_llm", "pq", "hnsw"}
    assert all((row["recall"] == 1).all() for row in rows if row["method"] == "louver")
    assert all((0 <= row["recall"]).all() and (row["recall"] <= 1).all() for row in rows)
    steps = {"int8": 2, "subspace": 1, "tree": 1, "page_boxes": 2}
    for row in pruning(keys, queries, 0.05, steps):
        assert (row["scanned"] >= row["answer"] - 1e-9).all()
        assert row["answer"] == pytest.approx(0.05)


def test_a_long_cache_repeats_windows_with_noise(made):
    keys, values, queries = made
    capture = QKVCapture({1: queries}, {1: keys}, {1: values})
    long, _, _ = long_cache([capture, capture], 1, 1000, seed=0)
    assert long.shape == (2, 1000, 16)
    assert torch.equal(long_cache([capture], 1, 200, seed=0)[0], keys[:, :200])
    assert 0 < (long[:, :320] - keys).std() < 0.1


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_all_timed_forms_attend(made, dtype):
    bench = Bench([made] * 2, dtype, 0.99)
    bench.prepare_peers()
    dense = bench.eager(3).float().view(4, 16)
    for form in (bench.sdpa_gqa, bench.sdpa_packed, bench.quest):
        assert torch.allclose(torch.as_tensor(form(3)).float().reshape(4, 16), dense, atol=0.03)
    for form in (bench.louver, bench.twilight):
        assert (torch.as_tensor(form(3)).float().reshape(4, 16) - dense).abs().max() < 0.5
    assert bench.hnsw(3).shape == (2, 2, 16)
    assert interleaved({"a": bench.eager, "b": bench.louver}, 2)["b"].shape == (2,)
    assert bench.append_microseconds(5) > 0
    assert len(bench.indices[0]) == 320


def test_the_command_verifies_and_times_a_capture(made, tmp_path):
    keys, values, queries = made
    path = tmp_path / "capture.safetensors"
    QKVCapture({1: queries}, {1: keys}, {1: values}).write(path)
    run = CliRunner().invoke(app, ["verify", str(path)])
    assert run.exit_code == 0, run.output
    assert "all layers: 0 misses in" in run.output
    run = CliRunner().invoke(app, ["bench", str(path), "--keys", "512", "--repeats", "2"])
    assert run.exit_code == 0, run.output
    assert "bf16 sdpa_gqa" in run.output


def test_compiled_and_plain_kernels_agree(made):
    keys, values, queries = made
    results = [
        LouverIndex(16, 2, backend=backend, buffer=32).build(keys, values)
        for backend in ("numba", "torch")
    ]
    one, two = (index.attend(queries[:, 0].contiguous(), 3.0) for index in results)
    assert torch.allclose(one.output, two.output, atol=1e-5)
    assert torch.equal(one.kept, two.kept)
    assert torch.allclose(one.dropped_mass_bound, two.dropped_mass_bound)
