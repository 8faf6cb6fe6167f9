"""Bytes of the three storages, and seconds of greedy selection in several implementations."""

from encore.core.job import job, read_parquet
from encore.core.metrics import Table
from encore.papers.portfolio.evaluation import archives, seed_of, storage_sizes, timed_methods

with job(snakemake) as (input, output, params):
    table, options, seed = Table("portfolio"), params.options, params.seeds[0]
    everything = archives(read_parquet(input.data))
    for family, archive in everything.items():
        for m in options["profiles"]:
            for row in storage_sizes(archive, m, seed_of(family, seed)):
                table.add(dataset=params.dataset, seed=seed, family=family, m=m, **row)
    family, archive = next(iter(everything.items()))
    m = options["profiles"][0]
    for row in timed_methods(archive, m, options["k"], options["repeats"], seed_of(family, seed)):
        table.add(dataset=params.dataset, family=family, m=m, k=options["k"], timing=True, **row)
    table.write(output.runs)
    table.write_timings(output.timings)
