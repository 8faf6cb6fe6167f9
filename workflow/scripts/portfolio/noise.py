"""What a second measurement of the costs does to portfolios, chosen before it or after it."""

import pandas as pd

from encore.core.job import job, read_parquet
from encore.core.metrics import Table
from encore.papers.portfolio import evaluation
from encore.papers.portfolio.evaluation import noise_levels, remeasured, seed_of

with job(snakemake) as (input, output, params):
    data, options, parts = read_parquet(input.data), params.options, []
    for family, archive in evaluation.archives(data).items():
        levels = noise_levels(data[data["family"] == family], options["levels"])
        for seed in params.seeds:
            found = remeasured(
                archive,
                levels,
                options["demand"],
                params.profiles,
                options["sizes"],
                seed_of(family, seed),
            )
            parts.append(found.assign(family=family, seed=seed))
        print(f"{family}: {list(levels)}")
    rows, table = pd.concat(parts, ignore_index=True), Table("portfolio")
    for metric, part in rows.groupby("metric"):
        table.add(dataset=params.dataset, metric=metric, value=part["value"], method=part["method"],
                  seed=part["seed"], family=part["family"], k=part["k"], level=part["level"],
                  direction=part["direction"],
                  better="lower" if metric == "coverage_lost" else "higher")  # fmt: skip
    table.write(output.runs)
