"""Train through the layer, numbers before and after, and what its two backwards keep in memory."""

from pathlib import Path

import torch

from encore.core.job import job, write_npz
from encore.core.metrics import Table
from encore.papers.sparse_sos.instances import make
from encore.papers.sparse_sos.learning import runs
from encore.papers.sparse_sos.memory import memory_rows

with job(snakemake) as (input, output, params):
    torch.set_num_threads(1)
    dataset, table, arrays = params.dataset, Table("sparse_sos"), {}
    folder = str(Path(input.raw[0]).parent) if input.raw else ""
    for name, seed, run in runs(dataset, params.seeds, params.options, folder):
        print(name, seed, run.before, run.after)
        row = {"dataset": dataset, "seed": seed, "name": name}
        for stage, numbers in (("before", run.before), ("after", run.after)):
            for metric, value in numbers.items():
                table.add(
                    method="learned", metric=f"learn_{metric}", value=value, stage=stage, **row
                )
        for metric, value in run.change.items():
            table.add(method="learned", metric=metric, value=value, **row)
        arrays |= {f"{name}/{seed}/{key}": value for key, value in run.arrays.items()}
        arrays[f"{name}/{seed}/curve"] = run.curve
    for size in params.plan["sizes"][dataset]:
        for row in memory_rows(make(dataset, size, params.seeds[0], folder), params.plan["mu"]):
            table.add(dataset=dataset, seed=params.seeds[0], **row)
    table.write(output.runs)
    write_npz(output.arrays, **arrays)
