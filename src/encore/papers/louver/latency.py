"""CPU time of one decode step of one layer: dense forms, the index, and sparse peers, side by side."""

import time
from collections.abc import Callable

import numpy as np
import torch
from torch.nn.functional import scaled_dot_product_attention

from encore.papers.louver.ann import AnnIndex
from encore.papers.louver.baselines import PAGE, Quest
from encore.papers.louver.index import LouverIndex
from encore.papers.louver.qkv import QKVCapture
from encore.papers.louver.scratch import scratch
from encore.papers.louver.store import kernels, raw
from encore.papers.louver.thresholds import Budget

JITTER = 0.05


def interleaved(calls: dict[str, Callable[[int], object]], repeats: int) -> dict[str, np.ndarray]:
    """CPU seconds (repeats,) of each call, one after the other in every round; a first round warms up.

    A call is given how many calls were made before, so that no two in a row need use the same data.
    """
    found: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(repeats + 1):
        for place, (name, call) in enumerate(calls.items()):
            start = time.process_time()
            call(turn * len(calls) + place)
            found[name].append(time.process_time() - start)
    return {name: np.array(times[1:]) for name, times in found.items()}


def long_cache(
    captures: list[QKVCapture], layer: int, length: int, seed: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Keys (H_kv, length, d), values and queries (H_q, T, d) from the windows of a layer, end to end.

    Every key keeps the position that it had in its window. Where windows are used again, keys and
    values get normal noise of 5 % of each channel's spread, so that no two are equal.
    """
    parts = []
    for name in ("keys", "values"):
        windows = torch.cat([getattr(capture, name)[layer] for capture in captures], 1)
        copies = -(-length // windows.shape[1])
        long = windows.repeat(1, copies, 1)[:, :length].contiguous()
        if copies > 1:
            draw = torch.Generator().manual_seed(seed)
            noise = torch.randn(long.shape, generator=draw)
            long += JITTER * windows.std(1, keepdim=True) * noise
        parts.append(long)
    return *parts, captures[-1].queries[layer]


class Bench:
    """Layers of one length and type, each with its index, asked in turn so that no cache stays warm.

    Args:
        caches: (keys, values, queries) of each layer, of ``long_cache``.
        dtype: of keys, values and dense arithmetic.
        fraction: budget of all sparse methods, as a share of the keys.
    """

    def __init__(self, caches, dtype: torch.dtype, fraction: float):
        self.fraction, self.dtype = fraction, dtype
        self.keys = [keys.to(dtype) for keys, _, _ in caches]
        self.values = [values.to(dtype) for _, values, _ in caches]
        self.queries = [queries.to(dtype) for *_, queries in caches]
        self.policy, self.ops = Budget(fraction), kernels("auto")
        heads, _, dim = self.keys[0].shape
        self.shape, self.scale = (heads, len(self.queries[0]) // heads, dim), dim**-0.5
        self.indices = [LouverIndex(dim, heads, dtype=dtype) for _ in caches]
        self.build_seconds = []
        warm = (self.keys[0][:, :512], self.values[0][:, :512])
        LouverIndex(dim, heads, dtype=dtype).build(*warm)  # compiles
        for index, keys, values in zip(self.indices, self.keys, self.values, strict=True):
            start = time.process_time()
            index.build(keys, values)
            self.build_seconds.append(time.process_time() - start)
            self._share(index, keys, values)

    @staticmethod
    def _share(index: LouverIndex, keys: torch.Tensor, values: torch.Tensor) -> None:
        """Let the index read the same memory as dense attention: half the memory of the bench."""
        index.attach(keys, values)

    def step(self, i: int) -> tuple[int, torch.Tensor]:
        """The layer of round ``i`` and its query (H_q, d)."""
        layer = i % len(self.keys)
        return layer, self.queries[layer][:, i % self.queries[layer].shape[1]].contiguous()

    def louver(self, i: int) -> torch.Tensor:
        """Threshold, search and attention of the index."""
        layer, q = self.step(i)
        index = self.indices[layer]
        return index.attend(q, self.policy.threshold(index, q)).output

    def sdpa_gqa(self, i: int) -> torch.Tensor:
        """What transformers runs at decode: fused attention with ``enable_gqa``."""
        layer, q = self.step(i)
        keys, values = self.keys[layer][None], self.values[layer][None]
        return scaled_dot_product_attention(q[None, :, None], keys, values, enable_gqa=True)

    def sdpa_packed(self, i: int) -> torch.Tensor:
        """The same with the queries of a key head packed into one matrix."""
        layer, q = self.step(i)
        keys, values = self.keys[layer][None], self.values[layer][None]
        return scaled_dot_product_attention(q.view(1, *self.shape), keys, values)

    def eager(self, i: int) -> torch.Tensor:
        """Matrix product, softmax, matrix product."""
        layer, q = self.step(i)
        scores = q.view(self.shape) @ self.keys[layer].transpose(1, 2) * self.scale
        return torch.softmax(scores, 2) @ self.values[layer]

    def prepare_peers(self) -> None:
        """Build Quest's boxes for all layers, and the HNSW graph of the first layer."""
        count = self.keys[0].shape[1]
        size = round(self.fraction * count)
        self.boxes = [Quest(size).build(keys) for keys in self.keys]
        self.graph = AnnIndex("hnsw", size).build(self.keys[0])

    def quest(self, i: int) -> np.ndarray:
        """Boxes of pages, the best pages, attention over them."""
        layer, q = self.step(i)
        boxes = self.boxes[layer]
        scores = boxes.page_scores(q.float()[:, None])[:, 0]
        pages = scores.topk(-(-boxes.budget // PAGE), dim=1).indices
        hit = torch.zeros(scores.shape, dtype=torch.uint8).scatter_(1, pages, 2)
        return self._attend(layer, q, hit.repeat_interleave(PAGE, 1))

    def twilight(self, i: int) -> np.ndarray:
        """All scores, the fewest keys that hold 95 % of the mass, attention over them."""
        layer, q = self.step(i)
        scores = (q.float().view(self.shape) @ self.keys[layer].float().transpose(1, 2)).view(
            len(q), -1
        )
        weights, order = torch.softmax(scores * self.scale, 1).sort(1, descending=True)
        inside = (weights.cumsum(1) - weights < 0.95).to(torch.uint8) * 2
        return self._attend(layer, q, torch.zeros_like(inside).scatter_(1, order, inside))

    def hnsw(self, i: int) -> np.ndarray:
        """Neighbours of each query head in the graph of the first layer, attention over them."""
        q = self.queries[0][:, i % self.queries[0].shape[1]].contiguous()
        found = torch.from_numpy(self.graph.neighbours(q)).clamp(min=0)
        flags = torch.zeros(len(q), self.keys[0].shape[1], dtype=torch.uint8).scatter_(1, found, 2)
        return self._attend(0, q, flags)

    def _attend(self, layer: int, q: torch.Tensor, flags: torch.Tensor) -> np.ndarray:
        """Attention over the flagged keys by the kernels of the index."""
        count = self.keys[layer].shape[1]
        padded = torch.nn.functional.pad(flags[:, :count], (0, -count % 8)).numpy()
        shape, queries = self.shape[:2], q.float().numpy().reshape(self.shape)
        indices = scratch("indices", (*shape, count), np.int32)
        scores = scratch("scores", (*shape, count), np.float32)
        counts, limits = np.empty((*shape, 2), np.int64), np.full(shape, np.inf, np.float32)
        output, lost = np.empty(self.shape, np.float32), np.empty(shape)
        keys, values = raw(self.keys[layer]), raw(self.values[layer])
        found = indices, scores, counts
        self.ops.collect(
            0, len(keys), padded.reshape(*shape, -1), count, keys, queries, limits, *found
        )
        self.ops.mix(
            0, len(keys), *found, values, np.float32(self.scale), limits, count, output, lost
        )
        return output

    def append_microseconds(self, tokens: int) -> float:
        """CPU time per token and key head of appending tokens one by one, encoding included."""
        index, heads = self.indices[0], self.shape[0]
        index = index.clone()
        keys, values = self.keys[0][:, :tokens].clone(), self.values[0][:, :tokens].clone()
        index.append(keys[:, :1], values[:, :1])  # grows the storage
        start = time.process_time()
        for token in range(1, tokens):
            index.append(keys[:, token : token + 1], values[:, token : token + 1])
        return (time.process_time() - start) / (tokens - 1) / heads * 1e6
