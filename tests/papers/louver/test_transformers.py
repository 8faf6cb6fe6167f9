"""The cache and the attention function inside transformers, on a tiny random model."""

import pytest
import torch
from transformers import AttentionInterface, DynamicCache, LlamaForCausalLM
from transformers.masking_utils import AttentionMaskInterface

from encore.lm.tinylm import tiny_config
from encore.papers.louver import Budget, Fixed, LouverCache, capture_qkv, register
from encore.papers.louver.accuracy import Study, same_tokens

DENSE = Fixed(-torch.inf)


@pytest.fixture(scope="module")
def model():
    """A tiny Llama with random weights."""
    torch.manual_seed(0)
    return LlamaForCausalLM(tiny_config(128)).eval()


@pytest.fixture(scope="module")
def ids():
    return torch.randint(1, 128, (2, 40), generator=torch.Generator().manual_seed(1))


def generate(model, ids, implementation, cache=None, padding=9, **options):
    """Greedy tokens; the first sequence is padded on the left."""
    register()
    model.set_attn_implementation(implementation)
    mask = torch.ones_like(ids)
    mask[0, :padding] = 0
    return model.generate(
        input_ids=ids, attention_mask=mask, max_new_tokens=24, min_new_tokens=24,
        do_sample=False, pad_token_id=0, cache=cache, **options,
    )  # fmt: skip


def test_both_interfaces_know_the_name(model):
    register()
    assert "louver" in AttentionInterface().valid_keys()
    assert "louver" in AttentionMaskInterface().valid_keys()


@pytest.mark.parametrize("kind", ["int8", "subspace"])
def test_without_a_threshold_tokens_are_those_of_dense_attention(model, ids, kind):
    dense = generate(model, ids, "sdpa")
    cache = LouverCache(DENSE, dense_layers=(0,), buffer=16, kind=kind)
    assert torch.equal(generate(model, ids, "louver", cache), dense)
    stats = cache.stats()
    assert (stats["prefill"], stats["dense_layer"], stats["louver"]) == (3, 23, 46)
    assert stats["kept_fraction"] == 1.0


def test_the_old_name_of_the_argument_works(model, ids):
    register()
    model.set_attn_implementation("louver")
    cache = LouverCache(DENSE, dense_layers=())
    with pytest.warns(FutureWarning, match="past_key_values"):
        model.generate(input_ids=ids, max_new_tokens=3, past_key_values=cache, pad_token_id=0)
    assert cache.stats()["louver"] == 6


def test_beams_reorder_the_indices(model, ids):
    dense = generate(model, ids, "sdpa", num_beams=3)
    cache = LouverCache(DENSE, dense_layers=(), buffer=8)
    assert torch.equal(generate(model, ids, "louver", cache, num_beams=3), dense)
    assert cache.stats()["louver"] > 0


def test_a_budget_keeps_fewer_keys_and_counts_them(model, ids):
    cache = LouverCache(Budget(0.1), dense_layers=(0,), buffer=8)
    generate(model, ids, "louver", cache)
    assert 0.05 < cache.stats()["kept_fraction"] < 0.6
    assert 0 < cache.stats()["largest_dropped_mass_bound"] <= 1


def test_padding_changes_nothing(model, ids):
    """A padded sequence gives the tokens that it gives alone."""
    cache = LouverCache(Fixed(0.0), dense_layers=(0,), buffer=8, sink=2)
    both = generate(model, ids, "louver", cache)
    alone = LouverCache(Fixed(0.0), dense_layers=(0,), buffer=8, sink=2)
    single = generate(model, ids[:1, 9:], "louver", alone, padding=0)
    assert torch.equal(both[0, 40:], single[0, 31:])


def test_layers_grow_crop_and_select(model, ids):
    cache = LouverCache(DENSE, dense_layers=(), buffer=16)
    plain = DynamicCache()
    draw = torch.Generator().manual_seed(0)
    for length in (300, 1, 1, 250):
        k, v = torch.randn(2, 2, 2, length, 16, generator=draw)
        ours = cache.update(k, v, 0)
        theirs = plain.update(k, v, 0)
        assert torch.equal(ours[0], theirs[0])
        assert torch.equal(ours[1], theirs[1])
        assert ours[0]._louver_layer is cache.layers[0]
    for change in (
        lambda c: c.crop(-5),
        lambda c: c.reorder_cache(torch.tensor([1, 0])),
        lambda c: c.batch_repeat_interleave(2),
        lambda c: c.batch_select_indices(torch.tensor([0, 3])),
    ):
        change(cache)
        change(plain)
        assert torch.equal(cache.layers[0].keys, plain.layers[0].keys)
        assert cache.get_seq_length() == plain.get_seq_length()
        index = cache.layers[0].indices[-1]
        assert torch.equal(index.keys[:, : len(index)], plain.layers[0].keys[-1])
    cache.reset()
    assert cache.get_seq_length() == 0


def test_reasons_for_dense_attention_are_counted(model, ids):
    register()
    model.set_attn_implementation("louver")
    cache = LouverCache(DENSE, dense_layers=())
    with torch.no_grad():
        model(ids, cache=cache)
        model.train()
        model(ids[:, :1], cache=cache)
        model.eval()
    assert cache.stats()["training"] == 3
    with pytest.warns(UserWarning, match="no LouverCache"):
        model(ids)


def test_wrong_settings_of_the_cache_are_named():
    with pytest.raises(TypeError, match="policy is a float; expected a ThresholdPolicy"):
        LouverCache(0.05)
    with pytest.raises(ValueError, match="sink=-1, buffer=256; expected"):
        LouverCache(sink=-1)
    cache = LouverCache()
    with pytest.raises(ValueError, match="non-finite key at sequence 0, head 1, position 2"):
        bad = torch.zeros(1, 2, 3, 8)
        bad[0, 1, 2, 0] = torch.nan
        cache.update(bad, torch.zeros(1, 2, 3, 8), 0)


def test_a_capture_is_what_attention_sees(model, ids, tmp_path):
    found = capture_qkv(model, ids[1], [0, 2], last=5)
    cache = DynamicCache()
    model.set_attn_implementation("sdpa")
    with torch.no_grad():
        model(ids[1:], cache=cache)
    assert torch.allclose(found.keys[2], cache.layers[2].keys[0], atol=1e-5)
    assert found.queries[0].shape == (4, 5, 32)
    assert len(model.model.layers) == 3
    found.write(tmp_path / "capture.safetensors")
    again = type(found).read(tmp_path / "capture.safetensors")
    assert again.layers == [0, 2]
    assert torch.equal(again.values[2], found.values[2].half().float())
    with pytest.raises(ValueError, match="layer 3; expected 0 to 2"):
        capture_qkv(model, ids[1], [3])
    with pytest.raises(ValueError, match="last=256; expected 1 to 40"):
        capture_qkv(model, ids[1], [0])


def test_a_pass_with_masks_is_a_decode_step_by_step(model):
    """StreamingLLM by masks in one pass against one token at a time."""
    ids = torch.randint(1, 128, (60,), generator=torch.Generator().manual_seed(2))
    study = Study(model, ids, 40, dense_layers=[0])
    nats, kept = study.nats("streaming_llm", 0.25)
    assert kept < 0.3
    whole = torch.stack([study_step(study, length) for length in range(40, 60)])
    assert torch.allclose(nats, whole, atol=1e-4)
    assert torch.allclose(study.nats("dense", 1.0)[0], dense_nats(model, ids, 40), atol=1e-4)


def study_step(study, length):
    """The last token's loss of a pass that ends at ``length``."""
    ids, study.ids = study.ids, study.ids[: length + 1]
    try:
        return study.nats("streaming_llm", 0.25)[0][-1]
    finally:
        study.ids = ids


def dense_nats(model, ids, context):
    """Losses of the tokens behind the context by a plain forward."""
    model.set_attn_implementation("sdpa")
    with torch.no_grad():
        logits = model(ids[None]).logits[0, context - 1 : -1]
    return torch.nn.functional.cross_entropy(logits, ids[context:], reduction="none")


def test_same_tokens_counts_index_steps(model, ids):
    found = same_tokens(model, ids, padding=5, tokens=6)
    assert found["same"].shape == (2, 6)
    assert found["same"].all()
    assert found["stats"]["louver"] == 5
