"""Draw the figures of measured times."""

from pathlib import Path

from encore.core.figures import save_svg
from encore.core.job import job
from encore.core.metrics import read
from encore.papers.portfolio.plots import FIGURES

with job(snakemake) as (input, output, params):
    table = read(input.table)
    for path in output:
        save_svg(FIGURES[Path(path).stem](table, params.datasets, None), path)
