"""Greedy selection against the certified optimum on every family."""

from encore.core.job import job, read_parquet
from encore.core.metrics import Table
from encore.papers.portfolio.evaluation import Cell, archives, seed_of
from encore.papers.portfolio.selection import select

with job(snakemake) as (input, output, params):
    table, options = Table("portfolio"), params.options
    for family, archive in archives(read_parquet(input.data)).items():
        seed = params.seeds[0]
        cell = Cell.draw(archive, "uniform", options["profiles"], seed_of(family, seed))
        for k in options["sizes"]:
            best = select(cell.train, k, method="exact", time_limit=options["time_limit"])
            found = select(cell.train, k)
            where = {"dataset": params.dataset, "seed": seed, "family": family, "k": k}
            table.add(**where, method="greedy", metric="share_of_optimum", better="higher",
                      value=found.coverage / best.coverage)  # fmt: skip
            table.add(**where, method="exact", metric="certified", better="higher",
                      value=float(best.optimal))  # fmt: skip
            print(f"{family} K={k}: greedy {found.coverage:.4f}, optimum {best.coverage:.4f}")
    table.write(output.runs)
