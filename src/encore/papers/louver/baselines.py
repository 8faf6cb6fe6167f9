"""Other ways to choose the keys of a step, in one interface: small versions of published methods.

All work on one sequence in one layer, keys (H_kv, N, d), and choose for every query head on its own.
A budget is a number of keys per query head, sinks and recent keys included.
"""

from abc import ABC, abstractmethod

import torch

SINK = 4
PAGE = 16


class SparseMethod(ABC):
    """Chooses keys for queries at the end of a sequence.

    Args:
        budget: most keys per query head (a share of the mass for ``Twilight``).

    Raises:
        ValueError: a budget below 1 (outside (0, 1) for ``Twilight``).
    """

    def __init__(self, budget: float):
        if budget < 1:
            raise ValueError(f"budget={budget}; expected at least 1 key")
        self.budget = int(budget)

    def build(self, keys: torch.Tensor) -> "SparseMethod":
        """Hold keys (H_kv, N, d); returns itself."""
        self.keys = keys.float()
        return self

    def select(self, q: torch.Tensor) -> list[torch.Tensor]:
        """Positions (ascending) that each query head of q (H_q, d), the next step, attends to."""
        length = torch.tensor([self.keys.shape[1]])
        chosen = self.choose(q.float()[:, None], length)[:, 0]
        return [row.nonzero().ravel() for row in chosen]

    @abstractmethod
    def choose(self, queries: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """What T queries per head attend to: bool (H_q, T, N).

        Args:
            queries: (H_q, T, d).
            lengths: (T,) how many of the first keys each query may see.
        """

    def _scores(self, queries: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """q.k (H_q, T, N), minus infinity where a key cannot be seen."""
        heads, steps, dim = queries.shape
        grouped = queries.reshape(len(self.keys), -1, dim)
        scores = (grouped @ self.keys.transpose(1, 2)).view(heads, steps, -1)
        return scores.masked_fill(~_seen(lengths, scores.shape[2]), -torch.inf)


def _seen(lengths: torch.Tensor, count: int) -> torch.Tensor:
    return torch.arange(count) < lengths[:, None]


def _largest(scores: torch.Tensor, count: int) -> torch.Tensor:
    """True at the ``count`` largest scores of each row, but never where a score is minus infinity."""
    count = min(count, scores.shape[-1])
    chosen = torch.zeros_like(scores, dtype=torch.bool)
    if count > 0:
        chosen.scatter_(-1, scores.topk(count, dim=-1).indices, True)
    return chosen & (scores > -torch.inf)


class OracleTopK(SparseMethod):
    """The keys with the largest scores, all of which are computed."""

    def choose(self, queries, lengths):
        """The ``budget`` largest scores."""
        return _largest(self._scores(queries, lengths), self.budget)


class StreamingLLM(SparseMethod):
    """Four sinks and a sliding window (Xiao et al. 2024)."""

    def choose(self, queries, lengths):
        """The first four keys and the last ``budget`` - 4; the same for every query."""
        place, ends = torch.arange(self.keys.shape[1]), lengths[:, None]
        window = (place >= ends - (self.budget - SINK)) & (place < ends)
        chosen = window | ((place < min(SINK, self.budget)) & (place < ends))
        return chosen.expand(len(queries), -1, -1).clone()


class Quest(SparseMethod):
    """Pages of 16 keys ranked by an upper bound from their box (Tang et al. 2024)."""

    def build(self, keys):
        """Hold the keys, and the box of each page; returns itself."""
        super().build(keys)
        count = keys.shape[1]
        self.page_of = torch.arange(count) // PAGE
        pages = int(self.page_of[-1]) + 1
        index = self.page_of[None, :, None].expand_as(self.keys)
        shape = (len(self.keys), pages, self.keys.shape[2])
        self.low = torch.full(shape, torch.inf).scatter_reduce(1, index, self.keys, "amin")
        self.high = torch.full(shape, -torch.inf).scatter_reduce(1, index, self.keys, "amax")
        return self

    def page_scores(self, queries: torch.Tensor) -> torch.Tensor:
        """Upper bounds (H_q, T, pages) of the scores within each page."""
        heads, steps, dim = queries.shape
        grouped = queries.reshape(len(self.keys), -1, dim)
        up = grouped.clamp(min=0) @ self.high.transpose(1, 2)
        return (up + grouped.clamp(max=0) @ self.low.transpose(1, 2)).view(heads, steps, -1)

    def choose(self, queries, lengths):
        """The last page, and those with the largest bounds, enough for the budget (at least two).

        The last page may be half full; all before it are full, so that no box holds a later key.
        """
        scores = self.page_scores(queries)
        last = (lengths - 1) // PAGE
        pages = torch.arange(scores.shape[2])
        scores = scores.masked_fill(pages > last[:, None], -torch.inf)
        scores = scores.masked_fill(pages == last[:, None], torch.inf)
        chosen = _largest(scores, max(2, -(-self.budget // PAGE)))
        return chosen[..., self.page_of] & _seen(lengths, len(self.page_of))


class Twilight(SparseMethod):
    """The fewest keys that hold a share of the attention mass (top-p; Lin et al. 2025).

    Args:
        budget: the share p of the mass.
    """

    def __init__(self, budget: float):
        if not 0 < budget < 1:
            raise ValueError(f"budget={budget}; expected a share in (0, 1)")
        self.budget = budget

    def choose(self, queries, lengths):
        """Keys in the order of their weight until the share is reached."""
        scores = self._scores(queries, lengths)
        weights = torch.softmax(scores * queries.shape[2] ** -0.5, -1)
        ordered, order = weights.sort(-1, descending=True)
        inside = ordered.cumsum(-1) - ordered < self.budget
        return torch.zeros_like(inside).scatter(-1, order, inside) & (scores > -torch.inf)


class H2O(SparseMethod):
    """Half of the budget for keys with the largest past attention, half for recent ones (Zhang et al. 2023).

    A key that is evicted never comes back.

    Args:
        budget: keys kept per query head.
    """

    def build(self, keys, mass=None):
        """Hold the keys and ``mass`` (H_q, n), the attention that the first n keys have received so far.

        Without it every key starts with none.
        """
        super().build(keys)
        self.mass = mass
        return self

    def choose(self, queries, lengths):
        """Step by step: evict, attend, add up the attention that each key received."""
        scores = self._scores(queries, lengths)
        heads, steps, count = scores.shape
        mass = torch.zeros(heads, count)
        start = int(lengths[0]) - 1
        if self.mass is not None:
            mass[:, : self.mass.shape[1]] = self.mass
        alive = torch.zeros(heads, count, dtype=torch.bool)
        alive[:, :start] = True
        chosen = torch.zeros(heads, steps, count, dtype=torch.bool)
        recent = max(1, self.budget // 2)
        for step, length in enumerate(lengths.tolist()):
            alive[:, start:length] = True
            start = length
            window = torch.zeros(count, dtype=torch.bool)
            window[max(0, length - recent) : length] = True
            heavy = mass.masked_fill(~alive | window, -torch.inf)
            alive = _largest(heavy, self.budget - recent) | (alive & window)
            weights = torch.softmax(
                scores[:, step].masked_fill(~alive, -torch.inf) * queries.shape[2] ** -0.5, -1
            )
            mass = mass + weights
            chosen[:, step] = alive
        return chosen
