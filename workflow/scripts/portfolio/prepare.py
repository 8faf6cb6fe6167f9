"""One table of measured models per data set: families below each other, Pareto-optimal models marked."""

import numpy as np
import pandas as pd

from encore.core.job import job, write_parquet
from encore.papers.portfolio.data import READERS
from encore.papers.portfolio.evaluation import archives

with job(snakemake) as (input, output, params):
    table = READERS[params.dataset](*input.raw)
    families = list(table["family"].unique())[: params.families]
    parts = []
    for family, archive in archives(table, params.families).items():
        part = table[table["family"] == family].copy()
        part["pareto"] = np.isin(np.arange(len(archive)), archive.pareto())
        print(f"{family}: {len(archive)} models, {part['pareto'].sum()} Pareto-optimal")
        parts.append(part)
    write_parquet(output[0], pd.concat(parts, ignore_index=True))
