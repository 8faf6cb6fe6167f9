"""Coverage estimated from m profiles against a population: does the finite-sample bound hold?"""

import numpy as np

from encore.core.job import job, read_parquet
from encore.core.metrics import Table
from encore.papers.portfolio.evaluation import archives, sampling_gaps, seed_of, spread_out

with job(snakemake) as (input, output, params):
    table, options, seed = Table("portfolio"), params.options, params.seeds[0]
    for family, archive in spread_out(archives(read_parquet(input.data)), options["families"]):
        for m in options["sizes"]:
            found = sampling_gaps(archive, options, m, seed_of(family, seed))
            for metric, values in found.items():
                draws = seed + np.arange(len(values))
                table.add(dataset=params.dataset, method="greedy", seed=draws, metric=metric,
                          value=values, family=family, m=m)  # fmt: skip
            print(f"{family} m={m}: { ({name: round(v.mean(), 4) for name, v in found.items()}) }")
    table.write(output.runs)
