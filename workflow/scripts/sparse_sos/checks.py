"""Gradients against references, certificates against searches."""

from pathlib import Path

from encore.core.job import job
from encore.core.metrics import Table
from encore.papers.sparse_sos.evaluation import checks, dense_certificate_gap
from encore.papers.sparse_sos.instances import make

with job(snakemake) as (input, output, params):
    dataset, plan, table = params.dataset, params.plan, Table("sparse_sos")
    folder = str(Path(input.raw[0]).parent) if input.raw else ""
    instances = [
        (make(dataset, size, seed, folder), seed)
        for size in plan["sizes"][dataset]
        for seed in params.seeds
    ]
    for row in checks(instances, plan):
        print(row)
        table.add(dataset=dataset, **row)
    if dataset == "chains":
        for seed in params.seeds:
            sparse = make(dataset, plan["dense_size"], seed)
            gap = dense_certificate_gap(plan["dense_size"], seed, sparse)
            table.add(
                dataset=dataset, method="dense_certificate", seed=seed, metric="dense_gap",
                value=gap, better="lower", size=sparse.size, name=sparse.name,
            )  # fmt: skip
    table.write(output.runs)
