"""Index and Gram gaps of every graph of a data set, and gains between the methods trained on it."""

import pandas as pd

from encore.core.job import job
from encore.core.metrics import Table, read
from encore.papers.prat.evaluation import counts, diagnose, facts, gains, mismatch
from encore.papers.prat.generator import csbm
from encore.papers.prat.graphs import PACKAGED, packaged, read_graph

FACTORS = ("graph", "instance", "split", "h", "heterophilic", "over")

with job(snakemake) as (input, output, params):
    dataset, table = snakemake.wildcards.dataset, Table("prat")
    shared = {name: value for name, value in params.csbm.items() if name != "h"}
    if dataset == "csbm":
        drawn = [(h, seed) for h in params.csbm["h"] for seed in params.csbm_seeds]
        graphs = [(csbm(h=h, seed=seed, **shared), h, seed) for h, seed in drawn]
    elif dataset == "packaged":
        graphs = [(packaged(name), None, 0) for name in PACKAGED]
    else:
        graphs = [(read_graph(path), None, 0) for path in input.raw]
    for graph, h, seed in graphs:
        factors = facts(graph, h)
        instance = graph.name if h is None else f"{graph.name}_{seed}"
        for number in [*diagnose(graph), *mismatch(graph)]:
            table.add(
                dataset=dataset, method=number.method, seed=seed, metric=number.metric,
                value=number.value, better=number.better, instance=instance, **factors,
            )  # fmt: skip
    if input.fitted:
        scores = pd.concat([read(path) for path in input.fitted], ignore_index=True)
        gained = gains(scores)
        for row in gained.to_dict("records"):
            table.add(
                dataset=dataset, method=row["method"], seed=row["seed"], metric="gain",
                value=row["value"], better="higher",
                **{name: row[name] for name in FACTORS},
            )  # fmt: skip
        for metric, method, number in counts(scores, gained):
            table.add(dataset=dataset, method=method, seed=0, metric=metric, value=number)
    table.write(output[0])
