"""Figures that show times: the backward over the size, and the table of tasks."""

from encore.core.figures import save_svg
from encore.core.job import job
from encore.core.metrics import read
from encore.papers.sparse_sos.timing_plots import backward_figure, tasks_figure

with job(snakemake) as (input, output, params):
    metrics, timings = read(input.metrics), read(input.timings)
    paths = {path.split("/")[-1].removesuffix(".svg"): path for path in output}
    save_svg(backward_figure(timings), paths["backward"])
    save_svg(tasks_figure(metrics, timings, params.datasets), paths["tasks"])
