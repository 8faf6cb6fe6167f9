"""The two theorems by brute force: certified balls, and coverage of a ring of error states."""

import numpy as np
import torch

from encore.core.job import job, read_json, read_tensors, write_npz
from encore.core.metrics import Table
from encore.papers.lyapunov_observer.coverage import Ring, certified_floor, covered
from encore.papers.lyapunov_observer.evaluation import cases, log_linearity, rate_loop
from encore.papers.lyapunov_observer.lyapunov import (
    F_V,
    coverage_bound,
    local_radius,
    points_in_balls,
    sample_shell,
)
from encore.papers.lyapunov_observer.network import ObserverNet
from encore.papers.lyapunov_observer.observer import NeuralObserver, unpack
from encore.papers.lyapunov_observer.pretrain import pretrain_pointwise

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
    plant = rate_loop(case.system, params.rate_state[dataset])
    hidden = params.plan["nets"][options["plane_net"]]
    plane = NeuralObserver(plant, ObserverNet(1, 1, 1, hidden, seed=case.seed), params.eps)
    training = params.pretrain | {"xi": options["xi"], "max_steps": options["max_steps"]}
    pretrain_pointwise(plane, *bounds, seed=case.seed, **training)
    ring = Ring(options["r_min"], options["r_max"])
    floor = certified_floor(plane, ring, *bounds, pitch=options["pitch"])
    n_cov, q = ring.cover(floor)
    counts, rng = np.array(options["samples"]), np.random.default_rng(case.seed)
    guaranteed = coverage_bound(n_cov, q, counts)
    print(f"floor {floor:.4f}, N_cov {n_cov}, q {q:.2e}, bound {guaranteed}")
    shares, first = {"least_radius": [], "own_radius": []}, None
    for _ in range(options["repeats"]):
        samples = ring.sample(counts[-1], rng)
        own = np.zeros(len(samples))  # of the first samples; none of the later ones is counted
        head = torch.from_numpy(samples[: options["own"]])
        own[: options["own"]] = local_radius(plane, head, *bounds).numpy()
        first = (samples, own) if first is None else first
        for method, radius in (("least_radius", floor), ("own_radius", own)):
            shares[method].append(covered(ring, samples, radius, counts, floor / 4))
    for method, values in shares.items():
        values, T = np.array(values), {"samples": counts}
        full = (values == 1).mean(0)
        add = {"method": method, **row}
        table.add(metric="covered_share", value=values.mean(0), better="higher", **add, **T)
        table.add(metric="covered_fully", value=full, better="higher", **add, **T)
        table.add(metric="coverage_gap", value=full - guaranteed, better="higher", **add, **T)
        table.add(metric="coverage_bound", value=guaranteed, **add, **T)
        if method == "least_radius":
            fit = log_linearity(counts, values.mean(0))
            table.add(metric="log_linearity", value=fit, better="higher", **add)
            open_share = 1 - values.mean(0)
            table.add(
                metric="log10_uncovered", value=np.log10(open_share[open_share > 0]),
                better="lower", **add, samples=counts[open_share > 0],
            )  # fmt: skip
    shown = options["shown"]
    write_npz(
        output.balls, samples=first[0][:shown], radii=first[1][:shown], floor=np.array(floor),
        n_cov=np.array(n_cov), ring=np.array([ring.r_min, ring.r_max]),
    )  # fmt: skip
    table.write(output.runs)
