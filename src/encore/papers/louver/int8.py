"""The int8 filter: codes of centred keys and a certified upper bound of every score."""

import copy

import numpy as np
import torch

from encore.papers.louver.scratch import scratch

PAD = 4  # code widths are multiples of this: a width of 1 is ambiguous to the integer product


class Int8Filter:
    """Codes c_n = round((k_n - mu)/s_n) of each key and the coefficients of its bounds.

    mu is the mean key of a head; once the keys have doubled since it was taken, all are encoded anew
    around their new mean (our choice).

    Args:
        heads: key heads.
        dim: head dimension.
        ops: module of kernels.
    """

    def __init__(self, heads: int, dim: int, ops):
        self.ops = ops
        self.count = self.centred = 0
        self.mu = np.zeros((heads, dim), np.float32)
        self.width = -(-dim // PAD) * PAD
        self.codes = np.zeros((heads, 0, self.width), np.int8)
        self.coefficients = np.zeros((3, heads, 0), np.float32)

    def _grow(self, capacity: int) -> None:
        heads = len(self.mu)
        codes = np.zeros((heads, capacity, self.width), np.int8)
        coefficients = np.empty((3, heads, capacity), np.float32)
        codes[:, : self.count] = self.codes[:, : self.count]
        coefficients[:, :, : self.count] = self.coefficients[:, :, : self.count]
        self.codes, self.coefficients = codes, coefficients

    @property
    def nbytes(self) -> int:
        """Bytes of codes and coefficients of the encoded keys, and of the centres."""
        return len(self.mu) * self.count * (self.width + 12) + self.mu.nbytes

    def extend(self, keys: np.ndarray, stop: int) -> None:
        """Encode keys (heads, >= stop, dim) up to ``stop``."""
        if stop > self.codes.shape[1]:
            self._grow(max(stop, 2 * self.codes.shape[1]))
        if stop >= 2 * self.centred:
            self._centre(keys, stop)
        for head in range(len(self.mu)):
            rows = slice(self.count, stop)
            scale, lean, rest = self.coefficients[:, head, rows]
            self.ops.encode(
                keys[head, rows], self.mu[head], self.codes[head, rows], scale, lean, rest
            )
        self.count = stop

    def _centre(self, keys: np.ndarray, stop: int) -> None:
        self.count, self.centred = 0, stop
        for head, mu in enumerate(self.mu):
            raw = torch.from_numpy(keys[head, :stop])
            wide = raw.view(torch.bfloat16) if raw.dtype == torch.int16 else raw
            mu[:] = wide.mean(0, dtype=torch.float64).float().numpy()

    def crop(self, stop: int) -> None:
        """Forget keys from ``stop`` on."""
        self.count = min(self.count, stop)

    def clone(self) -> "Int8Filter":
        """A copy that shares nothing."""
        twin = copy.copy(self)
        twin.mu, twin.codes = self.mu.copy(), self.codes.copy()
        twin.coefficients = self.coefficients.copy()
        return twin

    def _integer_scores(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """q^.c_n (H, G, count) int32, exact, and the terms (H, G, 4) of the queries."""
        heads, group, _ = q.shape
        codes = np.zeros((heads, group, self.width), np.int8)
        terms = np.empty((heads, group, 4), np.float32)
        self.ops.quantise(q, self.mu, codes, terms)
        dots = scratch("dots", (heads, group, self.count), np.int32)
        left, right = torch.from_numpy(codes), torch.from_numpy(self.codes)
        out = torch.from_numpy(dots)
        for head in range(heads):
            torch._int_mm(left[head], right[head, : self.count].T, out=out[head])
        return dots, terms

    def flag(self, q: np.ndarray, threshold: np.ndarray, flags: np.ndarray) -> None:
        """Set flags (H, G, >= count) to 1 where a score of q (H, G, dim) may reach threshold (H, G)."""
        self.ops.flag(*self._integer_scores(q), self.coefficients, threshold, flags)

    def bounds(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper bounds (H, G, count) float32 of the scores of q (H, G, dim)."""
        dots, terms = self._integer_scores(q)
        lower, upper = (scratch(name, dots.shape, np.float32) for name in ("lower", "upper"))
        self.ops.bounds(dots, terms, self.coefficients, lower, upper)
        return lower, upper
