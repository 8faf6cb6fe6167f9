"""CPU time of a decode step against the number of keys."""

from encore.core.figures import save_svg
from encore.core.job import job
from encore.core.metrics import read
from encore.papers.louver.plots import latency_figure

with job(snakemake) as (input, output, params):
    save_svg(latency_figure(read(input.table)), output[0])
