"""Which model meets which profile: a boolean matrix in one of three storages."""

from collections.abc import Sequence
from functools import cached_property
from typing import Literal, Protocol

import numpy as np

from encore.papers.portfolio.archive import Archive
from encore.papers.portfolio.profiles import ProfileSet

Storage = Literal["packed", "dense", "csr"]
_WORD = np.dtype("<u8")
_BLOCK = 4096  # profiles packed at a time; a multiple of 64
_ROWS = 2048  # models whose weighted gains are summed at a time


def pack_bits(mask: np.ndarray) -> np.ndarray:
    """Bits of a boolean array (..., m) as uint64 words (..., ceil(m / 64)), lowest bit first."""
    packed = np.packbits(mask, axis=-1, bitorder="little")
    missing = -packed.shape[-1] % 8
    if missing:
        packed = np.concatenate(
            [packed, np.zeros((*packed.shape[:-1], missing), dtype=np.uint8)], axis=-1
        )
    return np.ascontiguousarray(packed).view(_WORD)


def unpack_bits(words: np.ndarray, m: int) -> np.ndarray:
    """The boolean array (..., m) that ``pack_bits`` packed."""
    octets = np.ascontiguousarray(words, dtype=_WORD).view(np.uint8)
    return np.unpackbits(octets, axis=-1, count=m, bitorder="little").view(np.bool_)


def column_counts(words: np.ndarray, m: int) -> np.ndarray:
    """How many rows have each bit set, int64 (m,), by carry-save addition of whole words."""
    total = np.zeros(m, dtype=np.int64)
    level, weight = words, 1
    while len(level):
        carries = []
        while len(level) >= 3:
            third = len(level) // 3
            a, b, c = level[:third], level[third : 2 * third], level[2 * third : 3 * third]
            partial = a ^ b
            carries.append((a & b) | (partial & c))
            level = np.concatenate([partial ^ c, level[3 * third :]])
        total += weight * unpack_bits(level, m).sum(axis=0, dtype=np.int64)
        level = np.concatenate(carries) if carries else level[:0]
        weight *= 2
    return total


def meet(utility: np.ndarray, required: np.ndarray) -> np.ndarray:
    """Packed feasibility: bit p of row x is set iff ``utility[x] >= required[p]`` in all columns.

    For each column the profiles are sorted by what they require; the packed sets of the r easiest
    ones are prefixes of one cumulative OR, so a model's set is a table look-up by its rank.

    Args:
        utility: float64 (models, columns), larger is better.
        required: float64 (profiles, columns), ``-inf`` where unconstrained.

    Returns:
        uint64 words (models, ceil(profiles / 64)).
    """
    blocks = []
    for start in range(0, len(required), _BLOCK):
        block = required[start : start + _BLOCK]
        words = np.full((len(utility), -(-len(block) // 64)), ~np.uint64(0), dtype=_WORD)
        for have, need in zip(utility.T, block.T, strict=True):
            order = np.argsort(need, kind="stable")
            steps = np.zeros((len(block) + 1, words.shape[1]), dtype=_WORD)
            bit = np.uint64(1) << (order % 64).astype(np.uint64)
            steps[np.arange(1, len(block) + 1), order // 64] = bit
            easiest = np.bitwise_or.accumulate(steps, axis=0)
            words &= easiest[np.searchsorted(need[order], have, side="right")]
        blocks.append(words)
    return np.concatenate(blocks, axis=1)


class Matrix(Protocol):
    """Rows of bits with the one operation that greedy selection needs."""

    nbytes: int

    def gains(self, weight: np.ndarray, index: np.ndarray | None = None) -> np.ndarray:
        """Sum of the weights at the bits of each row (of the rows ``index``), float64."""

    def rows(self, index: np.ndarray) -> np.ndarray:
        """Some rows as booleans (len(index), profiles)."""


class PackedMatrix:
    """64 profiles a word; popcount for equal weights, table look-up by bytes for others.

    ``words`` is (words, models): a sum over words then runs along memory, many models at a time.
    """

    def __init__(self, words: np.ndarray, m: int) -> None:
        self.words, self.m = np.ascontiguousarray(words.T), m
        self.nbytes = self.words.nbytes
        self._count = np.uint16 if m < 2**16 else np.uint32

    def gains(self, weight: np.ndarray, index: np.ndarray | None = None) -> np.ndarray:
        words = self.words if index is None else self.words[:, index]
        positive = weight > 0
        live = weight[positive]
        if len(live) == 0:
            return np.zeros(words.shape[1])
        if live.min() < live.max():
            return self._lookup(words, weight)
        common = np.bitwise_count(words & pack_bits(positive)[:, None])
        return common.sum(axis=0, dtype=self._count) * float(live[0])

    def _lookup(self, words: np.ndarray, weight: np.ndarray) -> np.ndarray:
        padded = np.zeros(64 * len(words))
        padded[: self.m] = weight
        bits = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little")
        table = (padded.reshape(-1, 8) @ bits.T.astype(np.float64)).reshape(len(words), 8, 256)
        word, byte = np.arange(len(words))[:, None, None], np.arange(8)
        sums = []
        for start in range(0, words.shape[1], _ROWS):
            block = np.ascontiguousarray(words[:, start : start + _ROWS])
            octets = block.view(np.uint8).reshape(*block.shape, 8)
            sums.append(table[word, byte, octets].sum(axis=(0, 2)))
        return np.concatenate(sums) if sums else np.zeros(0)

    def rows(self, index: np.ndarray) -> np.ndarray:
        return unpack_bits(self.words[:, index].T, self.m)


class DenseMatrix:
    """One byte a profile; gains as a matrix-vector product."""

    def __init__(self, words: np.ndarray, m: int) -> None:
        self.dense = unpack_bits(words, m)
        self.nbytes = self.dense.nbytes

    def gains(self, weight: np.ndarray, index: np.ndarray | None = None) -> np.ndarray:
        dense = self.dense if index is None else self.dense[index]
        live = np.flatnonzero(weight)
        blocks = [dense[i : i + _ROWS] for i in range(0, len(dense), _ROWS)]
        return np.concatenate([block[:, live] @ weight[live] for block in blocks])

    def rows(self, index: np.ndarray) -> np.ndarray:
        return self.dense[index]


class CsrMatrix:
    """Column indices of the ones (``scipy.sparse``): small where few models meet a profile."""

    def __init__(self, words: np.ndarray, m: int) -> None:
        from scipy.sparse import csr_array

        self.sparse = csr_array(unpack_bits(words, m))
        self.nbytes = sum(
            part.nbytes for part in (self.sparse.data, self.sparse.indices, self.sparse.indptr)
        )

    def gains(self, weight: np.ndarray, index: np.ndarray | None = None) -> np.ndarray:
        return (self.sparse if index is None else self.sparse[index]) @ weight

    def rows(self, index: np.ndarray) -> np.ndarray:
        return self.sparse[index].toarray()


_STORAGES = {"packed": PackedMatrix, "dense": DenseMatrix, "csr": CsrMatrix}


class Feasibility:
    """Boolean matrix models x profiles: which model meets a profile's whole bundle.

    Made by ``build``.  Model indices are positions in the archive everywhere, pruned or not.

    Attributes:
        archive, profiles: what it was built from.
        kept: positions of the models that are stored, ascending (int64).
        matrix: the stored rows.
        storage: ``"packed"``, ``"dense"`` or ``"csr"``.
    """

    def __init__(
        self, archive: Archive, profiles: ProfileSet, kept: np.ndarray, storage: Storage
    ) -> None:
        self.archive, self.profiles, self.kept, self.storage = archive, profiles, kept, storage
        self._columns, self._required = profiles.thresholds(archive)
        self.matrix: Matrix = _STORAGES[storage](self._pack(kept), len(profiles))
        self._row = np.full(len(archive), -1, dtype=np.int64)
        self._row[kept] = np.arange(len(kept))

    @classmethod
    def build(
        cls,
        archive: Archive,
        profiles: ProfileSet,
        storage: Storage = "packed",
        prune: bool = True,
        exclude: Sequence[int] = (),
    ) -> "Feasibility":
        """Compare every model with every profile.

        Args:
            archive: N models.
            profiles: M bundles of bounds on its columns.
            storage: how the rows are kept: N x M / 8, N x M, or about 5 bytes per feasible pair.
            prune: keep only Pareto-optimal models (no coverage is lost).
            exclude: positions that must not be used; pruning then takes place among the others.

        Raises:
            ValueError: unknown storage, a bound on an unknown column or against its sense.
        """
        if storage not in _STORAGES:
            raise ValueError(f"storage={storage!r}; expected one of {tuple(_STORAGES)}")
        allowed = np.setdiff1d(np.arange(len(archive)), np.asarray(exclude, dtype=np.int64))
        if prune and len(allowed):
            # All columns of the bundles; on those only, more models are equal and can go.
            source = archive if len(allowed) == len(archive) else archive.take(allowed)
            allowed = allowed[source.pareto(list(profiles.required))]
        return cls(archive, profiles, allowed, storage)

    def _pack(self, models: np.ndarray) -> np.ndarray:
        return meet(self.archive.utility[models][:, self._columns], self._required)

    @property
    def nbytes(self) -> int:
        """Bytes of the stored matrix."""
        return self.matrix.nbytes

    def rows(self, models: Sequence[int] | np.ndarray) -> np.ndarray:
        """Profiles that each model meets, bool (models, profiles); pruned models are computed anew.

        Raises:
            ValueError: a position outside the archive.
        """
        models = np.atleast_1d(np.asarray(models, dtype=np.int64))
        if len(models) and not (models.min() >= 0 and models.max() < len(self.archive)):
            raise ValueError(f"model position outside 0..{len(self.archive) - 1}: {models}")
        result = np.empty((len(models), len(self.profiles)), dtype=np.bool_)
        stored = self._row[models] >= 0
        result[stored] = self.matrix.rows(self._row[models[stored]])
        if not stored.all():
            result[~stored] = unpack_bits(self._pack(models[~stored]), len(self.profiles))
        return result

    def covered_by(self, selection: Sequence[int] | np.ndarray) -> np.ndarray:
        """Profiles that at least one selected model meets whole, bool (profiles,)."""
        return self.rows(selection).any(axis=0)

    @cached_property
    def coverability(self) -> np.ndarray:
        """Share of all models of the archive (before pruning) that meet each profile, float64."""
        everyone = self._pack(np.arange(len(self.archive)))
        return column_counts(everyone, len(self.profiles)) / len(self.archive)

    @cached_property
    def feasible(self) -> np.ndarray:
        """Profiles that some stored model meets, bool (profiles,)."""
        if isinstance(self.matrix, PackedMatrix):
            anyone = np.bitwise_or.reduce(self.matrix.words, axis=1)
            return unpack_bits(anyone, len(self.profiles))
        return self.matrix.rows(np.arange(len(self.kept))).any(axis=0)

    def coverage(self, selection: Sequence[int] | np.ndarray, of: str = "feasible") -> float:
        """Covered weight over the weight of all feasible profiles (or of ``"all"`` profiles).

        Raises:
            ValueError: unknown ``of``, or no profile is met by any model.
        """
        if of not in ("feasible", "all"):
            raise ValueError(f"of={of!r}; expected 'feasible' or 'all'")
        weight = self.profiles.weight
        whole = weight[self.feasible].sum() if of == "feasible" else weight.sum()
        if whole == 0:
            raise ValueError("no profile is met by any model")
        return float(weight[self.covered_by(selection)].sum() / whole)

    def gain(self, model: int, uncovered: np.ndarray) -> float:
        """Weight of the uncovered profiles (bool mask) that one model meets."""
        return float(self.profiles.weight[self.rows([model])[0] & uncovered].sum())
