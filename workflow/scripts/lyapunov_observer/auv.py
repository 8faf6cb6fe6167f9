"""Crossing the vortex street: all methods tuned alike, then compared on other seeds."""

import numpy as np

from encore.core.job import job, read_npz, write_npz
from encore.core.metrics import Table
from encore.papers.lyapunov_observer.auv import NOISE, crossings, in_record, maker
from encore.papers.lyapunov_observer.comparison import gain_rows, study, tracking_rows
from encore.papers.lyapunov_observer.linear_systems import UncertainLTI

with job(snakemake) as (input, output, params):
    plan = params.vehicles
    auv, path = in_record(read_npz(input.frames), params.flow)
    result = study(
        UncertainLTI(*auv.design_matrices(), name="auv"),
        lambda mass: maker(auv, mass),
        lambda seeds: crossings(auv, seeds, seconds=plan["seconds"]["auv"], **path),
        plan,
        NOISE,
    )
    table = Table("lyapunov_observer")
    for row in [*tracking_rows(result, ["crossing"], plan["judging_seeds"]), *gain_rows(result)]:
        table.add(dataset="auv", **row)
    table.write(output.runs)
    for candidate in result.chosen:
        print(candidate.method, candidate.network, candidate.bandwidth, candidate.parameter)
    write_npz(
        output.paths,
        methods=np.array([candidate.method for candidate in result.chosen]),
        time=result.mission.dt * np.arange(len(result.mission.reference)),
        reference=result.mission.reference[:, :, 0].astype(np.float32),
        position=result.flight.position.astype(np.float32),
        cell=auv.cell,
    )
