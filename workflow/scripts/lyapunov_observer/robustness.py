"""Success under structured mismatch: certified networks of every size, and tuned linear observers."""

import numpy as np

from encore.core.job import job, read_json, read_tensors
from encore.core.metrics import Table
from encore.papers.lyapunov_observer.linear_systems import UncertainLTI
from encore.papers.lyapunov_observer.observer import unpack
from encore.papers.lyapunov_observer.simulate import closed_loop, draw_trials, tuned_baselines

with job(snakemake) as (input, output, params):
    options, dataset = params.options, snakemake.wildcards.dataset
    record = read_json(input.data)
    system = UncertainLTI.from_dict(record["systems"][record["main"]])
    trained = unpack(read_tensors(input.models))
    nets = {
        net: [trained[f"{system.name}/{net}/two_stage/{seed}"] for seed in params.seeds]
        for net in params.nets
    }
    run = {name: options[name] for name in ("sigmas", "seconds", "dt")}
    tuning = draw_trials(system, options["trials"], options["tuning_seeds"])
    grid = {"eso": options["omega_0"], "lqe": options["lqe"]}
    baselines = tuned_baselines(system, tuning, grid, **run)
    for method, (_, value) in baselines.items():
        print(f"{method}: tuned to {value:g}")
    observers = nets | {method: observer for method, (observer, _) in baselines.items()}
    trials, table = draw_trials(system, options["trials"], params.seeds), Table("lyapunov_observer")
    sigma = run.pop("sigmas")
    for method, observer in observers.items():
        outcome = closed_loop(system, observer, trials, sigma=sigma, **run)
        for s, seed in enumerate(params.seeds):
            for k, level in enumerate(sigma):
                good = outcome.success[s, k]
                row = {"dataset": dataset, "method": method, "seed": seed, "sigma": level}
                table.add(
                    **row, metric="success", value=good, better="higher", trial=range(len(good))
                )
                table.add(**row, metric="successes", value=good.sum(), better="higher")
                errors = {"state": outcome.state_mse, "disturbance": outcome.disturbance_mse}
                for name, values in errors.items():
                    value = values[s, k][good].mean() if good.any() else np.nan
                    reason = "" if good.any() else "no trial succeeded"
                    common = {"value": value, "reason": reason, "better": "lower"}
                    table.add(**row, metric=f"{name}_mse", **common)
    table.write(output.runs)
