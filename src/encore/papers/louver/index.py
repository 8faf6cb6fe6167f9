"""The index over a KV cache: every key whose score reaches a threshold, and attention over these."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch

from encore.papers.louver import torch_kernels
from encore.papers.louver.checks import check_finite, checked_floats
from encore.papers.louver.scratch import scratch
from encore.papers.louver.store import KeyStore

ALWAYS = 2  # flag of a key that is kept whatever its score


@dataclass(frozen=True)
class RangeResult:
    """Keys of each query head with a score that reaches its threshold.

    Attributes:
        indptr: (H_q + 1,) int64; head i owns indices[indptr[i] : indptr[i + 1]].
        indices: int32 positions, ascending within a head.
        scores: float32 q.k of each.
        candidates: (H_q,) int64 keys whose exact score had to be computed.
    """

    indptr: torch.Tensor
    indices: torch.Tensor
    scores: torch.Tensor
    candidates: torch.Tensor


@dataclass(frozen=True)
class AttendResult:
    """Attention over the keys that reach the threshold.

    Attributes:
        output: (H_q, d_v) in the type of the query; zeros for a head that keeps nothing.
        kept: (H_q,) int64 number of keys.
        dropped_mass_bound: (H_q,) float64; at most this share of the softmax was left out, and the
            output is within twice this times the largest norm of a value.
    """

    output: torch.Tensor
    kept: torch.Tensor
    dropped_mass_bound: torch.Tensor


class LouverIndex(KeyStore):
    """Halfspace range search over the keys of one sequence in one layer, without false negatives.

    Keys are encoded in blocks of ``buffer``; those that wait for it are scored exactly.

    Args:
        head_dim: d.
        num_kv_heads: H_kv; query heads are a multiple of it.
        kind: ``"int8"`` (certified codes) or ``"subspace"`` (balls and boxes, the paper's geometry).
        dtype: float32 or bfloat16 in which keys and values are stored; None: that of the first keys.
        capacity: keys that fit before storage grows (by doubling).
        subspaces, group: S and r of ``kind="subspace"``.
        buffer: recent keys that may wait to be encoded.
        backend: ``"auto"``, ``"numba"`` or ``"torch"``.

    Raises:
        ValueError: a size below 1, an unknown kind or backend, a dtype that cannot be stored.
    """

    def search(
        self, q: torch.Tensor, threshold, *, mask: torch.Tensor | None = None
    ) -> RangeResult:
        """All keys n with q_h.k_n >= threshold_h, and none whose score is below by more than rounding.

        Args:
            q: (H_q, d) queries; heads that share a key head are neighbours.
            threshold: (H_q,) or a number, in units of q.k (before any scale).
            mask: (N,) bool; keys with False are left out.

        Raises:
            TypeError, ValueError: another shape or type, or numbers that are not finite.
        """
        groups = self._groups(q)
        limits, valid = self._limits(threshold, groups), self._valid(mask)
        if self._length:
            indices, scores, counts = self._collect(groups, limits, valid, None)
            kept = np.arange(self._length) < counts[..., :1]
            indices, scores = indices[kept], scores[kept]
        else:
            indices, scores = np.empty(0, np.int32), np.empty(0, np.float32)
            counts = np.zeros((*limits.shape, 2), np.int64)
        kept, candidates = counts.reshape(-1, 2).T
        return RangeResult(
            torch.from_numpy(np.concatenate([[0], kept.cumsum()])),
            torch.from_numpy(indices),
            torch.from_numpy(scores),
            torch.from_numpy(candidates.copy()),
        )

    def attend(
        self,
        q: torch.Tensor,
        threshold,
        *,
        scale: float | None = None,
        always_keep: torch.Tensor | None = None,
        mask: torch.Tensor | None = None,
    ) -> AttendResult:
        """Softmax attention over the keys that reach the threshold.

        Args:
            q, threshold, mask: as in ``search``.
            scale: of the scores in the softmax; None: 1/sqrt(d).
            always_keep: (m,) positions that are kept whatever their score.

        Raises:
            ValueError: as ``search``, an empty index, a scale that is not positive, or a position that
                is not held.
        """
        if not self._length:
            raise ValueError("attend on an empty index; expected at least one key")
        groups, scale = self._groups(q), self.head_dim**-0.5 if scale is None else float(scale)
        if not scale > 0:
            raise ValueError(f"scale={scale}; expected a positive number")
        limits, valid = self._limits(threshold, groups), self._valid(mask)
        found = self._collect(groups, limits, valid, self._always(always_keep))
        kept, values = found[2][..., 0], self._raw_values
        output = np.empty((*limits.shape, values.shape[2]), np.float32)
        lost, total = np.empty(limits.shape), self._length if valid is None else int(valid.sum())
        scale32 = np.float32(scale)
        self._each_head(self.ops.mix, *found, values, scale32, limits, total, output, lost)
        return AttendResult(
            torch.from_numpy(output.reshape(len(q), -1)).to(q.dtype),
            torch.from_numpy(kept.ravel()),
            torch.from_numpy(lost.ravel()),
        )

    def bounds(self, q: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Certified lower and upper bounds (H_q, N) float32 of q.k from the index alone.

        Keys that wait in the buffer have their exact score, widened by its rounding.
        """
        lower, upper = self._bounds(self._groups(q))
        return torch.from_numpy(lower), torch.from_numpy(upper)

    def _bounds(self, groups: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        lower, upper = self.filter.bounds(groups)
        waiting = self.keys[:, self.filter.count : self._length].float().transpose(1, 2)
        query = torch.from_numpy(groups)
        exact = query @ waiting
        unit = (self.head_dim + 8) * torch_kernels.UNIT
        slack = unit * (query.abs() @ waiting.abs()) + 2 * torch_kernels.TINY
        pairs = (lower, (exact - slack).numpy()), (upper, (exact + slack).numpy())
        low, up = (np.concatenate(pair, 2).reshape(-1, self._length) for pair in pairs)
        return low, up

    def bin_masses(self, q: torch.Tensor, scale: float, mask: torch.Tensor | None = None):
        """Histograms of the scaled bounds for ``CertifiedMass``: tops (H_q,), below and above (H_q, bins)."""
        (lower, upper), valid = self._bounds(self._groups(q)), self._valid(mask)
        if valid is not None:
            lower, upper = lower[:, valid], upper[:, valid]
        tops = upper.max(1, initial=-np.inf).astype(np.float64) * scale
        below, above = np.zeros((2, len(q), self.ops.MASS_BINS), np.int64)
        self.ops.bin_masses(lower, upper, scale, tops, below, above)
        return tops, below, above

    def sample_scores(self, q: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        """Scores (H_q, m) of the keys of the reservoir sample that the mask leaves in."""
        groups, valid, keys = self._groups(q), self._valid(mask), self.sample.keys
        keys = keys if valid is None else keys[:, valid[self.sample.positions]]
        scores = torch.from_numpy(groups) @ torch.from_numpy(keys).transpose(1, 2)
        return scores.view(len(q), -1)

    def sample_quantile(self, q: torch.Tensor, size: int, k: int) -> torch.Tensor:
        """The k-th largest (H_q,) of the scores of the first ``size`` sampled keys."""
        groups = self._groups(q)
        found = np.empty(groups.shape[:2], np.float32)
        self.ops.sample_quantile(groups, self.sample.keys, size, k, found)
        return torch.from_numpy(found.ravel())

    def _groups(self, q) -> np.ndarray:
        """Queries (H_kv, G, d) float32, checked except for finite numbers, which ``_limits`` checks."""
        q = checked_floats("q", q, 2)
        if q.shape[1] != self.head_dim:
            raise ValueError(f"q has d={q.shape[1]}; expected {self.head_dim}")
        if len(q) == 0 or len(q) % self.num_kv_heads:
            raise ValueError(f"q has {len(q)} heads; expected a multiple of {self.num_kv_heads}")
        return q.float().contiguous().numpy().reshape(self.num_kv_heads, -1, self.head_dim)

    def _limits(self, threshold, groups: np.ndarray) -> np.ndarray:
        """Thresholds (H_kv, G) float32, rounded down; a number stands for all heads."""
        heads = groups.shape[0] * groups.shape[1]
        wide = np.asarray(threshold, dtype=np.float64)
        if wide.ndim == 0:
            wide = np.full(heads, wide)
        if wide.shape != (heads,):
            raise ValueError(f"threshold has shape {wide.shape}; expected ({heads},)")
        limits = np.empty(groups.shape[:2], np.float32)
        bad = self.ops.round_down(wide, groups, limits)
        if bad == heads:
            check_finite("query", torch.from_numpy(groups.reshape(heads, -1)), ("head",))
        if bad >= 0:
            raise ValueError(f"threshold is NaN at head {bad}")
        return limits

    def _valid(self, mask) -> np.ndarray | None:
        if mask is None:
            return None
        if mask.dtype != torch.bool or mask.shape != (self._length,):
            raise ValueError(
                f"mask is {mask.dtype} {tuple(mask.shape)}; expected bool ({self._length},)"
            )
        return mask.numpy()

    def _always(self, always_keep) -> np.ndarray | None:
        if always_keep is None:
            return None
        positions = torch.as_tensor(always_keep).numpy()
        if positions.size and not 0 <= positions.min() <= positions.max() < self._length:
            raise ValueError(f"always_keep reaches beyond the {self._length} keys held")
        return positions

    def _collect(self, groups, limits, valid, always) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Indices and scores (H_kv, G, N), filled from the left, and counts (H_kv, G, 2)."""
        encoded, n, shape = self.filter.count, self._length, limits.shape
        flags = scratch("flags", (*shape, -(-n // 8) * 8), np.uint8)
        if encoded:
            self.filter.flag(groups, limits, flags)
        flags[:, :, encoded:n] = 1
        flags[:, :, n:] = 0
        if always is not None:
            flags[:, :, always] = ALWAYS
        if valid is not None:
            flags[:, :, :n] *= valid
        indices = scratch("indices", (*shape, n), np.int32)
        scores = scratch("scores", (*shape, n), np.float32)
        counts = np.empty((*shape, 2), np.int64)
        self._each_head(
            self.ops.collect, flags, n, self._raw_keys, groups, limits, indices, scores, counts
        )
        return indices, scores, counts

    def _each_head(self, kernel, *arguments) -> None:
        """Run a kernel over ranges of key heads, on as many threads as torch uses."""
        heads = self.num_kv_heads
        threads = min(torch.get_num_threads(), heads)
        if threads == 1:
            kernel(0, heads, *arguments)
            return
        edges = [heads * i // threads for i in range(threads + 1)]
        with ThreadPoolExecutor(threads) as pool:
            tasks = [pool.submit(kernel, *pair, *arguments) for pair in pairwise(edges)]
        for task in tasks:
            task.result()
