"""Byte-level byte-pair encoding, trained on any text; nothing is lost by encoding."""

from collections.abc import Iterable

import numpy as np
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

END = "<|endoftext|>"


def train_bpe(texts: Iterable[str], vocab_size: int = 1024) -> PreTrainedTokenizerFast:
    """Train a byte-level BPE tokenizer (Sennrich et al. 2016; bytes as in GPT-2).

    Args:
        texts: documents; any number of strings.
        vocab_size: entries, at least 257: ``<|endoftext|>`` (id 0), all 256 bytes, then merges.

    Returns:
        A tokenizer whose ``decode(encode(x)) == x`` for every text; ``<|endoftext|>`` begins documents,
        ends texts and pads.

    Raises:
        ValueError: ``vocab_size`` below 257, or no text.
    """
    if vocab_size < 257:
        raise ValueError(f"vocab_size must be at least 257 (256 bytes and {END}), got {vocab_size}")
    texts = list(texts)
    if not any(texts):
        raise ValueError("texts is empty: nothing to train a tokenizer on")
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size, special_tokens=[END], show_progress=False,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
    )  # fmt: skip
    tokenizer.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token=END, eos_token=END, pad_token=END,
        clean_up_tokenization_spaces=False,
    )  # fmt: skip


def token_bytes(tokenizer: PreTrainedTokenizerFast) -> np.ndarray:
    """How many bytes of text each token of a byte-level tokenizer stands for.

    Returns:
        int64 ``(vocabulary,)``; 0 for special tokens.
    """
    special = set(tokenizer.all_special_ids)
    names = tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))
    return np.array([0 if i in special else len(name) for i, name in enumerate(names)])
