"""Rigorous certificates of every trained observer, and the estimation error of the strategies."""

import numpy as np

from encore.core.job import job, read_json, read_npz, read_tensors, write_json
from encore.core.metrics import Table
from encore.papers.lyapunov_observer.estimation import estimation_errors
from encore.papers.lyapunov_observer.evaluation import cases
from encore.papers.lyapunov_observer.lmi import verify_certificate
from encore.papers.lyapunov_observer.observer import unpack
from encore.papers.lyapunov_observer.sdp import sdp_observer

NUMBERS = {"valid": "higher", "lambda_max": "lower", "condition": "lower", "bound": "lower"}

with job(snakemake) as (input, output, params):
    dataset, table = snakemake.wildcards.dataset, Table("lyapunov_observer")
    data, certificates, strategies = read_json(input.data), {}, {}
    points, tuned = (unpack(read_tensors(path)) for path in (input.pretrained, input.finetuned))
    solutions = read_npz(input.solutions)
    for case in cases(**data, **params.plan):
        found = {"point_only": points[case.key]}
        for method in ("two_stage", "lmi_only"):
            key = f"{case.system.name}/{case.net}/{method}/{case.seed}"
            found |= {method: tuned[key]} if key in tuned else {}
        if case.role == "main" and f"{case.seed}/P" in solutions:
            found["direct_sdp"] = sdp_observer(case.fresh(params.eps), solutions, f"{case.seed}/")
        for method, obs in found.items():
            result = verify_certificate(obs, params.rho, params.M_w)
            row = {"dataset": dataset, "method": method, "seed": case.seed} | case.factors()
            for metric, better in NUMBERS.items():
                value = float(getattr(result, metric))
                if result.valid or metric == "valid":
                    table.add(metric=metric, value=value, better=better, **row)
            record = {name: getattr(result, name) for name in ("valid", "violated", "rho")}
            if result.valid:
                record |= {
                    name: getattr(result, name)
                    for name in ("lambda_max", "delta", "condition", "rate", "bound")
                }
                record |= {"P": result.P.tolist(), "Lambda": result.Lambda.tolist()}
            certificates[f"{case.key}/{method}"] = record
            if case.role == "main":
                strategies.setdefault(method, []).append((case, obs))
    write_json(output.certificates, certificates)
    for method, pairs in strategies.items():
        plans, observers = zip(*pairs, strict=True)
        seeds = [case.seed for case in plans]
        for metric, values in estimation_errors(observers, seeds, **params.estimation).items():
            table.add(
                dataset=dataset, method=method, seed=seeds, metric=metric, value=values,
                better="lower" if metric == "estimation_mse" else "higher",
                reason=np.where(np.isnan(values), "no successful trial", ""),
                **plans[0].factors(),
            )  # fmt: skip
    table.write(output.runs)
