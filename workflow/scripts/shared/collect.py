"""Join the tables that a paper's jobs wrote, and sum them up."""

from encore.core.job import job, write_parquet
from encore.core.metrics import collect, write_summary

with job(snakemake) as (input, output, params):
    table = collect(input.runs)
    write_parquet(output.table, table)
    if hasattr(output, "summary"):
        write_summary(output.summary, table)
