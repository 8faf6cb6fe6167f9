"""What is measured on captured queries and keys: misses, spikes, variation, recall, pruning.

Every function returns plain dicts or arrays; scripts turn them into rows.
"""

from collections.abc import Iterator

import numpy as np
import torch

from encore.papers.louver.ann import KINDS, AnnIndex
from encore.papers.louver.baselines import Quest, StreamingLLM
from encore.papers.louver.evaluation import ADVERSARIAL, adversarial, oracle_scores
from encore.papers.louver.index import LouverIndex
from encore.papers.louver.thresholds import (
    Budget,
    CertifiedMass,
    SampleGap,
    SampleMax,
    SampleMeanMax,
)

POLICIES = {
    "budget": Budget(0.05),
    "sample_max": SampleMax(),
    "sample_mean_max": SampleMeanMax(),
    "sample_gap": SampleGap(),
    "certified_mass": CertifiedMass(0.02),
}
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}
MASS = 0.9
SHORT = 0.01  # a fixed list falls short where it misses the mass by more than this


def spread(count: int, wanted: int) -> np.ndarray:
    """``wanted`` positions of ``count``, evenly spread."""
    return np.unique(np.linspace(0, count - 1, min(wanted, count)).astype(int))


def misses(result, exact: torch.Tensor, threshold: torch.Tensor) -> int:
    """How many keys reach the threshold in float64 (H_q, N) and are not in a ``RangeResult``."""
    found = torch.zeros(exact.shape, dtype=torch.bool)
    heads = torch.arange(len(exact)).repeat_interleave(result.indptr.diff())
    found[heads, result.indices.long()] = True
    return int(((exact >= threshold[:, None]) & ~found).sum())


def exactness(keys: torch.Tensor, queries: torch.Tensor, steps: dict[str, int]) -> Iterator[dict]:
    """Misses against brute force for every storage type, kind of index and policy.

    The control ``codes_only`` asks the int8 codes without their certified widths.

    Args:
        keys: (H_kv, N, d) float32.
        queries: (H_q, T, d).
        steps: how many of the T queries each kind is asked.

    Yields:
        ``dtype, kind, policy, misses, pairs``.
    """
    heads, count, dim = keys.shape
    for dtype, kept in DTYPES.items():
        stored = keys.to(kept)
        indices = {
            kind: LouverIndex(dim, heads, kind=kind, buffer=64).build(stored, stored)
            for kind in steps
        }
        for kind, index in indices.items():
            total = dict.fromkeys((*POLICIES, "codes_only"), 0)
            chosen = spread(queries.shape[1], steps[kind])
            for step in chosen:
                q = queries[:, step].contiguous()
                exact = oracle_scores(stored, q)
                for name, policy in POLICIES.items():
                    threshold = policy.threshold(index, q)
                    total[name] += misses(index.search(q, threshold), exact, threshold)
                lower, upper = index.bounds(q)
                threshold = Budget(0.05).threshold(index, q)[:, None]
                missed = (exact >= threshold) & ((lower + upper) / 2 < threshold)
                total["codes_only"] += int(missed.sum())
            pairs = len(chosen) * len(queries) * count
            for policy, wrong in total.items():
                yield {
                    "dtype": dtype,
                    "kind": kind,
                    "policy": policy,
                    "misses": wrong,
                    "pairs": pairs,
                }


def adversarial_exactness(n: int, dim: int, seed: int) -> Iterator[dict]:
    """The same on inputs made to trip an index, at thresholds that are scores themselves."""
    for name in ADVERSARIAL:
        for dtype, kept in DTYPES.items():
            keys, queries = adversarial(name, 2, n, dim, seed, kept)
            exact = oracle_scores(keys, queries)
            ordered = exact.sort(1, descending=True).values
            for kind in ("int8", "subspace"):
                index = LouverIndex(dim, 2, kind=kind, buffer=64).build(keys, keys)
                wrong = sum(
                    misses(index.search(queries, ordered[:, place]), exact, ordered[:, place])
                    for place in (0, n // 20, n // 2, n - 1)
                )
                pairs = 4 * exact.numel()
                yield {
                    "dtype": dtype,
                    "kind": kind,
                    "policy": name,
                    "misses": wrong,
                    "pairs": pairs,
                }


def causal_scores(keys: torch.Tensor, queries: torch.Tensor) -> torch.Tensor:
    """q.k (H_q, T, N) float32 of the last T positions, minus infinity at keys that come later."""
    heads, count, dim = keys.shape
    steps = queries.shape[1]
    scores = (queries.reshape(heads, -1, dim) @ keys.transpose(1, 2)).view(-1, steps, count)
    later = torch.arange(count) > torch.arange(count - steps, count)[:, None]
    return scores.masked_fill(later, -torch.inf)


def spikes(scores: torch.Tensor, values: torch.Tensor, fraction: float, seed: int) -> dict:
    """Relative output error when one key of the largest ``fraction`` is missed.

    Args:
        scores: (H_q, T, N) of ``causal_scores``.
        values: (H_kv, N, d_v).

    Returns:
        (H_q, T) errors for three missed keys: ``top`` the best one, ``top_no_sink`` the best one
        behind the first four positions, ``random`` any of the kept ones.
    """
    heads, steps, count = scores.shape
    best, place = scores.topk(max(2, round(fraction * count)), dim=2)
    weights = torch.softmax(best * values.shape[2] ** -0.5, 2)
    rows = values.repeat_interleave(heads // len(values), 0)
    draw = torch.Generator().manual_seed(seed)
    missed = {
        "top": torch.zeros(heads, steps, dtype=torch.long),
        "top_no_sink": (place >= 4).to(torch.uint8).argmax(2),
        "random": torch.randint(best.shape[2], (heads, steps), generator=draw),
    }
    found = {name: torch.empty(heads, steps) for name in missed}
    for head in range(heads):
        kept = rows[head][place[head]]  # (T, k, d_v)
        output = (weights[head, :, None] @ kept)[:, 0]
        for name, which in missed.items():
            w = weights[head].gather(1, which[head, :, None])
            lost = kept[torch.arange(steps), which[head]]
            without = (output - w * lost) / (1 - w)
            found[name][head] = (without - output).norm(dim=1) / output.norm(dim=1)
    return {name: errors.numpy() for name, errors in found.items()}


def variation(scores: torch.Tensor, dim: int) -> dict[str, np.ndarray]:
    """How the number of keys that hold 90 % of the mass varies over the steps of each head (H_q,).

    ``cv``: standard deviation over mean; ``short``: share of steps on which a list of the mean length
    holds less than 89 %; ``mean_size``: that length.
    """
    weights = torch.softmax(scores * dim**-0.5, 2).sort(2, descending=True).values
    mass = weights.cumsum(2)
    sizes = (mass < MASS).sum(2) + 1
    mean = sizes.float().mean(1)
    length = mean.round().long().clamp(min=1) - 1
    held = mass.gather(2, length[:, None, None].expand(-1, mass.shape[1], 1))[..., 0]
    return {
        "cv": (sizes.float().std(1) / mean).numpy(),
        "short": (held < MASS - SHORT).float().mean(1).numpy(),
        "mean_size": mean.numpy(),
    }


def recalls(
    keys: torch.Tensor, queries: torch.Tensor, ks: list[int], fraction: float, steps: int
) -> Iterator[dict]:
    """Share of the k best keys that each method finds, at a budget of k keys and of a fraction of all.

    Neighbour indices and Louver search the keys before the last T positions, the others what each
    query may see. Louver's threshold is the k-th best score.

    Yields:
        ``method, k, budget`` ("k" or "fraction"), ``recall`` (H_q,).
    """
    prefix = keys[:, : keys.shape[1] - queries.shape[1]].contiguous()
    chosen = spread(queries.shape[1], steps)
    some = queries[:, chosen].contiguous()
    lengths = torch.from_numpy(chosen) + prefix.shape[1] + 1
    whole = torch.full((len(chosen),), prefix.shape[1])
    scores = causal_scores(keys, queries)[:, chosen]
    before = scores[:, :, : prefix.shape[1]]
    index = LouverIndex(keys.shape[2], len(keys)).build(prefix, prefix)
    for k in ks:
        yield {
            "method": "louver",
            "k": k,
            "budget": "k",
            "recall": _louver_recall(index, some, before, k),
        }
    budgets = [("k", k, k) for k in ks]
    budgets += [("fraction", k, max(k, round(fraction * prefix.shape[1]))) for k in ks]
    built: dict[tuple, torch.Tensor] = {}
    for budget, k, size in budgets:
        for name, make in (("quest", Quest), ("streaming_llm", StreamingLLM)):
            if (name, size) not in built:
                built[name, size] = make(size).build(keys).choose(some, lengths)
            yield {
                "method": name,
                "k": k,
                "budget": budget,
                "recall": recall(built[name, size], scores, k),
            }
    for kind in KINDS:
        ann = AnnIndex(kind, 1).build(prefix)
        for budget, k, size in budgets:
            ann.budget = size
            picked = ann.choose(some, whole)
            yield {"method": kind, "k": k, "budget": budget, "recall": recall(picked, before, k)}


def recall(chosen: torch.Tensor, scores: torch.Tensor, k: int) -> np.ndarray:
    """Share (H_q,) of the k best of scores (H_q, T, N) that is chosen."""
    return chosen.gather(2, scores.topk(k, dim=2).indices).float().mean((1, 2)).numpy()


def _louver_recall(index: LouverIndex, queries, scores, k: int) -> np.ndarray:
    picked = torch.zeros(scores.shape, dtype=torch.bool)
    limits = scores.topk(k, dim=2).values[..., -1]
    for step in range(queries.shape[1]):
        found = index.search(queries[:, step].contiguous(), limits[:, step])
        heads = torch.arange(len(queries)).repeat_interleave(found.indptr.diff())
        picked[heads, step, found.indices.long()] = True
    return recall(picked, scores, k)


def pruning(
    keys: torch.Tensor, queries: torch.Tensor, fraction: float, steps: dict[str, int]
) -> Iterator[dict]:
    """How many keys an index must look at exactly, for a threshold that the largest ``fraction`` reach.

    ``int8`` and ``subspace`` are the two kinds, ``tree`` is one balanced tree of balls and boxes over
    whole keys (a classical range-searching structure), ``page_boxes`` the boxes of 16 consecutive keys.

    Args:
        steps: how many queries each structure is asked.

    Yields:
        ``kind``, ``scanned`` and ``answer`` (H_q,): shares of all keys.
    """
    heads, count, dim = keys.shape
    options = {
        "int8": {},
        "subspace": {"kind": "subspace", "subspaces": min(16, dim)},
        "tree": {"kind": "subspace", "subspaces": 1, "group": 16},
    }
    for kind, wanted in steps.items():
        some = queries[:, spread(queries.shape[1], wanted)]
        scores = torch.stack([oracle_scores(keys, some[:, t]) for t in range(some.shape[1])], 1)
        limits = scores.topk(max(1, round(fraction * count)), dim=2).values[..., -1]
        if kind == "page_boxes":
            quest = Quest(count).build(keys)
            hit = quest.page_scores(some) >= limits[..., None]
            scanned = hit[..., quest.page_of].double().mean((1, 2))
        else:
            index = LouverIndex(dim, heads, buffer=64, **options[kind]).build(keys, keys)
            asked = [
                index.search(some[:, t].contiguous(), limits[:, t]).candidates
                for t in range(some.shape[1])
            ]
            scanned = torch.stack(asked, 1).double().mean(1) / count
        answer = (scores >= limits[..., None]).double().mean((1, 2))
        yield {"kind": kind, "scanned": scanned.numpy(), "answer": answer.numpy()}
