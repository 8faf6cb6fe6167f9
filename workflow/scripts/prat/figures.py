"""All figures: the index, accuracies, gains, learned metrics, signed attention, the sweep over homophily."""

from encore.core.figures import save_svg
from encore.core.job import job, read_npz
from encore.core.metrics import read
from encore.papers.prat import plots

with job(snakemake) as (input, output, params):
    table = read(input.table)
    real, drawn = {}, {}
    for fit, path in zip(params.fits, input.models, strict=True):
        (drawn if fit.startswith("csbm") else real).update(read_npz(path))
    figures = {
        "index": plots.index_figure(table),
        "accuracy": plots.accuracy_figure(table),
        "gains": plots.gains_figure(table),
        "metric": plots.metric_figure(real or drawn),
        "attention": plots.attention_figure(real or drawn),
        "sweep": plots.sweep_figure(table),
        "alignment": plots.alignment_figure(table),
    }
    for name, path in zip(params.names, output, strict=True):
        save_svg(figures[name], path)
