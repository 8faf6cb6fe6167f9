"""Take-off and landing in ground effect: all methods tuned alike, then compared on other seeds."""

import numpy as np

from encore.core.job import job, write_npz
from encore.core.metrics import Table
from encore.papers.lyapunov_observer.comparison import gain_rows, study, tracking_rows
from encore.papers.lyapunov_observer.linear_systems import UncertainLTI
from encore.papers.lyapunov_observer.quadrotor import NOISE, QuadrotorGroundEffect, flights, maker

with job(snakemake) as (input, output, params):
    plan = params.vehicles
    system = UncertainLTI(*QuadrotorGroundEffect().design_matrices(), name="quadrotor")
    result = study(
        system,
        maker,
        lambda seeds: flights(seeds, seconds=plan["seconds"]["quadrotor"]),
        plan,
        NOISE,
    )
    table = Table("lyapunov_observer")
    phases = ["takeoff", "landing"]
    for row in [*tracking_rows(result, phases, plan["judging_seeds"]), *gain_rows(result)]:
        table.add(dataset="quadrotor", **row)
    table.write(output.runs)
    for candidate in result.chosen:
        print(candidate.method, candidate.network, candidate.bandwidth, candidate.parameter)
    write_npz(
        output.paths,
        methods=np.array([candidate.method for candidate in result.chosen]),
        time=result.mission.dt * np.arange(len(result.mission.reference)),
        reference=result.mission.reference[:, :, 0, 0].astype(np.float32),
        position=result.flight.position[..., 0].astype(np.float32),
    )
