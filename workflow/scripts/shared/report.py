"""Build the site of verdicts from the results that are there."""

from encore.core.job import job
from encore.core.report import build

with job(snakemake) as (input, output, params):
    print(build(params.scale))
