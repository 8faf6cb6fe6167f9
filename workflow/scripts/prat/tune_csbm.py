"""The best draw of every method on generated graphs that no claim is judged on."""

from encore.core.job import job, write_json
from encore.papers.prat.experiments import tune
from encore.papers.prat.generator import csbm

with job(snakemake) as (input, output, params):
    shared = {name: value for name, value in params.csbm.items() if name != "h"}
    graphs = [
        csbm(h=h, seed=seed, **shared)
        for h in params.tuning["h"]
        for seed in params.tuning["csbm_seeds"]
    ]
    write_json(output[0], tune(graphs, params.methods, [0], **params.plan))
