"""Stage 1 for every plant, net and seed of one data set."""

from encore.core.job import job, read_json, write_tensors
from encore.core.metrics import Table
from encore.papers.lyapunov_observer.evaluation import cases
from encore.papers.lyapunov_observer.observer import pack
from encore.papers.lyapunov_observer.pretrain import pretrain_pointwise

with job(snakemake) as (input, output, params):
    dataset, options = snakemake.wildcards.dataset, params.options
    table, observers = Table("lyapunov_observer"), {}
    for case in cases(**read_json(input.data), **params.plan):
        obs = observers[case.key] = case.fresh(params.eps)
        report = pretrain_pointwise(obs, params.rho, params.M_w, seed=case.seed, **options)
        print(f"{case.key}: {report}")
        row = {"dataset": dataset, "method": "point_only", "seed": case.seed} | case.factors()
        for metric in ("violation_rate", "margin_rate", "steps"):
            table.add(metric=metric, value=getattr(report, metric), better="lower", **row)
        table.add(
            metric="pretrain_seconds", value=report.seconds, unit="s", better="lower",
            timing=True, **row,
        )  # fmt: skip
    write_tensors(output.models, pack(observers))
    table.write(output.runs)
    table.write_timings(output.timings)
