"""Misses of the index against brute force in float64, and how large the index is."""

import torch

from encore.core.job import job, read_tensors
from encore.core.metrics import Table
from encore.papers.louver.index import LouverIndex
from encore.papers.louver.latency import long_cache
from encore.papers.louver.qkv import QKVCapture
from encore.papers.louver.studies import DTYPES, adversarial_exactness, exactness

with job(snakemake) as (input, output, params):
    torch.set_num_threads(1)
    dataset, options, table = snakemake.wildcards.dataset, params.options, Table("louver")
    tensors, captures = read_tensors(input.data), []

    def add(found, seed, source, **factors):
        """Rows of misses, and of the pairs that they are counted in."""
        method = "codes_only" if found["policy"] == "codes_only" else found["kind"]
        names = {name: found[name] for name in ("kind", "dtype", "policy")}
        row = (
            {"dataset": dataset, "seed": seed, "method": method, "source": source} | names | factors
        )
        table.add(metric="misses", value=found["misses"], better="lower", **row)
        table.add(metric="pairs", value=found["pairs"], **row)

    for part in params.parts[dataset]:
        for seed in params.seeds:
            captures.append(QKVCapture.of(tensors, f"{part}.{seed}."))
            for layer in captures[-1].layers:
                keys, queries = captures[-1].keys[layer], captures[-1].queries[layer]
                for found in exactness(keys, queries, options["steps"]):
                    add(found, seed, "model", part=part, layer=layer)
    for seed in params.seeds:
        for found in adversarial_exactness(
            options["adversarial_keys"], options["adversarial_dim"], seed
        ):
            add(found, seed, "adversarial")
    rows = table.frame(timing=False)
    tested = rows[(rows["metric"] == "pairs") & (rows["method"] != "codes_only")]["value"].sum()
    seed, layer = params.seeds[0], captures[0].layers[0]
    table.add(dataset=dataset, method="all", seed=seed, metric="pairs_tested", value=tested)

    for where, size in (("window", captures[0].keys[layer].shape[1]), ("medium", params.size)):
        keys, values, _ = long_cache(captures, layer, size, seed)
        for name, dtype in DTYPES.items():
            index = LouverIndex(keys.shape[2], len(keys)).build(keys.to(dtype), values.to(dtype))
            share = index.nbytes / (2 * keys.to(dtype).nbytes)
            table.add(
                dataset=dataset, method="int8", seed=seed, metric="index_share", value=share,
                better="lower", dtype=name, keys=size, size=where,
            )  # fmt: skip
    table.write(output.runs)
