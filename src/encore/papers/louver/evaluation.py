"""Brute force in float64, and inputs made to trip an index."""

import numpy as np
import torch

ADVERSARIAL = (
    "outlier_channel", "cancelling", "ties", "near_ties", "constant", "zero", "tiny", "huge",
    "mixed_scales", "one_hot", "far_centre",
)  # fmt: skip


def oracle_scores(keys: torch.Tensor, queries: torch.Tensor) -> torch.Tensor:
    """q.k in float64: keys (H_kv, N, d), queries (H_q, d) or (H_q, T, d); (H_q, N) or (H_q, T, N)."""
    heads, _, dim = keys.shape
    grouped = queries.double().reshape(heads, -1, dim)
    return (grouped @ keys.double().transpose(1, 2)).reshape(*queries.shape[:-1], -1)


def adversarial(
    name: str, heads: int, n: int, dim: int, seed: int, dtype: torch.dtype = torch.float32
) -> tuple[torch.Tensor, torch.Tensor]:
    """Keys (heads, n, dim) and three queries per head whose rounding or geometry is awkward.

    Args:
        name: one of ``ADVERSARIAL``.
        heads, n, dim: sizes.
        seed: of the draw.
        dtype: of the keys.

    Raises:
        ValueError: an unknown name.
    """
    rng = np.random.default_rng(seed)
    keys, queries = rng.normal(size=(heads, n, dim)), rng.normal(size=(3 * heads, dim))
    axis = np.arange(n)[None, :, None]
    if name == "outlier_channel":  # one dimension drowns the code of all others
        keys[..., 0] *= 1e4
    elif name == "cancelling":  # large terms whose sum is small
        keys[..., 0], keys[..., 1], queries[:, 1] = 1e5, 1e5, -queries[:, 0]
    elif name == "ties":
        keys = np.repeat(keys[:, :5], -(-n // 5), 1)[:, :n]
    elif name == "near_ties":  # scores that differ in the last bits only
        keys = keys[:, :1] * (1 + 2.0**-23 * (axis % 7))
    elif name == "constant":
        keys = np.broadcast_to(keys[:, :1], keys.shape)
    elif name == "zero":
        keys = np.zeros_like(keys)
    elif name == "tiny":
        keys = keys * 1e-41
    elif name == "huge":
        keys = keys * 1e18
    elif name == "mixed_scales":
        keys = keys * 10.0 ** rng.integers(-30, 15, size=(heads, n, 1))
    elif name == "one_hot":
        keys = np.where(axis % dim == np.arange(dim), 100.0, 0.0) + 0 * keys
    elif name == "far_centre":  # differences far below the mean of the keys
        keys = 1e-3 * keys + 1e4
    else:
        raise ValueError(f"name={name!r}; expected one of {ADVERSARIAL}")
    return torch.tensor(keys).to(dtype), torch.tensor(queries).float()
