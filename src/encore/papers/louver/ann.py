"""Approximate nearest-neighbour indices of faiss with the interface of the sparse methods."""

import numpy as np
import torch

from encore.papers.louver.baselines import SparseMethod

KINDS = ("hnsw", "ivf", "pq", "lsh")


class AnnIndex(SparseMethod):
    """One faiss index per key head, by inner product (LSH: by Hamming distance of its codes).

    Args:
        kind: ``"hnsw"`` (32 links; the search keeps as many candidates as it returns, at least 16), ``"ivf"`` (sqrt(N) lists, an eighth of them probed), ``"pq"``
            (codes of d/4 bytes) or ``"lsh"`` (2 d bits).
        budget: how many neighbours are asked for.

    Raises:
        ValueError: an unknown kind, or a budget below 1.
        ImportError: faiss is not installed.
    """

    def __init__(self, kind: str, budget: int):
        super().__init__(budget)
        if kind not in KINDS:
            raise ValueError(f"kind={kind!r}; expected one of {KINDS}")
        self.kind = kind

    def build(self, keys):
        """Train and fill an index of each head of keys (H_kv, N, d); returns itself."""
        super().build(keys)
        self.indices = []
        for rows in self.keys.numpy():
            index = _empty(self.kind, *rows.shape)
            rows = np.ascontiguousarray(rows)
            index.train(rows)
            index.add(rows)
            self.indices.append(index)
        return self

    def neighbours(self, q: torch.Tensor) -> np.ndarray:
        """Positions (H_q, budget) in the order of the index; -1 where it found fewer."""
        groups = q.float().reshape(len(self.indices), -1, q.shape[-1]).numpy()
        for index in self.indices if self.kind == "hnsw" else []:
            index.hnsw.efSearch = max(16, self.budget)
        found = [
            index.search(np.ascontiguousarray(rows), self.budget)[1]
            for index, rows in zip(self.indices, groups, strict=True)
        ]
        return np.concatenate(found)

    def choose(self, queries, lengths):
        """The neighbours of every query; all keys must be visible to all queries.

        Raises:
            ValueError: a query that may not see all keys.
        """
        count = self.keys.shape[1]
        if int(lengths.min()) < count:
            raise ValueError(f"lengths={int(lengths.min())}; expected {count}: the index is whole")
        found = torch.from_numpy(self.neighbours(queries.reshape(-1, queries.shape[2])))
        chosen = torch.zeros(len(found), count + 1, dtype=torch.bool)
        chosen.scatter_(1, found.masked_fill(found < 0, count), True)
        return chosen[:, :count].view(*queries.shape[:2], count)


def _empty(kind: str, count: int, dim: int):
    import faiss

    faiss.omp_set_num_threads(1)
    if kind == "hnsw":
        index = faiss.IndexHNSWFlat(dim, 32, faiss.METRIC_INNER_PRODUCT)
    elif kind == "ivf":
        lists = max(1, int(count**0.5))
        index = faiss.IndexIVFFlat(faiss.IndexFlatIP(dim), dim, lists, faiss.METRIC_INNER_PRODUCT)
        index.nprobe = max(1, lists // 8)
        index.cp.min_points_per_centroid = 1  # no warning on standard error
    elif kind == "pq":
        index = faiss.IndexPQ(dim, max(1, dim // 4), 8, faiss.METRIC_INNER_PRODUCT)
        index.pq.cp.min_points_per_centroid = 1
    else:
        index = faiss.IndexLSH(dim, 2 * dim)
    return index
