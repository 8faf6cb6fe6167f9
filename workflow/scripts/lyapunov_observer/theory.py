"""The two theorems by brute force: certified balls, and coverage of a ring of error states."""

import numpy as np
import torch

from encore.core.job import job, read_json, read_tensors, write_npz
from encore.core.metrics import Table
from encore.papers.lyapunov_observer.coverage import Ring, coverage_experiment, observer_of_ring
from encore.papers.lyapunov_observer.evaluation import cases, log_linearity, rate_loop
from encore.papers.lyapunov_observer.lyapunov import (
    F_V,
    local_radius,
    points_in_balls,
    sample_shell,
)
from encore.papers.lyapunov_observer.observer import unpack

with job(snakemake) as (input, output, params):
    dataset, table, options = snakemake.wildcards.dataset, Table("lyapunov_observer"), params.theory
    plan = [case for case in cases(**read_json(input.data), **params.plan) if case.role == "main"]
    case, bounds = plan[0], (params.rho, params.M_w)
    row = {"dataset": dataset, "seed": case.seed} | case.factors()

    # balls around states of the shell, certified for the observer after stage 1
    obs = unpack(read_tensors(input.models))[case.key]
    draw = torch.Generator().manual_seed(case.seed)
    shell = (params.pretrain["r_min"], params.pretrain["r_max"])
    centres = sample_shell(options["balls"], obs.size, *shell, draw)
    radii = local_radius(obs, centres, *bounds)
    points = points_in_balls(centres, radii, options["points"], draw)
    wrong = ((F_V(obs, points, *bounds) > 0) & (radii > 0)[:, None]).sum(-1)
    ball = {"ball": np.arange(len(radii)), "method": "point_only"}
    table.add(metric="ball_violations", value=wrong.numpy(), better="lower", **row, **ball)
    table.add(metric="ball_radius", value=radii.numpy(), **row, **ball)

    # coverage of a ring in the plane (rate error, disturbance error) of a one-state plant
    seed, plant = options["seed"], rate_loop(case.system, params.rate_state[dataset])
    hidden = params.plan["nets"][options["plane_net"]]
    training = params.pretrain | {"xi": options["xi"], "max_steps": options["max_steps"]}
    ring, counts = Ring(options["r_min"], options["r_max"]), np.array(options["samples"])
    plane, floor, tries = observer_of_ring(
        plant, hidden, params.eps, ring, *bounds, training, options["pitch"], seed
    )
    found = coverage_experiment(plane, ring, floor, counts, *bounds, options, seed)
    print(f"{tries} seeds, floor {floor:.4f}, N_cov {found['n_cov']}, bound {found['bound']}")
    for method in ("least_radius", "own_radius"):
        values, add = found[method], row | {"seed": seed, "method": method, "better": "higher"}
        share, full = values.mean(0), (values == 1).mean(0)
        for metric, value in (
            ("covered_share", share),
            ("covered_fully", full),
            ("coverage_gap", full - found["bound"]),
            ("coverage_bound", found["bound"]),
            ("largest_bound", found["bound"].max()),
        ):
            table.add(metric=metric, value=value, samples=counts, **add)
        if method == "least_radius":
            table.add(metric="log_linearity", value=log_linearity(counts, share), **add)
            rest, some = 1 - share, share < 1
            add = add | {"value": np.log10(rest[some]), "samples": counts[some], "better": "lower"}
            table.add(metric="log10_uncovered", **add)
    drawn = {name: found[name][: options["shown"]] for name in ("samples", "radii")}
    drawn |= {"floor": np.array(floor), "n_cov": found["n_cov"]}
    write_npz(output.balls, **drawn, ring=np.array([ring.r_min, ring.r_max]))
    table.write(output.runs)
