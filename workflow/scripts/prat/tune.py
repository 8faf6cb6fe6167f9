"""The best draw of every method on one real graph, by validation score on the tuning splits."""

from encore.core.job import job, write_json
from encore.papers.prat.experiments import tune
from encore.papers.prat.graphs import read_graph

with job(snakemake) as (input, output, params):
    dataset, part = snakemake.wildcards.dataset, snakemake.wildcards.part
    left_out = params.left_out.get(part, [])
    methods = [name for name in params.methods[dataset] if name not in left_out]
    found = tune([read_graph(input.raw)], methods, params.splits[part], **params.plan)
    write_json(output[0], found)
