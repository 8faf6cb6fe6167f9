"""Draw the figures named in the configuration from the table of metrics."""

from pathlib import Path

from encore.core.figures import save_svg
from encore.core.job import job, read_json
from encore.core.metrics import read
from encore.papers.portfolio.plots import FIGURES

with job(snakemake) as (input, output, params):
    table = read(input.table)
    cards = dict(zip(params.datasets, map(read_json, input.cards), strict=True))
    for path in output:
        save_svg(FIGURES[Path(path).stem](table, params.datasets, cards), path)
