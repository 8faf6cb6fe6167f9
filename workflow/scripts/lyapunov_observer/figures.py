"""Figures of the learning side: LMI training, certificates, strategies, coverage."""

from encore.core.figures import save_svg
from encore.core.job import job, read_npz
from encore.core.metrics import read
from encore.papers.lyapunov_observer.plots import (
    certificates_figure,
    coverage_figure,
    strategies_figure,
    training_figure,
)

with job(snakemake) as (input, output, params):
    table, names = read(input.table), params.datasets
    curves = {name: read_npz(path) for name, path in zip(names, input.curves, strict=True)}
    balls = {name: read_npz(path) for name, path in zip(names, input.balls, strict=True)}
    save_svg(training_figure(curves), output.iterations)
    save_svg(certificates_figure(table), output.certificates)
    save_svg(strategies_figure(table, names), output.strategies)
    save_svg(coverage_figure(table, balls), output.coverage)
