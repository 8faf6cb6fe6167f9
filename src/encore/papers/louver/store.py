"""Keys and values that come and go, and the filter and sample that follow them."""

from importlib.util import find_spec
from typing import Self

import numpy as np
import torch

from encore.papers.louver import torch_kernels
from encore.papers.louver.checks import STORED, check_finite, checked_floats
from encore.papers.louver.int8 import Int8Filter
from encore.papers.louver.sample import ReservoirSample
from encore.papers.louver.subspace import SubspaceFilter


def kernels(backend: str):
    """The module of kernels of a backend.

    Raises:
        ValueError: an unknown name.
        NotImplementedError: ``triton``, which is not part of this package.
    """
    if backend == "auto":
        backend = "numba" if find_spec("numba") else "torch"
    if backend == "numba":
        from encore.papers.louver import kernels as compiled

        return compiled
    if backend == "torch":
        return torch_kernels
    if backend == "triton":
        raise NotImplementedError(
            "backend='triton': there are no GPU kernels here; move the cache to the CPU and use "
            "'numba' (compiled) or 'torch' (plain, slower than dense attention)"
        )
    raise ValueError(f"backend={backend!r}; expected 'auto', 'numba', 'torch' or 'triton'")


class KeyStore:
    """The keys and values of one sequence in one layer, a filter over the keys, and a sample of them.

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

    def __init__(
        self,
        head_dim: int,
        num_kv_heads: int,
        *,
        kind: str = "int8",
        dtype: torch.dtype | None = None,
        capacity: int = 1024,
        subspaces: int = 16,
        group: int = 4,
        buffer: int = 256,
        backend: str = "auto",
    ):
        sizes = {
            "head_dim": head_dim, "num_kv_heads": num_kv_heads, "capacity": capacity,
            "subspaces": subspaces, "group": group, "buffer": buffer,
        }  # fmt: skip
        for name, size in sizes.items():
            if size < 1:
                raise ValueError(f"{name}={size}; expected at least 1")
        if subspaces > head_dim and kind == "subspace":
            raise ValueError(f"subspaces={subspaces}; expected at most head_dim={head_dim}")
        if kind not in ("int8", "subspace"):
            raise ValueError(f"kind={kind!r}; expected 'int8' or 'subspace'")
        if dtype not in (None, *STORED):
            raise ValueError(f"dtype={dtype}; expected float32 or bfloat16")
        self.ops = kernels(backend)
        self.head_dim, self.num_kv_heads, self.kind = head_dim, num_kv_heads, kind
        self.dtype, self.capacity, self.buffer = dtype, capacity, buffer
        self.subspaces, self.group = subspaces, group
        self.keys = self.values = None
        self._reset()

    def _reset(self) -> None:
        heads, dim = self.num_kv_heads, self.head_dim
        self._length = 0
        if self.kind == "int8":
            self.filter = Int8Filter(heads, dim, self.ops)
        else:
            self.filter = SubspaceFilter(heads, dim, self.subspaces, self.group)
        self.sample = ReservoirSample()

    def __len__(self) -> int:
        return self._length

    @property
    def nbytes(self) -> int:
        """Bytes that the index needs beside the keys and values."""
        return self.filter.nbytes + self.sample.nbytes

    def build(self, keys: torch.Tensor, values: torch.Tensor) -> Self:
        """Hold keys (H_kv, N, d) and values (H_kv, N, d_v) in place of all earlier ones; returns itself."""
        keys, values = self._checked(keys, values)
        self._reset()
        self.keys = self.values = None
        self._write(keys, values)
        return self

    def append(self, keys: torch.Tensor, values: torch.Tensor) -> None:
        """Add keys (H_kv, t, d) and values (H_kv, t, d_v) at the end."""
        self._write(*self._checked(keys, values))

    def _checked(self, keys, values) -> tuple[torch.Tensor, torch.Tensor]:
        keys, values = checked_floats("keys", keys, 3), checked_floats("values", values, 3)
        expected = (self.num_kv_heads, keys.shape[1], self.head_dim)
        if tuple(keys.shape) != expected:
            raise ValueError(f"keys have shape {tuple(keys.shape)}; expected {expected}")
        if values.shape[:2] != keys.shape[:2]:
            raise ValueError(
                f"values have shape {tuple(values.shape)}; expected {expected[:2]} and d_v"
            )
        if self._length and values.shape[2] != self.values.shape[2]:
            raise ValueError(f"values have d_v={values.shape[2]}; expected {self.values.shape[2]}")
        check_finite("key", keys, ("head", "position"))
        check_finite("value", values, ("head", "position"))
        return keys, values

    def _write(self, keys: torch.Tensor, values: torch.Tensor) -> None:
        if self.dtype is None:
            self.dtype = keys.dtype
        stop = self._length + keys.shape[1]
        if self.keys is None or stop > self.keys.shape[1]:
            room = max(stop, self.capacity if self.keys is None else 2 * self.keys.shape[1])
            self.attach(
                *(
                    grown(old, (self.num_kv_heads, room, new.shape[2]), self.dtype)
                    for old, new in ((self.keys, keys), (self.values, values))
                )
            )
        self.keys[:, self._length : stop] = keys
        self.values[:, self._length : stop] = values
        self.advance(keys.shape[1])

    def attach(self, keys: torch.Tensor, values: torch.Tensor) -> None:
        """Use storage (H_kv, capacity, d) of the caller, who has put the indexed keys there already."""
        self.keys, self.values, self.dtype = keys, values, keys.dtype
        self._raw_keys, self._raw_values = raw(keys), raw(values)

    def advance(self, count: int) -> None:
        """Take in ``count`` keys that were written to the storage behind the last one."""
        self.sample.extend(self._raw_keys, self._length, self._length + count)
        self._length += count
        if self._length - self.filter.count >= self.buffer:
            self.filter.extend(self._raw_keys, self._length)

    def crop(self, length: int) -> None:
        """Keep the first ``length`` keys; ``ValueError`` unless 0 <= length <= len(self)."""
        if not 0 <= length <= self._length:
            raise ValueError(f"length={length}; expected 0 to {self._length}")
        self._length = length
        self.filter.crop(length)
        self.sample.crop(self._raw_keys, length)
        self.advance(0)

    def reorder(self, positions: torch.Tensor) -> None:
        """Hold the keys at ``positions`` (n,) in that order; the index is built anew."""
        positions = torch.as_tensor(positions)
        if positions.dtype not in (torch.int32, torch.int64) or positions.ndim != 1:
            raise TypeError(
                f"positions are {positions.dtype} {tuple(positions.shape)}; expected 1-D integers"
            )
        if len(positions) and not 0 <= int(positions.min()) <= int(positions.max()) < self._length:
            raise ValueError(f"positions reach beyond the {self._length} keys held")
        self.build(self.keys[:, positions], self.values[:, positions])

    def clone(self) -> Self:
        """A copy over the same storage (to be attached to another); codes and sample are its own."""
        twin = object.__new__(type(self))
        twin.__dict__ |= self.__dict__
        twin.filter, twin.sample = self.filter.clone(), self.sample.clone()
        return twin


def raw(tensor: torch.Tensor) -> np.ndarray:
    """The tensor's numpy view; bfloat16 as its bits."""
    return (tensor.view(torch.int16) if tensor.dtype == torch.bfloat16 else tensor).numpy()


def grown(old: torch.Tensor | None, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """Fresh storage of a larger shape (…, capacity, d) with the old content in its first rows."""
    new = torch.empty(shape, dtype=dtype)
    if old is not None:
        new[..., : old.shape[-2], :] = old
    return new
