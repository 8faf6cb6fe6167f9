"""CPU time of a decode step: dense forms, the index and sparse peers in one run, one thread."""

import numpy as np
import torch

from encore.core.job import job, read_tensors
from encore.core.metrics import Table
from encore.papers.louver.latency import Bench, interleaved, long_cache
from encore.papers.louver.qkv import QKVCapture
from encore.papers.louver.studies import DTYPES

DENSE, PEERS = ("sdpa_gqa", "sdpa_packed", "eager"), ("quest", "twilight", "hnsw")

with job(snakemake) as (input, output, params):
    torch.set_num_threads(1)
    dataset, options, table = snakemake.wildcards.dataset, params.options, Table("louver")
    tensors, seed = read_tensors(input.data), params.seeds[0]
    names = [f"{part}.{s}." for part in params.parts[dataset] for s in params.seeds]
    captures = [QKVCapture.of(tensors, name) for name in names]
    layers = captures[0].layers[-3:]  # nine key heads: more than the last cache holds
    for size, keys in options["sizes"].items():
        caches = [long_cache(captures, layer, keys, seed) for layer in layers]
        for name, dtype in DTYPES.items():
            bench = Bench(caches, dtype, params.fraction)
            row = {"dataset": dataset, "seed": seed, "size": size, "keys": keys, "dtype": name}
            row["timing"] = True
            methods = ["louver", *DENSE]
            if size == "medium" and name == "fp32":
                bench.prepare_peers()
                methods += PEERS
                built = bench.build_seconds
                table.add(
                    metric="build_seconds", method="louver", value=built, unit="s",
                    repeat=np.arange(len(built)), **row,
                )  # fmt: skip
                value = bench.append_microseconds(options["appended"])
                table.add(metric="append_us", method="louver", value=value, unit="µs", **row)
            calls = {method: getattr(bench, method) for method in methods}
            found = interleaved(calls, options["repeats"])
            best = min(DENSE, key=lambda method: np.median(found[method]))
            row["repeat"] = np.arange(options["repeats"])
            for method, seconds in found.items():
                table.add(metric="cpu_ms", method=method, value=seconds * 1e3, unit="ms", **row)
            for peer in (*methods[1:], "best_dense"):
                ratio = found[best if peer == "best_dense" else peer] / found["louver"]
                table.add(metric="speedup", method="louver", value=ratio, peer=peer, **row)
            print(size, name, {m: np.median(s).round(6) for m, s in found.items()}, "best:", best)
    table.add(
        dataset=dataset, method="louver", seed=seed, metric="gpu_speedup", value=np.nan,
        reason="there are no GPU kernels here", timing=True,
    )  # fmt: skip
    table.write_timings(output.timings)
