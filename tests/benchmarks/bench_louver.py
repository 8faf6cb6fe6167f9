"""Costs of the louver index beside its peers; prints ratios of one run, asserts nothing.

Run: python tests/benchmarks/bench_louver.py (set OMP_NUM_THREADS=1). Random keys; the laptop run
measures the keys of a real model.
"""

import numpy as np
import torch

from encore.papers.louver import CertifiedMass
from encore.papers.louver.latency import Bench, interleaved

DENSE, PEERS = ("sdpa_gqa", "sdpa_packed", "eager"), ("quest", "twilight", "hnsw")


def layer(keys: int, seed: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Keys and values (3, N, 64) and queries (9, 16, 64) with a few strong channels, as models have."""
    draw = torch.Generator().manual_seed(seed)
    strength = torch.exp(torch.randn(64, generator=draw))
    held = strength * torch.randn(3, keys, 64, generator=draw) + 2 * strength
    values = torch.randn(3, keys, 64, generator=draw)
    return held, values, torch.randn(9, 16, 64, generator=draw)


def main() -> None:
    """Print every row."""
    torch.set_num_threads(1)
    for keys in (8192, 32768, 131072):
        for dtype in (torch.float32, torch.bfloat16):
            bench = Bench([layer(keys, seed) for seed in range(3)], dtype, 0.05)
            methods = ["louver", *DENSE]
            if keys == 32768 and dtype == torch.float32:
                bench.prepare_peers()
                methods += PEERS
            seconds = interleaved({m: getattr(bench, m) for m in methods}, 9)
            middle = {m: np.median(s) * 1e3 for m, s in seconds.items()}
            ratios = ", ".join(f"{m} {t / middle['louver']:.2f} x" for m, t in middle.items())
            print(f"{keys} keys, {dtype}: louver {middle['louver']:.2f} ms; {ratios}")
            if len(methods) > 4:
                print(f"build of a layer: {min(bench.build_seconds):.3f} s (target 1 s)")
                print(f"append: {bench.append_microseconds(2000):.1f} µs per token and head (50)")
                index, q = bench.indices[0], bench.queries[0][:, 0].contiguous()
                certified = {"threshold": lambda i, a=index, q=q: CertifiedMass().threshold(a, q)}
                cost = np.median(interleaved(certified, 9)["threshold"]) * 1e3
                print(f"threshold of CertifiedMass: {cost:.2f} ms")


if __name__ == "__main__":
    main()
