"""Figures of the simulations: success under mismatch, the quadrotor's height, the vortex street."""

from encore.core.figures import save_svg
from encore.core.job import job, read_npz
from encore.core.metrics import read
from encore.papers.lyapunov_observer.vehicle_plots import (
    auv_figure,
    quadrotor_figure,
    robustness_figure,
)

with job(snakemake) as (input, output, params):
    table = read(input.metrics)
    save_svg(robustness_figure(table), output.robustness)
    save_svg(quadrotor_figure(table, read_npz(input.quadrotor)), output.quadrotor)
    save_svg(auv_figure(table, read_npz(input.auv), read_npz(input.wake)), output.auv)
