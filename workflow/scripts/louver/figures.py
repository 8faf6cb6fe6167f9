"""Figures that do not depend on a clock."""

from pathlib import Path

from encore.core.figures import save_svg
from encore.core.job import job
from encore.core.metrics import read
from encore.papers.louver import plots

with job(snakemake) as (input, output, params):
    table = read(input.table)
    for path in output:
        save_svg(getattr(plots, f"{Path(path).stem}_figure")(table), path)
