"""Stage 2 from pre-trained weights (two_stage) and from random ones (lmi_only), counted and timed.

On the main net stage 1 is repeated before stage 2, so that both methods are timed in one process;
"fast" rows give both methods a five times larger step.
"""

from encore.core.job import job, read_json, read_tensors, write_npz, write_tensors
from encore.core.metrics import Table
from encore.papers.lyapunov_observer.evaluation import cases
from encore.papers.lyapunov_observer.lmi import finetune_lmi
from encore.papers.lyapunov_observer.observer import pack, unpack
from encore.papers.lyapunov_observer.pretrain import pretrain_pointwise

with job(snakemake) as (input, output, params):
    dataset, plan = snakemake.wildcards.dataset, list(cases(**read_json(input.data), **params.plan))
    start, trained, table = unpack(read_tensors(input.models)), {}, Table("lyapunov_observer")
    curves, clocks = {}, {}
    pretrain_pointwise(plan[0].fresh(params.eps), max_steps=5)  # warm up
    for case in plan:
        variants = [("given", 1.0), ("fast", 5.0)] if case.role == "main" else [("given", 1.0)]
        methods = ["two_stage", "lmi_only"] if case.role != "other" else ["two_stage"]
        for method, (rate, factor) in ((m, v) for m in methods for v in variants):
            obs, seconds = case.fresh(params.eps), 0.0
            if method == "two_stage" and case.role == "main":
                seconds = pretrain_pointwise(
                    obs, params.rho, params.M_w, seed=case.seed, **params.pretrain
                ).seconds
            elif method == "two_stage":
                obs = unpack(pack({case.key: start[case.key]}))[case.key]
            options = params.options | {"learning_rate": params.options["learning_rate"] * factor}
            report = finetune_lmi(obs, params.rho, **options)
            print(f"{case.key} {method} {rate}: {report}, stage 1 {seconds:.2f} s")
            row = {"dataset": dataset, "method": method, "seed": case.seed, "rate": rate}
            row |= case.factors() | {"better": "lower"}
            table.add(metric="iterations", value=report.iterations, **row)
            if rate == "given":
                trained[f"{case.system.name}/{case.net}/{method}/{case.seed}"] = obs
            if case.role == "main":
                name = f"{method}/{rate}/{case.seed}"
                curves[name], clocks[name] = report.history, seconds + report.clock
                for metric, value in (
                    ("lmi_seconds", report.seconds),
                    ("stage1_seconds", seconds),
                    ("total_seconds", seconds + report.seconds),
                ):
                    table.add(metric=metric, value=value, unit="s", timing=True, **row)
    write_tensors(output.models, pack(trained))
    write_npz(output.curves, **curves)
    write_npz(output.clocks, **clocks)
    table.write(output.runs)
    table.write_timings(output.timings)
