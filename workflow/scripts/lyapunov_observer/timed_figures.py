"""Largest eigenvalue over wall time, stage 1 included."""

from encore.core.figures import save_svg
from encore.core.job import job, read_npz
from encore.core.metrics import read
from encore.papers.lyapunov_observer.plots import training_figure

with job(snakemake) as (input, output, params):
    names = params.datasets
    curves = {name: read_npz(path) for name, path in zip(names, input.curves, strict=True)}
    clocks = {name: read_npz(path) for name, path in zip(names, input.clocks, strict=True)}
    save_svg(training_figure(curves, clocks, read(input.table)), output[0])
