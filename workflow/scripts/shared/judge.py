"""Turn claims and the table of metrics into verdicts."""

from encore.core.claims import judge_all
from encore.core.job import job, write_json
from encore.core.metrics import read

with job(snakemake) as (input, output, params):
    records = judge_all(params.claims, read(input.table), params.context)
    for record in records:
        print(f"{record['id']:>8} {record['dataset']:<16} {record['verdict']}")
    write_json(output[0], records, digits=6)
