"""Nats per token that each method costs, and greedy tokens of dense attention against the index."""

from pathlib import Path

import numpy as np
import torch

from encore.core.job import job, read_tensors
from encore.core.metrics import Table
from encore.papers.louver.accuracy import BUDGETED, Study, same_tokens
from encore.papers.louver.data import load_model

NEEDS = "needs models of 3 to 14 billion parameters and their benchmarks"

with job(snakemake) as (input, output, params):
    torch.set_num_threads(1)
    dataset, options, table = snakemake.wildcards.dataset, params.options, Table("louver")
    tensors = read_tensors(input.data)
    model, _ = load_model(params.model, Path(input.model[0]).parent if input.model else None)
    cases = [(part, seed) for part in params.parts[dataset] for seed in params.seeds]
    prompts = []
    for part, seed in cases:
        ids = tensors[f"{part}.{seed}.ids"]
        prompts.append(ids[-options["prompt"] :])
        ids = ids[: options["context"] + options["tokens"]]
        study = Study(model, ids, options["context"], options["dense_layers"])
        dense, _ = study.nats("dense", 1.0)
        row = {"dataset": dataset, "seed": seed, "part": part}
        table.add(metric="nats", method="dense", value=dense.mean(), unit="nats/token", **row)
        asked = [(n, b, v) for b, v in options["budgets"].items() for n in ("louver", *BUDGETED)]
        for method, label, budget in [*asked, ("twilight", "mass", 0.9)]:
            nats, kept = study.nats(method, budget)
            more = (nats - dense).view(-1, options["block"]).mean(1).double().numpy()
            names = {"method": method, "budget": label} | row
            table.add(
                metric="nats_lost", value=more, unit="nats/token", better="lower",
                block=np.arange(len(more)), **names,
            )  # fmt: skip
            table.add(metric="kept_share", value=kept, **names)
            print(names, more.mean(), kept)
    pair = torch.stack(prompts)[:2]
    found = same_tokens(model, pair, options["padding"], options["generated"])
    print(found["stats"])
    row = {"dataset": dataset, "seed": params.seeds[0], "method": "louver"}
    for sequence, same in enumerate(found["same"]):
        table.add(
            metric="same_token", value=same.astype(float), better="higher",
            step=np.arange(len(same)), sequence=sequence, **row,
        )  # fmt: skip
    table.add(metric="index_steps", value=found["stats"]["louver"], **row)
    for metric in ("longbench", "ruler", "aime_2024", "math_500"):
        table.add(metric=metric, value=np.nan, reason=NEEDS, **row)
    table.write(output.runs)
