"""A reservoir sample of the keys, from which the threshold policies estimate how scores are spread."""

import copy

import numpy as np
import torch

SIZE = 256


class ReservoirSample:
    """Positions of at most 256 keys, each set of keys equally likely, and a float32 copy of these keys.

    Algorithm R with a hash of the position in place of a random number: the sample of n keys is the
    same whether they came one by one or all at once, and cropping needs no history (our choice).
    """

    def __init__(self):
        self.positions = np.empty(0, np.int64)
        self.keys = None

    @property
    def nbytes(self) -> int:
        """Bytes of the sample."""
        return self.positions.nbytes + (0 if self.keys is None else self.keys.nbytes)

    def extend(self, keys: np.ndarray, start: int, stop: int) -> None:
        """Take in keys (heads, >= stop, d) at the positions from ``start`` to ``stop``."""
        if stop == start:
            return
        new = np.arange(start, stop)
        slots = np.where(new < SIZE, new, _hash(new) % (new + 1).astype(np.uint64)).astype(np.int64)
        new, slots = new[slots < SIZE], slots[slots < SIZE]
        if len(new) == 0:
            return
        held = np.concatenate(
            [self.positions, np.empty(min(stop, SIZE) - len(self.positions), np.int64)]
        )
        held[slots] = new  # the last one written to a slot stays
        if self.keys is None or len(held) > len(self.positions):
            self.keys, slots = (
                np.empty((len(keys), len(held), keys.shape[2]), np.float32),
                np.arange(len(held)),
            )
        self.positions = held
        rows = torch.from_numpy(keys[:, held[slots]])
        self.keys[:, slots] = (
            rows.view(torch.bfloat16) if rows.dtype == torch.int16 else rows
        ).float()

    def crop(self, keys: np.ndarray, length: int) -> None:
        """The sample of the first ``length`` keys."""
        if len(self.positions) and self.positions.max() >= length:
            self.__init__()
            self.extend(keys, 0, length)

    def clone(self) -> "ReservoirSample":
        """A copy that shares nothing."""
        return copy.deepcopy(self)


def _hash(x: np.ndarray) -> np.ndarray:
    """64 well mixed bits of each integer (the finaliser of splitmix64)."""
    x = x.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
