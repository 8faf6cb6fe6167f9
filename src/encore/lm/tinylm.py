"""TinyLM: a Llama-shaped language model small enough to be trained many times on a laptop."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from encore.core.job import replacing
from encore.lm.corpus import Split, TokenStream


def tiny_config(vocab_size: int = 1024, **changes: object) -> LlamaConfig:
    """Three layers of width 128, 4 query and 2 key heads: 648,064 parameters with 1,024 tokens."""
    shape = {
        "vocab_size": vocab_size, "hidden_size": 128, "intermediate_size": 320,
        "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32,
        "tie_word_embeddings": True, "max_position_embeddings": 2048, "rope_theta": 1e4,
        "attention_bias": False, "bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0,
    }  # fmt: skip
    return LlamaConfig(**(shape | changes))


@dataclass(frozen=True)
class Recipe:
    """AdamW with a linear warm-up and a linear decay; rates per step, ``batch`` x ``length`` tokens."""

    steps: int = 1400
    batch: int = 16
    length: int = 96
    learning_rate: float = 4e-3
    warmup: int = 30
    final: float = 0.05
    weight_decay: float = 0.05
    clip: float = 1.0
    seed: int = 0

    def rate(self, step: int) -> float:
        """Learning rate of a step, counted from 0."""
        if step < self.warmup:
            return self.learning_rate * (step + 1) / self.warmup
        done = (step - self.warmup) / max(1, self.steps - self.warmup)
        return self.learning_rate * (1 - (1 - self.final) * done)


def pretrain(
    config: LlamaConfig,
    stream: TokenStream,
    recipe: Recipe,
    *,
    checkpoint: str | Path | None = None,
    checkpoint_every: int = 200,
    progress: Callable[[int, float], None] | None = None,
) -> tuple[LlamaForCausalLM, pd.DataFrame]:
    """Train a causal language model from scratch.

    The windows of a step depend on the seed and the step alone, so that a run continued from
    ``checkpoint`` (written every ``checkpoint_every`` steps, never half) ends with the same weights.

    Args:
        config: the shape; its vocabulary must hold the stream's.
        stream: the tokens; only its training part is read.
        recipe: how to train.
        checkpoint: where to keep the state; None keeps none. A file that is there is continued.
        checkpoint_every: steps between two states.
        progress: called with the step and its loss after every 50 steps.

    Returns:
        The model in evaluation mode, and the log: one row a step with ``step``, ``loss`` (nats per
        token), ``rate``.

    Raises:
        ValueError: the vocabulary is too small.
    """
    if config.vocab_size < stream.vocab_size:
        raise ValueError(
            f"config.vocab_size is {config.vocab_size}, the stream needs {stream.vocab_size}"
        )
    torch.manual_seed(recipe.seed)
    model = LlamaForCausalLM(config)
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=recipe.learning_rate, betas=(0.9, 0.95),
        weight_decay=recipe.weight_decay, fused=True,
    )  # fmt: skip
    losses = _restore(model, optimizer, checkpoint)
    model.train()
    for step in range(len(losses), recipe.steps):
        for group in optimizer.param_groups:
            group["lr"] = recipe.rate(step)
        rng = np.random.default_rng([recipe.seed, step])
        ids = stream.batches(recipe.batch, recipe.length, rng)
        loss = model(input_ids=ids, labels=ids, use_cache=False).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), recipe.clip)
        optimizer.step()
        losses.append(loss.item())
        if progress and (step + 1) % 50 == 0:
            progress(step + 1, losses[-1])
        if checkpoint and (step + 1) % checkpoint_every == 0:
            _keep(model, optimizer, losses, checkpoint)
    steps = range(len(losses))
    log = pd.DataFrame({"step": steps, "loss": losses, "rate": [recipe.rate(s) for s in steps]})
    return model.eval(), log


def _keep(model, optimizer, losses: list[float], checkpoint: str | Path) -> None:
    with replacing(Path(checkpoint)) as part:
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "losses": losses}
        torch.save(state, part)


def _restore(model, optimizer, checkpoint: str | Path | None) -> list[float]:
    if checkpoint is None or not Path(checkpoint).exists():
        return []
    state = torch.load(checkpoint, weights_only=True)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return state["losses"]


@torch.no_grad()
def evaluate(
    model: PreTrainedModel,
    stream: TokenStream,
    bytes_of: np.ndarray,
    *,
    length: int = 96,
    batch: int = 32,
    split: Split = "validation",
) -> dict[str, float]:
    """Loss on windows one after the other.

    Args:
        model: a causal language model.
        stream: the tokens.
        bytes_of: bytes of text behind each token id, from ``token_bytes``.
        length: tokens of a window; each but its first is predicted. Windows longer than those trained
            on score worse (TinyLM of ``Recipe()``: 3.71 nats at 96 tokens, 3.95 at 256).
        batch: windows at a time.
        split: which part.

    Returns:
        ``nats_per_token`` and ``bits_per_byte`` (bytes counted, not characters).
    """
    nats, tokens, text_bytes = 0.0, 0, 0
    for ids in stream.windows(batch, length, split):
        loss = model(input_ids=ids, labels=ids, use_cache=False).loss
        count = ids[:, 1:].numel()
        nats += loss.item() * count
        tokens += count
        text_bytes += int(bytes_of[ids[:, 1:].numpy()].sum())
    return {"nats_per_token": nats / tokens, "bits_per_byte": nats / math.log(2) / text_bytes}


def load_tinylm(folder: str | Path) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Model and tokenizer from a folder that ``save_pretrained`` of both wrote.

    Raises:
        FileNotFoundError: there is no model in the folder.
    """
    if not (Path(folder) / "config.json").exists():
        raise FileNotFoundError(f"no model in {folder}: its config.json is missing")
    model = AutoModelForCausalLM.from_pretrained(folder, local_files_only=True)
    return model.eval(), AutoTokenizer.from_pretrained(folder, local_files_only=True)
