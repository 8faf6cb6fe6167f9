"""Error spikes, variation over steps, recall of all methods, and what each structure must look at."""

import numpy as np
import torch

from encore.core.job import job, read_tensors
from encore.core.metrics import Table
from encore.papers.louver.qkv import QKVCapture
from encore.papers.louver.studies import causal_scores, pruning, recalls, spikes, variation

with job(snakemake) as (input, output, params):
    torch.set_num_threads(1)
    dataset, options, table = snakemake.wildcards.dataset, params.options, Table("louver")
    tensors, edges = read_tensors(input.data), np.linspace(-5, 1.5, 40)
    cases = [(part, seed) for part in params.parts[dataset] for seed in params.seeds]
    captured = [(*case, QKVCapture.of(tensors, "{}.{}.".format(*case))) for case in cases]
    every: dict[str, list[np.ndarray]] = {}
    work = [(*case, layer) for case in captured for layer in case[2].layers]
    for part, seed, capture, layer in work:
        keys, values, queries = (
            getattr(capture, name)[layer] for name in ("keys", "values", "queries")
        )
        scores = causal_scores(keys, queries)
        row = {"dataset": dataset, "seed": seed, "part": part, "layer": layer}
        row["head"] = np.arange(len(queries))
        errors = spikes(scores, values, params.fraction, seed)
        for method, found in errors.items():
            every.setdefault(method, []).append(found.ravel())
            middle = np.median(found, 1)
            table.add(metric="missed_key_error", method=method, value=middle, **row)
            if method != "random":
                ratio = middle / np.median(errors["random"], 1)
                table.add(metric="spike_ratio", method=method, value=ratio, **row)
                table.add(metric="spike_share", method=method, value=(found > 0.2).mean(1), **row)
        for metric, found in variation(scores, keys.shape[2]).items():
            table.add(metric=metric, method="exact", value=found, **row)
        for found in recalls(keys, queries, options["ks"], params.fraction, options["steps"]):
            names = {name: found[name] for name in ("method", "k", "budget")}
            table.add(metric="recall", value=found["recall"], better="higher", **names, **row)
        for found in pruning(keys, queries, params.fraction, options["pruning_steps"]):
            work = {"method": found["kind"], "better": "lower"} | row
            table.add(metric="scanned", value=found["scanned"], **work)
            table.add(metric="per_answer", value=found["scanned"] / found["answer"], **work)
    for method, found in every.items():
        logs = np.log10(np.maximum(np.concatenate(found), 1e-12)).clip(edges[0], edges[-1])
        share = np.histogram(logs, edges)[0] / len(logs)
        middles = (edges[:-1] + edges[1:]) / 2
        name = {"dataset": dataset, "seed": params.seeds[0], "metric": "error_share"}
        table.add(method=method, value=share, log10_error=middles, **name)
    table.write(output.runs)
