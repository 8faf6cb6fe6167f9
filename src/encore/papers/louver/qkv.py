"""Captured queries, keys and values of some layers, and how they are stored."""

from dataclasses import dataclass
from pathlib import Path

import torch

from encore.core.job import read_tensors, write_tensors


@dataclass(frozen=True)
class QKVCapture:
    """What the attention of some layers saw of one sequence.

    Attributes:
        queries: by layer (H_q, T, d), the last T positions.
        keys, values: by layer (H_kv, N, d).
    """

    queries: dict[int, torch.Tensor]
    keys: dict[int, torch.Tensor]
    values: dict[int, torch.Tensor]

    @property
    def layers(self) -> list[int]:
        """Layers in ascending order."""
        return sorted(self.keys)

    def tensors(self, prefix: str = "") -> dict[str, torch.Tensor]:
        """All tensors as float16, named ``{prefix}{layer}.q`` (``.k``, ``.v``)."""
        parts = {"q": self.queries, "k": self.keys, "v": self.values}
        return {
            f"{prefix}{layer}.{name}": part[layer].half()
            for name, part in parts.items()
            for layer in part
        }

    @classmethod
    def of(cls, tensors: dict[str, torch.Tensor], prefix: str = "") -> "QKVCapture":
        """What ``tensors`` gave, as float32.

        Raises:
            ValueError: no tensor has the prefix.
        """
        parts: dict[str, dict[int, torch.Tensor]] = {"q": {}, "k": {}, "v": {}}
        for name, tensor in tensors.items():
            if name.startswith(prefix) and name[-2:] in (".q", ".k", ".v"):
                parts[name[-1]][int(name[len(prefix) : -2])] = tensor.float()
        if not parts["k"]:
            raise ValueError(
                f"no capture is called {prefix!r}; there are {sorted(tensors)[:5]} ..."
            )
        return cls(parts["q"], parts["k"], parts["v"])

    def write(self, path: str | Path) -> None:
        """Write as float16 safetensors."""
        write_tensors(path, self.tensors())

    @classmethod
    def read(cls, path: str | Path) -> "QKVCapture":
        """Read what ``write`` wrote, as float32."""
        return cls.of(read_tensors(path))
