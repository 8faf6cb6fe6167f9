"""A cache for transformers whose layers hold one index per sequence and attend through it."""

from collections import Counter

import torch
from transformers.cache_utils import Cache, DynamicLayer

from encore.papers.louver.checks import check_finite
from encore.papers.louver.index import LouverIndex
from encore.papers.louver.store import grown
from encore.papers.louver.thresholds import Budget, ThresholdPolicy

FIRST_CAPACITY = 256


class LouverLayer(DynamicLayer):
    """Keys and values (B, H_kv, N, d) of one layer in storage that doubles, with an index per sequence.

    ``update`` returns views of the storage; the view of the keys carries the layer, so that the
    attention function finds the index.

    Args:
        policy: chooses the thresholds.
        dense: leave this layer to dense attention (no index is built).
        sink: first keys of a sequence that are always kept.
        buffer: recent keys that wait, always kept, until they are encoded together.
        index: further arguments of ``LouverIndex``.
    """

    def __init__(self, policy: ThresholdPolicy, dense: bool, sink: int, buffer: int, index: dict):
        super().__init__()
        self.policy, self.dense, self.sink = policy, dense, sink
        self.options = {"buffer": buffer, **index}
        self.counts: Counter = Counter()
        self.kept = self.held = 0
        self.largest_bound = 0.0
        self.reset()

    def reset(self) -> None:
        """Forget all keys; what was counted stays."""
        self.keys = self.values = self._store = None
        self.indices: list[LouverIndex] = []
        self.is_initialized = False

    def lazy_initialization(self, key_states, value_states) -> None:
        """Empty storage and indices for the batch size, heads and type of the first keys."""
        self.device, self.dtype = key_states.device, key_states.dtype
        self._store = tuple(
            new.new_empty((*new.shape[:2], FIRST_CAPACITY, new.shape[3]))
            for new in (key_states, value_states)
        )
        if not self.dense:
            shape = key_states.shape
            self.indices = [
                LouverIndex(shape[3], shape[1], dtype=self.dtype, **self.options)
                for _ in range(shape[0])
            ]
        self.is_initialized = True
        self._view(0)

    def _view(self, length: int) -> None:
        self.keys, self.values = (store[:, :, :length] for store in self._store)
        self.keys._louver_layer = self

    def _attach(self) -> None:
        for row, index in enumerate(self.indices):
            index.attach(*(store[row] for store in self._store))

    def update(self, key_states, value_states, *args, **kwargs):
        """Append the new keys and values; returns views of all of them.

        Raises:
            ValueError: another device than before, or numbers that are not finite.
        """
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        if key_states.device != self.device:
            raise ValueError(f"keys are on {key_states.device}; the cache is on {self.device}")
        check_finite("key", key_states, ("sequence", "head", "position"))
        check_finite("value", value_states, ("sequence", "head", "position"))
        start, stop = self.keys.shape[2], self.keys.shape[2] + key_states.shape[2]
        capacity = self._store[0].shape[2]
        if stop > capacity:
            room = max(stop, 2 * capacity)
            self._store = tuple(
                grown(store, (*store.shape[:2], room, store.shape[3]), self.dtype)
                for store in self._store
            )
        for store, new in zip(self._store, (key_states, value_states), strict=True):
            store[:, :, start:stop] = new
        if stop > capacity or start == 0:
            self._attach()
        for index in self.indices:
            index.advance(stop - start)
        self._view(stop)
        return self.keys, self.values

    def crop(self, tokens_to_remove: int) -> None:
        """Remove the last ``-tokens_to_remove`` keys, as in transformers."""
        if tokens_to_remove > 0:
            raise ValueError(f"tokens_to_remove={tokens_to_remove}; expected a negative number")
        if self.is_initialized and tokens_to_remove:
            length = max(0, self.keys.shape[2] + tokens_to_remove)
            for index in self.indices:
                index.crop(length)
            self._view(length)

    def _select(self, rows: torch.Tensor) -> None:
        """Hold the sequences ``rows`` of the batch, in that order."""
        if self.get_seq_length() and rows.tolist() != list(range(len(self.keys))):
            self._store = tuple(store.index_select(0, rows) for store in self._store)
            if self.indices:
                self.indices = [self.indices[row].clone() for row in rows.tolist()]
            self._attach()
            self._view(self.keys.shape[2])

    def reorder_cache(self, beam_idx: torch.Tensor) -> None:
        """Sequences in the order of ``beam_idx``."""
        self._select(beam_idx.to(self.device))

    def batch_repeat_interleave(self, repeats: int) -> None:
        """Every sequence ``repeats`` times."""
        if self.is_initialized:
            self._select(torch.arange(len(self.keys)).repeat_interleave(repeats))

    def batch_select_indices(self, indices: torch.Tensor) -> None:
        """Only the given sequences."""
        if self.is_initialized:
            self._select(torch.arange(len(self.keys))[indices])

    def attend(self, query: torch.Tensor, scale: float, mask: torch.Tensor | None) -> torch.Tensor:
        """Attention (B, H_q, d_v) of one query per sequence, (B, H_q, d); mask (B, N) bool or None."""
        return torch.stack(
            [
                self._attend_row(index, query[row], scale, None if mask is None else mask[row])
                for row, index in enumerate(self.indices)
            ]
        )

    def _attend_row(self, index, q, scale, mask):
        first = 0
        if mask is not None and bool(mask.all()):
            mask = None
        if mask is not None:
            first = int(mask.to(torch.uint8).argmax())
        sinks = torch.arange(first, min(first + self.sink, len(index)))
        recent = torch.arange(index.filter.count, len(index))
        threshold = self.policy.threshold(index, q, scale, mask)
        result = index.attend(
            q, threshold, scale=scale, always_keep=torch.cat([sinks, recent]), mask=mask
        )
        self.kept += int(result.kept.sum())
        self.held += len(q) * (len(index) if mask is None else int(mask.sum()))
        self.largest_bound = max(self.largest_bound, float(result.dropped_mass_bound.max()))
        return result.output


class LouverCache(Cache):
    """A cache for ``generate`` with ``attn_implementation="louver"``.

    Args:
        policy: chooses the thresholds; None: ``Budget(0.05)``.
        dense_layers: layers that keep dense attention (the first ones spread their mass widely).
        sink: first keys of a sequence that are always kept.
        buffer: recent keys that wait, always kept, until they are encoded together.
        kind, backend: as in ``LouverIndex``.

    Raises:
        TypeError: a policy that is none.
        ValueError: a negative sink, or a buffer below 1.
    """

    def __init__(
        self,
        policy: ThresholdPolicy | None = None,
        dense_layers: tuple[int, ...] = (0, 1),
        sink: int = 4,
        buffer: int = 256,
        kind: str = "int8",
        backend: str = "auto",
    ):
        policy = Budget(0.05) if policy is None else policy
        if not isinstance(policy, ThresholdPolicy):
            raise TypeError(f"policy is a {type(policy).__name__}; expected a ThresholdPolicy")
        if sink < 0 or buffer < 1:
            raise ValueError(f"sink={sink}, buffer={buffer}; expected at least 0 and 1")
        super().__init__(layers=[])
        self.policy, self.dense_layers, self.sink, self.buffer = policy, dense_layers, sink, buffer
        self.options = {"kind": kind, "backend": backend}

    def update(self, key_states, value_states, layer_idx: int, *args, **kwargs):
        """Append keys and values to a layer, which is made when it is first used."""
        while len(self.layers) <= layer_idx:
            dense = len(self.layers) in self.dense_layers
            self.layers.append(
                LouverLayer(self.policy, dense, self.sink, self.buffer, self.options)
            )
        return super().update(key_states, value_states, layer_idx, *args, **kwargs)

    def stats(self) -> dict[str, float]:
        """What was done how often, counted per layer and call.

        ``louver``: decode steps through the index; every other count is a reason for dense attention
        (``dense_layer``, ``prefill``, ``training``, ``output_attentions``, ``mask``). Besides these,
        ``kept_fraction`` of the keys and the ``largest_dropped_mass_bound`` of the louver steps.
        """
        counts = sum((layer.counts for layer in self.layers), Counter())
        held = sum(layer.held for layer in self.layers)
        kept = sum(layer.kept for layer in self.layers)
        worst = max((layer.largest_bound for layer in self.layers), default=0.0)
        return {
            **counts,
            "kept_fraction": kept / held if held else 0.0,
            "largest_dropped_mass_bound": worst,
        }
