"""The geometric filter: groups of keys in subspaces, bounded by balls and boxes, swept from the top.

The head dimension is cut into S contiguous subspaces. In each, keys are grouped r at a time by a
balanced tree of principal directions; a group's scores in its subspace are bounded by its ball and
its box. Sorted by these bounds, row L of all subspaces sums to a bound of every key that no earlier
row holds: the sweep may stop where that sum falls below the threshold (Fagin, Lotem & Naor 2003).
"""

import copy

import numpy as np
import torch

UNIT = 2.0**-23  # twice the unit roundoff of float32
TINY = 2.0**-126  # smallest normal float32
POWER_STEPS = (
    4  # power iterations towards a principal direction; any direction keeps the bounds valid
)


class SubspaceFilter:
    """Balls and boxes of small groups of keys in each subspace.

    Args:
        heads: key heads.
        dim: head dimension.
        subspaces: S; dimensions are dealt out as evenly as possible.
        group: r, most keys of a group.
    """

    def __init__(self, heads: int, dim: int, subspaces: int, group: int):
        self.group = group
        self.columns = np.array_split(np.arange(dim), subspaces)
        self.member = np.zeros((dim, subspaces))
        for s, columns in enumerate(self.columns):
            self.member[columns, s] = 1.0
        self.chunks: list[dict] = []
        self.heads = heads
        self.count = 0

    @property
    def nbytes(self) -> int:
        """Bytes of all groups."""
        arrays = (array for chunk in self.chunks for array in chunk.values())
        return sum(array.nbytes for array in arrays if isinstance(array, np.ndarray))

    def extend(self, keys: np.ndarray, stop: int) -> None:
        """Group the keys (heads, >= stop, dim) from ``count`` to ``stop`` among themselves."""
        raw = torch.from_numpy(keys[:, self.count : stop])
        wide = (raw.view(torch.bfloat16) if raw.dtype == torch.int16 else raw).double()
        self.chunks.append(self._chunk(wide.numpy(), self.count))
        self.count = stop

    def _chunk(self, keys: np.ndarray, start: int) -> dict:
        members = np.stack(
            [balanced_groups(keys[:, :, columns], self.group) for columns in self.columns], 1
        )  # (H, S, groups, P) positions in the chunk
        heads, subspaces, groups, _ = members.shape
        dim = keys.shape[2]
        centre, low, high = (np.empty((heads, groups, dim), np.float32) for _ in range(3))
        radius = np.empty((heads, groups, subspaces), np.float32)
        for head in range(heads):
            for s, columns in enumerate(self.columns):
                grouped = keys[head][:, columns][members[head, s]]  # (groups, P, dims)
                middle = grouped.mean(1).astype(np.float32)
                centre[head][:, columns] = middle
                low[head][:, columns], high[head][:, columns] = grouped.min(1), grouped.max(1)
                away = np.linalg.norm(grouped - middle[:, None].astype(np.float64), axis=2)
                radius[head, :, s] = away.max(1) * (1 + UNIT) + TINY
        return {
            "start": start, "stop": start + keys.shape[1], "members": (members + start).astype(np.int32), "centre": centre,
            "low": low, "high": high, "radius": radius,
            "norm": np.linalg.norm(keys, axis=2).max(1) * (1 + UNIT),
        }  # fmt: skip

    def crop(self, stop: int) -> None:
        """Forget chunks that reach beyond ``stop``; their remaining keys are to be grouped again."""
        self.chunks = [chunk for chunk in self.chunks if chunk["stop"] <= stop]
        self.count = max((chunk["stop"] for chunk in self.chunks), default=0)

    def clone(self) -> "SubspaceFilter":
        """A copy with its own list of chunks (which are never changed in place)."""
        twin = copy.copy(self)
        twin.chunks = list(self.chunks)
        return twin

    def _group_bounds(self, chunk: dict, head: int, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper bounds (G, groups, S) of the partial scores of the groups' members."""
        wide = q.astype(np.float64)
        low, high = (chunk[name][head].astype(np.float64) for name in ("low", "high"))
        size = np.sqrt(wide**2 @ self.member)  # norms of the partial queries (G, S)
        middle = (wide[:, None] * chunk["centre"][head]) @ self.member
        reach = size[:, None] * chunk["radius"][head]
        box_up = np.maximum(wide[:, None] * low, wide[:, None] * high) @ self.member
        box_low = np.minimum(wide[:, None] * low, wide[:, None] * high) @ self.member
        slack = UNIT * (size[:, None] * chunk["norm"][head]) + 1e-300
        return np.maximum(middle - reach, box_low) - slack, np.minimum(
            middle + reach, box_up
        ) + slack

    def flag(self, q: np.ndarray, threshold: np.ndarray, flags: np.ndarray) -> None:
        """Set flags (H, G, >= count) to 1 for the members of the rows that the sweep visits."""
        flags[:, :, : self.count] = 0
        for chunk in self.chunks:
            for head in range(self.heads):
                _, upper = self._group_bounds(chunk, head, q[head])
                order = np.argsort(-upper, axis=1)
                rows = np.take_along_axis(upper, order, axis=1).sum(2)  # falls along axis 1
                for i, limit in enumerate(threshold[head]):
                    visited = int(np.searchsorted(-rows[i], -np.float64(limit), side="right"))
                    for s in range(len(self.columns)):
                        flags[head, i, chunk["members"][head, s, order[i, :visited, s]]] = 1

    def bounds(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper bounds (H, G, count) float32 of every score, summed over subspaces."""
        shape = (*q.shape[:2], self.count)
        lower, upper = np.zeros(shape), np.zeros(shape)
        for chunk in self.chunks:
            for head in range(self.heads):
                parts = self._group_bounds(chunk, head, q[head])
                for total, part in zip((lower[head], upper[head]), parts, strict=True):
                    self._spread(chunk, head, part, total)
        down, up = np.float32(-np.inf), np.float32(np.inf)
        return (
            np.nextafter(lower.astype(np.float32), down),
            np.nextafter(upper.astype(np.float32), up),
        )

    def _spread(self, chunk: dict, head: int, part: np.ndarray, total: np.ndarray) -> None:
        """Add the bounds (G, groups, S) of groups to those (G, count) of their members."""
        rows = slice(chunk["start"], chunk["stop"])
        for s in range(len(self.columns)):
            members = chunk["members"][head, s]
            each = np.empty(total.shape)
            each[:, members.ravel()] = np.repeat(part[:, :, s], members.shape[1], axis=1)
            total[:, rows] += each[:, rows]


def balanced_groups(points: np.ndarray, size: int) -> np.ndarray:
    """Positions (heads, groups, P <= size) of points (heads, n, dims), grouped by a balanced tree.

    Each level halves every segment at the median of its projections on the segment's principal
    direction. Groups are filled up by repeating the last position.
    """
    heads, n, dims = points.shape
    levels = max(0, int(np.ceil(np.log2(n / size))))
    padded = -(-n // 2**levels) * 2**levels
    order = np.broadcast_to(np.minimum(np.arange(padded), n - 1), (heads, padded)).copy()
    for level in range(levels):
        order = order.reshape(heads, 2**level, -1)
        segments = np.take_along_axis(points, order.reshape(heads, -1, 1), axis=1)
        segments = segments.reshape(*order.shape, dims)
        segments = segments - segments.mean(2, keepdims=True)
        widest = (segments**2).sum(2).argmax(2)[..., None, None]
        place = np.take_along_axis(segments, widest, axis=3)[..., 0]
        for _ in range(POWER_STEPS):
            direction = np.einsum("hsn,hsnd->hsd", place, segments)
            direction /= np.linalg.norm(direction, axis=2, keepdims=True) + 1e-300
            place = np.einsum("hsnd,hsd->hsn", segments, direction)
        order = np.take_along_axis(order, np.argsort(place, axis=2, kind="stable"), axis=2)
    return order.reshape(heads, 2**levels, -1)
