"""Matrices of the plants of one data set: scaled, with outputs and disturbance channels."""

from encore.core.job import job, read_json, write_json
from encore.papers.lyapunov_observer.linear_systems import model_from_record

with job(snakemake) as (input, output, params):
    dataset = snakemake.wildcards.dataset
    models = read_json(input.raw)["models"]
    names = [params.main[dataset], *params.others[dataset]]
    systems = {name: model_from_record(models[name], name).to_dict() for name in names}
    write_json(output[0], {"main": names[0], "systems": systems})
