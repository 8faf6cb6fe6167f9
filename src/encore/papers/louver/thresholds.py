"""How a threshold is chosen at each step; all in units of q.k, before the scale of the softmax."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import torch

from encore.papers.louver.index import LouverIndex


class ThresholdPolicy(ABC):
    """Chooses the threshold of every query head from the query and the index."""

    @abstractmethod
    def threshold(
        self,
        index: LouverIndex,
        q: torch.Tensor,
        scale: float | None = None,
        mask: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Thresholds (H_q,) for queries (H_q, d).

        Args:
            index: the keys.
            q: queries.
            scale: of the softmax; None: 1/sqrt(d).
            mask: (N,) bool; keys with False do not count.
        """


@dataclass(frozen=True)
class Fixed(ThresholdPolicy):
    """The same threshold for all; minus infinity gives dense attention."""

    t: float

    def threshold(self, index, q, scale=None, mask=None):
        """The given number for every head."""
        return torch.full((len(q),), self.t, dtype=torch.float64)


class _Sampled(ThresholdPolicy):
    """Policies that read the scores of a reservoir sample of keys."""

    def threshold(self, index, q, scale=None, mask=None):
        """The statistic of the sampled scores; minus infinity without any key."""
        scores = index.sample_scores(q, mask) if len(index) else torch.empty(len(q), 0)
        if scores.shape[1] == 0:
            return torch.full((len(q),), -torch.inf, dtype=torch.float64)
        return self.of_sample(scores).double()

    @abstractmethod
    def of_sample(self, scores: torch.Tensor) -> torch.Tensor:
        """Thresholds (H_q,) from sampled scores (H_q, m)."""


@dataclass(frozen=True)
class Budget(_Sampled):
    """About a ``fraction`` of the keys: the quantile 1 - fraction of the first ``sample`` sampled scores.

    Raises:
        ValueError: a fraction outside (0, 1], or a sample outside 1 to 256.
    """

    fraction: float = 0.05
    sample: int = 256

    def __post_init__(self):
        if not 0 < self.fraction <= 1:
            raise ValueError(f"fraction={self.fraction}; expected a number in (0, 1]")
        if not 1 <= self.sample <= 256:
            raise ValueError(f"sample={self.sample}; expected 1 to 256")

    def threshold(self, index, q, scale=None, mask=None):
        """The k-th largest of the m sampled scores, k = fraction m rounded, at least 1."""
        if mask is not None or not len(index):
            return super().threshold(index, q, scale, mask)
        size = min(self.sample, len(index.sample.positions))
        return index.sample_quantile(q, size, max(1, round(self.fraction * size)))

    def of_sample(self, scores):
        """The same from given scores."""
        scores = scores[:, : self.sample]
        k = max(1, round(self.fraction * scores.shape[1]))
        return scores.topk(k, dim=1).values[:, -1]


@dataclass(frozen=True)
class SampleMax(_Sampled):
    """The largest sampled score: about one key in 257 reaches it."""

    def of_sample(self, scores):
        """Row maxima."""
        return scores.amax(1)


@dataclass(frozen=True)
class SampleMeanMax(_Sampled):
    """Halfway between mean and maximum of the sampled scores."""

    def of_sample(self, scores):
        """(mean + max)/2 of each row."""
        return (scores.mean(1) + scores.amax(1)) / 2


@dataclass(frozen=True)
class SampleGap(_Sampled):
    """The sampled score above the widest gap in the upper half of the sample."""

    def of_sample(self, scores):
        """Sorted downwards, the last score before the largest step down."""
        ordered = scores.sort(1, descending=True).values[:, : max(2, scores.shape[1] // 2)]
        if ordered.shape[1] == 1:
            return ordered[:, 0]
        place = (ordered[:, :-1] - ordered[:, 1:]).argmax(1)
        return ordered.gather(1, place[:, None])[:, 0]


@dataclass(frozen=True)
class CertifiedMass(ThresholdPolicy):
    """The largest threshold that provably loses at most a share ``eps`` of the attention mass (ours).

    Bounds of all scores are counted in 256 bins of exponent; only the bins' edges are exponentiated.
    A key counts as one bin higher (lower) than its upper (lower) bound falls, which covers rounding.

    Raises:
        ValueError: eps outside (0, 1).
    """

    eps: float = 0.02

    def __post_init__(self):
        if not 0 < self.eps < 1:
            raise ValueError(f"eps={self.eps}; expected a number in (0, 1)")

    def threshold(self, index, q, scale=None, mask=None):
        """The edge of the highest bin below which at most eps of the mass can lie."""
        scale = index.head_dim**-0.5 if scale is None else scale
        if not len(index):
            return torch.full((len(q),), -torch.inf, dtype=torch.float64)
        tops, below, above = index.bin_masses(q, scale, mask)
        span, bins = index.ops.MASS_SPAN, index.ops.MASS_BINS
        edges = np.arange(-2, bins + 3) * span / bins - span  # edge b stands at b + 2
        weight = np.exp(edges)
        least = below[:, 1:] @ weight[2:-4]  # a key of bin b weighs at least edge b - 1
        sure = np.zeros_like(above)
        sure[:, 2:] = above[:, :-2].cumsum(1)  # at edge b: keys of bins up to b - 2
        surely = np.zeros(above.shape)
        surely[:, 2:] = (above * weight[4:-1])[:, :-2].cumsum(1)  # each weighs at most edge b + 2
        maybe = (
            below.cumsum(1) - sure
        )  # their lower bound is below edge b: each weighs at most edge b
        lost = surely + maybe * weight[3:-2]
        fits = lost <= self.eps * least[:, None]
        last = fits.shape[1] - 1 - fits[:, ::-1].argmax(1)
        limit = (tops + edges[2:-3][last]) / scale
        return torch.from_numpy(np.where(fits.any(1) & np.isfinite(tops), limit, -np.inf))
