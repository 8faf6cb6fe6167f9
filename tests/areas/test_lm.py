"""Tokens, batches, pre-training and the packaged model."""

import math
import zipfile

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoModelForCausalLM, AutoTokenizer

from encore.lm import (
    ChecksumError,
    ModelNotFoundError,
    Recipe,
    TextCorpus,
    TokenStream,
    evaluate,
    load_smollm2,
    load_tinylm,
    pretrain,
    smollm2,
    tiny_config,
    token_bytes,
    train_bpe,
)
from encore.lm.packaged_text import generate, topics

TEXTS = [text for _, text in topics()]
SMALL = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1, "head_dim": 8}


@pytest.fixture(scope="module")
def tokenizer():
    return train_bpe(TEXTS, 512)


@pytest.fixture(scope="module")
def stream(tokenizer):
    return TextCorpus(tuple(TEXTS)).encode(tokenizer, validation=5000)


# -- tokenizer ------------------------------------------------------------------------------------


@given(text=st.text())
@settings(max_examples=200, deadline=None)
def test_decoding_gives_back_any_text(tokenizer, text):
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_two_trainings_give_the_same_merges(tokenizer):
    again = train_bpe(TEXTS, 512)
    assert again.backend_tokenizer.to_str() == tokenizer.backend_tokenizer.to_str()
    assert len(tokenizer) == 512
    assert tokenizer.convert_tokens_to_ids("<|endoftext|>") == 0


@pytest.mark.parametrize(
    ("texts", "size", "message"), [([], 512, "empty"), (["a"], 256, "at least 257")]
)
def test_a_tokenizer_refuses(texts, size, message):
    with pytest.raises(ValueError, match=message):
        train_bpe(texts, size)


def test_bytes_of_tokens_add_up(tokenizer, stream):
    """Bytes are counted, not characters."""
    text = "naïve – 日本 <plain>"
    assert token_bytes(tokenizer)[tokenizer.encode(text)].sum() == len(text.encode())
    assert token_bytes(tokenizer)[stream.ids].sum() == sum(len(t.encode()) for t in TEXTS)


# -- corpus ---------------------------------------------------------------------------------------


def test_documents_begin_where_the_offsets_say(tokenizer, stream):
    assert len(stream.offsets) == len(TEXTS)
    assert (stream.ids[stream.offsets] == 0).all()
    second = stream.ids[stream.offsets[1] + 1 : stream.offsets[2]]
    assert tokenizer.decode(second) == TEXTS[1]


def test_batches_stay_inside_their_split_and_reach_its_ends():
    stream = TokenStream(np.arange(100, dtype=np.uint16), np.array([0]), 20, 100)
    rng = np.random.default_rng(0)
    train = stream.batches(2000, 8, rng)
    test = stream.batches(500, 8, rng, split="validation")
    assert (int(train.min()), int(train.max())) == (0, 79)
    assert (int(test.min()), int(test.max())) == (80, 99)
    assert train.dtype == torch.int64
    again = stream.batches(2000, 8, np.random.default_rng(0))
    assert torch.equal(train, again)
    assert stream.batches(1, 80, rng)[0].tolist() == list(range(80))


def test_windows_cover_the_split_once():
    stream = TokenStream(np.arange(100, dtype=np.uint16), np.array([0]), 21, 100)
    rows = torch.cat(list(stream.windows(2, 5)))
    assert rows.flatten().tolist() == list(range(79, 99))


def test_a_corpus_is_read_from_archives_and_folders(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for name, text in {"x/1.txt": "one", "x/2.txt": "two", "x/README": "no"}.items():
            archive.writestr(name, text)
    (tmp_path / "3.txt").write_text("three", encoding="utf-8")
    assert sorted(TextCorpus.from_zip([tmp_path / "a.zip"]).documents) == ["one", "two"]
    assert TextCorpus.from_folder(tmp_path).documents == ("three",)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: TextCorpus(()), "documents is empty"),
        (lambda s: TextCorpus(("a", "")), "document 1 is empty"),
        (lambda s: s.batches(1, 100_000_000, np.random.default_rng(0)), "length must lie in"),
        (lambda s: s.part("test"), "'train' or 'validation'"),
        (lambda s: TokenStream(s.ids, s.offsets, 0, 10), "outside the vocabulary of 10"),
        (lambda s: TokenStream(s.ids, s.offsets, len(s.ids), 512), "validation must lie in"),
        (lambda s: pretrain(tiny_config(100), s, Recipe(steps=1)), "vocab_size is 100"),
    ],
)
def test_bad_input_is_named(stream, call, message):
    with pytest.raises(ValueError, match=message):
        call(stream)


# -- pre-training ---------------------------------------------------------------------------------


def test_tinylm_has_the_stated_size():
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(tiny_config())
    assert sum(p.numel() for p in model.parameters()) == 648_064


def test_training_learns_and_continues_after_a_kill(stream, tokenizer, tmp_path):
    """The weights of a run that was stopped and continued are those of an uninterrupted one."""
    recipe = Recipe(steps=30, batch=8, length=32, warmup=5)
    config = tiny_config(512, **SMALL)
    whole, log = pretrain(config, stream, recipe)
    state = tmp_path / "state.pt"

    def kill(step, loss):
        raise KeyboardInterrupt

    longer = Recipe(steps=60, batch=8, length=32, warmup=5)
    reference, _ = pretrain(config, stream, longer)
    with pytest.raises(KeyboardInterrupt):
        pretrain(config, stream, longer, checkpoint=state, checkpoint_every=20, progress=kill)
    continued, log60 = pretrain(config, stream, longer, checkpoint=state)
    for name, weight in reference.state_dict().items():
        assert torch.equal(weight, continued.state_dict()[name]), name
    assert len(log60) == 60
    assert log.loss[:3].mean() > math.log(512) - 0.3
    assert log60.loss[-5:].mean() < math.log(512) - 0.5
    before = evaluate(whole, stream, token_bytes(tokenizer), length=32)
    after = evaluate(continued, stream, token_bytes(tokenizer), length=32)
    assert after["nats_per_token"] < before["nats_per_token"]
    tokenizer.save_pretrained(tmp_path / "model")
    continued.save_pretrained(tmp_path / "model")
    model, loaded = load_tinylm(tmp_path / "model")
    ids = torch.tensor([loaded.encode("The import statement")])
    assert torch.equal(model(ids).logits, continued(ids).logits)


def test_bits_per_byte_is_the_loss_over_bytes(stream, tokenizer):
    """A model of uniform predictions: log2(V) bits a token."""
    model = AutoModelForCausalLM.from_config(tiny_config(512, **SMALL)).eval()
    torch.nn.init.zeros_(model.get_input_embeddings().weight)
    found = evaluate(model, stream, token_bytes(tokenizer), length=50)
    assert found["nats_per_token"] == pytest.approx(math.log(512), rel=1e-6)
    ids = stream.part("validation").reshape(-1, 50)[:, 1:]
    per_byte = 9 * ids.size / token_bytes(tokenizer)[ids].sum()
    assert found["bits_per_byte"] == pytest.approx(per_byte, rel=1e-6)


def test_a_folder_without_a_model_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"config\.json is missing"):
        load_tinylm(tmp_path)


# -- packaged text and model ----------------------------------------------------------------------


def test_packaged_text_is_the_same_each_time(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        generate(tmp_path / name)
    first, second = (tmp_path / name / "packaged_text.parquet" for name in ("a", "b"))
    assert first.read_bytes() == second.read_bytes()


def test_a_missing_model_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(smollm2, "_packaged", lambda: None)
    with pytest.raises(ModelNotFoundError, match="set ENCORE_SMOLLM2"):
        load_smollm2()
    with pytest.raises(ModelNotFoundError, match="not installed"):
        smollm2.convert(tmp_path)
    monkeypatch.setenv("ENCORE_SMOLLM2", str(tmp_path / "nowhere"))
    with pytest.raises(ModelNotFoundError, match="nowhere does not exist"):
        load_smollm2()


def test_another_file_than_the_packaged_one_is_refused(monkeypatch):
    monkeypatch.setattr(smollm2, "SHA256", "0" * 64)
    with pytest.raises(ChecksumError, match="expected 0000"):
        smollm2._packaged()


def test_the_converted_model_is_the_packaged_one(tmp_path, monkeypatch):
    """Rounding to float16 moves logits (of about 20) by less than 0.1 and no most likely token on 20 prompts."""
    smollm2.convert(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ENCORE_SMOLLM2", str(tmp_path))
    model, tokenizer = load_smollm2()
    source = smollm2._packaged()
    packaged = AutoModelForCausalLM.from_pretrained(
        source.parent, gguf_file=source.name, dtype=torch.float32
    ).eval()
    words = AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name)
    prompts = [text[:60] for text in TEXTS[:19]]
    for prompt in [*prompts, "The Eiffel Tower is located in the city of"]:
        ids = torch.tensor([tokenizer.encode(prompt)])
        assert words.encode(prompt) == ids[0].tolist()
        with torch.no_grad():
            ours, theirs = model(ids).logits[0], packaged(ids).logits[0]
        assert (ours - theirs).abs().max() < 0.1
        assert ours[-1].argmax() == theirs[-1].argmax()
    assert tokenizer.decode(ours[-1].argmax()) == " Paris"
    assert "user" in tokenizer.apply_chat_template(
        [{"role": "user", "content": "Hi"}], tokenize=False
    )
