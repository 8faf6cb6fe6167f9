"""What sparse attention costs in nats per token, and whether greedy tokens stay the same.

A pass over T known tokens after a dense prefill is a teacher-forced decode: each query chooses its
keys by itself, and what later tokens see of it went through the same sparse attention.
"""

import torch
from transformers import AttentionInterface, AttentionMaskInterface, DynamicCache, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from encore.papers.louver.attention import register
from encore.papers.louver.baselines import (
    H2O,
    SINK,
    OracleTopK,
    Quest,
    SparseMethod,
    StreamingLLM,
    Twilight,
)
from encore.papers.louver.cache import LouverCache
from encore.papers.louver.index import LouverIndex
from encore.papers.louver.thresholds import Budget, Fixed

NAME = "louver_study"
RECENT = 16  # keys that Louver always keeps besides the sinks, as Quest its last page
BUDGETED = {"quest": Quest, "streaming_llm": StreamingLLM, "h2o": H2O, "oracle": OracleTopK}


class LouverSelect(SparseMethod):
    """The index in the interface of the baselines: sinks, recent keys, and all above a budget's threshold.

    Args:
        budget: keys per query head on average, sinks and recent ones included.
    """

    def choose(self, queries, lengths):
        """Append each step's keys to the index, then search; the threshold is part of the step."""
        heads, steps, _ = queries.shape
        chosen = torch.zeros(heads, steps, self.keys.shape[1], dtype=torch.bool)
        start = int(lengths[0]) - 1
        index = LouverIndex(self.keys.shape[2], len(self.keys), buffer=64)
        index.build(self.keys[:, :start], self.keys[:, :start])
        for step, length in enumerate(lengths.tolist()):
            new = self.keys[:, len(index) : length]
            index.append(new, new)
            q = queries[:, step].contiguous()
            policy = Budget(max(1, self.budget - SINK - RECENT) / length)
            found = index.search(q, policy.threshold(index, q))
            rows = torch.arange(heads).repeat_interleave(found.indptr.diff())
            chosen[rows, step, found.indices.long()] = True
            chosen[:, step, max(0, length - RECENT) : length] = True
        chosen[:, :, :SINK] = True
        return chosen


class Study:
    """One document: a dense prefill, then passes over its last tokens with one method after another.

    Args:
        model: a causal language model.
        ids: (context + T,) token ids.
        context: tokens of the prefill.
        dense_layers: layers that every method leaves dense.
    """

    def __init__(
        self, model: PreTrainedModel, ids: torch.Tensor, context: int, dense_layers: list[int]
    ):
        AttentionInterface.register(NAME, _attention)
        AttentionMaskInterface.register(NAME, sdpa_mask)
        self.model, self.ids, self.context, self.dense = model, ids, context, set(dense_layers)
        self.mass: dict[int, torch.Tensor] = {}
        self.cache = DynamicCache()
        with _implementation(model, NAME), torch.inference_mode():
            model.model(ids[None, : context - 1], cache=self.cache, study=self)

    def nats(self, name: str, budget: float) -> tuple[torch.Tensor, float]:
        """Negative log-likelihood (T,) of each token, and the share of visible keys that was kept.

        Args:
            name: ``dense``, ``louver``, ``twilight`` or one of ``BUDGETED``.
            budget: share of the context's keys (for ``twilight``: of the mass).
        """
        self.method, self.kept, self.visible = name, 0, 0
        size = round(budget * self.context)
        makers = {
            "louver": lambda: LouverSelect(size), "twilight": lambda: Twilight(budget),
            **{other: (lambda kind=kind: kind(size)) for other, kind in BUDGETED.items()},
        }  # fmt: skip
        self.make = makers.get(name)
        inputs, targets = self.ids[self.context - 1 : -1], self.ids[self.context :]
        with _implementation(self.model, NAME), torch.inference_mode():
            hidden = self.model.model(inputs[None], cache=self.cache, study=self).last_hidden_state
            nats = torch.nn.functional.cross_entropy(
                self.model.lm_head(hidden[0]), targets, reduction="none"
            )
        self.cache.crop(-len(inputs))
        return nats, self.kept / self.visible if self.visible else 1.0

    def mask(self, layer: int, queries: torch.Tensor, keys: torch.Tensor) -> torch.Tensor | None:
        """What the method lets the queries (H_q, T, d) of a layer attend to; None: all before them."""
        if keys.shape[1] < self.context:  # prefill
            if layer not in self.dense:
                self.mass[layer] = received_mass(queries, keys)
            return None
        if self.make is None or layer in self.dense:
            return None
        method = self.make()
        if isinstance(method, H2O):
            method.build(keys, self.mass[layer])
        else:
            method.build(keys)
        count, steps = keys.shape[1], queries.shape[1]
        lengths = torch.arange(count - steps + 1, count + 1)
        chosen = method.choose(queries, lengths)
        self.kept += int(chosen.sum())
        self.visible += int(lengths.sum()) * len(queries)
        return chosen


class _implementation:
    """The attention function of a model for the length of a block."""

    def __init__(self, model: PreTrainedModel, name: str):
        self.model, self.name, self.before = model, name, model.config._attn_implementation

    def __enter__(self) -> None:
        self.model.set_attn_implementation(self.name)

    def __exit__(self, *error) -> None:
        self.model.set_attn_implementation(self.before)


def _attention(module, query, key, value, attention_mask, study=None, **kwargs):
    if study is not None:
        chosen = study.mask(module.layer_idx, query[0], key[0])
        attention_mask = attention_mask if chosen is None else chosen[None]
    return sdpa_attention_forward(module, query, key, value, attention_mask, **kwargs)


def received_mass(queries: torch.Tensor, keys: torch.Tensor, rows: int = 256) -> torch.Tensor:
    """Attention (H_q, N) that each key receives from all N queries (H_q, N, d), causally."""
    heads, count, dim = queries.shape
    total = torch.zeros(heads, count)
    wide = keys.repeat_interleave(heads // len(keys), 0)
    for start in range(0, count, rows):
        some = queries[:, start : start + rows]
        stop = start + some.shape[1]
        scores = some @ wide[:, :stop].transpose(1, 2) * dim**-0.5
        later = torch.arange(stop) > torch.arange(start, stop)[:, None]
        total[:, :stop] += torch.softmax(scores.masked_fill(later, -torch.inf), 2).sum(1)
    return total


def same_tokens(model: PreTrainedModel, prompts: torch.Tensor, padding: int, tokens: int) -> dict:
    """Greedy tokens of dense attention against those of the index with no threshold.

    Args:
        prompts: (B, N) ids.
        padding: the first prompt starts with so many padded places.
        tokens: how many are generated.

    Returns:
        ``same`` (B, tokens) bool, and the ``stats`` of the cache.
    """
    register()
    mask = torch.ones_like(prompts)
    mask[0, :padding] = 0
    asked = {
        "input_ids": prompts, "attention_mask": mask, "max_new_tokens": tokens,
        "min_new_tokens": tokens, "do_sample": False, "pad_token_id": 0,
    }  # fmt: skip
    cache = LouverCache(Fixed(-torch.inf), buffer=64)
    with torch.inference_mode():
        with _implementation(model, "sdpa"):
            dense = model.generate(**asked)
        with _implementation(model, "louver"):
            ours = model.generate(**asked, cache=cache)
    return {"same": (dense == ours)[:, -tokens:].numpy(), "stats": cache.stats()}
