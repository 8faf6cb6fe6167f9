"""Vortex street behind a cylinder: frames of its wake, and the numbers that check the solver."""

from encore.core.job import job, write_npz
from encore.core.metrics import Table
from encore.papers.lyapunov_observer.lbm import LatticeBoltzmann, record, strouhal

with job(snakemake) as (input, output, params):
    grid = params.flow
    flow = LatticeBoltzmann(
        grid["nx"],
        grid["ny"],
        diameter=grid["diameter"],
        reynolds=grid["reynolds"],
        speed=grid["speed"],
        shape=grid["shape"],
    )
    wake = record(
        flow,
        warm_up=grid["warm_up"],
        frames=grid["frames"],
        every=grid["every"],
        window=tuple(grid["window"]),
    )
    write_npz(output.frames, **wake, solid=flow.solid, window=grid["window"])
    table = Table("lyapunov_observer")
    common = {"dataset": "auv", "method": "lattice_boltzmann", "seed": 0}
    drift = abs(wake["mass"][1] / wake["mass"][0] - 1)
    table.add(**common, metric="mass_change", value=drift)
    table.add(**common, metric="wake_speed", value=abs(wake["probe"]).max())
    try:
        number, reason = strouhal(wake["probe"], flow.diameter, flow.speed), ""
    except ValueError as error:
        number, reason = float("nan"), str(error)
    table.add(**common, metric="strouhal", value=number, reason=reason)
    print(f"{flow.steps} steps, Strouhal number {number:.4f}, mass change {drift:.2e}")
    table.write(output.runs)
