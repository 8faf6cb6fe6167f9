"""Bring one data set into data/ from its first source that can give it."""

from encore.core.data import fetch
from encore.core.job import job

with job(snakemake) as (input, output, params):
    kind = fetch(params.name, snakemake.config["mirrors"], download=snakemake.config["download"])
    print(f"{params.name}: {kind}")
